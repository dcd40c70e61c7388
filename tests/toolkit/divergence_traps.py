"""A generator of texts that look like a known divergence at most points, and are another one, or none, elsewhere."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

__all__ = ["Trap", "hidden_dips", "hidden_parts"]

#: Convex texts with f(1) = 0 and their f'', to be hidden behind.
BASES = {
    "(t-1)**2": lambda t: 2.0,
    "t*log(t)": lambda t: 1.0 / t,
    "-log(t)": lambda t: 1.0 / t**2,
    "(1-sqrt(t))**2": lambda t: 0.5 * t**-1.5,
    "(t-1)**2/(t+1)": lambda t: 8.0 / (t + 1.0) ** 3,
    "t*log(2*t/(t+1)) + log(2/(t+1))": lambda t: 1.0 / (t * (t + 1.0)),
    "abs(t-1)/2 + (t-1)**4/100": lambda t: 0.12 * (t - 1.0) ** 2,
    "sqrt(1+(t-1)**2) - 1": lambda t: (1.0 + (t - 1.0) ** 2) ** -1.5,
}


@dataclass(frozen=True)
class Trap:
    """A text, and a t near which it differs from the text that it hides behind."""

    text: str
    t: float


def hidden_dips(seed: int, count: int) -> list[Trap]:
    """Texts with a bump whose curvature is at least twice that of the base, the other way: not convex near t."""
    random = np.random.default_rng(seed)
    traps = []
    for _ in range(count):
        base = str(random.choice(list(BASES)))
        t = float(np.round(np.exp(random.uniform(np.log(0.02), np.log(200.0))), 6))
        width = float(np.round(t * 10.0 ** random.uniform(-4.0, -1.0), 9))
        size = 4.0 * BASES[base](t) * width**2
        away = f"((t-{t:.6f})/{width:.9f})**2"
        bump = f"exp(-{away})" if random.random() < 0.5 else f"1/(1+{away})"
        at_one = bump.replace("(t-", "(1-")
        sign = "-" if random.random() < 0.5 else "+"
        other = "+" if sign == "-" else "-"
        traps.append(Trap(f"{base} {sign} {size:.12f}*{bump} {other} {size:.12f}*{at_one}", t))
    return [one for one in traps if "0.000000000000*" not in one.text]


def hidden_parts(seed: int, count: int) -> list[Trap]:
    """Convex texts with a part that is 0 around 1 and anything but 0 near t."""
    random = np.random.default_rng(seed)
    traps = []
    for _ in range(count):
        base = str(random.choice(list(BASES)))
        far = float(np.round(np.exp(random.uniform(np.log(3.0), np.log(300.0))), 3))
        size = float(np.round(np.exp(random.uniform(np.log(0.01), np.log(50.0))), 3))
        part, t = [
            (f"pos(t**2-{far**2:.6f})", 2.0 * far),
            (f"pos(-log(t)-{np.log(far):.6f})", 0.3 / far),
            (f"pos(t-{far})**2", 2.0 * far),
            (f"max(0, 1/t-{far})", 0.4 / far),
            (f"pos(t*log(t)-{far * np.log(far):.6f})", 3.0 * far),
            (f"max(abs(t-1)-{far}, 0)", 3.0 * far),
            (f"pos(1/{far}-t)**1.5", 0.2 / far),
        ][random.integers(7)]
        traps.append(Trap(f"{base} + {size}*{part}", t))
    return traps
