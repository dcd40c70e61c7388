"""Certified global bounds: columns, one linear program, pricing, and certificates that are checked without a solver."""
