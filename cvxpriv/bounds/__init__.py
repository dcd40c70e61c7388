"""Certified global bounds: columns, one linear program, pricing, and certificates that need no trust in a solver."""
