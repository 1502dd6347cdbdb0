"""What to say of an answer that is empty."""

from __future__ import annotations

import numpy as np

from ..spark.reach import Missed


def why_empty(found: Missed) -> str:
    """Why a retrieval found nothing: `nothing within 2014-01-01 ... 2015-01-01; T holds 2013-01-01 ... 2013-12-31`."""
    if found.held is None:
        return f"{found.aggregation} holds nothing yet"
    asked, held = _times(*found.asked), _times(*found.held)
    return f"nothing within {asked}; {found.aggregation} holds {held} (UTC)"


def _times(first: int, last: int) -> str:
    """`2013-01-01 ... 2013-12-31`, one time for two that are the same, with the time of day where there is one."""
    texts = [str(np.datetime64(ms, "ms")).replace("T", " ").removesuffix(".000") for ms in (first, last)]
    if all(text.endswith(" 00:00:00") for text in texts):
        texts = [text.removesuffix(" 00:00:00") for text in texts]
    return " ... ".join(dict.fromkeys(texts))
