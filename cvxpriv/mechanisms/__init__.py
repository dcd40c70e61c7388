"""Mechanisms P(Y|X): what they hold, how they are saved, applied to rows, and what they disclose."""
