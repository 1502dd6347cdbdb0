"""The iteration order of Java's `HashMap` over string keys, which Siddhi's output sometimes depends on."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

from ...types import Type
from .column_data import Array


def string_hash(text: str) -> int:
    """`String.hashCode`: over UTF-16 code units, wrapped to 32 bits, signed."""
    h = 0
    units = text.encode("utf-16-be", "surrogatepass")
    for i in range(0, len(units), 2):
        h = (31 * h + (units[i] << 8 | units[i + 1])) & 0xFFFFFFFF
    return h - (1 << 32) if h & 0x80000000 else h


def hash_code(type: Type, value: Any) -> int:
    """`hashCode` of a boxed value of `type`, signed; 0 for null."""
    if value is None:
        return 0
    if type is Type.BOOL:
        return 1231 if value else 1237
    if type is Type.INT:
        return int(value)
    if type is Type.FLOAT:
        return int(struct.unpack(">i", struct.pack(">f", value))[0])
    if type in (Type.LONG, Type.DOUBLE):
        bits = int(value) if type is Type.LONG else struct.unpack(">q", struct.pack(">d", value))[0]
        hash_bits = (bits ^ (bits >> 32)) & 0xFFFFFFFF
        return hash_bits - (1 << 32) if hash_bits & 0x80000000 else hash_bits
    return string_hash(value if isinstance(value, str) else str(value))


def capacity(size: int) -> int:
    """The number of buckets of a `HashMap` that has held up to `size` entries (load factor 0.75, from 16)."""
    n = 16
    while size > n * 3 // 4:
        n *= 2
    return n


def walk_order(hashes: Sequence[int], most: int) -> list[int]:
    """Indices of the keys (given in insertion order) in the iteration order of a map that never held more than `most`.

    Keys of one bucket keep the order of their insertion (as long as the bucket is not a tree: up to 8 keys).
    """
    mask = capacity(most) - 1
    return sorted(range(len(hashes)), key=lambda i: spread(hashes[i]) & mask)


def concurrent_order(spreads: Sequence[int], most: int) -> list[int]:
    """`walk_order` of a `ConcurrentHashMap`, by spread hashes: it grows with the key that fills three quarters, and the
    part of a bucket that does not end it is reversed (`ConcurrentHashMap.transfer`).
    """
    buckets, size = [list[int]() for _ in range(16)], 16
    for i, h in enumerate(spreads):
        buckets[h & (size - 1)].append(i)
        while (i + 1 if i + 1 < len(spreads) else most) >= size * 3 // 4:
            split: tuple[list[list[int]], list[list[int]]] = ([], [])
            for bucket in buckets:
                run = max(len(bucket) - 1, 0)
                while run > 0 and not (spreads[bucket[run - 1]] ^ spreads[bucket[run]]) & size:
                    run -= 1
                keys_in_order = [*reversed(bucket[:run]), *bucket[run:]]
                for side, keys in enumerate(split):
                    keys.append([k for k in keys_in_order if (spreads[k] & size > 0) == side])
            buckets, size = split[0] + split[1], 2 * size
    return [i for bucket in buckets for i in bucket]


def spread(hash: int) -> int:
    """A hash as the map uses it (`HashMap.hash`), without a sign."""
    return (hash & 0xFFFFFFFF) ^ ((hash & 0xFFFFFFFF) >> 16)


def computed_ranks(spreads: Array, numbers: Array, buckets: int) -> Array:
    """int64 sort keys of the keys `numbers` in a map filled by `computeIfAbsent`: the newest comes first in its
    bucket."""
    ranks: Array = (spreads & (buckets - 1)) << 32 | (2**32 - 1 - numbers)
    return ranks
