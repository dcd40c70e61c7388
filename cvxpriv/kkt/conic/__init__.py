"""Cone programs as solvers see them: projections on cones, raw answers, exact residuals, certified bounds."""
