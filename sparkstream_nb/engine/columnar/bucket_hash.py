"""Hash tables with buckets of one cache line, for compiled loops.

A slot is a key (one word) and a number below 2^32, which is 0 if the slot is free; the numbers of keys therefore have a
nonzero tag in their upper bits. A bucket is a cache line of eight words with five slots: five keys, then five numbers
of half a word each, and half a word that stays 0. A key is stored in the first free slot from the beginning of its
bucket on. All keys of a bucket are compared at once without branches; probing continues with the next bucket only if
one is full.

"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..notation.intrinsics import number_of_five
from ..notation.kernels import inlined, kernel, struct
from .arrays import aligned_zeros

BLOCK = 64
"""Number of keys whose cache lines are prefetched before the first of them is looked up. Prefetching one by one, as far
ahead, takes a tenth longer; twice as far ahead, lines are evicted before they are read.
"""
_SMALL = 1 << 13
_NONE, _ONE, _LINE, _LAST = np.uint64(0), np.uint64(1), np.uint64(8), np.uint64(7)
_NUMBERS, _LAST_KEY = np.uint64(10), np.uint64(4)


def keys_for(words: int) -> int:
    """The maximum number of keys of a table with this number of words: two per bucket, one in small tables. A key
    outside its bucket costs as much as ten others.
    """
    return words >> (2 if words > _SMALL else 3)


@inlined
def next_slot(j: Any, last: Any) -> Any:
    """The slot after slot `j`."""
    return (j + (_LAST_KEY if j & _LAST == _LAST_KEY else _ONE)) & last


@inlined
def number_at(j: Any) -> Any:
    """The index of the number of slot `j`."""
    return (j << _ONE) - (j & _LAST) + _NUMBERS


@struct
class BucketTable:
    """A hash table: its words (`slots`), the same as half words (`numbers`), and the index of its last word (`last`).
    `most`: the number of keys from which on it has to grow.
    """

    def __init__(self, words: int) -> None:
        """`words` is a power of two."""
        self.slots = aligned_zeros(words, np.uint64)
        self.numbers = self.slots.view(np.uint32)
        self.last = np.uint64(words - 1)
        self.most = keys_for(words)

    def grown(self, times: int) -> BucketTable:
        """A table of `times` the size, with the same keys."""
        out = BucketTable(times * len(self.slots))
        _enter_all(self, out)
        return out

    @inlined
    def line_of(self, key: Any) -> Any:
        """The first slot of a key's bucket. Hashed twice, as half of a key may be all zeros."""
        h = key * np.uint64(0x9E3779B97F4A7C15)
        h = (h ^ (h >> np.uint64(32))) * np.uint64(0xC2B2AE3D27D4EB4F)
        return (h >> np.uint64(31)) & self.last & ~_LAST

    @inlined
    def find(self, line: Any, key: Any, tag: Any, limit: Any) -> Any:
        """Looks a key up from a bucket on: its number without the tag. `limit` or more if the key is not found, or is
        first found with another tag."""
        number = number_of_five(self.slots, line, key) ^ tag
        while number >= limit and self.slots[line + _LAST] != _NONE:
            line = (line + _LINE) & self.last
            number = number_of_five(self.slots, line, key) ^ tag
        return number

    @inlined
    def enter(self, j: Any, key: Any, number: Any) -> None:
        """Inserts a new key into the first free slot from slot `j` on."""
        at = number_at(j)
        while self.numbers[at] != 0:
            j = next_slot(j, self.last)
            at = number_at(j)
        self.slots[j] = key
        self.numbers[at] = number


@kernel
def _enter_all(source: BucketTable, target: BucketTable) -> None:
    for line in range(0, len(source.slots), 8):
        for k in range(5):
            number = source.numbers[2 * line + 10 + k]
            if number != 0:
                key = source.slots[line + k]
                j = target.line_of(key)
                target.enter(j, key, number)
