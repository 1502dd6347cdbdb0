"""Random numbers that are the same on every machine: raw words of a counter-based generator, by seed and name."""

from __future__ import annotations

import hashlib

import numpy as np
import numpy.typing as npt

_STEP = 2.0**-53
_WORDS_A_BLOCK = 4
"""Words that the generator makes at a time."""
_GAP = 16
"""Words that are made and not used, rather than to begin in another place of a sequence."""


def _key(seed: int, name: str) -> bytes:
    return hashlib.blake2b(f"{seed}\0{name}".encode(), digest_size=16).digest()


def words(seed: int, name: str, n: int) -> npt.NDArray[np.uint64]:
    """`n` words of 64 bits. Each name has a sequence of its own; that of a larger `n` begins with that of a smaller."""
    key = _key(seed, name)
    return _words_from(key, 0, n)


def _words_from(key: bytes, first: int, n: int) -> npt.NDArray[np.uint64]:
    """`n` words of a sequence, beginning with its word `first`."""
    # numpy promises the raw words of a bit generator for ever, but not what its distributions make of them.
    generator = np.random.Philox(key=int.from_bytes(key, "little"))
    blocks, passed_over = divmod(first, _WORDS_A_BLOCK)
    generator.advance(blocks)
    words: npt.NDArray[np.uint64] = generator.random_raw(passed_over + n)[passed_over:]
    return words


def uniforms(seed: int, name: str, n: int) -> npt.NDArray[np.float64]:
    """`n` numbers from 0 to below 1, multiples of 2**-53."""
    return _as_uniforms(words(seed, name, n))


def uniforms_at(seed: int, name: str, places: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
    """The numbers of `uniforms` at these places (from 0), in time and memory in proportion to their number."""
    key = _key(seed, name)
    distinct_places, inverse = np.unique(places, return_inverse=True)
    words = np.empty(len(distinct_places), np.uint64)
    cuts = np.flatnonzero(np.diff(distinct_places) > _GAP) + 1
    for begin, end in zip([0, *cuts.tolist()], [*cuts.tolist(), len(distinct_places)], strict=True):
        if end > begin:
            first, last = int(distinct_places[begin]), int(distinct_places[end - 1])
            words[begin:end] = _words_from(key, first, last - first + 1)[distinct_places[begin:end] - first]
    return _as_uniforms(words)[inverse]


def _as_uniforms(words: npt.NDArray[np.uint64]) -> npt.NDArray[np.float64]:
    return (words >> np.uint64(11)).astype(np.float64) * _STEP
