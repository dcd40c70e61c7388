"""Problems whose answers are known: adversarial families, liars, files, and the tests of cvxpy itself."""
