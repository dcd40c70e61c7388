"""Runs: what a model returns, and how it is saved and read again."""
