"""Functions that take whole columns answer, and fail, as they do row by row."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from sparkstream_nb.engine.columnar.column_data import ARROW, Array, Column, StringPool, Texts, concat
from sparkstream_nb.engine.expressions import Context, Env, compile_expr
from sparkstream_nb.engine.expressions.asciitexts import (
    ANYWHERE,
    BEGINNING,
    ENTIRE,
    match_pattern,
    replace_matches,
    split_at,
)
from sparkstream_nb.engine.expressions.functions.core import _uuids
from sparkstream_nb.engine.expressions.javaregex import compile_java, replace, split
from sparkstream_nb.engine.expressions.plainregex import never_empty, plain_regex
from sparkstream_nb.engine.expressions.rowwise import MANY
from sparkstream_nb.plan.nodes import Call, Const, Expr, Ref
from sparkstream_nb.types import Type

TEXT, INT, LONG, DOUBLE, BOOL = Type.STRING, Type.INT, Type.LONG, Type.DOUBLE, Type.BOOL


def env_of(columns: Sequence[Column], strings: StringPool, active: Array | None = None) -> Env:
    n = len(columns[0])
    stamps = np.arange(n, dtype=np.int64)
    return Env(n, strings, stamps, stamps, lambda ref: columns[ref.attr], active=active)  # type: ignore[union-attr]


def answers(call: Call, columns: Sequence[Column], strings: StringPool, active: Array | None = None) -> list[Any]:
    """What `call` says of each row: (value, why it failed). It is asked as it is anywhere."""
    env = env_of(columns, strings, active)
    told = compile_expr(call)(env).to_list(strings)
    return [(None, env.reason(i)) if env.reason(i) is not None else (v, None) for i, v in enumerate(told)]


def one_by_one(call: Call, columns: Sequence[Column], strings: StringPool) -> list[Any]:
    """The same by the functions on Python values, which few rows get."""
    assert MANY > 50
    parts = [[c.take(np.arange(i, min(i + 50, len(c)))) for c in columns] for i in range(0, len(columns[0]), 50)]
    return [a for p in parts for a in answers(call, [Column(c.type, c.values, c.null) for c in p], strings)]


def same(one: list[Any], other: list[Any]) -> bool:
    return all(
        f == g and type(a) is type(b) and (a == b or (a != a and b != b)) and str(a) == str(b)
        for (a, f), (b, g) in zip(one, other, strict=True)
    )


def check(call: Call, values: Sequence[Sequence[Any]], kinds: Sequence[Type]) -> None:
    """`call` over columns of `values`: with codes, without, a part of the rows, and in two batches of one node."""
    strings = StringPool()
    coded = [Column.of(k, v, strings) for k, v in zip(kinds, values, strict=True)]
    want = one_by_one(call, coded, strings)
    assert same(answers(call, coded, strings), want), call
    plain = [
        Texts(pa.array(v, pa.string()), strings, many=True) if k is TEXT else c
        for k, v, c in zip(kinds, values, coded, strict=True)
    ]
    assert same(answers(call, plain, strings), want), call
    active = np.arange(len(want)) % 3 > 0
    some = answers(call, plain, strings, active)
    assert same(
        [a for a, on in zip(some, active, strict=True) if on], [a for a, on in zip(want, active, strict=True) if on]
    )
    env, half = compile_expr(call), len(want) // 2
    whole = [env(env_of([c.slice(a, b) for c in plain], strings)) for a, b in ((0, half), (half, len(want)))]
    told = concat(whole).to_list(strings)
    assert same([(v, f) for v, (_, f) in zip(told, want, strict=True) if f is None], [w for w in want if w[1] is None])


ODD = ["", " ", "  a ", "é", "😀b", "\x00", "a\tb", "a\n", "\r\nx", "ß", "İ", "\x7f", "a\u2028", "ﬁ", "ΑΣ", None]


def texts(rng: Random, alphabet: str, longest: int, odd: float, n: int = 2 * MANY) -> list[str | None]:
    return [
        rng.choice(ODD) if rng.random() < odd else "".join(rng.choices(alphabet, k=rng.randrange(longest + 1)))
        for _ in range(n)
    ]


A = Ref(TEXT, 0, 0, "a")
B = Ref(TEXT, 0, 1, "b")


def const(value: Any) -> Const:
    return Const(TEXT if isinstance(value, str) else INT, value)


def of_text(name: str, kind: Type, *rest: Any) -> Call:
    return Call(kind, name, (A, *(r if isinstance(r, Expr) else const(r) for r in rest)))


CALLS = [
    of_text("str:upper", TEXT), of_text("str:lower", TEXT), of_text("str:trim", TEXT), of_text("str:reverse", TEXT),
    of_text("str:length", INT), of_text("str:charAt", TEXT, 1), of_text("str:charAt", TEXT, -1),
    *(of_text("str:substr", TEXT, *a) for a in ((0,), (2,), (9,), (-1,), (1, 2), (3, 0), (2, -1))),
    of_text("str:substr", TEXT, "b.*"), of_text("str:contains", BOOL, "b1"), of_text("str:contains", BOOL, ""),
    of_text("str:contains", BOOL, "é"), of_text("str:contains", BOOL, B), of_text("str:charAt", TEXT, 0),
    *(of_text(f"str:replace{how}", TEXT, p, r) for how in ("All", "First")
      for p, r in (("a", "<>"), ("-", "é"), ("[ab]+", "\\$x"), ("b*", "-"), ("(a)", "$1$1"), ("\\.", ""))),
    *(of_text("str:split", TEXT, p, i) for p in ("-", "b+", "a*", "é", ".", "") for i in (-1, 0, 1, 3)),
    *(of_text("str:regexp", BOOL, p) for p in ("a.*b?", "[^a]+", "(a|b)*", "a++", "^a$", "\\bа")),
    *(Call(BOOL, f"regex:{how}", (const(p), A)) for how in ("find", "matches", "lookingAt")
      for p in ("a.*b?", "[^a]+", "(a|b){2,3}", "(?i)A", "b$", "^", "\\w+-\\d", "a(?=b)")),
    Call(BOOL, "regex:find", (const("b"), A, const(1))), Call(TEXT, "str:concat", (A, const("-"), B)),
    Call(TEXT, "str:concat", (const("é"), A)), Call(TEXT, "str:concat", (A, A, B)),
]  # fmt: skip


@pytest.mark.parametrize("call", CALLS, ids=str)
def test_functions_of_texts(call: Call) -> None:
    for odd in (0.0, 0.02, 0.5):
        rng = Random(str(call))
        check(call, [texts(rng, rng.choice(["ab1-. ", "aB", "Aa-é"]), 7, odd) for _ in range(2)], [TEXT, TEXT])


# ------------------------------------------------------------------------------------------------------------ patterns


def atom(rng: Random, depth: int) -> str:
    kind = rng.randrange(5 if depth < 3 else 4)
    if kind == 0:
        return rng.choice("abAB01-_ ,")
    if kind == 1:
        return rng.choice([".", *(f"\\{c}" for c in "dwsDWS.-_/^$|")])
    if kind in (2, 3):
        return rng.choice(["a", "b", "[a-b]", "[^a]", "[ab0-9]", r"[\d.]", r"[^\w]", "[A-Z_]", "[+*?]", r"[\]a]"])
    return rng.choice(["(", "(?:"]) + pattern(rng, depth + 1) + ")"


def pattern(rng: Random, depth: int = 0) -> str:
    times = ("", "", "", "*", "+", "?", "{1,2}", "{2}", "{1,}", "*?", "+?")
    out = "".join(atom(rng, depth) + rng.choice(times) for _ in range(rng.randrange(1, 4)))
    out += "|" + pattern(rng, depth + 1) if rng.random() < 0.2 else ""
    return ("^" if rng.random() < 0.05 else "") + out + ("$" if rng.random() < 0.05 else "")


@pytest.mark.parametrize("seed", range(30))
def test_plain_patterns_mean_to_arrow_what_they_mean_to_java(seed: int) -> None:
    for p in (pattern(Random(1000 * seed + i)) for i in range(20)):
        assert plain_regex(p)
        same_matches(p, Random(p))


def same_matches(p: str, rng: Random) -> None:
    given = ["", *("".join(rng.choices("abAB01-. _/:,]", k=rng.randrange(9))) for _ in range(40))]
    array, compiled = pa.array(given), compile_java(p)
    for form, method in ((ANYWHERE, "search"), (BEGINNING, "match"), (ENTIRE, "fullmatch")):
        run = match_pattern(form)(p)
        assert run is not None
        assert run(array)[0].to_pylist() == [getattr(compiled, method)(t) is not None for t in given]
    for count in (-1, 1):
        again = replace_matches(count)(p, "<x>")
        assert (again is not None) == never_empty(p)
        if again is not None:
            assert again(array)[0].to_pylist() == [replace(t, p, "<x>", max(count, 0)) for t in given]
    for i in range(3):
        cut = split_at(p, i)
        if cut is not None:
            parts, left = cut(array)
            for t, part, no in zip(given, parts.to_pylist(), np.asarray(left).tolist(), strict=True):
                assert no or split(t, p)[i] == part


@pytest.mark.parametrize(
    "p",
    ["a**", "a*+", "(?=a)", "(?<n>a)", r"(a)\1", "[a[b]]", "[a&&b]", r"\ba", r"\x41", r"\p{L}", "(?i)a", "a{,3}",
     "a{60}", "(", ")", "[", "[]a]", "*a", "{1}", "é", "\n", r"\Qa", "a)(", "(*a)", "}", "]", "[b-a]"],
)  # fmt: skip
def test_other_patterns_are_not_given_to_arrow(p: str) -> None:
    assert not plain_regex(p) or p == "[b-a]"  # which nobody compiles
    if p != "[b-a]":
        assert not never_empty(p)


# ------------------------------------------------------------------------------------------------- numbers and instants


def number(rng: Random) -> str | None:
    sign, tail = (
        rng.choice(["", "", "-", "+"]),
        rng.choice(["", "", ".", ".5", ".000012", "e5", "E-12", "e400", "f", "d"]),
    )
    kind = rng.randrange(8)
    if kind == 0:
        return "".join(rng.choices("0123456789.+-eE fdx", k=rng.randrange(9)))
    if kind == 1:
        return repr(rng.uniform(-1e6, 1e6) * 10.0 ** rng.randrange(-20, 20))
    if kind == 2:
        return rng.choice(
            [None, "", "-", ".", "-0", "00.0", " 1 ", "NaN", "-Infinity", "0x1p3", "1e", ".e1", "é1", "١٢", "9" * 45,
             "0." + "0" * 30 + "1", "2147483647", "2147483648", "-2147483648", "-2147483649", "9223372036854775807",
             "9223372036854775808", "-9223372036854775808", "0" * 20 + "1", "4503599627370497.5", "9007199254740993"]
        )  # fmt: skip
    return sign + rng.choice(["", "00"]) + str(rng.randrange(10 ** rng.randrange(1, 22))) + tail


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("kind", [INT, LONG, Type.FLOAT, DOUBLE, BOOL])
def test_numbers_that_are_read(kind: Type, seed: int) -> None:
    rng = Random(seed)
    given = [number(rng) for _ in range(2 * MANY)]
    check(Call(kind, "convert", (A, const(str(kind)))), [given], [TEXT])
    if kind is not BOOL:
        check(Call(kind, f"math:parse{str(kind).capitalize()}", (A,)), [given], [TEXT])


@pytest.mark.parametrize("seed", range(10))
def test_numbers_that_are_written_and_read(seed: int) -> None:
    r = np.random.default_rng(seed)
    n = 3 * MANY
    made = [
        np.round(r.normal(0, 10.0 ** r.integers(-3, 12), n), int(r.integers(0, 9))),
        10.0 ** r.uniform(-20, 25, n) * r.choice([-1, 1], n),
        r.integers(-(2**63), 2**63, n).view(np.float64),
        np.array(
            [0.0, -0.0, 1e7, 1e-3, 9999999.999999998, np.inf, -np.inf, 1e15, 999999999999999.0, 1e22, 1e-8, 5e-324] * 25
        ),
    ]
    for values in made:
        strings = StringPool()
        column = Column(DOUBLE, values, r.random(n) < 0.1)
        for kind in (DOUBLE, Type.FLOAT):
            with np.errstate(all="ignore"):
                column = Column(kind, values if kind is DOUBLE else values.astype(np.float32), column.null)
            write = Call(TEXT, "convert", (Ref(kind, 0, 0, "a"), const("string")))
            told = answers(write, [column], strings)
            assert told == one_by_one(write, [column], strings)
            again = Call(kind, "convert", (A, const(str(kind))))
            read = answers(again, [Texts(pa.array([v for v, _ in told]), strings, many=True)], strings)
            assert same(read, [(v, None) for v in column.to_list(strings)])


def instants(rng: Random) -> list[int | None]:
    spread = rng.choice([10**3, 10**7, 10**12, 10**14, 2**63 - 1])
    return [
        rng.choice([None, rng.randrange(-spread, spread), 1_600_000_000_000 + rng.randrange(spread // 9)])
        for _ in range(300)
    ]


FORMATS = [
    "yyyy-MM-dd HH:mm:ss.SSS", "yyyy-MM-dd", "HH", "yy/M/d H:m:s.S", "EEE, d MMM yyyy hh:mm a", "'o''clock' kk KK", "",
    "EEEE MMMM DDD F yyyyy SSSS", "yyyy G", "w W", "z Z", "é", "Q", "''", "y",
]  # fmt: skip


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("form", FORMATS)
def test_formats_of_instants(form: str, seed: int) -> None:
    call = Call(TEXT, "time:dateFormat", (Ref(LONG, 0, 0, "a"), const(form)))
    check(call, [instants(Random(seed))], [LONG])


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(
    "unit", ["SECOND", "MINUTE", "HOUR", "DAY", "WEEK", "MONTH", "QUARTER", "YEAR", "hour", "year", "?"]
)
def test_instants_that_are_moved(unit: str, seed: int) -> None:
    rng = Random(seed)
    by = [rng.choice([None, 0, 1, -1, 12, rng.randrange(-500, 500), 2**31 - 1, -(2**31)]) for _ in range(300)]
    times = [instants(rng), by]
    for name in ("time:dateAdd", "time:dateSub"):
        for amount in (Ref(INT, 0, 1, "b"), const(5)):
            check(Call(TEXT, name, (Ref(LONG, 0, 0, "a"), amount, const(unit))), times, [LONG, INT])


@pytest.mark.parametrize("seed", range(10))
def test_days_between_instants(seed: int) -> None:
    rng = Random(seed)
    refs = [Ref(LONG, 0, i, "ab"[i]) for i in range(2)]
    check(Call(INT, "time:dateDiff", tuple(refs)), [instants(rng), instants(rng)], [LONG, LONG])


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("unit", ["YEAR", "month", "QUARTER", "WEEK", "DAY", "HOUR", "MINUTE", "SECOND", "?"])
def test_fields_of_instants(unit: str, seed: int) -> None:
    check(Call(INT, "time:extract", (Ref(LONG, 0, 0, "a"), const(unit))), [instants(Random(seed))], [LONG])


@pytest.mark.parametrize("kind", [INT, LONG])
@pytest.mark.parametrize("base", ["bin", "oct", "hex"])
def test_bits_of_whole_numbers(base: str, kind: Type) -> None:
    rng, last = Random(base), 2 ** (31 if kind is INT else 63) - 1
    values = [
        rng.choice([None, 0, last, -last - 1, rng.randrange(-last, last), rng.randrange(-99, 99)]) for _ in range(300)
    ]
    check(Call(TEXT, f"math:{base}", (Ref(kind, 0, 0, "a"),)), [values], [kind])


# ------------------------------------------------------------------------------------------------------- maps and lists

ATTRS = {LONG: Ref(LONG, 0, 0, "a"), DOUBLE: Ref(DOUBLE, 0, 1, "b"), TEXT: Ref(TEXT, 0, 2, "c")}
LISTS = [
    Call(Type.OBJECT, "list:create", tuple(ATTRS.values())),
    Call(Type.OBJECT, "list:create", (ATTRS[DOUBLE],)),
    Call(Type.OBJECT, "list:create", (const(1), const("x"))),
]
MAPS = [
    Call(
        Type.OBJECT, "map:create", tuple(x for k, v in zip("abc", ATTRS.values(), strict=True) for x in (const(k), v))
    ),
    Call(Type.OBJECT, "map:create", (const("a"), ATTRS[LONG], const("a"), ATTRS[DOUBLE])),
    Call(Type.OBJECT, "map:create", (ATTRS[TEXT], ATTRS[LONG])),
    Call(Type.OBJECT, "map:create", ()),
]
READS = [
    *(Call(Type.OBJECT, "list:get", (x, const(i))) for x in (*LISTS, MAPS[0]) for i in (-1, 0, 2, 5)),
    *(Call(Type.OBJECT, "map:get", (x, const(k), *more))
      for x in (*MAPS, LISTS[0]) for k in ("a", "c", "z") for more in ((), (const("d"),))),
    *(Call(kind, f"{of}:{what}", (x,))
      for of in ("map", "list") for x in (*LISTS, *MAPS) for what, kind in (("size", INT), ("isEmpty", BOOL))),
    *(Call(Type.OBJECT, "list:add", (LISTS[0], x)) for x in (ATTRS[LONG], LISTS[1])), *LISTS, *MAPS,
]  # fmt: skip


@pytest.mark.parametrize("call", READS, ids=str)
def test_what_maps_and_lists_hold(call: Call) -> None:
    rng = Random(str(call))
    values = [rng.choice([None, rng.randrange(-9, 2**40)]) for _ in range(3 * MANY)]
    check(call, [values, [v and v / 4 for v in values], texts(rng, "ab", 3, 0.1, len(values))], [LONG, DOUBLE, TEXT])


# -------------------------------------------------------------------------------------------------------------- columns


def test_texts_of_many_kinds_get_no_codes_until_somebody_asks() -> None:
    strings, n = StringPool(), 10_000
    column = Column.from_arrow(TEXT, pa.array([f"k{i}" for i in range(n)]), strings)
    assert column.many
    assert column.take(np.arange(n)[::-2]).to_list(strings)[:2] == ["k9999", "k9997"]
    assert concat([column.slice(0, 10), column.slice(10, n)]).to_arrow(strings).type == ARROW[TEXT]
    assert len(strings) == 0
    assert column.values.tolist() == list(range(n))
    assert not column.many
    few = Column.from_arrow(TEXT, pa.array([f"k{i % 7}" for i in range(n)]), strings)
    assert not few.many
    assert pa.types.is_dictionary(few.to_arrow(strings).type)


def test_javas_random_numbers_and_uuids() -> None:
    class Java:
        """`java.util.Random`."""

        def __init__(self, seed: int) -> None:
            self.state = (seed ^ 0x5DEECE66D) & (2**48 - 1)

        def bits(self, n: int) -> int:
            self.state = (self.state * 0x5DEECE66D + 0xB) & (2**48 - 1)
            return self.state >> (48 - n)

    for seed in (0, 7, -3, 2**63 - 1):
        java, run = Java(seed), compile_expr(Call(DOUBLE, "math:rand", (Const(LONG, seed),)), Context())
        for n in (0, 3, 200):
            column = Column(LONG, np.zeros(n, np.int64))
            told = run(env_of([column], StringPool())).values.tolist()
            assert told == [((java.bits(26) << 27) + java.bits(27)) * 2.0**-53 for _ in range(n)]
    told = _uuids(bytes(range(256)) * 4).to_pylist()
    assert [str(uuid.UUID(t)) for t in told] == told
    assert {(uuid.UUID(t).version, uuid.UUID(t).variant) for t in told} == {(4, uuid.RFC_4122)}
