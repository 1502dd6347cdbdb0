"""Ids of (bucket, group) pairs."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from sparkstream_nb.engine.aggregation.partials import group_rows


@st.composite
def pairs(draw: st.DrawFn) -> list[tuple[int, int]]:
    """(bucket, group) of rows: in the order of the buckets at first, then from some row on in any order."""
    pair = st.tuples(st.integers(0, 40), st.integers(0, draw(st.sampled_from([0, 2, 99, 99_999]))))
    ordered = draw(st.lists(st.lists(pair, max_size=30), max_size=30))
    return sorted((p for some in ordered for p in some), key=lambda p: p[0]) + draw(st.lists(pair))


@given(pairs().filter(bool), st.integers(1, 50))
def test_ids_of_pairs_in_the_order_of_their_first_rows(pairs: list[tuple[int, int]], times: int) -> None:
    """The same again `times` times, as few rows and many go different ways."""
    columns = np.array(pairs * times)
    bucket, group = columns[:, 0] * 1000, columns[:, 1].astype(np.int32)
    ids, first = group_rows(bucket, group)
    known: dict[tuple[int, int], int] = {}
    wanted = [known.setdefault(pair, len(known)) for pair in zip(bucket.tolist(), group.tolist(), strict=True)]
    assert ids.tolist() == wanted
    assert first.tolist() == [wanted.index(k) for k in range(len(known))]
