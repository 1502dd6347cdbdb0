"""The string dictionary of a node: a code for every string."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from .arrays import Array, arrow_of
from .blocks import Tracked
from .string_dictionary import StringDictionary, TextArray


class StringPool:
    """The dictionary of a node: every string it holds, by code. Codes are stable while the node lives.

    It is stored twice, as Python strings and in Arrow's format, because most strings enter and leave as Arrow data and
    are never needed in Python. Each is extended from the other lazily.
    """

    def __init__(self) -> None:
        self._texts: list[str] = []
        self._codes: dict[str, int] = {}
        self._arrow = TextArray()
        self._table = StringDictionary()
        self.halves = False
        """True if Arrow's form lacks a text: one with half a character."""
        self.stale = False
        """True if most strings were of no use when that was looked at last (`note_use`)."""
        self._look_at = 1 << 16

    def __len__(self) -> int:
        return max(len(self._texts), len(self._arrow))

    @property
    def texts(self) -> list[str]:
        """The strings by code. Read-only."""
        size = len(self._texts)
        if size < len(self._arrow):
            new_texts = self._arrow.array().slice(size).to_pylist()
            self._texts += new_texts
            self._codes.update(zip(new_texts, range(size, size + len(new_texts)), strict=True))
        return self._texts

    @property
    def _behind(self) -> bool:
        """True if Python's side lacks texts. To bring it up makes a Python string of each, so that Arrow is asked where
        that will do."""
        return len(self._texts) < len(self._arrow)

    def code(self, text: str | None) -> int:
        """The code of `text`, new if need be; -1 for None."""
        if text is None:
            return -1
        text_code = self._codes.get(text)
        if text_code is None:
            text_code = self._codes[text] = int(self.encode([text])[0])
        return text_code

    def text(self, code: int) -> str | None:
        """The string behind `code`; None for -1."""
        return self.decode(np.array([code]))[0]

    def encode(self, texts: Sequence[str | None]) -> Array:
        """int32 codes of Python strings."""
        if self._behind:
            try:
                return self.encode_arrow(pa.array(texts, pa.string()))
            except UnicodeEncodeError:  # half a character
                pass
        pool_texts = self.texts
        return np.fromiter((self._code(t, pool_texts) for t in texts), np.int32, len(texts))

    def _code(self, text: str | None, texts: list[str]) -> int:
        """`code`, where `texts` is the full list of the pool's texts."""
        if text is None:
            return -1
        text_code = self._codes.get(text)
        if text_code is None:
            text_code = self._codes[text] = len(texts)
            texts.append(text)
        return text_code

    def encode_arrow(self, array: pa.Array, rows: Array | None = None) -> Array:
        """int32 codes of an Arrow string or dictionary array, or of its `rows` alone."""
        if pa.types.is_dictionary(array.type):
            table = np.append(self.encode_arrow(array.dictionary), np.int32(-1)).astype(np.int32)
            indices = array.indices
            if indices.null_count:
                indices = indices.fill_null(len(table) - 1)
            at = indices.to_numpy(zero_copy_only=False)
            out: Array = table[at if rows is None else at[rows]]
            return out
        if not (pa.types.is_string(array.type) or pa.types.is_large_string(array.type)):
            array = array.cast(pa.string())
        self._in_arrow()
        out, *new = self._table.encode(array, rows)
        self._arrow.extend(*new)
        return out

    def _in_arrow(self) -> None:
        """Add the texts that came from Python to the Arrow form."""
        if len(self._arrow) < len(self._texts):
            new_texts = self._texts[len(self._arrow) :]
            self._table.encode(pa.array([t.encode("utf-8", "surrogatepass") for t in new_texts], pa.binary()))
            # Half a character is a text to an app, but none in UTF-8: there it becomes "?", as Java writes it.
            utf8_texts = [t.encode("utf-8", "replace") for t in new_texts]
            self.halves = self.halves or any(
                b"?" in w and w.decode() != t for w, t in zip(utf8_texts, new_texts, strict=True)
            )
            sizes = np.array([len(w) for w in utf8_texts])
            texts = np.column_stack([np.cumsum(sizes) - sizes, sizes])
            self._arrow.extend(texts, np.frombuffer(b"".join(utf8_texts), np.uint8))

    def track_buffers(self) -> tuple[Tracked, Tracked] | None:
        """All strings by code as they are saved: where each ends (from the second offset on), and the bytes. None if
        Arrow's form lacks one."""
        self._in_arrow()
        return None if self.halves else self._arrow.track_buffers()

    @property
    def due(self) -> bool:
        """True if there are twice as many strings as when it was looked at last how many are used."""
        return len(self) >= self._look_at

    def note_use(self, use_count: int) -> None:
        """Note that this number of strings is used."""
        self._look_at, self.stale = 2 * len(self), 2 * use_count < len(self)

    def decode(self, codes: Array) -> list[str | None]:
        """Python strings of codes."""
        if self._behind and not self.halves:
            return list(self._arrow.array().take(pa.array(codes, mask=codes < 0)).to_pylist())
        texts = self.texts
        return [texts[c] if c >= 0 else None for c in codes.tolist()]

    def to_arrow(self, codes: Array) -> pa.Array:
        """An Arrow dictionary array (int32 → string) over codes; the dictionary is shared between calls."""
        self._in_arrow()
        mask = codes < 0
        indices = arrow_of(codes, pa.int32(), mask if mask.any() else None)
        # Not `safe`, which looks at every index: codes are never beyond the end.
        return pa.DictionaryArray.from_arrays(indices, self._arrow.array(), safe=False)
