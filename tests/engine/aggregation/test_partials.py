"""Ids of (bucket, group) pairs."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from sparkstream_nb.engine.aggregation.partials import group_rows


@given(
    seed=st.integers(0, 2**32 - 1),
    n=st.integers(1, 3000),
    buckets=st.integers(1, 40),
    groups=st.sampled_from([1, 3, 100, 100_000]),
    falls=st.floats(0, 1),
)
def test_ids_of_pairs_in_the_order_of_their_first_rows(
    seed: int, n: int, buckets: int, groups: int, falls: float
) -> None:
    """In order at first, then from some row on in any order."""
    random = np.random.default_rng(seed)
    bucket = np.sort(random.integers(0, buckets, n)) * 1000
    cut = int(falls * n)
    bucket[cut:] = random.permutation(bucket)[cut:]
    group = random.integers(0, groups, n).astype(np.int32)
    ids, first = group_rows(bucket, group)
    known: dict[tuple[int, int], int] = {}
    wanted = [known.setdefault(pair, len(known)) for pair in zip(bucket.tolist(), group.tolist(), strict=True)]
    assert ids.tolist() == wanted
    assert first.tolist() == [wanted.index(k) for k in range(len(known))]
