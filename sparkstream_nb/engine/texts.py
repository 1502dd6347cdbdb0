"""Codes of strings straight from Arrow's memory: a hash table over the bytes, without a Python string per row.

A text is compared as words of eight bytes, the last one filled up with zeros, and by its length. Texts longer than a
word have their other words in an arena.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from .arrays import Array, grown
from .jit import inlined, kernel, prefetch

_ONES, _LOW = np.uint64(2**64 - 1), np.uint64(2**32 - 1)
_BLOCK = 32
_NO_ROWS = np.zeros(0, np.int64)
_NO_MASK = np.zeros(0, np.bool_)


@inlined
def _word(words: Array, at: Any, count: Any) -> Any:
    """The `count` (1 to 8) bytes from byte `at`, as a number, without a branch; one more word must be there."""
    a = np.uint64(at) >> np.uint64(3)
    low = (np.uint64(at) & np.uint64(7)) << np.uint64(3)
    w = (words[a] >> low) | ((words[a + np.uint64(1)] << np.uint64(1)) << (np.uint64(63) - low))
    return w & (_ONES >> (np.uint64(64) - (np.uint64(count) << np.uint64(3))))


@inlined
def _spread(h: Any) -> Any:
    h ^= h >> np.uint64(29)
    h = h * np.uint64(0x9E3779B97F4A7C15)
    return h >> np.uint64(34)


@kernel
def _encode(
    begin: int, rows: Array, null: Array, offsets: Array, words: Array, size: int, slots: Array, arena: Array,
    used: int, fresh: Array, out: Array,
) -> tuple[int, int, int, int]:  # fmt: skip
    """Codes of rows from `begin` on, into `out`; new texts get the next codes, their rows go into `fresh`.

    A slot is two words, as looking one up is a miss of the cache where there are many: a text's first word; then its
    length, shifted by 32, and its code plus one, or for a longer text one plus the place in the arena where its code
    and its other words stand. 0: free. Some rows' slots are asked for before they are looked at.

    Stops where the tables have no room. Returns (rows done, texts known, words of the arena used, new texts).
    """
    mask = np.uint64((len(slots) >> 1) - 1)
    low = np.int64(offsets[0]) & ~7
    large = len(slots) > 1 << 15
    first, place, length = np.empty(_BLOCK, np.uint64), np.empty(_BLOCK, np.uint64), np.empty(_BLOCK, np.int64)
    new = 0
    for b in range(begin, len(out), _BLOCK):
        end = min(b + _BLOCK, len(out))
        for i in range(b, end):
            r = np.uint64(rows[i]) if len(rows) else np.uint64(i)
            at: Any = np.int64(offsets[r]) - low
            n = np.int64(offsets[r + np.uint64(1)]) - np.int64(offsets[r])
            w = np.uint64(0)
            if n > 0:
                w = _word(words, at, min(n, 8))
            h = (w ^ np.uint64(n)) * np.uint64(0x9E3779B97F4A7C15)
            if n > 8:
                for k in range(8, n, 8):
                    x = _word(words, at + k, min(n - k, 8))
                    h = ((h ^ (h >> np.uint64(32))) + x) * np.uint64(0xC2B2AE3D27D4EB4F)
            h = _spread(h)
            j = (h & mask) << np.uint64(1)
            if large:
                prefetch(slots, j)
            first[i - b] = w
            place[i - b] = j
            length[i - b] = -1 if len(null) and null[r] else n
        for i in range(b, end):
            n = length[i - b]
            if n < 0:
                out[i] = -1
                continue
            w = first[i - b]
            j = place[i - b]
            at = 0
            if n > 8:
                r = np.uint64(rows[i]) if len(rows) else np.uint64(i)
                at = np.int64(offsets[r]) - low
            found = np.int64(-1)
            s = slots[j + np.uint64(1)]
            while s != np.uint64(0):
                if slots[j] == w and s >> np.uint64(32) == np.uint64(n):
                    found = np.int64(s & _LOW) - 1
                    if n > 8:
                        same = True
                        for k in range(8, n, 8):
                            x = _word(words, at + k, min(n - k, 8))
                            same &= arena[found + (k >> 3)] == x
                        found = np.int64(arena[found]) if same else np.int64(-1)
                    if found >= 0:
                        break
                j = (j + np.uint64(2)) & (mask << np.uint64(1))
                s = slots[j + np.uint64(1)]
            if found < 0:
                more = (n + 7) >> 3 if n > 8 else 0
                if 4 * size >= len(slots) or used + more > len(arena):
                    return i, size, used, new
                found = np.int64(size)
                slots[j] = w
                ref = np.uint64(used if n > 8 else size) + np.uint64(1)
                slots[j + np.uint64(1)] = np.uint64(n) << np.uint64(32) | ref
                if n > 8:
                    arena[used] = np.uint64(size)
                    for k in range(8, n, 8):
                        x = _word(words, at + k, min(n - k, 8))
                        arena[used + (k >> 3)] = x
                    used += more
                size += 1
                fresh[new] = np.int64(rows[i]) if len(rows) else i
                new += 1
            out[i] = found
    return len(out), size, used, new


@kernel
def _move(old: Array, slots: Array, arena: Array) -> None:
    """Enters the texts of `old` into empty `slots`."""
    mask = np.uint64(len(slots) - 1)
    for i in range(0, len(old), 2):
        if old[i + 1] == 0:
            continue
        w = old[i]
        n = np.int64(old[i + 1] >> np.uint64(32))
        h = (w ^ np.uint64(n)) * np.uint64(0x9E3779B97F4A7C15)
        for k in range(8, n, 8):
            x = arena[np.int64(old[i + 1] & _LOW) - 1 + (k >> 3)]
            h = ((h ^ (h >> np.uint64(32))) + x) * np.uint64(0xC2B2AE3D27D4EB4F)
        h = _spread(h)
        j = (h << np.uint64(1)) & mask
        while slots[j + np.uint64(1)] != 0:
            j = (j + np.uint64(2)) & mask
        slots[j] = w
        slots[j + np.uint64(1)] = old[i + 1]


class TextTable:
    """Text → code, for Arrow arrays. Codes are 0, 1, 2 ... in the order in which texts first come."""

    def __init__(self) -> None:
        self.size = 0
        self._slots = np.zeros(2 * 1024, np.uint64)
        self._arena = np.zeros(512, np.uint64)
        self._used = 0

    def encode(self, array: pa.Array, rows: Array | None = None) -> tuple[Array, Array]:
        """int32 codes of a binary or string array (of its `rows` only, where given; -1 for null), and the rows that
        brought new texts, in the order of their codes.
        """
        wide = pa.types.is_large_string(array.type) or pa.types.is_large_binary(array.type)
        at, n = array.offset, len(array)
        out = np.empty(n if rows is None else len(rows), np.int32)
        if len(out) == 0:
            return out, _NO_ROWS
        _, index, data = array.buffers()
        offsets = np.frombuffer(index, np.int64 if wide else np.int32)[at : at + n + 1]
        null = array.is_null().to_numpy(zero_copy_only=False) if array.null_count else _NO_MASK
        low, high = int(offsets[0]) & ~7, int(offsets[-1])
        raw = np.frombuffer(b"" if data is None else data, np.uint8)[low:]
        size = ((high - low) >> 3) + 2  # a word that nobody looks at is read behind the last one
        if raw.ctypes.data & 7 or len(raw) < 8 * size:
            padded = np.zeros(8 * size, np.uint8)
            padded[: high - low] = raw[: high - low]
            raw = padded
        words = raw[: 8 * size].view(np.uint64)
        fresh, found, done = np.empty(len(out), np.int64), [], 0
        while True:
            done, self.size, self._used, new = _encode(
                done, _NO_ROWS if rows is None else rows, null, offsets, words, self.size, self._slots,
                self._arena, self._used, fresh, out,
            )  # fmt: skip
            found.append(fresh[:new].copy())
            if done == len(out):
                return out, np.concatenate(found)
            self._grow(int((np.diff(offsets).max() + 7) >> 3))

    def _grow(self, longest: int) -> None:
        """More room for texts, and for one of `longest` words."""
        if 4 * self.size >= len(self._slots):
            old, self._slots = self._slots, np.zeros(4 * len(self._slots), np.uint64)
            _move(old, self._slots, self._arena)
        self._arena = grown(self._arena, self._used + max(longest, 1))
