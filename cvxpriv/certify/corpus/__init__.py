"""Problems with known answers: adversarial families, liars, files, and the tests of cvxpy itself."""
