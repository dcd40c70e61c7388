"""Runs: the results of models, and how they are saved and read again."""
