"""A node's dictionary: one code a text, whether it came from Python or from Arrow, and however often it was asked."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from sparkstream_nb.engine.columnar.column_data import StringPool
from sparkstream_nb.engine.columnar.string_dictionary import StringDictionary

# Short and long ones, of one beginning, and as many as make the tables grow.
TEXTS = st.one_of(st.text(max_size=20), st.integers(0, 3000).map(lambda i: f"S{i:06d}" * (1 + i % 3)))
BATCH = st.lists(st.none() | TEXTS.filter(lambda t: not any("\ud800" <= c <= "\udfff" for c in t)), max_size=40)
STEP = st.tuples(st.sampled_from(["python", "single", "arrow", "rows", "dictionary", "out"]), BATCH)


@settings(deadline=None)
@given(st.lists(STEP, max_size=12))
def test_every_text_has_one_code_whichever_way_it_comes(steps: list[tuple[str, list[str | None]]]) -> None:
    strings, known = StringPool(), dict[str, int]()
    for way, texts in steps:
        array = pa.array(texts, pa.string())
        if way == "python":
            codes = strings.encode(texts)
        elif way == "single":
            codes = np.array([strings.code(t) for t in texts], np.int32)
            assert [strings.text(c) for c in codes.tolist()] == texts
        elif way == "rows":
            codes = strings.encode_arrow(array, np.arange(len(texts))[::2])
            texts = texts[::2]
        elif way == "dictionary":
            codes = strings.encode_arrow(array.dictionary_encode())
        else:
            codes = strings.encode_arrow(array)
        expected = [-1 if t is None else known.setdefault(t, len(known)) for t in texts if way != "dictionary"]
        if way == "dictionary":
            for t in array.dictionary_encode().dictionary.to_pylist():
                known.setdefault(t, len(known))
            expected = [-1 if t is None else known[t] for t in texts]
        assert codes.tolist() == expected
        if way == "out":
            assert strings.to_arrow(codes).to_pylist() == texts
    assert len(strings) == len(known)
    assert strings.texts == list(known)
    assert strings.decode(np.arange(len(known))) == list(known)


def test_many_texts_and_what_was_handed_out_stays() -> None:
    strings = StringPool()
    names = pa.array([f"S{i:06d}" for i in range(30_000)])
    first = strings.to_arrow(strings.encode_arrow(names.slice(0, 10)))
    assert strings.encode_arrow(names).tolist() == list(range(30_000))
    assert strings.encode_arrow(names.slice(29_000)).tolist() == list(range(29_000, 30_000))
    assert first.to_pylist() == names.slice(0, 10).to_pylist()
    assert strings.to_arrow(np.array([-1, 29_999], np.int32)).to_pylist() == [None, "S029999"]
    assert strings.code("S012345") == 12_345


def test_half_a_character_is_a_text_of_its_own_and_leaves_as_java_writes_it() -> None:
    strings = StringPool()
    half, mark = strings.code("\ud83d"), strings.code("?")
    assert strings.encode_arrow(pa.array(["?"])).tolist() == [mark]
    assert half != mark
    assert strings.to_arrow(np.array([half, mark], np.int32)).to_pylist() == ["?", "?"]
    assert strings.text(half) == "\ud83d"
    assert strings.encode_arrow(pa.array(["later"])).tolist() == [2]
    assert [strings.code(t) for t in ("\ud83d", "later", "\ude00", "new")] == [0, 2, 3, 4]
    assert strings.decode(np.arange(-1, 5)) == [None, "\ud83d", "?", "later", "\ude00", "new"]


def _same_key(text: bytes, begin: bytes) -> bytes:
    """A text of two words that begins with the word `begin` and has the key of `text`, as `string_dictionary._hash`
    makes it."""
    high = 0xC2B2AE3D27D4EB4F
    first, second = np.frombuffer(text, np.uint64).tolist()
    mixed = []
    for word in (first, int.from_bytes(begin, "little")):
        h = (16 + word) * high % 2**64
        mixed.append(h ^ h >> 32)
    return begin + ((second + mixed[0] - mixed[1]) % 2**64).to_bytes(8, "little")


def test_texts_that_are_alike_are_not_the_same() -> None:
    """Batches of many blocks, with texts of one beginning and every length, zeros at the end, and the same key; new
    ones come in the midst of known ones."""
    rng = np.random.default_rng(3)
    alike = [b"abcdefgh"[:n] + b"\0" * zeros for n in range(9) for zeros in range(9)]
    alike += [bytes([n]) * n for n in range(40)] + [b"abcdefghijklmno%c" % c for c in b"\0pqr"]
    alike += [_same_key(b"abcdefghijklmnop", b"%08d" % i) for i in range(50)]
    table, known = StringDictionary(), dict[bytes, int]()
    for size in (5, 20, 80, len(alike)):
        for nulls in (0, 0.2):
            picked = [alike[i] if rng.random() >= nulls else None for i in rng.integers(0, size, 1_000)]
            codes, fresh, data = table.encode(pa.array(picked, pa.binary()))
            had = len(known)
            assert codes.tolist() == [-1 if t is None else known.setdefault(t, len(known)) for t in picked]
            assert [data[at : at + n].tobytes() for at, n in fresh.tolist()] == list(known)[had:]
    keys, numbers = table.table.slots.reshape(-1, 8)[:, :5], table.table.numbers.reshape(-1, 16)[:, 10:15]
    hashes = keys[numbers >= 3 << 30]
    assert len(hashes) - len(np.unique(hashes)) == 50  # else `_same_key` no longer says what it is to
