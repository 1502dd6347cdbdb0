"""Codes of strings straight from Arrow's memory: a hash table over the bytes, without a Python string per row.

A string is compared by its length and as words of eight bytes. A string of up to eight bytes is padded with zeros; a
longer one has its words in an arena, the last of which begins eight bytes before its end.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from ..notation.intrinsics import load64, prefetch
from ..notation.kernels import compiled, inlined, kernel, struct
from .arrays import Array, Mask, grown
from .blocks import Blocks, Tracked
from .bucket_hash import BLOCK, BucketTable, keys_for, next_slot, number_at

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


def text_buffers(array: pa.Array) -> tuple[Array, Array]:
    """The offsets (n + 1) and the bytes of a binary or string array, from its first string on."""
    wide = pa.types.is_large_string(array.type) or pa.types.is_large_binary(array.type)
    _, index, data = array.buffers()
    offsets = np.frombuffer(index, np.int64 if wide else np.int32)[array.offset : array.offset + len(array) + 1]
    return offsets, np.frombuffer(b"" if data is None else data, np.uint8)[int(offsets[0]) :]


@struct
class _ArrayTexts:
    """The texts of a binary or string array: of its `rows`, or of all if there are none. `offsets` say where each
    begins in `data`, from `low` on; `null` is empty if there are no nulls.
    """

    def __init__(self, array: pa.Array, rows: Array | None) -> None:
        self.rows = _NO_ROWS if rows is None else rows
        self.null = array.is_null().to_numpy(zero_copy_only=False) if array.null_count else _NO_MASK
        self.offsets, data = text_buffers(array)
        self.low = int(self.offsets[0])
        size = int(self.offsets[-1]) - self.low
        # words are read whole
        self.data = data if len(data) >= size + 8 else np.append(data[:size], np.zeros(8, np.uint8))

    @inlined
    def fit_words(self, begin: int, end: int) -> Any:
        """True if no text of the array from `begin` until `end` has more than a word."""
        lengths: Any = 0
        for row in range(np.uint64(begin), np.uint64(min(end, len(self.offsets) - 1))):
            lengths |= 7 + np.int64(self.offsets[row + np.uint64(1)]) - np.int64(self.offsets[row])
        return lengths <= 15

    @inlined
    def row(self, i: Any) -> Any:
        """The array's row of text `i`."""
        return np.uint64(self.rows[i]) if len(self.rows) else i

    @inlined
    def start(self, row: Any) -> Any:
        """The first byte of a row's text in `data`."""
        return np.int64(self.offsets[row]) - self.low

    @inlined
    def size(self, row: Any) -> Any:
        """The bytes of a row's text."""
        return np.int64(self.offsets[row + np.uint64(1)]) - np.int64(self.offsets[row])


@struct
class _Codes:
    """Codes of `n` texts (-1: null); of the `new` texts among them, where each begins and how long it is (`fresh`)."""

    def __init__(self, n: int) -> None:
        self.out = np.empty(n, np.int32)
        self.fresh = np.empty((n, 2), np.int64)
        self.new = 0


@struct
class StringDictionary:
    """Text → code, for Arrow arrays. Codes are 0, 1, 2 ... in the order in which texts first come.

    A text of up to a word has itself as key, and as number its code, with its length plus one as tag. A longer one has
    a hash as key, and as number the place of its code, its length and its words in the arena.
    """

    table: BucketTable

    def __init__(self) -> None:
        self.size = 0
        self.table = BucketTable(_SLOTS)
        self.arena = np.zeros(512, np.uint64)
        self.arena_end = 0
        """The words of the arena that are in use."""
        self.lookups = np.empty(6 * BLOCK, np.uint64)
        """The tags and lines of two blocks of texts; their keys `_KEYS` behind; their codes, once looked up, `_FOUND`
        behind."""

    def encode(self, array: pa.Array, rows: Array | None = None) -> tuple[Array, Array, Array]:
        """int32 codes of a binary or string array (of its `rows` only, where given; -1 for null); of the new texts, in
        the order of their codes, where each begins in the array's bytes and how long it is; and those bytes.
        """
        codes, next_text = _Codes(len(array) if rows is None else len(rows)), 0
        if len(codes.out) == 0:
            return codes.out, _NO_TEXTS, _NO_BYTES
        texts = _ArrayTexts(array, rows)
        while True:
            next_text, self.size, self.arena_end, codes.new = self._encode(next_text, texts, codes)
            if next_text == len(codes.out):
                return codes.out, codes.fresh[: codes.new].copy(), texts.data
            self._grow(2 + int((np.diff(texts.offsets).max() + 7) >> 3))

    def _grow(self, most: int) -> None:
        """More room for texts, and for one that takes `most` words of the arena. Raises OverflowError beyond 2^28."""
        if self.size >= self.table.most:
            if keys_for(2 * len(self.table.slots)) > _CODES:
                raise OverflowError("a node cannot hold more than 268,435,456 different texts")
            self.table = self.table.grown(2)
        self.arena = grown(self.arena, self.arena_end + most)

    @compiled
    def _encode(self, begin: int, texts: _ArrayTexts, codes: _Codes) -> tuple[int, int, int, int]:
        """Codes of the texts from `begin` on; new texts get the next codes.

        Texts go by blocks: first all lines of one block are prefetched and its keys go into half of `lookups`, then the
        texts of the block before are looked up. A processor overlaps rounds of such short loops. If longer texts are
        among them, a loop before looks up the codes (`_settle`).

        Stops where the tables have no room. Returns (texts done, texts known, words of the arena used, new texts).
        """
        end = len(codes.out)
        is_sparse = len(texts.rows) > 0 or len(texts.null) > 0
        side: Any = np.uint64(0)
        other: Any = np.uint64(BLOCK)
        longer = False
        for block_start in range(begin, end + BLOCK, BLOCK):
            block_end = min(block_start + BLOCK, end)
            settles = longer
            short = texts.fit_words(block_start, block_end)
            if is_sparse or not short:
                longer = self._ask(False, block_start, block_end, side, texts)
            else:
                longer = self._ask(True, block_start, block_end, side, texts)
            side, other = other, side
            if block_start == begin:
                continue
            i: Any = np.uint64(block_start - BLOCK)
            stop = np.uint64(min(block_start, end))
            shift = side - i
            if settles:
                self._settle(i, stop, shift, texts)
            while True:
                i = self._skip_known(i, stop, shift, settles, codes)
                if i == stop:
                    break
                row = texts.row(i)
                if len(texts.null) and texts.null[row]:
                    codes.out[i] = -1
                    i += np.uint64(1)
                    continue
                code = self._code_of(i + shift, row, texts, codes)
                if code < 0:
                    next_text: Any = np.int64(i)
                    return next_text, self.size, self.arena_end, codes.new
                codes.out[i] = code
                i += np.uint64(1)
        return end, self.size, self.arena_end, codes.new

    @inlined
    def _ask(self, short: bool, begin: int, end: int, side: Any, texts: _ArrayTexts) -> Any:
        """Asks for the lines of a block of texts; what is known of them goes into `lookups` from `side` on. `short`:
        there are no nulls, and no text has more than a word. Returns whether one has."""
        longer = False
        for later in range(np.uint64(begin), np.uint64(end)):
            row = later if short or len(texts.rows) == 0 else np.uint64(texts.rows[later])
            at = texts.start(row)
            n = texts.size(row)
            key = np.uint64(0)
            if short or n <= 8:
                if n > 0:
                    key = load64(texts.data, at) & (_ONES >> np.uint64(64 - 8 * min(n, 8)))
                tag = np.uint64(n + 1) << np.uint64(60)
            else:
                key = _hash(texts.data, at, n)
                tag = _LONG << np.uint64(32)
                longer = True
            if not short and len(texts.null) and texts.null[row]:
                tag = _NULL
            line = self.table.line_of(key)
            prefetch(self.table.slots, line)
            spot = later - np.uint64(begin) + side
            self.lookups[spot] = tag | line
            self.lookups[spot + _KEYS] = key
        return longer

    @inlined
    def _settle(self, begin: Any, end: Any, shift: Any, texts: _ArrayTexts) -> None:
        """Puts the codes of a block of texts into `lookups`; `_CODES` or more if the text is not found at once. The
        arena's words of the longer texts are prefetched before the first of them is compared.
        """
        for i in range(begin, end):
            line = self.lookups[i + shift]
            tag = line >> np.uint64(32)
            limit = _WORDS if tag == _LONG else _CODES
            number = self.table.find(line & _LOW, self.lookups[i + shift + _KEYS], tag, limit)
            self.lookups[i + shift + _FOUND] = number
            if tag == _LONG:
                prefetch(self.arena, number)
                prefetch(self.arena, number + np.uint64(7))
        for i in range(begin, end):
            number = self.lookups[i + shift + _FOUND]
            if self.lookups[i + shift] >> np.uint64(32) == _LONG:
                code = _CODES
                if number < _WORDS:
                    row = texts.row(i)
                    text = np.int64(number)
                    same = self._is_same(text, row, texts)
                    if same:
                        code = self.arena[text]
                self.lookups[i + shift + _FOUND] = code

    @inlined
    def _is_same(self, text: Any, row: Any, texts: _ArrayTexts) -> Any:
        """True if the text of a row is the one at place `text` of the arena."""
        at = texts.start(row)
        n = texts.size(row)
        same = np.int64(self.arena[text + 1]) == n
        k = 0
        while same and k < n:
            same = self.arena[text + 2 + (k >> 3)] == load64(texts.data, at + min(k, n - 8))
            k += 8
        return same

    @inlined
    def _skip_known(self, begin: Any, end: Any, shift: Any, is_settled: bool, codes: _Codes) -> Any:
        """Puts out the codes of the texts from `begin` on that are found at once; returns the first that is not."""
        i: Any = begin
        if is_settled:
            while i < end and self.lookups[i + shift + _FOUND] < _CODES:
                codes.out[i] = np.int64(self.lookups[i + shift + _FOUND])
                i += np.uint64(1)
        else:
            while i < end:
                line = self.lookups[i + shift]
                number = self.table.find(line & _LOW, self.lookups[i + shift + _KEYS], line >> np.uint64(32), _CODES)
                if number >= _CODES:
                    break
                codes.out[i] = np.int64(number)
                i += np.uint64(1)
        return i

    @inlined
    def _code_of(self, spot: Any, row: Any, texts: _ArrayTexts, codes: _Codes) -> Any:
        """The code of a row's text, of which `lookups` has the line and the key: the next one if it is new; -1 if there
        is no room for it."""
        n = texts.size(row)
        j, tag = self.lookups[spot] & _LOW, self.lookups[spot] >> np.uint64(32)
        key = self.lookups[spot + _KEYS]
        place = number_at(j)
        code: Any = -1
        while self.table.numbers[place] != 0:
            number = np.uint64(self.table.numbers[place]) ^ tag
            if self.table.slots[j] == key and number < (_WORDS if n > 8 else _CODES):
                if n <= 8:
                    code = np.int64(number)
                    break
                text = np.int64(number)
                same = self._is_same(text, row, texts)
                if same:
                    code = np.int64(self.arena[text])
                    break
            j = next_slot(j, self.table.last)
            place = number_at(j)
        more = 2 + ((n + 7) >> 3) if n > 8 else 0
        if code < 0 and self.size < self.table.most and self.arena_end + more <= len(self.arena):
            at = texts.start(row)
            self.table.slots[j] = key
            self.table.numbers[place] = tag | np.uint64(self.arena_end if n > 8 else self.size)
            if n > 8:
                self.arena[self.arena_end] = np.uint64(self.size)
                self.arena[self.arena_end + 1] = np.uint64(n)
                for k in range(0, n, 8):
                    self.arena[self.arena_end + 2 + (k >> 3)] = load64(texts.data, at + min(k, n - 8))
                self.arena_end += more
            code = self.size
            self.size += 1
            codes.fresh[codes.new, 0], codes.fresh[codes.new, 1] = at, n
            codes.new += 1
        return code


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
        next_text = 0
        while next_text < len(texts):
            more = _add(next_text, texts, data, self._n, self._ends, self._data)
            self._n += more - next_text
            next_text = more
            if next_text < len(texts):
                size = int(texts[next_text:, 1].sum()) + int(self._ends[self._n])
                if size > _MOST_BYTES:
                    raise OverflowError("a node cannot hold more than 2 GiB of different texts")
                self._ends = grown(self._ends, self._n + len(texts) - next_text + 1)
                self._data = grown(self._data, size)

    def array(self) -> pa.Array:
        """All current texts."""
        return pa.StringArray.from_buffers(self._n, pa.py_buffer(self._ends), pa.py_buffer(self._data))
