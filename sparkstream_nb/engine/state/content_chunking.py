"""The pieces in which a state is stored: blocks of arrays that are saved by change (`blocks`), and chunks of everything
else.

Chunks are cut by content, so that unchanged parts of two states give the same ones.

A window that lost an event at its head and got one at its tail has the same bytes, shifted. Cuts at fixed offsets would
change every chunk; cuts chosen by a rolling sum over the last 64 bytes move with the bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial

import numpy as np

from ..columnar.arrays import Array
from ..columnar.blocks import Buffer, StatePiece, Tracked, digest_of
from ..notation.kernels import kernel

LEAST, MOST = 1 << 16, 1 << 20
"""Bytes of a piece; between the two, a cut comes after 256 KiB on average."""

_SUMS: Array = np.random.default_rng(64).integers(0, 2**64, 256, np.uint64)
_MASK = np.uint64(((1 << 18) - 1) << 46)


@kernel
def _cuts(data: Array, sums: Array, mask: np.uint64, least: int, most: int, out: Array) -> int:
    """Ends of the pieces of `data`, into `out`; how many. Each shift drops a byte from the sum after 64 of them."""
    n = len(data)
    count = start = 0
    while start < n:
        end = min(start + most, n)
        i = start + least
        total = np.uint64(0)
        at = i - 64
        while at < min(i, n):
            total = (total << np.uint64(1)) + sums[data[at]]
            at += 1
        while i < end:
            if total & mask == np.uint64(0):
                break
            total = (total << np.uint64(1)) + sums[data[i]]
            i += 1
        start = min(i, end)
        out[count] = start
        count += 1
    return count


def pieces(parts: Iterable[Buffer | Tracked]) -> Iterator[StatePiece]:
    """The pieces of `parts`, in order: blocks of tracked parts, chunks of the others. A large part begins a piece, as
    the parts before it may grow.
    """
    small: list[Buffer] = []
    for part in parts:
        if isinstance(part, Tracked):
            if part.size < LEAST:
                small.append(part.data(0, part.n))
                continue
        elif len(part) < LEAST:
            small.append(part)
            continue
        yield from _cut(b"".join(small))
        small.clear()
        yield from part.pieces() if isinstance(part, Tracked) else _cut(part)
    yield from _cut(b"".join(small))


def _cut(part: Buffer) -> Iterator[StatePiece]:
    for chunk in _chunks(part):
        yield StatePiece(digest_of(chunk), len(chunk), partial(_same, chunk))


def _same(data: Buffer) -> Buffer:
    return data


def _chunks(part: Buffer) -> Iterator[Buffer]:
    data = np.frombuffer(part, np.uint8)
    ends = np.empty(len(data) // LEAST + 1, np.int64)
    count = _cuts(data, _SUMS, _MASK, LEAST, MOST, ends)
    view, start = memoryview(part), 0
    for end in ends[:count].tolist():
        yield view[start:end]
        start = end
