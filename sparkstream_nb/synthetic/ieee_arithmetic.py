"""Functions of real numbers by basic IEEE operations: the same bits on every machine, which libraries do not promise.

numpy computes `log`, `exp` and `power` with the instructions of the processor, and its distributions may change with
its version. Additions, multiplications, divisions, square roots, `frexp` and `ldexp` have the same bits everywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

_LN2_HIGH, _LN2_LOW = 6.93147180369123816490e-01, 1.90821492927058770002e-10
"""ln 2 in two parts: the first has so few bits that its product with an exponent is exact."""
_SQRT_HALF = 0.7071067811865476
_BLOCK = 16_384
"""Rows that are computed at once: their intermediate results stay in the processor's cache."""


def compute_in_blocks(function: Callable[[Array], Array], x: Array) -> Array:
    """`function` of float64[n], block by block."""
    out = np.empty(len(x))
    for at in range(0, len(x), _BLOCK):
        out[at : at + _BLOCK] = function(x[at : at + _BLOCK])
    return out


def natural_log(x: Array) -> Array:
    """The natural logarithm of numbers above 0; its relative error is below 1e-14."""
    mantissa, exponent = np.frexp(x)
    small = mantissa < _SQRT_HALF
    mantissa = np.where(small, mantissa * 2.0, mantissa)
    e = (exponent - small).astype(np.float64)
    s = (mantissa - 1.0) / (mantissa + 1.0)
    square = s * s
    series = np.full_like(s, 1.0 / 23.0)
    for k in range(21, 0, -2):  # ln m = 2 (s + s³/3 + s⁵/5 + …)
        series = series * square + 1.0 / k
    log: Array = e * _LN2_HIGH + (2.0 * s * series + e * _LN2_LOW)
    return log


def exponential(x: Array) -> Array:
    """e to the power of numbers from -700 to 700; its relative error is below 1e-14."""
    k = np.rint(x * 1.4426950408889634)
    r = (x - k * _LN2_HIGH) - k * _LN2_LOW
    series = np.full_like(r, 1.0)
    for i in range(15, 0, -1):
        series = series * r / float(i) + 1.0
    power: Array = np.ldexp(series, k.astype(np.int32))
    return power


def power(base: Array, exponent: float) -> Array:
    """Numbers above 0 to a power."""
    return exponential(natural_log(base) * exponent)


def unit_exponentials(u: Array) -> Array:
    """Exponentially distributed numbers of mean 1, of uniform ones from 0 to below 1."""
    return compute_in_blocks(lambda v: -natural_log(1.0 - v), u)


_CENTRE = (
    (2.5090809287301226727e3, 3.3430575583588128105e4, 6.7265770927008700853e4, 4.5921953931549871457e4,
     1.3731693765509461125e4, 1.9715909503065514427e3, 1.3314166789178437745e2, 3.3871328727963666080e0),
    (5.2264952788528545610e3, 2.8729085735721942674e4, 3.9307895800092710610e4, 2.1213794301586595867e4,
     5.3941960214247511077e3, 6.8718700749205790830e2, 4.2313330701600911252e1, 1.0),
)  # fmt: skip
_TAIL = (
    (7.74545014278341407640e-4, 2.27238449892691845833e-2, 2.41780725177450611770e-1, 1.27045825245236838258e0,
     3.64784832476320460504e0, 5.76949722146069140550e0, 4.63033784615654529590e0, 1.42343711074968357734e0),
    (1.05075007164441684324e-9, 5.47593808499534494600e-4, 1.51986665636164571966e-2, 1.48103976427480074590e-1,
     6.89767334985100004550e-1, 1.67638483018380384940e0, 2.05319162663775882187e0, 1.0),
)  # fmt: skip
_FAR_TAIL = (
    (2.01033439929228813265e-7, 2.71155556874348757815e-5, 1.24266094738807843860e-3, 2.65321895265761230930e-2,
     2.96560571828504891230e-1, 1.78482653991729133580e0, 5.46378491116411436990e0, 6.65790464350110377720e0),
    (2.04426310338993978564e-15, 1.42151175831644588870e-7, 1.84631831751005468180e-5, 7.86869131145613259100e-4,
     1.48753612908506148525e-2, 1.36929880922735805310e-1, 5.99832206555887937690e-1, 1.0),
)  # fmt: skip
"""Coefficients of AS 241 (Wichura 1988), PPND16: numerator and denominator, the highest power first."""


def unit_normals(u: Array) -> Array:
    """Normally distributed numbers of mean 0 and deviation 1, of uniform ones from 0 to below 1 (AS 241)."""
    return compute_in_blocks(_normal_quantile, u)


def _normal_quantile(u: Array) -> Array:
    q = u - 0.5
    outer = np.abs(q) > 0.425
    square = q * q
    z = q * _ratio(_CENTRE, 0.180625 - square)
    if outer.any():
        tail = q[outer]
        p = np.where(tail < 0.0, u[outer], 1.0 - u[outer])
        r = np.sqrt(-natural_log(np.maximum(p, 2.0**-54)))
        far = np.where(r <= 5.0, _ratio(_TAIL, r - 1.6), _ratio(_FAR_TAIL, r - 5.0))
        z[outer] = np.where(tail < 0.0, -far, far)
    return z


def _ratio(coefficients: tuple[Sequence[float], Sequence[float]], x: Array) -> Array:
    """One polynomial divided by another."""
    numerator, denominator = (_polynomial(c, x) for c in coefficients)
    numerator /= denominator
    return numerator


def _polynomial(coefficients: Sequence[float], x: Array) -> Array:
    total = np.full_like(x, coefficients[0])
    for c in coefficients[1:]:
        total *= x
        total += c
    return total


def scale_words(words: Array, span: int) -> Array:
    """Whole numbers from 0 to below `span` (at most 2**64), of words of 64 bits: the upper half of their product."""
    if span == 2**64:
        return words
    low_bits, shift = np.uint64(0xFFFFFFFF), np.uint64(32)
    numbers: Array
    if span <= 2**32:
        numbers = ((words >> shift) * np.uint64(span)) >> shift
    else:
        a, b = words >> shift, words & low_bits
        c, d = np.uint64(span >> 32), np.uint64(span & 0xFFFFFFFF)
        middle = a * d + ((b * d) >> shift)
        other = b * c + (middle & low_bits)
        numbers = a * c + (middle >> shift) + (other >> shift)
    return numbers


def cumulate_weights(weights: Array) -> Array:
    """Thresholds of words of 32 bits, uint64[k], for `pick_weighted`. Weights are from 0, and not all 0."""
    cumulative = np.cumsum(weights)  # one after the other: the order of a sum is part of its bits
    thresholds: Array = np.rint(cumulative / cumulative[-1] * 2.0**32).astype(np.uint64)
    return thresholds


def pick_weighted(words: Array, thresholds: Array) -> Array:
    """Positions among weights, int64[n], of words of 64 bits."""
    upper_halves = words >> np.uint64(32)
    if len(words) < 2**16:
        return np.searchsorted(thresholds, upper_halves, side="right")
    # Where all words with the same first bits have one position, a table tells it; the others are few.
    edges = np.arange(2**16 + 1, dtype=np.uint64) << np.uint64(16)
    first = np.searchsorted(thresholds, edges[:-1], side="right")
    last = np.searchsorted(thresholds, edges[1:] - np.uint64(1), side="right")
    bucket = (upper_halves >> np.uint64(16)).astype(np.int64)
    positions: Array = first[bucket]
    open_ = np.flatnonzero((first != last)[bucket])
    positions[open_] = np.searchsorted(thresholds, upper_halves[open_], side="right")
    return positions


def round_decimals(x: Array, decimals: int) -> Array:
    """Numbers rounded to a number of decimal places."""
    unit = float(10**decimals)
    result: Array = np.rint(x * unit) / unit
    return result
