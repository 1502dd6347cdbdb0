"""Codes of strings straight from Arrow's memory: a hash table over the bytes, without a Python string per row.

A text is compared as words of eight bytes, the last one filled up with zeros, and by its length. Texts longer than a
word have their other words in an arena.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from .arrays import Array, Mask, grown, lined
from .jit import inlined, kernel, load64, prefetch
from .slots import BLOCK, SECOND, found, free_slot, keys_for, line_of, next_slot

_ONES, _LOW = np.uint64(2**64 - 1), np.uint64(2**32 - 1)
_NOT_AT_ONCE = 1 << 31
_SLOTS = 2 * 1024
_MOST_BYTES = 2**31 - 1
_NO_ROWS = np.zeros(0, np.int64)
_NO_TEXTS, _NO_BYTES = np.zeros((0, 2), np.int64), np.zeros(0, np.uint8)
_NO_MASK = np.zeros(0, np.bool_)


@inlined
def _word(data: Array, at: Any, n: Any) -> Any:
    """The first 8 of `n` bytes (at least one) from byte `at`, as a number; 8 bytes must be there."""
    return load64(data, at) & (_ONES >> np.uint64(64 - 8 * min(n, 8)))


@inlined
def _begun(w: Any, n: Any) -> Any:
    return (w ^ np.uint64(n)) * np.uint64(0x9E3779B97F4A7C15)


@inlined
def _further(h: Any, x: Any) -> Any:
    return ((h ^ (h >> np.uint64(32))) + x) * np.uint64(0xC2B2AE3D27D4EB4F)


@inlined
def _spread(h: Any) -> Any:
    h ^= h >> np.uint64(29)
    h = h * np.uint64(0x9E3779B97F4A7C15)
    return h >> np.uint64(34)


@inlined
def _hash(data: Array, at: Any, n: Any, w: Any) -> Any:
    """What `_spread` makes the hash of: the `n` bytes from byte `at`, of which `w` is the first word."""
    h = _begun(w, n)
    k = 8
    while k < n:
        x = _word(data, at + k, n - k)
        h = _further(h, x)
        k += 8
    return h


@inlined
def _ask(
    begin: int, end: int, rows: Array, null: Array, offsets: Array, data: Array, low: int, slots: Array, last: Any,
    side: Any, hashes: Array, words: Array,
) -> None:  # fmt: skip
    """Asks for the lines of a block of rows; what is known of these goes into `hashes` and `words` from `side` on."""
    for later in range(np.uint64(begin), np.uint64(end)):
        row = np.uint64(rows[later]) if len(rows) else later
        place = np.int64(offsets[row]) - low
        long = np.int64(offsets[row + np.uint64(1)]) - low - place
        first = np.uint64(0)
        if long > 0:
            first = _word(data, place, long)
        key = _hash(data, place, long, first)
        key = _spread(key)
        key = line_of(key, last)
        prefetch(slots, key)
        if long > 8 or (len(null) and null[row]):
            long |= _NOT_AT_ONCE
        spot = later - np.uint64(begin) + side
        hashes[spot] = np.uint64(long) << np.uint64(32) | key
        words[spot] = first


@inlined
def _ask_short(
    begin: int, end: int, offsets: Array, data: Array, low: int, slots: Array, last: Any, side: Any, hashes: Array,
    words: Array,
) -> None:  # fmt: skip
    """As `_ask`, where no text has more than a word: a tenth of all that there is to do less."""
    for later in range(np.uint64(begin), np.uint64(end)):
        place = np.int64(offsets[later]) - low
        long = np.int64(offsets[later + np.uint64(1)]) - low - place
        first = np.uint64(0)
        if long > 0:
            first = _word(data, place, long)
        key = _begun(first, long)
        key = _spread(key)
        key = line_of(key, last)
        prefetch(slots, key)
        spot = later - np.uint64(begin) + side
        hashes[spot] = np.uint64(long) << np.uint64(32) | key
        words[spot] = first


@kernel
def _encode(
    begin: int, rows: Array, null: Array, offsets: Array, data: Array, size: int, slots: Array, arena: Array,
    used: int, hashes: Array, words: Array, fresh: Array, out: Array,
) -> tuple[int, int, int, int]:  # fmt: skip
    """Codes of rows from `begin` on, into `out`; new texts get the next codes, and where they begin in `data` and how
    long they are go into `fresh`.

    The words of a slot (`slots`): a text's first one; its length, shifted by 32, and its code plus one, or for a longer
    text one plus the place in the arena where its code and its other words stand. Rows go by blocks: first all lines of
    one are asked for, and what is known of its rows goes into half of `hashes` and `words`, and then the rows of the
    block before it are looked for. Loops of so little each are taken on by a processor before the last row is done.

    Stops where the tables have no room. Returns (rows done, texts known, words of the arena used, new texts).
    """
    last = np.uint64(len(slots) - 1)
    most = keys_for(len(slots))
    low: Any = np.int64(offsets[0])
    new = 0
    picked = len(rows) > 0 or len(null) > 0
    end = len(out)
    side: Any = np.uint64(0)
    other: Any = np.uint64(BLOCK)
    for begun in range(begin, end + BLOCK, BLOCK):
        behind = min(begun + BLOCK, end)
        lengths: Any = 0
        for row in range(np.uint64(begun), np.uint64(min(behind, len(offsets) - 1))):
            lengths |= 7 + np.int64(offsets[row + np.uint64(1)]) - np.int64(offsets[row])
        if picked or lengths > 15:
            _ask(begun, behind, rows, null, offsets, data, low, slots, last, side, hashes, words)
        else:
            _ask_short(begun, behind, offsets, data, low, slots, last, side, hashes, words)
        side, other = other, side
        if begun == begin:
            continue
        i: Any = np.uint64(begun - BLOCK)
        stop = np.uint64(min(begun, end))
        shift = side - i
        while True:
            while i < stop:  # what is known
                w, j = words[i + shift], hashes[i + shift]
                hit = found(slots, j & _LOW, last, w, j)
                if hit == np.uint64(0):
                    break
                out[i] = np.int64(hit & _LOW) - 1
                i += np.uint64(1)
            if i == stop:
                break
            r = np.uint64(rows[i]) if len(rows) else i
            if len(null) and null[r]:
                out[i] = -1
                i += np.uint64(1)
                continue
            at = np.int64(offsets[r]) - low
            n: Any = np.int64(offsets[r + np.uint64(1)]) - low - at
            j = j & _LOW
            s = slots[j + SECOND]
            while s != np.uint64(0):
                if slots[j] == w and s >> np.uint64(32) == np.uint64(n):
                    same = True
                    k = 8
                    while k < n:
                        x = _word(data, at + k, n - k)
                        same &= arena[np.int64(s & _LOW) - 1 + (k >> 3)] == x
                        k += 8
                    if same:
                        break
                j = next_slot(j, last)
                s = slots[j + SECOND]
            if s == np.uint64(0):
                more = (n + 7) >> 3 if n > 8 else 0
                if size >= most or used + more > len(arena):
                    done: Any = np.int64(i)
                    return done, size, used, new
                ref = np.uint64(used if n > 8 else size) + np.uint64(1)
                s = np.uint64(n) << np.uint64(32) | ref
                slots[j] = w
                slots[j + SECOND] = s
                if n > 8:
                    arena[used] = np.uint64(size)
                    k = 8
                    while k < n:
                        x = _word(data, at + k, n - k)
                        arena[used + (k >> 3)] = x
                        k += 8
                    used += more
                size += 1
                fresh[new, 0], fresh[new, 1] = at, n
                new += 1
            place_of = np.int64(s & _LOW) - 1
            out[i] = place_of if n <= 8 else np.int64(arena[place_of])
            i += np.uint64(1)
    return len(out), size, used, new


@kernel
def _move(old: Array, slots: Array, arena: Array) -> None:
    """Enters the texts of `old` into empty `slots`."""
    last = np.uint64(len(slots) - 1)
    for line in range(0, len(old), 8):
        for i in range(line, line + 4):
            s = old[i + 4]
            if s == 0:
                continue
            w = old[i]
            n = np.int64(s >> np.uint64(32))
            h = _begun(w, n)
            for k in range(8, n, 8):
                x = arena[np.int64(s & _LOW) - 1 + (k >> 3)]
                h = _further(h, x)
            h = _spread(h)
            j = line_of(h, last)
            j = free_slot(slots, j, last)
            slots[j] = w
            slots[j + SECOND] = s


class TextTable:
    """Text → code, for Arrow arrays. Codes are 0, 1, 2 ... in the order in which texts first come."""

    def __init__(self) -> None:
        self.size = 0
        self._slots = lined(_SLOTS, np.uint64)
        self._arena = np.zeros(512, np.uint64)
        self._used = 0
        self._hashes, self._words = np.empty(2 * BLOCK, np.uint64), np.empty(2 * BLOCK, np.uint64)

    def encode(self, array: pa.Array, rows: Array | None = None) -> tuple[Array, Array, Array]:
        """int32 codes of a binary or string array (of its `rows` only, where given; -1 for null); of the new texts, in
        the order of their codes, where each begins in the array's bytes and how long it is; and those bytes.
        """
        out = np.empty(len(array) if rows is None else len(rows), np.int32)
        if len(out) == 0:
            return out, _NO_TEXTS, _NO_BYTES
        offsets, raw = text_buffers(array)
        null = array.is_null().to_numpy(zero_copy_only=False) if array.null_count else _NO_MASK
        size = int(offsets[-1]) - int(offsets[0])
        if len(raw) < size + 8:  # words are read whole
            raw = np.append(raw[:size], np.zeros(8, np.uint8))
        fresh, brought, done = np.empty((len(out), 2), np.int64), [], 0
        while True:
            done, self.size, self._used, new = _encode(
                done, _NO_ROWS if rows is None else rows, null, offsets, raw, self.size, self._slots,
                self._arena, self._used, self._hashes, self._words, fresh, out,
            )  # fmt: skip
            brought.append(fresh[:new].copy())
            if done == len(out):
                return out, brought[0] if len(brought) == 1 else np.concatenate(brought), raw
            self._grow(int((np.diff(offsets).max() + 7) >> 3))

    def _grow(self, longest: int) -> None:
        """More room for texts, and for one of `longest` words."""
        if self.size >= keys_for(len(self._slots)):
            old, self._slots = self._slots, lined(2 * len(self._slots), np.uint64)
            _move(old, self._slots, self._arena)
        self._arena = grown(self._arena, self._used + max(longest, 1))


def text_buffers(array: pa.Array) -> tuple[Array, Array]:
    """Of a binary or string array: where each text begins and the last ends, and the bytes from the first text on."""
    wide = pa.types.is_large_string(array.type) or pa.types.is_large_binary(array.type)
    _, index, data = array.buffers()
    offsets = np.frombuffer(index, np.int64 if wide else np.int32)[array.offset : array.offset + len(array) + 1]
    return offsets, np.frombuffer(b"" if data is None else data, np.uint8)[int(offsets[0]) :]


def string_array(ends: Array, data: Array, null: Mask | None = None) -> pa.Array:
    """A string array of n texts: `ends` (int32[n + 1]) is 0 and where each ends in `data`."""
    validity = None if null is None else pa.py_buffer(np.packbits(~null, bitorder="little"))
    return pa.Array.from_buffers(pa.string(), len(ends) - 1, [validity, pa.py_buffer(ends), pa.py_buffer(data)])


@kernel
def _add(begin: int, texts: Array, data: Array, n: int, ends: Array, out: Array) -> int:
    """Texts from `begin` on, each given by where it begins in `data` and how long it is, go behind the `n` of `out`.
    Stops where there is no room; returns the texts done."""
    most = min(len(out), _MOST_BYTES)
    for i in range(begin, len(texts)):
        at, to, size = np.uint64(texts[i, 0]), np.int64(ends[n]), texts[i, 1]
        if n + 1 >= len(ends) or to + size > most:
            return i
        for k in range(size):
            out[np.uint64(to) + np.uint64(k)] = data[at + np.uint64(k)]
        n += 1
        ends[n] = to + size
    return len(texts)


class TextArray:
    """A growing Arrow array of strings. What was handed out stays as it is, and shares memory with what comes."""

    def __init__(self) -> None:
        self._ends = np.zeros(16, np.int32)
        """From the second on, where each text ends."""
        self._data = np.zeros(64, np.uint8)
        self._n = 0

    def __len__(self) -> int:
        return self._n

    def extend(self, texts: Array, data: Array) -> None:
        """Adds texts, of which row i of `texts` says where it begins in `data` and how long it is. Raises OverflowError
        beyond 2 GiB in all."""
        done = 0
        while done < len(texts):
            more = _add(done, texts, data, self._n, self._ends, self._data)
            self._n += more - done
            done = more
            if done < len(texts):
                size = int(texts[done:, 1].sum()) + int(self._ends[self._n])
                if size > _MOST_BYTES:
                    raise OverflowError("a node cannot hold more than 2 GiB of different texts")
                self._ends = grown(self._ends, self._n + len(texts) - done + 1)
                self._data = grown(self._data, size)

    def array(self) -> pa.Array:
        """All texts, as they are now."""
        return pa.StringArray.from_buffers(self._n, pa.py_buffer(self._ends), pa.py_buffer(self._data))
