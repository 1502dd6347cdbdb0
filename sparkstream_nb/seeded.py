"""Random numbers that are the same on every machine: raw words of a counter-based generator, by seed and name."""

from __future__ import annotations

import hashlib

import numpy as np
import numpy.typing as npt

_STEP = 2.0**-53


def words(seed: int, name: str, n: int) -> npt.NDArray[np.uint64]:
    """`n` words of 64 bits. Each name has a sequence of its own; that of a larger `n` begins with that of a smaller."""
    key = hashlib.blake2b(f"{seed}\0{name}".encode(), digest_size=16).digest()
    # numpy promises the raw words of a bit generator for ever, but not what its distributions make of them.
    found: npt.NDArray[np.uint64] = np.random.Philox(key=int.from_bytes(key, "little")).random_raw(n)
    return found


def uniforms(seed: int, name: str, n: int) -> npt.NDArray[np.float64]:
    """`n` numbers from 0 to below 1, multiples of 2**-53."""
    return (words(seed, name, n) >> np.uint64(11)).astype(np.float64) * _STEP
