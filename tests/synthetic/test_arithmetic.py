"""Functions by basic operations against those of libraries."""

from __future__ import annotations

import math
from statistics import NormalDist

import numpy as np
import pytest

from sparkstream_nb.seeded import uniforms, words
from sparkstream_nb.synthetic import ieee_arithmetic


def test_logarithms_and_powers_are_those_of_the_library() -> None:
    x = np.concatenate([np.exp(np.linspace(-600, 600, 5001)), 1 + np.linspace(-1e-3, 1e-3, 1001)])
    assert ieee_arithmetic.natural_log(x) == pytest.approx([math.log(v) for v in x], rel=1e-13)
    y = np.linspace(-600, 600, 5001)
    assert ieee_arithmetic.exponential(y) == pytest.approx([math.exp(v) for v in y], rel=1e-13)


def test_normal_quantiles_are_those_of_the_library() -> None:
    u = np.concatenate([np.linspace(1e-12, 1 - 1e-12, 5001), [1e-300, 0.5, 0.075, 0.925]])
    expected = [NormalDist().inv_cdf(v) if v > 2.0**-54 else NormalDist().inv_cdf(2.0**-54) for v in u]
    assert ieee_arithmetic.unit_normals(u) == pytest.approx(expected, rel=1e-12, abs=1e-12)
    assert np.isfinite(ieee_arithmetic.unit_normals(np.array([0.0, 1 - 2.0**-53]))).all()


@pytest.mark.parametrize("span", [1, 3, 2**32, 2**32 + 1, 2**53 + 11, 2**64 - 1, 2**64])
def test_words_are_scaled_by_their_upper_half(span: int) -> None:
    found = ieee_arithmetic.scale_words(words(1, "w", 500), span).tolist()
    if span <= 2**32:
        expected = [(w >> 32) * span >> 32 for w in words(1, "w", 500).tolist()]
    else:
        expected = [w * span >> 64 for w in words(1, "w", 500).tolist()]
    assert found == expected


def test_many_are_picked_by_weight_as_few_are() -> None:
    thresholds = ieee_arithmetic.cumulate_weights(np.array([5.0, 0.0, 1.0, 1e-9, *np.full(3000, 0.001)]))
    drawn = words(3, "w", 2**16 + 5)
    many = ieee_arithmetic.pick_weighted(drawn, thresholds)
    few = np.concatenate([ieee_arithmetic.pick_weighted(part, thresholds) for part in np.array_split(drawn, 3)])
    assert (many == few).all()
    assert 1 not in many
    assert np.bincount(many)[0] / len(many) == pytest.approx(5 / 9, abs=0.01)


def test_moments() -> None:
    u = uniforms(1, "u", 200_000)
    assert ieee_arithmetic.unit_exponentials(u).mean() == pytest.approx(1, abs=0.01)
    normals = ieee_arithmetic.unit_normals(u)
    assert (normals.mean(), normals.std()) == pytest.approx((0, 1), abs=0.01)
