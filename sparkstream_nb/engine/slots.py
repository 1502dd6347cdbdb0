"""Hash tables of which the cache brings four slots at once, for compiled loops.

A slot is two words, and four slots are a line of the processor's cache: first the one word of each, the key, and then
the other, which is 0 where the slot is free. A key belongs into the first free slot from the beginning of a line on.
A line is compared at once, as no processor can guess which of four it is, and lines are gone on to only where one is
full.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .arrays import Array
from .jit import equal_of_four, inlined

SECOND = np.uint64(4)
"""From a slot's first word to its second."""
BLOCK = 64
"""So many keys have their lines asked for before the first of them is looked for. Asked for one by one, as far ahead,
takes a tenth longer; twice as far ahead, lines are gone again before they are looked at."""
_SMALL = 1 << 13
_NONE, _LINE, _LAST = np.uint64(0), np.uint64(8), np.uint64(7)


@inlined
def keys_for(words: Any) -> Any:
    """How many keys a table of so many words may hold: half of its slots, a quarter where it is small. A key beside its
    line costs as much as ten others."""
    return words >> (2 if words > _SMALL else 3)


@inlined
def line_of(h: Any, last: Any) -> Any:
    """The first slot of the line that a hash says; `last` is the last word of the table, of which there is a power of
    two."""
    return (h << np.uint64(3)) & last


@inlined
def next_slot(j: Any, last: Any) -> Any:
    """The slot after slot `j`."""
    after = j + np.uint64(1)
    return (after + (after & SECOND)) & last


@inlined
def free_slot(slots: Array, j: Any, last: Any) -> Any:
    """The first free slot from slot `j` on."""
    while slots[j + SECOND] != _NONE:
        j = next_slot(j, last)
    return j


@inlined
def found(slots: Array, line: Any, last: Any, word: Any, high: Any) -> Any:
    """From a line on, the second word of the slot whose first is `word` and whose second has the upper half of `high`;
    0 if there is none."""
    second = equal_of_four(slots, line, word, high)
    while second == _NONE and slots[line + _LAST] != _NONE:
        line = (line + _LINE) & last
        second = equal_of_four(slots, line, word, high)
    return second
