"""The shortest decimal that parses to a double, as in Java since JDK 19.

After Raffaello Giulietti, "The Schubfach way to render doubles" (2020): names follow the paper. The result is the
nearest of the shortest decimals that round to the double.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..notation.intrinsics import high64
from ..notation.kernels import inlined

_LOW, _HIGH = -324, 292
"""The powers of ten that can be asked for."""

FIRST = 1e-320
"""From here on: of those below, Java writes some with two digits where one would do."""


def _table() -> Any:
    """g of 10**-k for each k from `_LOW` on, as uint64 pairs g1, g0: g = g1 * 2**63 + g0, of 126 bits."""
    out = np.empty((_HIGH - _LOW + 1, 2), np.uint64)
    for k in range(_LOW, _HIGH + 1):
        shift = (-k * 913_124_641_741 >> 38) - 125
        above, below = (10**-k, 1) if k <= 0 else (1, 10**k)
        g = (above << -shift if shift < 0 else above) // (below << shift if shift > 0 else below) + 1
        out[k - _LOW] = g >> 63, g & (2**63 - 1)
    return out


POWERS = _table()


@inlined
def _rop(g1: Any, g0: Any, cp: Any) -> Any:
    """cp * g * 2**-127 rounded to odd."""
    x1 = high64(g0, cp)
    y0 = g1 * cp
    z = (y0 >> np.uint64(1)) + x1
    w = high64(g1, cp) + (z >> np.uint64(63))
    return w | ((z & np.uint64(2**63 - 1)) + np.uint64(2**63 - 1)) >> np.uint64(63)


@inlined
def shortest(bits: Any, powers: Any) -> Any:
    """The digits (up to 17, zeros at the end among them) and the power of ten of a finite double of at least `FIRST`,
    given by its bits without the sign; `powers` are `POWERS`."""
    one, two, ten = np.uint64(1), np.uint64(2), np.uint64(10)
    t = bits & np.uint64(2**52 - 1)
    biased_exponent = np.int64(bits >> np.uint64(52))
    c = t if biased_exponent == 0 else t | np.uint64(2**52)
    q = biased_exponent - 1075 if biased_exponent > 0 else -1074
    odd = c & one
    cb = c << two
    regular = t != np.uint64(0) or biased_exponent <= 1
    k = (q * 661_971_961_083 - (0 if regular else 274_743_187_321)) >> 41
    h = np.uint64(q + ((-k * 913_124_641_741) >> 38) + 2)
    g1 = powers[k - _LOW, 0]
    g0 = powers[k - _LOW, 1]
    middle = cb << h
    lower = (cb - (two if regular else one)) << h
    upper = (cb + two) << h
    vb = _rop(g1, g0, middle)
    vbl = _rop(g1, g0, lower)
    vbr = _rop(g1, g0, upper)
    s = vb >> two
    # One digit less, where one of the two that are next to it reads as the double.
    tens = s // ten * ten
    up_in = vbl + odd <= tens << two
    wp_in = (tens + ten << two) + odd <= vbr
    u_in = vbl + odd <= s << two
    w_in = (s + one << two) + odd <= vbr
    twice = s + s + one << one
    nearer = vb < twice or (vb == twice and s & one == np.uint64(0))
    if s >= np.uint64(100) and up_in != wp_in:
        digits = tens if up_in else tens + ten
    elif u_in != w_in:
        digits = s if u_in else s + one
    else:
        digits = s if nearer else s + one
    return digits, k
