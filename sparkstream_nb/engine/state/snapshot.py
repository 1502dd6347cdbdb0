"""Serializes state: nested dicts and lists of arrays, columns and scalars, without code.

A snapshot is a JSON head followed by the arrays' bytes. String columns are stored with the strings they use, so a
snapshot means the same in any node, and strings that are no longer used leave the dictionary. Equal states give equal
bytes.

Runners store another form (`save_parts`), most of which is not read again unless it was written: arrays
in blocks (`blocks.Tracked`), codes of strings as they are, and the dictionary as it grew. `unpack` takes both.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from typing import Any

import numpy as np

from ...types import Type
from ..columnar.blocks import Buffer, Tracked
from ..columnar.column_data import Array, Column, StringPool
from ..columnar.error_routing import ErrorObject, Undelivered
from ..columnar.string_dictionary import string_array
from ..expressions import Float, Long
from ..expressions.objects import NULL, HashMap, Null

_MAGIC = b"SSNB1"
_SAVED = b"SSNB2"
_SPARSE = 4
"""A dictionary more than this many times as large as a column's number of strings is not scanned."""
_FEW = 1024
"""Number of unused strings that may stay in a dictionary."""


_PLAIN = frozenset((int, str, bool, type(None)))


class _SnapshotWriter:
    def __init__(self, strings: StringPool) -> None:
        self.strings = strings
        self.buffers: list[Buffer] = []

    def array(self, a: Array) -> dict[str, Any]:
        if a.dtype == object:
            return {"o": [self.value(x) for x in a.tolist()]}
        self.buffers.append(np.ascontiguousarray(a).reshape(-1).view(np.uint8).data if a.size else b"")
        return {"a": len(self.buffers) - 1, "t": a.dtype.str, "s": list(a.shape)}

    def column(self, c: Column) -> dict[str, Any]:
        null = None if c.null is None else self.array(c.null)
        if c.type is Type.STRING:
            codes, inverse = self._used_codes(c.values)
            texts = self.strings.decode(codes)
            order = sorted(range(len(texts)), key=lambda i: (texts[i] is not None, texts[i] or ""))
            place = np.empty(len(order), np.int32)
            place[order] = np.arange(len(order), dtype=np.int32)
            body = self.array(place[inverse].astype(np.int32))
            return {"c": c.type.value, "v": body, "n": null, "x": [texts[i] for i in order]}
        return {"c": c.type.value, "v": self.array(c.values), "n": null}

    def _used_codes(self, codes: Array) -> tuple[Array, Array]:
        """(the codes in use, in order; the place of each among them)."""
        if len(self.strings) > _SPARSE * len(codes):
            distinct_codes, inverse = np.unique(codes, return_inverse=True)
            return distinct_codes, inverse
        there = np.zeros(len(self.strings) + 1, bool)  # a null is -1, and comes first
        there[codes + 1] = True
        places = np.cumsum(there, dtype=np.int32) - 1
        return np.flatnonzero(there).astype(np.int32) - 1, places[codes + 1]

    def value(self, v: Any) -> Any:
        if v.__class__ in _PLAIN:  # most values
            return v
        if isinstance(v, Column):
            return self.column(v)
        if isinstance(v, np.ndarray):
            return self.array(v)
        if isinstance(v, HashMap):
            return {"h": [[self.value(k), self.value(x)] for k, x in v.items()]}
        if isinstance(v, Null):
            return {"z": 0}
        if isinstance(v, dict):
            return {"d": [[self.value(k), self.value(x)] for k, x in v.items()]}
        if isinstance(v, list):
            return {"l": [self.value(x) for x in v]}
        if isinstance(v, tuple):
            return {"u": [self.value(x) for x in v]}
        if isinstance(v, set | frozenset):
            return {"e": sorted((self.value(x) for x in v), key=json.dumps)}
        if isinstance(v, bytes):
            self.buffers.append(v)
            return {"b": len(self.buffers) - 1}
        if isinstance(v, Long):
            return {"j": int(v)}
        if isinstance(v, Float):
            return {"f": float(v).hex()}
        if isinstance(v, np.generic):
            return self.value(v.item())
        if isinstance(v, float):
            return {"g": v.hex()}
        if isinstance(v, Undelivered):
            return {"r": str(v), "k": v.exception}
        if isinstance(v, ErrorObject):
            return {"r": str(v)}
        if v is None or isinstance(v, bool | int | str):
            return v
        raise TypeError(f"state holds a {type(v).__name__}, which is no plain data")


def pack(state: Any, strings: StringPool) -> bytes:
    """`state` as bytes. Raises TypeError for anything that is not plain data."""
    return b"".join(pack_buffers(state, strings))


def pack_buffers(state: Any, strings: StringPool) -> list[Buffer]:
    """The parts of `pack`, which are the state's own memory: they mean something until it changes."""
    w = _SnapshotWriter(strings)
    tree = w.value(state)
    head = json.dumps({"tree": tree, "sizes": [len(b) for b in w.buffers]}, separators=(",", ":")).encode()
    return [_MAGIC + struct.pack("<Q", len(head)) + head, *w.buffers]


class _Saver(_SnapshotWriter):
    """Writes codes of strings as they are, and reserves room for tracked parts."""

    def __init__(self, strings: StringPool) -> None:
        super().__init__(strings)
        self.tracked_parts: dict[int, Tracked] = {}
        self.codes: list[Array | Tracked] = []
        """All codes of strings."""

    def array(self, a: Array | Tracked) -> dict[str, Any]:
        if not isinstance(a, Tracked):
            return super().array(a)
        self.tracked_parts[len(self.buffers)] = a
        self.buffers.append(b"")
        return {"a": len(self.buffers) - 1, "t": a.dtype.str, "s": [a.n]}

    def column(self, c: Column) -> dict[str, Any]:
        null = None if c.null is None else self.array(c.null)
        if c.type is Type.STRING:
            self.codes.append(c.values)
        return {"c": c.type.value, "v": self.array(c.values), "n": null}

    def used_codes(self) -> int:
        """Number of strings that have codes in the state."""
        there = np.zeros(len(self.strings) + 1, bool)  # a null is -1
        for c in self.codes:
            there[c.read(0, c.n) if isinstance(c, Tracked) else c] = True
        return int(np.count_nonzero(there[:-1]))

    def value(self, v: Any) -> Any:
        return self.array(v) if isinstance(v, Tracked) else super().value(v)


def save_parts(state: Any, strings: StringPool) -> list[Buffer | Tracked] | None:
    """The parts of `state` as a runner stores it; None if strings cannot be written so. `state` may have arrays that
    are tracked, and columns of them. The parts mean something until it changes."""
    texts = strings.track_buffers()
    if texts is None:
        return None
    w = _Saver(strings)
    tree, ends, data = w.value(state), *(w.array(t)["a"] for t in texts)
    if strings.due:
        strings.note_use(w.used_codes())
    sizes = [w.tracked_parts[i].size if i in w.tracked_parts else len(b) for i, b in enumerate(w.buffers)]
    head = json.dumps({"tree": tree, "texts": [ends, data], "sizes": sizes}, separators=(",", ":")).encode()
    return [_SAVED + struct.pack("<Q", len(head)) + head, *(w.tracked_parts.get(i, b) for i, b in enumerate(w.buffers))]


def _code_places(tree: Any) -> Iterator[dict[str, Any]]:
    """The arrays of codes in a tree."""
    pending = [tree]
    while pending:
        v = pending.pop()
        if isinstance(v, list):
            pending += v
        elif isinstance(v, dict):
            if v.get("c") == Type.STRING.value:
                yield v["v"]
            else:
                pending += v.values()


def _codes_of(head: dict[str, Any], buffers: list[Buffer], strings: StringPool) -> Array | None:
    """The code of each saved code among `strings`, to which the texts are added; None if they are the same. Unused
    texts are left out if they are the majority.
    """
    ends, data = (np.frombuffer(buffers[i], t) for i, t in zip(head["texts"], (np.int32, np.uint8), strict=True))
    n = len(ends) - 1
    texts = string_array(ends, data)
    is_used = np.zeros(n + 1, np.bool_)  # a null is -1
    if n > _FEW:
        for v in _code_places(head["tree"]):
            is_used[np.frombuffer(buffers[v["a"]], v["t"])] = True
    keep = np.flatnonzero(is_used[:n])
    codes = np.full(n + 1, -1, np.int32)
    if n > _FEW and 2 * len(keep) < n:
        codes[keep] = strings.encode_arrow(texts, keep)
        return codes
    codes[:n] = strings.encode_arrow(texts)
    return None if np.array_equal(codes[:n], np.arange(n)) else codes


def unpack(blob: bytes, strings: StringPool) -> Any:
    """The state in `blob`; its strings join `strings`. Raises ValueError for bytes that are not a snapshot."""
    if blob[: len(_MAGIC)] not in (_MAGIC, _SAVED):
        raise ValueError("not a node's state, or of another version")
    at = len(_MAGIC)
    (n,) = struct.unpack_from("<Q", blob, at)
    head = json.loads(bytes(blob[at + 8 : at + 8 + n]))
    at += 8 + n
    buffers: list[Buffer] = []
    view = memoryview(blob)
    for size in head["sizes"]:
        buffers.append(view[at : at + size])
        at += size
    codes_of = _codes_of(head, buffers, strings) if "texts" in head else None

    def array(d: dict[str, Any]) -> Array:
        if "o" in d:
            out = np.empty(len(d["o"]), object)
            for i, x in enumerate(d["o"]):
                out[i] = value(x)
            return out
        return np.frombuffer(buffers[d["a"]], np.dtype(d["t"])).reshape(d["s"]).copy()

    def value(v: Any) -> Any:
        if not isinstance(v, dict):
            return v
        if "c" in v:
            type = Type(v["c"])
            values = array(v["v"])
            if "x" in v:
                codes = strings.encode(v["x"])
                values = codes[values] if len(codes) else np.empty(0, np.int32)
            elif type is Type.STRING and codes_of is not None:
                values = codes_of[values]
            return Column(type, values, None if v["n"] is None else array(v["n"]))
        if "a" in v or "o" in v:
            return array(v)
        if "d" in v:
            return {value(k): value(x) for k, x in v["d"]}
        if "h" in v:
            return HashMap((value(k), value(x)) for k, x in v["h"])
        if "z" in v:
            return NULL
        if "l" in v:
            return [value(x) for x in v["l"]]
        if "u" in v:
            return tuple(value(x) for x in v["u"])
        if "e" in v:
            return {value(x) for x in v["e"]}
        if "b" in v:
            return bytes(buffers[v["b"]])
        if "r" in v:
            return Undelivered(v["r"]) if "k" in v else ErrorObject(v["r"])
        if "j" in v:
            return Long(v["j"])
        if "f" in v:
            return Float(float.fromhex(v["f"]))
        return float.fromhex(v["g"])

    return value(head["tree"])
