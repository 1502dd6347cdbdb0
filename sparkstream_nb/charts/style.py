"""The width of pictures, and their colours: Okabe and Ito's, which the colour-blind tell apart."""

from __future__ import annotations

COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442", "#999999")
WIDTH = 900
"""The width (px) of a picture that is saved."""
