"""The pytest plugin, in pytest runs of its own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

FRAUD = """
@source(type='kafka', topic.list='t', bootstrap.servers='h:1', group.id='g', threading.option='single.thread',
  @map(type='json'))
define stream Payments (card string, amount double);
define table Cards (card string);
from every e1=Payments[amount > 300.0] -> e2=Payments[card == e1.card and amount > 300.0] within 10 sec
select e2.card, e2.amount insert into Sprees;
from Payments select card insert into Cards;
from every e1=Payments -> not Payments for 1 min select e1.card insert into Idle;
from Payments[card == 'bad'] select math:parseInt(card) as n insert into Bad;
"""
TESTS = """
import pytest
from sparkstream_nb.errors import Misuse

def test_right(siddhi):
    app = siddhi("fraud.siddhi")
    app.send("Payments", [["c1", 310.0], {"card": "c1", "amount": 350.0}], at=1000)
    app.expect("Sprees", [{"card": "c1", "at": 1001}])
    app.expect_nothing("Sprees")
    app.expect_table("Cards", [["c1"], ["c1"]])
    app.expect_query("from Cards select count() as n", [{"n": 2}])
    app.wait("2 min")
    app.expect("Idle", [["c1"]])
    app.send("Payments", {"card": "bad"})
    app.expect_errors([{"stream": "Payments"}])

def test_wrong(siddhi):
    app = siddhi("fraud.siddhi")
    app.send("Payments", ["c1", 310.0], at="2024-06-03T10:00:00")
    app.send("Payments", ["c1", 350.5], at="+500")
    app.expect("Sprees", [["c1", 350.0]])

def test_misuse(siddhi):
    app = siddhi("define stream S (v int); from S select v insert into O;", nodes=2, routing="hash:v")
    with pytest.raises(Misuse, match="no stream 'T'"):
        app.send("T", [1])
    with pytest.raises(Misuse, match="no column 'w'"):
        app.expect("O", [{"w": 1}])
    with pytest.raises(Misuse, match="which app"):
        siddhi()

def test_unnoticed_error(siddhi):
    app = siddhi("fraud.siddhi")
    app.send("Payments", ["bad", 1.0])
"""
FILE = """app: fraud.siddhi
run two: nodes: 2, routing: hash:card
test: right
send Payments
card | amount
c1   | 400
c1   | 500
expect Sprees
card
c1
test: wrong
send Payments
card | amount
c1   | 400
expect Sprees on two
card
c1
"""


def run_pytest(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    plugin = "sparkstream_nb.testing.pytest_plugin"
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-p", "no:siddhi", "-p", plugin, *words]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=250, check=False)


def test_files_are_collected_and_the_fixture_compares(tmp_path: Path) -> None:
    (tmp_path / "fraud.siddhi").write_text(FRAUD, encoding="utf-8")
    (tmp_path / "fraud.siddhitest").write_text(FILE, encoding="utf-8")
    (tmp_path / "test_fraud.py").write_text(TESTS, encoding="utf-8")
    (tmp_path / "bad.siddhitest").write_text("sned", encoding="utf-8")
    found = run_pytest(tmp_path, "-v", "--continue-on-collection-errors").stdout
    for line in (
        "fraud.siddhitest::right PASSED",
        "fraud.siddhitest::right [two] PASSED",
        "fraud.siddhitest::wrong [two] FAILED",
        "test_fraud.py::test_right PASSED",
        "test_fraud.py::test_wrong FAILED",
        "test_fraud.py::test_misuse PASSED",
        "test_fraud.py::test_unnoticed_error ERROR",
    ):
        assert line in found, found
    assert "fraud.siddhitest:15: expect Sprees: 1 row missing" in found
    assert "E       AssertionError: expect Sprees: 1 row missing, 1 unexpected" in found
    assert "− c1   | 350.0" in found
    assert "+ c1   | 350.5" in found
    assert "1 event was not processed" in found
    assert "bad.siddhitest:1:1: a line cannot begin with 'sned'" in found


def test_the_plugin_loads_nothing_of_the_package_where_it_is_not_used(tmp_path: Path) -> None:
    (tmp_path / "test_plain.py").write_text(
        "import sys\n\ndef test_plain():\n"
        "    own = {m for m in sys.modules if m.startswith('sparkstream_nb.')}\n"
        "    assert own <= {f'sparkstream_nb.{m}' for m in ('_version', 'testing', 'testing.pytest_plugin')}\n"
        "    assert not {'numpy', 'pandas', 'duckdb', 'pyspark'} & set(sys.modules)\n",
        encoding="utf-8",
    )
    found = run_pytest(tmp_path, "-q")
    assert found.returncode == 0, found.stdout


@pytest.mark.thorough
def test_compiling_the_loops_is_shown_though_pytest_captures(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text(
        "import sys\nfrom sparkstream_nb.app.results import first_use\n"
        "first_use.prepare = lambda steps: print('ahead:', *steps, file=sys.stderr)\n",
        encoding="utf-8",
    )
    (tmp_path / "s.siddhitest").write_text(
        "app:\n  define stream S (v int);\n  from S select v insert into O;\ntest: one\nsend S\nv\n1\nexpect O\nv\n1\n",
        encoding="utf-8",
    )
    (tmp_path / "test_s.py").write_text("def test_nothing(siddhi):\n    pass\n", encoding="utf-8")
    for name in ("s.siddhitest", "test_s.py"):
        found = run_pytest(tmp_path, "-q", name)
        assert "ahead: engine.warm" in found.stderr, found.stdout
