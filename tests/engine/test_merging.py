"""Rows of several writers come in one order: by order key, of one order key those of the earlier writer first."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from sparkstream_nb.engine.columnar.k_way_merge import merge_order

RUN = st.lists(st.integers(-3, 12), max_size=12).map(lambda x: np.array(sorted(x), np.int64))


@settings(deadline=None)
@given(st.lists(RUN, min_size=1, max_size=5))
def test_as_a_stable_sort(runs: list[np.ndarray]) -> None:
    order = merge_order(runs)
    laid = np.concatenate(runs)
    assert order.tolist() == np.argsort(laid, kind="stable").tolist()
    assert laid[order].tolist() == sorted(laid.tolist())
