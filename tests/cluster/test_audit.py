"""Audits of files: what a feed shows, deployment files, the manual's examples, and the formats for machines."""

from __future__ import annotations

import json
from pathlib import Path

import nbformat
import pytest

from sparkstream_nb.cluster.audit import Audited, FeedFiles, Measured, audit
from sparkstream_nb.cluster.audit_formats import as_json, as_sarif, as_text
from sparkstream_nb.cluster.conf import node_files
from sparkstream_nb.errors import Misuse

from .test_manual_example import APP as MANUAL

ROOT = Path(__file__).parents[2]
APP = """define stream S (k string, v int, at long);
define stream R (k string, v int, at long);
@info(name='rises')
from every e1=S -> e2=S[k == e1.k and v > e1.v] select e1.v as first, e2.v as v insert into Rises;
@info(name='last')
from S#window.length(3) select k, sum(v) as s group by k insert into Sums;
@info(name='big')
from R[v > 3] select k insert into Big;
"""
NO_FEED = FeedFiles([])


def written(folder: Path, **texts: str) -> list[str]:
    for name, text in texts.items():
        (folder / f"{name}.siddhi").write_text(text)
    return [str(folder / f"{name}.siddhi") for name in texts]


def fed(folder: Path, lines: list[str], app: str = APP, stream: str = "S") -> Audited:
    feed = folder / "s.csv"
    feed.write_text("\n".join(["k,v,at", *lines]) + "\n")
    (found,) = audit(written(folder, app=app), [], FeedFiles([(stream, str(feed))], "at"), {})
    return found


def counts(m: Measured, query: str) -> dict[str, int]:
    return {verdict: n for verdict, n in m.queries[query].items() if n}


def test_a_feed_shows_what_is_lost_and_that_the_repair_helps(tmp_path: Path) -> None:
    found = fed(tmp_path, ["a,1,1000", "a,2,2000", "b,1,3000", "b,2,4000", "a,3,6000", "a,x,7000", "a,1"])
    assert found.rejected == 2
    ways = [(m.nodes, m.routing, m.repaired) for m in found.measured]
    assert ways == [(n, "round_robin", False) for n in (2, 3, 4)] + [(4, "hash:k", True)]
    # a1 a2 b1 b2 a3 go to nodes 1 2 1 2 1: of the matches a1-a2, b1-b2 and a2-a3 none stays; a1 meets a3 instead
    assert counts(found.measured[0], "rises") == {"lost": 3, "spurious": 1}
    assert counts(found.measured[3], "rises") == {"same": 3}
    assert found.measured[3].differing == 0


def test_events_of_several_files_go_by_time(tmp_path: Path) -> None:
    late, early = tmp_path / "late.csv", tmp_path / "early.csv"
    late.write_text("k,v,at\na,2,2000\n")
    early.write_text("at,k,v\n1000,a,1\n")
    feeds = FeedFiles([("S", str(late)), ("S", str(early)), ("R", str(late))], "at")
    (found,) = audit(written(tmp_path, app=APP), [], feeds, {})
    assert [sum(m.queries["rises"].values()) for m in found.measured] == [1] * 4


def test_a_feed_that_cannot_be_replayed_is_said(tmp_path: Path) -> None:
    assert fed(tmp_path, ["a,x,1"]).unmeasured == "no row of its feeds fits its stream"
    table = "@store(type='rdbms', jdbc.url='jdbc:sqlite:x.db') define table T (k string);\n"
    stored = APP.replace("@info(name='big')", "from S select k insert into T;\n@info(name='big')")
    assert "in a database" in str(fed(tmp_path, ["a,1,1"], table + stored).unmeasured)


def test_a_stream_that_no_app_has_is_misuse(tmp_path: Path) -> None:
    with pytest.raises(Misuse, match="no app has a stream 'Rr'"):
        fed(tmp_path, ["a,1,1"], stream="Rr")


def test_a_wrong_file_keeps_nothing_from_the_others(tmp_path: Path) -> None:
    wrong, right = audit(
        [*written(tmp_path, wrong="define stream S (a int);\nfrom S select b insert into O;", right=APP)],
        [], NO_FEED, {},
    )  # fmt: skip
    assert (wrong.line, wrong.column, wrong.findings) == (2, 15, ())
    assert len(right.findings) == 3
    (missing,) = audit([str(tmp_path / "none.siddhi")], [], NO_FEED, {})
    assert missing.line is None
    assert "file not found" in str(missing.error)


def test_deployment_files_say_whether_aggregations_are_by_shard(tmp_path: Path) -> None:
    files = written(tmp_path, manual=MANUAL)
    (alone,) = audit(files, [], NO_FEED, {})
    assert [(f.name, f.line) for f in alone.failing] == [("TradeAggregation", 3)]
    (deployed,) = audit(files, node_files(ROOT / "conf" / "active-active"), NO_FEED, {})
    assert deployed.failing == []


def notebook_apps() -> list[str]:
    """The apps of the notebooks' cells that are meant to be right."""
    books = [nbformat.read(path, 4) for path in sorted((ROOT / "notebooks").glob("*.ipynb"))]
    cells = [c for b in books for c in b.cells if "raises-exception" not in c.metadata.get("tags", ())]
    texts = [c.source.partition("\n")[2] for c in cells if c.source.startswith("%%siddhi")]
    return [t for t in texts if "define stream" in t]


def test_the_apps_of_the_notebooks(tmp_path: Path) -> None:
    apps = notebook_apps()
    assert apps
    found = audit(written(tmp_path, **{f"app{i}": a for i, a in enumerate(apps)}), [], NO_FEED, {})
    for a, text in zip(found, apps, strict=True):
        assert a.error is None
        assert a.findings
        assert all(1 <= f.line <= len(text.splitlines()) for f in a.findings)


def test_the_formats(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    accepted = APP.replace("name='last'", "name='last', scale.out='accepted: <b>rough</b>'")
    written(tmp_path, app=APP, accepted=accepted, wrong="from S")
    monkeypatch.chdir(tmp_path)
    found = audit(["app.siddhi", "accepted.siddhi", "wrong.siddhi"], [], NO_FEED, {})
    text = as_text(found)
    assert "app.siddhi:5: ✗ node-dependent: query 'last': window 'length'" in text
    assert "accepted: <b>rough</b>" in text
    assert text.splitlines()[-1] == "2 apps: 2 parts node-dependent, 1 of them accepted; 1 file could not be audited"
    data = json.loads(json.dumps(as_json(found)))
    assert data["failing"] == 1
    assert [len(a["findings"]) for a in data["apps"]] == [3, 3, 0]
    log = json.loads(json.dumps(as_sarif(found)))
    (run,) = log["runs"]
    assert log["version"] == "2.1.0"
    rules = [r["id"] for r in run["tool"]["driver"]["rules"]]
    seen = []
    for r in run["results"]:
        assert rules[r["ruleIndex"]] == r["ruleId"]
        place = r["locations"][0]["physicalLocation"]
        why = [s["justification"] for s in r.get("suppressions", [])]
        seen.append((place["artifactLocation"]["uri"], place["region"]["startLine"], r["ruleId"], r["level"], why))
    assert seen == [
        ("app.siddhi", 3, "routed", "note", []),
        ("app.siddhi", 5, "node-dependent", "error", []),
        ("accepted.siddhi", 3, "routed", "note", []),
        ("accepted.siddhi", 5, "node-dependent", "error", ["<b>rough</b>"]),
        ("wrong.siddhi", 1, "not-an-app", "error", []),
    ]
