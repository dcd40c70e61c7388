"""Parties that are really apart: processes with their own data, which exchange checked vectors and nothing else."""
