"""Codes of strings straight from Arrow's memory: a hash table over the bytes, without a Python string per row.

A string is compared by its length and as words of eight bytes. A string of up to eight bytes is padded with zeros; a
longer one has its words in an arena, the last of which begins eight bytes before its end.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from ..notation.intrinsics import load64, prefetch
from ..notation.kernels import inlined, kernel
from .arrays import Array, Mask, aligned_zeros, grown
from .blocks import Blocks, Tracked
from .bucket_hash import BLOCK, found, keys_for, larger, line_of, next_slot, number_at

_ONES, _LOW = np.uint64(2**64 - 1), np.uint64(2**32 - 1)
_CODES, _WORDS = np.uint64(1 << 28), np.uint64(1 << 30)
"""Maximum number of texts, and of words of an arena."""
_LONG, _NULL = np.uint64(3 << 30), np.uint64(10 << 60)
"""The tags of longer texts, and, in a block of rows, of null, which no number has."""
_KEYS, _FOUND = np.uint64(2 * BLOCK), np.uint64(4 * BLOCK)
_SLOTS = 2 * 1024
_MOST_BYTES = 2**31 - 1
_NO_ROWS = np.zeros(0, np.int64)
_NO_TEXTS, _NO_BYTES = np.zeros((0, 2), np.int64), np.zeros(0, np.uint8)
_NO_MASK = np.zeros(0, np.bool_)


@inlined
def _hash(data: Array, at: Any, n: Any) -> Any:
    """Hash of the `n` bytes from byte `at`; `n` is more than a word."""
    h: Any = np.uint64(n)
    last: Any = n - 8
    for k in range(0, n, 8):
        x = load64(data, at + min(k, last))
        h = ((h ^ (h >> np.uint64(32))) + x) * np.uint64(0xC2B2AE3D27D4EB4F)
    return h


@inlined
def _ask(
    short: bool, begin: int, end: int, rows: Array, null: Array, offsets: Array, data: Array, low: int, slots: Array,
    last: Any, side: Any, asked: Array,
) -> Any:  # fmt: skip
    """Asks for the lines of a block of rows; where these are, and the texts' tags, goes into `asked` from `side` on,
    and the texts' keys `_KEYS` behind. `short`: there are no nulls, and no text has more than a word. Returns whether
    one has."""
    longer = False
    for later in range(np.uint64(begin), np.uint64(end)):
        row = later if short or len(rows) == 0 else np.uint64(rows[later])
        place = np.int64(offsets[row]) - low
        long: Any = np.int64(offsets[row + np.uint64(1)]) - low - place
        key = np.uint64(0)
        if short or long <= 8:
            if long > 0:
                key = load64(data, place) & (_ONES >> np.uint64(64 - 8 * min(long, 8)))
            tag = np.uint64(long + 1) << np.uint64(60)
        else:
            key = _hash(data, place, long)
            tag = _LONG << np.uint64(32)
            longer = True
        if not short and len(null) and null[row]:
            tag = _NULL
        line = line_of(key, last)
        prefetch(slots, line)
        spot = later - np.uint64(begin) + side
        asked[spot] = tag | line
        asked[spot + _KEYS] = key
    return longer


@inlined
def _same(data: Array, at: Any, n: Any, arena: Array, text: Any) -> Any:
    """True if the text from byte `at` on is one of the arena's."""
    same = np.int64(arena[text + 1]) == n
    k = 0
    while same and k < n:
        same = arena[text + 2 + (k >> 3)] == load64(data, at + min(k, n - 8))
        k += 8
    return same


@inlined
def _settle(
    begin: Any, end: Any, rows: Array, offsets: Array, data: Array, low: int, slots: Array, last: Any, arena: Array,
    shift: Any, asked: Array,
) -> None:  # fmt: skip
    """Puts the codes of a block of rows into `asked`, `_FOUND` behind; `_CODES` or more if the text is not found at
    once. The arena's words of the longer texts are prefetched before the first of them is compared.
    """
    for i in range(begin, end):
        line = asked[i + shift]
        tag = line >> np.uint64(32)
        limit = _WORDS if tag == _LONG else _CODES
        known = found(slots, line & _LOW, last, asked[i + shift + _KEYS], tag, limit)
        asked[i + shift + _FOUND] = known
        if tag == _LONG:
            prefetch(arena, known)
            prefetch(arena, known + np.uint64(7))
    for i in range(begin, end):
        known = asked[i + shift + _FOUND]
        if asked[i + shift] >> np.uint64(32) == _LONG:
            code = _CODES
            if known < _WORDS:
                r = np.uint64(rows[i]) if len(rows) else i
                at = np.int64(offsets[r]) - low
                n = np.int64(offsets[r + np.uint64(1)]) - low - at
                text = np.int64(known)
                same = _same(data, at, n, arena, text)
                if same:
                    code = arena[text]
            asked[i + shift + _FOUND] = code


@kernel
def _encode(
    begin: int, rows: Array, null: Array, offsets: Array, data: Array, size: int, slots: Array, numbers: Array,
    arena: Array, used: int, asked: Array, fresh: Array, out: Array,
) -> tuple[int, int, int, int]:  # fmt: skip
    """Codes of rows from `begin` on, into `out`; new texts get the next codes, and where they begin in `data` and how
    long they are go into `fresh`.

    A text of up to a word has itself as key, and as number its code, with its length plus one as tag. A longer one has
    a hash as key, and as number the place of its code, its length and its words in the arena. Rows go by
    blocks: first all lines of one block are prefetched and its rows' keys go into half of `asked`, then the rows of the
    block before are looked up. A processor overlaps rows of such short loops. If longer texts are among them, a loop
    before looks up the codes (`_settle`).

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
    longer = False
    for begun in range(begin, end + BLOCK, BLOCK):
        behind = min(begun + BLOCK, end)
        lengths: Any = 0
        for row in range(np.uint64(begun), np.uint64(min(behind, len(offsets) - 1))):
            lengths |= 7 + np.int64(offsets[row + np.uint64(1)]) - np.int64(offsets[row])
        settles = longer
        if picked or lengths > 15:
            longer = _ask(False, begun, behind, rows, null, offsets, data, low, slots, last, side, asked)
        else:
            longer = _ask(True, begun, behind, rows, null, offsets, data, low, slots, last, side, asked)
        side, other = other, side
        if begun == begin:
            continue
        i: Any = np.uint64(begun - BLOCK)
        stop = np.uint64(min(begun, end))
        shift = side - i
        if settles:
            _settle(i, stop, rows, offsets, data, low, slots, last, arena, shift, asked)
        while True:
            if settles:
                while i < stop and asked[i + shift + _FOUND] < _CODES:
                    out[i] = np.int64(asked[i + shift + _FOUND])
                    i += np.uint64(1)
            else:
                while i < stop:
                    line = asked[i + shift]
                    known = found(slots, line & _LOW, last, asked[i + shift + _KEYS], line >> np.uint64(32), _CODES)
                    if known >= _CODES:
                        break
                    out[i] = np.int64(known)
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
            line, key = asked[i + shift], asked[i + shift + _KEYS]
            j, tag = line & _LOW, line >> np.uint64(32)
            place = number_at(j)
            code: Any = -1
            while numbers[place] != 0:
                number = np.uint64(numbers[place]) ^ tag
                if slots[j] == key and number < (_WORDS if n > 8 else _CODES):
                    if n <= 8:
                        code = np.int64(number)
                        break
                    text = np.int64(number)
                    same = _same(data, at, n, arena, text)
                    if same:
                        code = np.int64(arena[text])
                        break
                j = next_slot(j, last)
                place = number_at(j)
            if code < 0:
                more = 2 + ((n + 7) >> 3) if n > 8 else 0
                if size >= most or used + more > len(arena):
                    done: Any = np.int64(i)
                    return done, size, used, new
                slots[j] = key
                numbers[place] = tag | np.uint64(used if n > 8 else size)
                if n > 8:
                    arena[used] = np.uint64(size)
                    arena[used + 1] = np.uint64(n)
                    for k in range(0, n, 8):
                        arena[used + 2 + (k >> 3)] = load64(data, at + min(k, n - 8))
                    used += more
                code = size
                size += 1
                fresh[new, 0], fresh[new, 1] = at, n
                new += 1
            out[i] = code
            i += np.uint64(1)
    return len(out), size, used, new


class StringDictionary:
    """Text → code, for Arrow arrays. Codes are 0, 1, 2 ... in the order in which texts first come."""

    def __init__(self) -> None:
        self.size = 0
        self._slots = aligned_zeros(_SLOTS, np.uint64)
        self._arena = np.zeros(512, np.uint64)
        self._used = 0
        self._asked = np.empty(6 * BLOCK, np.uint64)

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
                self._slots.view(np.uint32), self._arena, self._used, self._asked, fresh, out,
            )  # fmt: skip
            brought.append(fresh[:new].copy())
            if done == len(out):
                return out, brought[0] if len(brought) == 1 else np.concatenate(brought), raw
            self._grow(2 + int((np.diff(offsets).max() + 7) >> 3))

    def _grow(self, most: int) -> None:
        """More room for texts, and for one that takes `most` words of the arena. Raises OverflowError beyond 2^28."""
        if self.size >= keys_for(len(self._slots)):
            if keys_for(2 * len(self._slots)) > _CODES:
                raise OverflowError("a node cannot hold more than 268,435,456 different texts")
            self._slots = larger(self._slots, 2)
        self._arena = grown(self._arena, self._used + most)


def text_buffers(array: pa.Array) -> tuple[Array, Array]:
    """The offsets (n + 1) and the bytes of a binary or string array, from its first string on."""
    wide = pa.types.is_large_string(array.type) or pa.types.is_large_binary(array.type)
    _, index, data = array.buffers()
    offsets = np.frombuffer(index, np.int64 if wide else np.int32)[array.offset : array.offset + len(array) + 1]
    return offsets, np.frombuffer(b"" if data is None else data, np.uint8)[int(offsets[0]) :]


def string_array(ends: Array, data: Array, null: Mask | None = None) -> pa.Array:
    """A string array of n strings: `ends` (int32[n + 1]) are Arrow's offsets into `data`."""
    validity = None if null is None else pa.py_buffer(np.packbits(~null, bitorder="little"))
    return pa.Array.from_buffers(pa.string(), len(ends) - 1, [validity, pa.py_buffer(ends), pa.py_buffer(data)])


@kernel
def _add(begin: int, texts: Array, data: Array, n: int, ends: Array, out: Array) -> int:
    """Append the texts from `begin` on, each given by its start in `data` and its length, to the `n` texts of `out`.
    Stops when there is no room; returns the texts done.
    """
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
    """A growing Arrow array of strings. Arrays returned before stay valid and share its memory."""

    def __init__(self) -> None:
        self._ends = np.zeros(16, np.int32)
        """From the second on, where each text ends."""
        self._data = np.zeros(64, np.uint8)
        self._n = 0
        self._blocks = Blocks(self._ends.itemsize), Blocks(self._data.itemsize)

    def __len__(self) -> int:
        return self._n

    def track_buffers(self) -> tuple[Tracked, Tracked]:
        """The offsets (n + 1) and the bytes, as they are saved."""
        ends = self._ends[: self._n + 1]
        arrays = ends, self._data[: int(ends[-1])]
        return Tracked.of(self._blocks[0], 0, arrays[0]), Tracked.of(self._blocks[1], 0, arrays[1])

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
        """All current texts."""
        return pa.StringArray.from_buffers(self._n, pa.py_buffer(self._ends), pa.py_buffer(self._data))
