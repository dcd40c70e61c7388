"""cvxpriv."""
