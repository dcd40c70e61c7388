"""Schedules: the steps of an algorithm, and how they run from many starts at once."""
