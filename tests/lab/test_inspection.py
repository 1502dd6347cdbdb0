"""What Shift-Tab shows in SiddhiQL. The cursor is `|`."""

from __future__ import annotations

from typing import Any

import pytest
from ipykernel.ipkernel import IPythonKernel

from sparkstream_nb.lab.inspection import at_cursor, install

from .conftest import StandIn

CELL = "%%siddhi T\n@store(type='rdbms', password='pw1')\ndefine table Stock (code string);\nfrom S#window.time(1 sec) "


@pytest.mark.parametrize(
    ("code", "shown"),
    [
        (CELL + "select su|m(a) as b", "sum(arg int|long) -> long"),
        (CELL + "select str:con|cat(a, b) as b", "str:concat("),
        (CELL + "select a wit|hin", "within 5 min"),
        (CELL + "select max(|", "max(arg number) -> the type of the first argument"),
        (CELL + "select sum(math:abs(a), |", "sum(arg int|long) -> long"),
        (CELL.replace(".time(", ".ti|me("), "#window.time("),
        (CELL + "select a update Sto|ck", "define table Stock (code string)"),
        ("%%siddhi Trades --query\nfrom TradeAggre|gation", "define aggregation TradeAggregation"),
        ("%%sid|dhi Trades --nodes 2\nfrom S", "--shard-ids A,B"),
        ("x = 1\n%siddhi fe|ed Trades.S frame", "usage: %siddhi feed"),
        ("%sid|dhi", "%siddhi COMMAND --help describes one command"),
        ('%siddhi query Trades "from TradeAggregation select su|m(total)"', "sum(arg"),
    ],
)  # fmt: skip
def test_it_shows_signatures_and_definitions(app: StandIn, code: str, shown: str) -> None:
    # The signatures have `|` too: the cursor's is the only one in the code.
    before, _, after = code.partition("|")
    text = at_cursor(before + after, len(before))
    assert text is not None
    assert shown in text
    assert "pw1" not in text


@pytest.mark.parametrize("code", ["su|m([1])", "import os\nos.pa|th", CELL + "select | "])
def test_it_says_nothing_elsewhere(code: str) -> None:
    before, _, after = code.partition("|")
    assert at_cursor(before + after, len(before)) is None


def test_the_kernel_answers_for_python_as_before(shell: Any) -> None:
    class Kernel:
        def __init__(self) -> None:
            self.shell = shell

        do_inspect = IPythonKernel.do_inspect

    kernel: Any = Kernel()
    install(kernel)
    install(kernel)
    python = kernel.do_inspect("sum([1])", 2)
    assert python["found"]
    assert "sum of a" in python["data"]["text/plain"]
    siddhi = kernel.do_inspect(CELL + "select sum(", len(CELL) + 10, 0)
    assert siddhi["data"]["text/plain"].startswith("sum(arg int|long) -> long")
    assert not kernel.do_inspect(CELL + "nothing", len(CELL) + 3)["found"]
