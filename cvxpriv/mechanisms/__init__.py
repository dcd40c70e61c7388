"""Mechanisms P(Y|X): their content, saving, application to rows, and disclosure."""
