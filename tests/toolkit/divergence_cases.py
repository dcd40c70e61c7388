"""Divergences that several tests share: the built-in ones by name, and as people might type them."""

from __future__ import annotations

#: Every built-in divergence, the families at numbers that reach each of their DCP forms.
BUILT_IN = (
    "mutual-information",
    "reverse-kl",
    "jensen-shannon",
    "le-cam",
    "hellinger",
    "chi-square",
    "neyman",
    "alpha:0.5",
    "alpha:3",
    "alpha:-1",
    "total-variation",
    "hockey-stick:2",
)
NOT_STRICT = ("total-variation", "hockey-stick:2")

TEXTS = {
    "mutual-information": "-log(t)",
    "reverse-kl": "t*log(t)",
    "jensen-shannon": "t*log(2*t/(t+1)) + log(2/(t+1))",
    "le-cam": "(1-t)**2/(2*t+2)",
    "hellinger": "(1-sqrt(t))**2",
    "chi-square": "(t-1)**2/t",
    "neyman": "(1-t)**2",
    "total-variation": "abs(t-1)/2",
    "alpha:3": "(t**-2 - 1)/6",
    "alpha:0.3": "(t**0.7 - 1)/(-0.21)",
    "hockey-stick:1.5": "max(1 - 1.5*t, 0)",
}
