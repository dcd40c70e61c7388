"""Learning from rows: encodings with public bounds, labels, linear fits, scores, and the base of the estimators."""
