"""Measurements. Every figure is a ratio within one run: machines are shared and noisy."""
