"""Serializes state: nested dicts and lists of arrays, columns and scalars, without code.

A blob is a JSON head followed by the arrays' bytes. String columns are stored with the strings they use, so a blob
means the same in any node, and strings that are no longer used leave the dictionary. Equal states give equal bytes.
"""

from __future__ import annotations

import json
import struct
from typing import Any

import numpy as np

from ..types import Type
from .columns import Array, Column, Strings
from .expressions import Float, Long
from .expressions.objects import NULL, HashMap, Null
from .faults import ErrorObject, Undelivered

_MAGIC = b"SSNB1"
_SPARSE = 4
"""A dictionary of so many times the strings that a column has is not gone through."""
Buffer = bytes | memoryview


class _Writer:
    def __init__(self, strings: Strings) -> None:
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
            used, inverse = self._used(c.values)
            texts = self.strings.decode(used)
            order = sorted(range(len(texts)), key=lambda i: (texts[i] is not None, texts[i] or ""))
            place = np.empty(len(order), np.int32)
            place[order] = np.arange(len(order), dtype=np.int32)
            body = self.array(place[inverse].astype(np.int32))
            return {"c": c.type.value, "v": body, "n": null, "x": [texts[i] for i in order]}
        return {"c": c.type.value, "v": self.array(c.values), "n": null}

    def _used(self, codes: Array) -> tuple[Array, Array]:
        """(the codes that there are, in order, the place of each among them)."""
        if len(self.strings) > _SPARSE * len(codes):
            used, inverse = np.unique(codes, return_inverse=True)
            return used, inverse
        there = np.zeros(len(self.strings) + 1, bool)  # a null is -1, and comes first
        there[codes + 1] = True
        places = np.cumsum(there, dtype=np.int32) - 1
        return np.flatnonzero(there).astype(np.int32) - 1, places[codes + 1]

    def value(self, v: Any) -> Any:
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


def pack(state: Any, strings: Strings) -> bytes:
    """`state` as bytes. Raises TypeError for anything that is not plain data."""
    return b"".join(packed(state, strings))


def packed(state: Any, strings: Strings) -> list[Buffer]:
    """The parts of `pack`, which are the state's own memory: they mean something until it changes."""
    w = _Writer(strings)
    tree = w.value(state)
    head = json.dumps({"tree": tree, "sizes": [len(b) for b in w.buffers]}, separators=(",", ":")).encode()
    return [_MAGIC + struct.pack("<Q", len(head)) + head, *w.buffers]


def unpack(blob: bytes, strings: Strings) -> Any:
    """The state in `blob`; its strings join `strings`. Raises ValueError for bytes that are not a snapshot."""
    if blob[: len(_MAGIC)] != _MAGIC:
        raise ValueError("not a node's state, or of another version")
    at = len(_MAGIC)
    (n,) = struct.unpack_from("<Q", blob, at)
    head = json.loads(bytes(blob[at + 8 : at + 8 + n]))
    at += 8 + n
    buffers = []
    for size in head["sizes"]:
        buffers.append(blob[at : at + size])
        at += size

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
