"""The width of pictures, and their colours: Okabe and Ito's, which the colour-blind tell apart."""

from __future__ import annotations

BLUE, ORANGE, GREEN, PINK = "#0072B2", "#E69F00", "#009E73", "#CC79A7"
SKY, RED, YELLOW, GREY = "#56B4E9", "#D55E00", "#F0E442", "#999999"
COLOURS = (BLUE, ORANGE, GREEN, PINK, SKY, RED, YELLOW, GREY)
WIDTH = 900
"""The width (px) of a picture that is saved."""
_DARK = frozenset({BLUE, GREEN, RED})


def ink_on(colour: str) -> str:
    """The ink that reads on a ground of this colour: white on the dark ones of `COLOURS`, else black."""
    return "#fff" if colour in _DARK else "#111"
