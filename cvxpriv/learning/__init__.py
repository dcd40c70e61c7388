"""Learning for people: encodings with public bounds, labels, linear fits, scores, and the base of the estimators."""
