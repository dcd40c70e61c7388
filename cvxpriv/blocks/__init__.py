"""Blocks: convex subproblems declared once in DCP, and the engines that solve them."""
