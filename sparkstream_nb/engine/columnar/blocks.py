"""Arrays that are saved by change: in blocks; blocks not written since the last save keep their digests.

The owner of an array appends at the end and drops at the head, and reports all other writes (`Blocks.touch`). Elements
have absolute numbers, which do not change when earlier ones are dropped. Blocks begin at multiples of their size, so
dropping elements at the head moves no other block.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from .arrays import Array

BLOCK = 1 << 18
"""Bytes of a block."""

CHECKED = "SPARKSTREAM_NB_CHECK_STATE" in os.environ
"""True if each block is compared with its saved digest, as in the tests."""

Buffer = bytes | memoryview


def digest_of(data: Buffer) -> str:
    """Names a piece of state by its content."""
    return hashlib.sha256(data).hexdigest()[:32]


@dataclass(frozen=True, slots=True)
class StatePiece:
    """A piece of a saved state. `data` is the engine's own memory: it means something until the next step."""

    digest: str
    size: int
    data: Callable[[], Buffer]


class Blocks:
    """Digests of the full blocks of an array with `itemsize` bytes an element, by block number."""

    __slots__ = ("_digests", "per")

    def __init__(self, itemsize: int) -> None:
        self.per = max(1, BLOCK // itemsize)
        """Elements of a block."""
        self._digests: dict[int, str] = {}

    def can_spare(self, n: int) -> bool:
        """True if `n` writes may leave some known blocks unchanged; else all are treated as written, as the writes may
        reach all of them.
        """
        if n > 4 * len(self._digests):
            self._digests.clear()
        return bool(self._digests) and n > 0

    def touch(self, places: Array) -> None:
        """The elements with these absolute numbers were written."""
        if self.can_spare(len(places)):
            for k in np.unique(places // self.per).tolist():
                self._digests.pop(k, None)

    def touch_each(self, of: int, which: Array, elements: int) -> None:
        """Elements were written in those parts of `elements` each whose number, modulo `of`, is one of `which`."""
        mine = set(which.tolist())
        for k in [k for k in self._digests if self._holds(k, of, mine, elements)]:
            del self._digests[k]

    def _holds(self, block: int, of: int, which: set[int], elements: int) -> bool:
        """True if a block has a part of one of these parts."""
        first, last = block * self.per // elements, ((block + 1) * self.per - 1) // elements
        return any(i % of in which for i in range(first, last + 1))

    def forget(self, first: int = 0) -> None:
        """Everything from the absolute number `first` on was written."""
        if first <= 0:
            self._digests.clear()
        elif self._digests:
            low = first // self.per
            for k in [k for k in self._digests if k >= low]:
                del self._digests[k]

    def digest(self, block: int, data: Callable[[], Buffer]) -> str:
        """The digest of a full block, whose bytes are `data`."""
        block_digest = self._digests.get(block)
        if block_digest is None:
            block_digest = self._digests[block] = digest_of(data())
        elif CHECKED and block_digest != digest_of(data()):
            raise AssertionError("a part of the state was written, and nobody told")
        return block_digest

    def let_go(self, first: int) -> None:
        """Blocks before the element `first` are not asked for any more."""
        low = first // self.per
        if self._digests and next(iter(self._digests)) < low:
            self._digests = {k: d for k, d in self._digests.items() if k >= low}


class Tracked:
    """`n` elements of an array that is saved by change, from the absolute number `first` on. `read(a, b)` gives those
    from the a-th to the b-th of them."""

    __slots__ = ("blocks", "dtype", "first", "n", "read")

    def __init__(
        self, blocks: Blocks, first: int, n: int, dtype: np.dtype[Any], read: Callable[[int, int], Array]
    ) -> None:
        self.blocks, self.first, self.n, self.dtype, self.read = blocks, first, n, dtype, read

    @classmethod
    def of(cls, blocks: Blocks, first: int, array: Array) -> Tracked:
        """All of a contiguous array of one dimension."""
        return cls(blocks, first, len(array), array.dtype, lambda a, b: array[a:b])

    def __len__(self) -> int:
        return self.n

    @property
    def size(self) -> int:
        """Bytes."""
        return self.n * self.dtype.itemsize

    def data(self, a: int, b: int) -> Buffer:
        """The bytes of the elements from the a-th to the b-th."""
        return self.read(a, b).view(np.uint8).data if b > a else b""

    def pieces(self) -> Iterator[StatePiece]:
        """The pieces, one after the other; only those are read that were written since, and where the array ends."""
        blocks, first, end, itemsize = self.blocks, self.first, self.first + self.n, self.dtype.itemsize
        start = first
        while start < end:
            k = start // blocks.per
            stop = min((k + 1) * blocks.per, end)
            data = _Range(self, start - first, stop - first)
            digest = blocks.digest(k, data) if stop - start == blocks.per else digest_of(data())
            yield StatePiece(digest, (stop - start) * itemsize, data)
            start = stop


@dataclass(frozen=True, slots=True)
class _Range:
    """Reads a part of an array when it is called."""

    array: Tracked
    a: int
    b: int

    def __call__(self) -> Buffer:
        return self.array.data(self.a, self.b)
