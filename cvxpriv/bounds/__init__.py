"""Certified global bounds: columns, one linear program, pricing, and certificates that no solver has to be trusted for."""
