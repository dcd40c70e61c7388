"""The solver registry, and one solve along a chain of solvers."""
