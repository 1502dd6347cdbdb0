"""Hash tables with buckets of one cache line, for compiled loops.

A slot is a key (one word) and a number below 2^32, which is 0 if the slot is free; the numbers of keys therefore have a
nonzero tag in their upper bits. A bucket is a cache line of eight words with five slots: five keys, then five numbers
of half a word each, and half a word that stays 0. A key is stored in the first free slot from the beginning of its
bucket on. All keys of a bucket are compared at once without branches; probing continues with the next bucket only if
one is full.

A table is an array of words aligned to a cache line. Loops that insert keys take it twice: as `slots`, its words, and
as `numbers`, its half words.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..notation.intrinsics import number_of_five
from ..notation.kernels import inlined, kernel
from .arrays import Array, aligned_zeros

BLOCK = 64
"""Number of keys whose cache lines are prefetched before the first of them is looked up. Prefetching one by one, as far
ahead, takes a tenth longer; twice as far ahead, lines are evicted before they are read.
"""
_SMALL = 1 << 13
_NONE, _ONE, _LINE, _LAST = np.uint64(0), np.uint64(1), np.uint64(8), np.uint64(7)
_NUMBERS, _LAST_KEY = np.uint64(10), np.uint64(4)


@inlined
def keys_for(words: Any) -> Any:
    """The maximum number of keys of a table with this number of words: two per bucket, one in small tables. A key
    outside its bucket costs as much as ten others.
    """
    return words >> (2 if words > _SMALL else 3)


@inlined
def line_of(key: Any, last: Any) -> Any:
    """The first slot of a key's bucket; `last` is the index of the table's last word (the table's size is a power of
    two). Hashed twice, as half of a key may be all zeros."""
    h = key * np.uint64(0x9E3779B97F4A7C15)
    h = (h ^ (h >> np.uint64(32))) * np.uint64(0xC2B2AE3D27D4EB4F)
    return (h >> np.uint64(31)) & last & ~_LAST


@inlined
def next_slot(j: Any, last: Any) -> Any:
    """The slot after slot `j`."""
    return (j + (_LAST_KEY if j & _LAST == _LAST_KEY else _ONE)) & last


@inlined
def number_at(j: Any) -> Any:
    """The index of the number of slot `j`."""
    return (j << _ONE) - (j & _LAST) + _NUMBERS


@inlined
def found(slots: Array, line: Any, last: Any, key: Any, tag: Any, limit: Any) -> Any:
    """Looks a key up from a bucket on: its number without the tag. `limit` or more if the key is not found, or is first
    found with another tag."""
    number = number_of_five(slots, line, key) ^ tag
    while number >= limit and slots[line + _LAST] != _NONE:
        line = (line + _LINE) & last
        number = number_of_five(slots, line, key) ^ tag
    return number


@inlined
def enter(slots: Array, numbers: Array, j: Any, last: Any, key: Any, number: Any) -> None:
    """Inserts a new key into the first free slot from slot `j` on."""
    at = number_at(j)
    while numbers[at] != 0:
        j = next_slot(j, last)
        at = number_at(j)
    slots[j] = key
    numbers[at] = number


@kernel
def _enter_all(old: Array, old_numbers: Array, slots: Array, numbers: Array) -> None:
    last = np.uint64(len(slots) - 1)
    for line in range(0, len(old), 8):
        for k in range(5):
            number = old_numbers[2 * line + 10 + k]
            if number != 0:
                key = old[line + k]
                j = line_of(key, last)
                enter(slots, numbers, j, last, key, number)


def larger(slots: Array, times: int) -> Array:
    """A table of `times` the capacity, with the same keys."""
    out = aligned_zeros(times * len(slots), np.uint64)
    _enter_all(slots, slots.view(np.uint32), out, out.view(np.uint32))
    return out
