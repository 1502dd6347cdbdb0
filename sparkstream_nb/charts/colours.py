"""The colours of charts: Okabe and Ito's, which the colour-blind tell apart."""

from __future__ import annotations

from collections.abc import Mapping

COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442", "#999999")
VERDICT_COLOURS: Mapping[str, str] = {
    "same": "#999999", "lost": "#D55E00", "spurious": "#E69F00", "late": "#0072B2", "duplicated": "#009E73",
}  # fmt: skip
