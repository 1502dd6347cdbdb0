"""Functions, aggregators and windows of other packages: lookup, calls, checks, and messages where one is missing."""

from __future__ import annotations

import pickle
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from sparkstream_nb import extending
from sparkstream_nb.engine.node import NodeEngine
from sparkstream_nb.errors import SiddhiError
from sparkstream_nb.lab import inspection
from sparkstream_nb.lab.completion import places
from sparkstream_nb.plan import compile_app, plugins
from sparkstream_nb.testing import check_cuts
from tests.plugins.packages import of_guide, put_package

STREAM = "define stream S (name string, n int, x double, ok bool, o object);\n"
Install = Callable[..., None]


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Install]:
    """Puts a package where Python finds it, until the test ends."""
    before = set(sys.modules)
    monkeypatch.syspath_prepend(str(tmp_path))

    def put(source: str, name: str = "acme-siddhi", version: str = "1.0") -> None:
        put_package(tmp_path, name, "from sparkstream_nb.extending import *\n" + dedent(source), version)
        sys.modules.pop(name.replace("-", "_"), None)
        plugins._plugins.cache_clear()

    yield put
    for module in set(sys.modules) - before:
        if str(getattr(sys.modules[module], "__file__", "")).startswith(str(tmp_path)):
            del sys.modules[module]
    plugins._plugins.cache_clear()


def answers(call: str, *rows: tuple[Any, ...]) -> list[Any]:
    """The values of a call for events (name, number, ...), in an app of one query."""
    events = [("S", 1000 + i, [*row, *[None] * (5 - len(row))]) for i, row in enumerate(rows)]
    outputs = check_cuts(f"{STREAM}from S select {call} as v insert into Out;", events, tries=2)
    return [v for _, (v,) in outputs["Out"]]


def error_of(text: str) -> str:
    with pytest.raises(SiddhiError) as raised:
        compile_app(STREAM + text)
    return str(raised.value)


# ------------------------------------------------------------------------------------------------------- functions


def test_functions_by_row_arrow_and_numpy(install: Install) -> None:
    install("""
        import numpy as np, pyarrow.compute as pc
        @function("acme:twice(name string, n int) -> string", help="Twice.")
        def twice(name, n): return name * n
        @function("acme:upper(name string) -> string", help="Upper.", over="arrow")
        def upper(names): return pc.utf8_upper(names)
        @function("acme:half(x num) -> double", help="Half.", over="numpy")
        def half(x): return x / 2
        @function("acme:one(x num) -> int", help="One.", over="numpy")
        def one(x): return 1
        @function("acme:is_null(x any) -> bool", help="Null?", nulls=True)
        def is_null(x): return x is None
    """)
    rows = [("ab", 2, 1.5), (None, 3, None), ("c", None, 4.0)] * 80  # arrays are taken from 100 rows on
    assert answers("acme:twice(name, n)", *rows) == ["abab", None, None] * 80
    assert answers("acme:upper(name)", *rows) == ["AB", None, "C"] * 80
    assert answers("acme:half(x)", *rows) == [0.75, None, 2.0] * 80
    assert answers("acme:one(n)", *rows) == [1, 1, None] * 80
    assert answers("acme:is_null(name)", *rows) == [False, True, False] * 80
    assert answers("acme:half(x)", *rows[:3]) == [0.75, None, 2.0]


@pytest.mark.parametrize("over", ["rows", "arrow"])
def test_what_a_function_raises_is_the_error_of_its_event(install: Install, over: str) -> None:
    install(f"""
        @function("acme:check(n int) -> int", help="Checks.", over={over!r})
        def check(n):
            for value in n if {over!r} == "arrow" else [n]:
                if int(str(value)) == 3: raise ValueError("three")
            return n
    """)
    node = NodeEngine(compile_app(f"{STREAM}from S select acme:check(n) as v insert into Out;"))
    from sparkstream_nb.testing.cut_checks import _batch

    out = node.step(_batch(node.plan, [("S", 1, [None, i % 4, None, None, None]) for i in range(400)], ()))
    assert len(out.streams["Out"].rows()) == 300
    assert {e.message for e in out.errors} == {"ValueError: three"}
    assert len(out.errors) == 100


@pytest.mark.parametrize(
    ("result", "value", "said"),
    [
        ("int", "'x'", "answered 'x', which is no int"),
        ("int", "2**40", "answered 1099511627776, which is no int"),
        ("int", "True", "answered True, which is no int"),
        ("bool", "1", "answered 1, which is no bool"),
        ("string", "1", "answered 1, which is no string"),
        ("double", "'x'", "answered 'x', which is no double"),
    ],
)
def test_an_answer_of_another_type_is_an_error(install: Install, result: str, value: str, said: str) -> None:
    install(f"""
        @function("acme:f(n int) -> {result}", help="F.")
        def f(n): return {value}
    """)
    with pytest.raises(AssertionError, match=said):
        answers("acme:f(n)", ("a", 1))


def test_arrays_of_another_length_are_an_error(install: Install) -> None:
    install("""
        @function("acme:f(n int) -> int", help="F.", over="numpy")
        def f(n): return n[:0]
    """)
    with pytest.raises(AssertionError, match="answered 0 values for 1 events"):
        answers("acme:f(n)", ("a", 1))


def test_functions_stand_in_filters_patterns_and_windows(install: Install) -> None:
    install("""
        @function("acme:even(n int) -> bool", help="Even?")
        def even(n): return n % 2 == 0
    """)
    events = [("S", 1000 + i, ["a", i, 1.0, True, None]) for i in range(9)]
    filtered = check_cuts(f"{STREAM}from S[acme:even(n)] select n insert into Out;", events)["Out"]
    assert [n for _, (n,) in filtered] == [0, 2, 4, 6, 8]
    pattern = "from every e1=S[acme:even(n)] -> e2=S[acme:even(n)] select e1.n as a, e2.n as b insert into Out;"
    assert [v for _, v in check_cuts(STREAM + pattern, events)["Out"]] == [[0, 2], [2, 4], [4, 6], [6, 8]]
    window = "from S#window.expression('not acme:even(last.n)') select n, count() as c insert into Out;"
    assert len(check_cuts(STREAM + window, events)["Out"]) == 9


# ------------------------------------------------------------------------------------------------ found and not found


def test_completion_and_tooltips_know_them(install: Install) -> None:
    source, _ = of_guide()
    install(source)
    cell = f"%%siddhi\n{STREAM}from S select acme:in"
    assert "acme:initials" in places.at_cursor(places.CompletionQuery(cell.partition("\n")[2], "")).words
    tooltip = inspection.at_cursor(f"{cell}itials(name) as i insert into Out;", len(cell)) or ""
    assert "acme:initials(name string) -> string" in tooltip
    assert "The first letters" in tooltip
    uses = compile_app(f"{STREAM}from S#window.acme:since(ok, 1 sec) select acme:rms(x) as r insert into Out;").plugins
    assert {(u.key, u.package, u.version) for u in uses} == {
        ("acme:since", "acme-siddhi", "1.0"), ("acme:rms", "acme-siddhi", "1.0"),
    }  # fmt: skip


def test_near_names_and_other_kinds_are_told(install: Install) -> None:
    install(of_guide()[0])
    assert "Did you mean 'acme:initials'?" in error_of("from S select acme:initals(name) as i insert into Out;")
    assert "is a function: call it" in error_of("from S#window.acme:initials(name) select n insert into Out;")
    assert "does not take (int)" in error_of("from S select acme:initials(n) as i insert into Out;")


def test_a_package_that_cannot_be_loaded_is_told_where_its_name_is_missed(install: Install) -> None:
    install("import nothing_of_that_name")
    said = error_of("from S select acme:f(n) as i insert into Out;")
    assert "unknown function 'acme:f'" in said
    assert "The package acme-siddhi 1.0 could not be loaded: ModuleNotFoundError" in said
    assert compile_app(f"{STREAM}from S select str:length(name) as i insert into Out;").plugins == ()


def test_no_package_is_looked_for_where_a_name_is_of_this_one(install: Install) -> None:
    install("raise RuntimeError('it was loaded')")
    text = "select str:groupConcat(name) as a, math:percentile(x, 50.0) as p, str:length(name) as l insert into Out;"
    compile_app(f"{STREAM}from S#window.unique:ever(name) {text}")
    assert plugins._plugins.cache_info().currsize == 0


def test_names_that_are_taken_are_left_out(install: Install) -> None:
    one = """
        @function("{}(n int) -> int", help="F.")
        def f(n): return {}
    """
    install(one.format("str:length", 1))
    install(one.format("acme:f", 2), name="one")
    install(one.format("acme:f", 3), name="two")
    assert answers("str:length(name)", ("abc", 1)) == [3]
    assert answers("acme:f(n)", ("abc", 1)) == [2]
    assert "'str:length' of acme-siddhi 1.0 is left out: SparkStream Notebook has a 'str:length'." in plugins.problems()
    assert "'acme:f' of two 1.0 is left out: one 1.0 has a 'acme:f'." in plugins.problems()


@pytest.mark.parametrize("version", ["1.0", "2.0"])
def test_a_process_with_another_version_or_without_refuses_the_plan(install: Install, version: str) -> None:
    install(of_guide()[0])
    plan = compile_app(f"{STREAM}from S select acme:initials(name) as i insert into Out;")
    shipped = pickle.dumps(plan)
    if version == "2.0":
        install(of_guide()[0], version="2.0")
        with pytest.raises(plugins.PluginError) as raised:
            NodeEngine(pickle.loads(shipped))
        said = str(raised.value)
        assert "and acme-siddhi 2.0 is installed" in said
    else:
        program = "import pickle, sys; from sparkstream_nb.engine.node import NodeEngine; " \
            "NodeEngine(pickle.loads(sys.stdin.buffer.read()))"  # fmt: skip
        ended = subprocess.run([sys.executable, "-c", program], input=shipped, capture_output=True, check=False)
        said = ended.stderr.decode()
        assert ended.returncode == 1
        assert "which is not installed" in said
    assert "'acme:initials' of the package acme-siddhi 1.0" in said
    assert "install acme-siddhi==1.0 on all machines" in said


@pytest.mark.parametrize(
    ("signature", "said"),
    [
        ("f(n int) -> int", "needs a namespace"),
        ("acme:f(n int)", "ends with ' -> ' and a type"),
        ("acme:f(n) -> int", "not a signature"),
        ("acme:f(n int) -> int\nacme:g(n int) -> int", "have one name"),
        ("acme:f(n number) -> int", "not a signature"),
        ("", "have one name"),
    ],
)
def test_wrong_signatures(signature: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        extending.function(signature, help="F.")


def test_a_function_over_arrays_needs_one() -> None:
    with pytest.raises(ValueError, match="takes no arguments"):
        extending.function("acme:f() -> int", help="F.", over="numpy")
