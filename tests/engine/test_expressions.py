"""Expressions over columns answer what a plain interpreter answers row by row; and what columns alone can get wrong."""

from __future__ import annotations

import math
import uuid
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from profiles import examples
from sparkstream_nb.engine.columnar.column_data import Column, StringPool
from sparkstream_nb.engine.expressions import Context, Env, Long, compile_condition, compile_expr
from sparkstream_nb.engine.expressions.dateformat import format_instant
from sparkstream_nb.engine.expressions.format_numbers import number_texts
from sparkstream_nb.engine.expressions.java_arithmetic import choose, compute
from sparkstream_nb.engine.expressions.java_calendar import SUNDAY, field
from sparkstream_nb.engine.expressions.java_texts import text
from sparkstream_nb.engine.expressions.java_values import RowFailure
from sparkstream_nb.engine.expressions.objects import NULL, HashMap, walk
from sparkstream_nb.engine.expressions.rowwise import rowwise
from sparkstream_nb.engine.state.snapshot import pack, unpack
from sparkstream_nb.errors import SiddhiBindError
from sparkstream_nb.plan.nodes import Arith, Call, Compare, Const, Expr, IsNull, Logic, Not, Ref, ScriptCall
from sparkstream_nb.plan.nodes import walk as walk_expr
from sparkstream_nb.types import Type, promote

NUMBERS = (Type.INT, Type.LONG, Type.FLOAT, Type.DOUBLE)
TYPES = (*NUMBERS, Type.BOOL, Type.STRING)
REFS = [Ref(t, 0, i, f"a{i}") for i, t in enumerate((*TYPES, *TYPES))]
BITS = {Type.INT: 32, Type.LONG: 64}


def single(x: float) -> float:
    with np.errstate(all="ignore"):
        return float(np.float32(x))


EDGES: dict[Type, list[Any]] = {
    Type.INT: [0, 1, -1, 2, 7, -7, 2**24 + 1, 2**31 - 1, -(2**31)],
    Type.LONG: [0, 1, -3, 2**24 + 1, 2**53 + 1, 2**63 - 1, -(2**63)],
    Type.FLOAT: [0.0, -0.0, 1.5, -2.5, 16777216.0, single(0.1), single(3e38), single(1e-45), math.inf, math.nan],
    Type.DOUBLE: [0.0, -0.0, 1.5, -2.5, 0.1, 16777217.0, 2.0**53, 1.7e308, 5e-324, -math.inf, math.nan],
    Type.BOOL: [True, False],
    Type.STRING: ["", "a", "b", "é", "long"],
}
OPERATORS = ("==", "!=", "<", "<=", ">", ">=")


def values(t: Type) -> st.SearchStrategy[Any]:
    """Values of type `t`: edges, or any."""
    edges = st.sampled_from(EDGES[t])
    if t in BITS:
        half = 2 ** (BITS[t] - 1)
        return edges | st.integers(-half, half - 1) | st.integers(-1000, 1000)
    if t is Type.FLOAT:
        return edges | st.floats(-1e6, 1e6, width=32)
    return edges | st.floats(-1e9, 1e9) if t is Type.DOUBLE else edges


@st.composite
def trees(draw: st.DrawFn, t: Type, depth: int) -> Expr:
    """Typed trees of type `t`."""
    kind = draw(st.integers(0, 99)) if depth else 0
    if kind < 15:
        leaves = [r for r in REFS if r.type is t]
        return draw(st.one_of(st.sampled_from(leaves), values(t).map(lambda v: Const(t, v))))

    def part(t: Type) -> Expr:
        return draw(trees(t, depth - 1))

    if kind < 30:
        return Call(t, "ifThenElse", (part(Type.BOOL), part(t), part(t)))
    if t in NUMBERS:
        left, right = draw(st.sampled_from([(a, b) for a in NUMBERS for b in NUMBERS if promote(a, b) is t]))
        return Arith(t, draw(st.sampled_from("+-*/%")), part(left), part(right))  # type: ignore[arg-type]
    if t is Type.STRING:
        return Call(t, "str:concat", (part(t), part(t)))
    match draw(st.integers(0, 6)):
        case 0 | 1:
            a, b = draw(st.sampled_from(NUMBERS)), draw(st.sampled_from(NUMBERS))
            return Compare(t, draw(st.sampled_from(OPERATORS)), part(a), part(b))  # type: ignore[arg-type]
        case 2:
            of = draw(st.sampled_from((Type.STRING, Type.BOOL)))
            return Compare(t, draw(st.sampled_from(OPERATORS[:2])), part(of), part(of))  # type: ignore[arg-type]
        case 3:
            return Logic(t, draw(st.sampled_from(("and", "or"))), part(t), part(t))
        case 4:
            return Not(t, part(t))
        case 5:
            return IsNull(t, part(draw(st.sampled_from(TYPES))))
    return Compare(t, ">", Call(Type.INT, "str:length", (part(Type.STRING),)), Const(Type.INT, 1))


@st.composite
def asked(draw: st.DrawFn, kinds: Sequence[Type], depth: int) -> tuple[Expr, list[list[Any]]]:
    """A tree of one of these types, and up to 20 rows for `REFS`, with values where the tree asks for them."""
    e = draw(st.sampled_from(kinds).flatmap(lambda t: trees(t, depth)))
    used = {x.attr for x in walk_expr(e) if isinstance(x, Ref)}
    nulls = draw(st.booleans())
    cells = [
        (values(r.type) | st.none() if nulls else values(r.type)) if i in used else st.none()
        for i, r in enumerate(REFS)
    ]
    return e, draw(st.lists(st.tuples(*cells).map(list), max_size=20))


class Failed(Exception):
    pass


def to(kind: Type, v: Any) -> Any:
    """A number as Java converts it to `kind` (widening only)."""
    return single(float(v)) if kind is Type.FLOAT else float(v) if kind is Type.DOUBLE else v


def naive(e: Expr, row: list[Any]) -> Any:
    """Siddhi's executors, one row at a time, nothing shared with the engine."""
    match e:
        case Const():
            return single(e.value) if e.type is Type.FLOAT else e.value
        case Ref():
            return row[e.attr]
        case Arith():
            a, b = naive(e.left, row), naive(e.right, row)
            return None if a is None or b is None else arithmetic(e.op, e.type, to(e.type, a), to(e.type, b))
        case Compare():
            a, b = naive(e.left, row), naive(e.right, row)
            if a is None or b is None:
                return e.op == "!="
            kinds = {e.left.type, e.right.type}
            if kinds <= set(NUMBERS):
                kind = promote(e.left.type, e.right.type)
                if kinds == {Type.LONG, Type.FLOAT} and e.op in ("==", "!="):
                    kind = Type.DOUBLE
                assert kind is not None
                a, b = to(kind, a), to(kind, b)
            return {"==": a == b, "!=": a != b}[e.op] if e.op in ("==", "!=") else eval(f"a {e.op} b")
        case Logic():
            left = naive(e.left, row) is True
            if left != (e.op == "and"):
                return left
            return naive(e.right, row) is True
        case Not():
            return naive(e.operand, row) is not True
        case IsNull():
            return naive(e.operand, row) is None
        case Call(function="ifThenElse"):
            value = naive(e.args[1] if naive(e.args[0], row) is True else e.args[2], row)
            return False if value is None and e.type is Type.BOOL else value
        case Call(function="str:concat"):
            return "".join(v for a in e.args if (v := naive(a, row)) is not None)
        case Call(function="str:length"):
            text = naive(e.args[0], row)
            if text is None:
                raise Failed
            return len(text)
    raise TypeError(e)


def arithmetic(op: str, kind: Type, a: Any, b: Any) -> Any:
    if op in "/%" and b == 0:
        return None
    if kind in BITS:
        if op == "/":
            value = abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
        elif op == "%":
            value = abs(a) % abs(b) * (1 if a >= 0 else -1)
        else:
            value = {"+": a + b, "-": a - b, "*": a * b}[op]
        half = 1 << (BITS[kind] - 1)
        return (value + half) % (2 * half) - half
    try:
        value = math.fmod(a, b) if op == "%" else a / b if op == "/" else {"+": a + b, "-": a - b, "*": a * b}[op]
    except ValueError:
        value = math.nan
    return single(value) if kind is Type.FLOAT else value


def equal(a: Any, b: Any) -> bool:
    if isinstance(a, float) and isinstance(b, float):
        return (a != a and b != b) or (a == b and math.copysign(1, a) == math.copysign(1, b))
    return type(a) is type(b) and bool(a == b)


def environment(rows: list[list[Any]], strings: StringPool | None = None) -> Env:
    strings = StringPool() if strings is None else strings
    columns = [Column.of(r.type, [row[i] for row in rows], strings) for i, r in enumerate(REFS)]
    stamps = np.arange(len(rows), dtype=np.int64)
    return Env(len(rows), strings, stamps, stamps + 100, lambda ref: columns[ref.attr])  # type: ignore[union-attr]


@settings(max_examples=examples(800), deadline=None)
@given(asked(TYPES, 4))
def test_columns_answer_as_rows_do(given: tuple[Expr, list[list[Any]]]) -> None:
    e, rows = given
    env = environment(rows)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        column = compile_expr(e)(env)
    assert column.type is e.type
    assert len(column) == len(rows)
    have = column.to_list(env.strings)
    for i, row in enumerate(rows):
        try:
            want = naive(e, row)
        except Failed:
            assert env.failed_rows is not None
            assert env.failed_rows[i]
            continue
        assert env.failed_rows is None or not env.failed_rows[i], (row, env.reason(i))
        assert equal(want, have[i]), (e, row, want, have[i])
    # What is null has the value that columns promise for a null.
    if column.null is not None and column.null.any():
        at_null = column.values[column.null]
        assert (at_null == (-1 if e.type is Type.STRING else 0)).all()


@settings(max_examples=examples(200), deadline=None)
@given(asked([Type.BOOL], 3))
def test_a_condition_holds_for_true_rows_that_did_not_fail(given: tuple[Expr, list[list[Any]]]) -> None:
    e, rows = given
    mask = compile_condition(e)(environment(rows))
    for i, row in enumerate(rows):
        try:
            assert mask[i] == (naive(e, row) is True)
        except Failed:
            assert not mask[i]


def rows_of(n: int, **attrs: Any) -> list[list[Any]]:
    names = [f"{r.type}{i // len(TYPES) + 1}" for i, r in enumerate(REFS)]
    return [[attrs[name][k] if name in attrs else None for name in names] for k in range(n)]


def ref(name: str) -> Ref:
    return next(r for i, r in enumerate(REFS) if f"{r.type}{i // len(TYPES) + 1}" == name)


def test_no_null_mask_and_no_copy_without_nulls() -> None:
    env = environment(rows_of(3, double1=[1.0, 2.0, 3.0]))
    x = ref("double1")
    product = compile_expr(Arith(Type.DOUBLE, "*", x, Const(Type.DOUBLE, 1.1)))(env)
    assert product.null is None
    assert compile_expr(x)(env).values is env.resolve(x).values


def test_a_function_is_called_once_per_distinct_argument() -> None:
    env = environment(rows_of(5000, string1=["a", "b"] * 2500))
    calls: list[Any] = []

    def script(args: list[Any]) -> Any:
        calls.append(args)
        return str(args[0]).upper()

    column = compile_expr(ScriptCall(Type.STRING, "f", (ref("string1"),)), Context(scripts={"f": script}))(env)
    assert column.to_list(env.strings) == ["A", "B"] * 2500
    assert sorted(calls) == [["a"], ["b"]]


def test_what_a_function_says_of_a_text_is_asked_once_for_all_batches() -> None:
    calls: list[Any] = []

    def shouted(text: str | None, end: str) -> str:
        calls.append(text)
        if text == "b":
            raise RowFailure("no b")
        return str(text).upper() + end

    call = Call(Type.STRING, "f", (ref("string1"), Const(Type.STRING, "!")))
    run = rowwise(shouted)(call, [compile_expr(a) for a in call.args], Context())
    strings = StringPool()
    for texts, active in ((["a", "b", None, "a"], None), (["b", "c", "d"], [True, True, False]), (["d", "a"], None)):
        env = environment(rows_of(len(texts), string1=texts), strings)
        env.active = None if active is None else np.array(active)
        told = run(env).to_list(strings)
        rows = [i for i in range(len(texts)) if active is None or active[i]]
        assert [told[i] for i in rows] == [None if texts[i] == "b" else f"{texts[i]}!".upper() for i in rows]
        assert [env.reason(i) for i in range(len(texts))] == [
            "no b" if t == "b" and i in rows else None for i, t in enumerate(texts)
        ]
    assert calls == ["a", "b", None, "c", "d"]
    assert run(environment(rows_of(1, string1=["c"]))).values.tolist() == [2]  # another node: codes of "c", "!", "C!"
    assert calls[5:] == ["c"]


@pytest.mark.parametrize("half", [False, True])
def test_texts_of_several_attributes_are_joined(half: bool) -> None:
    names = [None, "", "a", "é", "😀", *(["\ud83d", "?"] if half else [])]
    rows = [(a, b if i % 3 else f"b{i}") for i in range(30) for a in names for b in names]
    env = environment(rows_of(len(rows), string1=[a for a, _ in rows], string2=[b for _, b in rows]))
    call = Call(Type.STRING, "str:concat", (ref("string1"), Const(Type.STRING, "-"), ref("string2")))
    told = compile_expr(call)(env).to_list(env.strings)
    assert told == [f"{a or ''}-{b or ''}" for a, b in rows]


@pytest.mark.parametrize("dtype", [np.float64, np.int64, np.float32, np.int32, np.bool_, object])
@pytest.mark.parametrize("n", [5, 5000])
def test_a_choice_between_columns(n: int, dtype: type) -> None:
    r = np.random.default_rng(n)
    mask, (yes, no) = r.random(n) < 0.5, r.integers(0, 9, (2, n)).astype(dtype)
    one, other = np.broadcast_to(yes[:1], n), np.broadcast_to(no[:1], n)
    for a, b in ((yes, no), (one, no), (one, other)):
        chosen = choose(mask, a, b)
        assert chosen.dtype == dtype
        assert chosen.tolist() == [x if m else y for m, x, y in zip(mask, a, b, strict=True)]


@settings(max_examples=examples(300), deadline=None)
@given(st.lists(st.integers(-(2**63), 2**63 - 1) | st.integers(-20, 20), min_size=1), st.integers(-9, 9))
def test_division_by_a_constant(values: list[int], by: int) -> None:
    env = environment(rows_of(len(values), long1=values))
    for op in "/%":
        column = compile_expr(Arith(Type.LONG, op, ref("long1"), Const(Type.LONG, by)))(env)  # type: ignore[arg-type]
        assert column.to_list(env.strings) == [arithmetic(op, Type.LONG, v, by) for v in values]


@pytest.mark.parametrize("seed", range(10))
def test_remainders_of_doubles_are_exact(seed: int) -> None:
    r, n = np.random.default_rng(seed), 10_000
    edges = r.choice([0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.5, 5e-324, 1.7e308], (2, n))
    near = np.arange(1, n + 1) * (by := r.uniform(0.1, 10, n))  # on both sides of whole quotients
    pairs = [
        (r.integers(-(2**63), 2**63 - 1, (2, n)).view(np.float64)),
        (10 ** r.uniform(-5, 12, n), 10 ** r.uniform(-5, 5, n) * r.choice([-1, 1], n)),
        (r.integers(1, 50, n) * 5e-324, r.integers(1, 50, n) * 5e-324),
        (np.round(r.normal(0, 100, n), 2), np.broadcast_to(np.float64(0.1), n)),
        *((np.nextafter(near, side), by) for side in (-np.inf, near, np.inf)),
        edges,
    ]
    with np.errstate(all="ignore"):
        for x, y in pairs:
            found, _ = compute("%", x, y, None)
            want = np.where(y == 0, found, np.fmod(x, y))
            assert ((found.view(np.int64) == want.view(np.int64)) | (np.isnan(found) & np.isnan(want))).all()


# Short ones and long ones, on both sides of where Java writes exponents.
REALS = st.floats() | st.floats(-1e8, 1e8) | st.integers(-(10**8), 10**8).map(lambda i: i / 1000) | st.floats(0, 0.01)


@settings(max_examples=examples(500), deadline=None)
@given(st.sampled_from(NUMBERS), st.lists(st.none() | REALS, min_size=1))
def test_numbers_written_all_at_once_are_as_one_by_one(kind: Type, values: list[float | None]) -> None:
    low, high = -(2 ** (BITS.get(kind, 64) - 1)), 2 ** (BITS.get(kind, 64) - 1) - 1
    if kind in BITS:
        values = [None if v is None or v != v else int(max(low, min(high, v))) for v in values]
    column = Column.of(kind, values if kind is not Type.FLOAT else [v and single(v) for v in values], StringPool())
    told = column.to_list(StringPool())
    assert number_texts(column).to_pylist() == [None if v is None else text(kind, v) for v in told]


INSTANTS = st.integers(-(10**14), 10**14) | st.integers(-100_000, 100_000)


@settings(max_examples=examples(300), deadline=None)
@given(
    st.lists(st.none() | INSTANTS, min_size=1),
    st.sampled_from(["yyyy-MM-dd HH:mm:ss.SSS", "ss mm", "mm'm'", "h a, EEEE", "k K HH", "D w W F G", "yy MMM", "'S'"]),
    st.sampled_from(["YEAR", "month", "QUARTER", "WEEK", "DAY", "hour", "MINUTE", "SECOND", "MILLISECOND"]),
)
def test_times_of_a_step_are_asked_once_and_told_as_each(values: list[int | None], pattern: str, unit: str) -> None:
    values = [v for v in values for _ in range(20)]  # enough for equal ones to be looked for
    env = environment(rows_of(len(values), long1=values))
    for name, kind, constant, one in (
        ("time:dateFormat", Type.STRING, pattern, lambda v: format_instant(v, pattern)),
        ("time:extract", Type.INT, unit, lambda v: field(v, unit.upper(), SUNDAY)),
    ):
        env.failed_rows, env.reasons = None, []
        call = Call(kind, name, (ref("long1"), Const(Type.STRING, constant)))
        told = compile_expr(call)(env).to_list(env.strings)
        assert [env.reason(i) for i in range(len(values))] == [
            f"argument 1 of {name}() is null" if v is None else None for v in values
        ]
        assert told == [None if v is None else one(v) for v in values]


def test_the_first_error_of_a_row_is_kept_and_skipped_rows_have_none() -> None:
    env = environment(rows_of(3, string1=[None, "x", None], bool1=[True, True, False]))
    length = Compare(Type.BOOL, ">", Call(Type.INT, "str:length", (ref("string1"),)), Const(Type.INT, 0))
    column = compile_expr(Logic(Type.BOOL, "and", ref("bool1"), length))(env)
    assert column.to_list(env.strings) == [False, True, False]
    assert env.failed_rows is not None
    assert env.failed_rows.tolist() == [True, False, False]
    assert env.reason(0) == "argument 1 of str:length() is null"
    assert env.reason(2) is None


def test_a_pattern_without_end_fails_its_row_in_time() -> None:
    env = environment(rows_of(2, string1=["a" * 40 + "b", "aaa"]))
    pattern = Const(Type.STRING, "(a|aa)+$")
    column = compile_expr(Call(Type.BOOL, "regex:find", (pattern, ref("string1"))))(env)
    assert env.failed_rows is not None
    assert env.failed_rows.tolist() == [True, False]
    assert column.to_list(env.strings)[1] is True
    assert "backtracks" in (env.reason(0) or "")


def test_a_constant_pattern_that_is_none_is_refused_when_compiled() -> None:
    with pytest.raises(SiddhiBindError, match="not a regular expression"):
        compile_expr(Call(Type.BOOL, "regex:find", (Const(Type.STRING, "(a"), ref("string1"))))


def test_a_long_in_an_object_stays_a_long() -> None:
    env = environment(rows_of(1, long1=[5], int1=[5]))
    made = compile_expr(Call(Type.OBJECT, "list:create", (ref("long1"), ref("int1"))))(env).values[0]
    assert [type(v) for v in made] == [Long, int]


def test_random_numbers_come_from_the_context() -> None:
    def draw(seed: int) -> list[Any]:
        env = environment(rows_of(3))
        context = Context(random=np.random.default_rng(seed))
        return [*compile_expr(Call(Type.STRING, "UUID", ()), context)(env).to_list(env.strings)]

    random = np.random.default_rng(1)
    assert draw(1) == [str(uuid.UUID(bytes=random.bytes(16), version=4)) for _ in range(3)]
    assert draw(1) != draw(2)
    assert len(set(draw(1))) == 3


def test_maps_and_lists_are_copied_before_they_change() -> None:
    env = environment(rows_of(1, string1=["k"]))
    first = compile_expr(Call(Type.OBJECT, "map:create", (ref("string1"), Const(Type.INT, 1))))(env)
    held = first.values[0]
    source = Ref(Type.OBJECT, 0, 99, "m")
    other = Env(1, env.strings, env.ts, env.now, lambda r: first)
    changed = compile_expr(Call(Type.OBJECT, "map:put", (source, ref("string1"), Const(Type.INT, 2))))
    other.resolve = lambda r: first if r is source else env.resolve(r)
    assert changed(other).values[0] == {"k": 2}
    assert held == {"k": 1}


def test_equal_sets_have_one_order() -> None:
    """0 and 16 are in one bucket of Java's table, and of Python's, where the first one comes first."""
    assert walk({0, 16}) == walk({16, 0}) == [0, 16]


def test_maps_keep_their_kind_and_order_in_a_snapshot() -> None:
    strings = StringPool()
    made = HashMap({"zebra": Long(1), "apple": NULL, "mango": [1.5, {"x": None}]})
    again = unpack(pack({"m": made}, strings), strings)["m"]
    assert type(again) is HashMap
    assert walk(again) == walk(made) == ["zebra", "apple", "mango"]
    assert again == made
    assert type(again["zebra"]) is Long
