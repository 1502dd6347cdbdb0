"""Known faults of Siddhi's: each is a listed difference, shows in its cases, and is noted by explain and audit."""

from __future__ import annotations

import pytest

from reference import replay
from sparkstream_nb.app.audit.auditing import AuditReport, as_json, as_sarif, audit_text
from sparkstream_nb.lab.display import html, text
from sparkstream_nb.plan import compile_app, explain
from sparkstream_nb.plan.shard_safety.known_faults import FAULTS, KnownFault, known_faults

S = "define stream S (k string, v double);\ndefine stream R (k string, w int, v double);\n"
UNSEEN = {"on_demand/delete_without_on", "on_demand/insert_upsert_pk"}
"""Cases that show a fault by an on-demand query."""


def noted(app: str) -> list[tuple[str, str]]:
    """The element and the difference of each note about an app."""
    return [(note.place.name, note.fault.difference) for note in known_faults(compile_app(app))]


@pytest.mark.parametrize("fault", FAULTS, ids=lambda f: f.difference)
def test_is_a_difference_and_shows_in_its_cases(fault: KnownFault) -> None:
    (listed,) = (d for d in replay.listed_differences() if d["title"] == fault.difference)
    assert fault.report is None or fault.report in listed["report"]
    ours = replay.our_cases()
    for case in set(listed["cases"]) - UNSEEN:
        plan = compile_app(ours[case]["app"], properties=ours[case].get("properties", {}))
        assert fault in {note.fault for note in known_faults(plan)}, case


@pytest.mark.parametrize("listed", [d for d in replay.listed_differences() if "report" in d], ids=lambda d: d["title"])
def test_what_was_reported_and_stands_in_the_text_is_noted(listed: dict[str, str]) -> None:
    assert listed["title"] in {f.difference for f in FAULTS}


@pytest.mark.parametrize(
    "query",
    [
        "from every (a=S or b=R) select a.v as v insert into O;",
        "from every (not S and b=R) select b.w as w insert into O;",
        "from every (a=S and b=R) -> c=S select c.v as v insert into O;",
        "from every a=S -> not R for 1 sec select a.v as v insert into O;",
        "from every (not R for 1 sec -> a=S) select a.v as v insert into O;",
        "from every (not R and a=S) select a.v as v insert into O;",
        "from a=S -> not R for 1 sec select a.v as v insert into O;",
        "from every (c=S -> not R for 1 sec or a=S) select c.v as v insert into O;",
        "from every c=S -> not R for 1 sec and a=S select c.v as v insert into O;",
        "from every a=S, not R for 1 sec select a.v as v insert into O;",
        "from every c=S -> a=S and b=R select c.v as v insert into O;",
        "from S#window.lengthBatch(3) select stdDev(v) as d insert into O;",
        "from S select k, stdDev(v) as d group by k insert into O;",
        "from S select str:groupConcat(k) as c insert into O;",
        "from S select ifThenElse(sum(v) > 3.0, 'many', 'few') as c insert into O;",
        "from S select k, v having count() > 1 and k == 'a' insert into O;",
        "from every a=S+, b=R select b.w as w insert into O;",
        "from every a=S -> b=R within 1 sec select b.w as w insert into O;",
        "from every a=S -> b=R -> c=S select b.w as w insert into O;",
        "from every (a=S -> b=R -> c=S) within 1 sec select b.w as w insert into O;",
        "from a=S -> b=R -> c=S within 1 sec select b.w as w insert into O;",
        "from every a=S<2:3> -> b=R select b.w as w insert into O;",
        "define aggregation A from S select sum(v) as s aggregate every sec ... day;",
        "define table T (k string, v double); from S update T set T.v = v on T.k == k;",
        "@PrimaryKey('k') define table T (k string, v double); from S delete T on T.k == k;",
    ],
)
def test_what_siddhi_does_right_has_no_note(query: str) -> None:
    assert noted(S + query) == []


APP = S + "@info(name='both') from every (a=S and b=R)\nselect a.k as k, b.w as w insert into O;\n"
SAID = "WSO2's servers lose a match of this `and` whose left side comes last (siddhi-io/siddhi#1793)"


def test_explain_notes_it() -> None:
    assert f"  known-fault in query 'both', line 3: {SAID}\n" in explain(compile_app(APP))
    assert f"line 13: {SAID}" in explain(compile_app(APP), 10)


def test_audit_notes_it_and_does_not_fail() -> None:
    accepted = "@info(name='both', scale.out='accepted: one is enough')"
    found = audit_text("a.siddhi", APP.replace("@info(name='both')", accepted))
    report = AuditReport([found])
    assert report.exit_code == 0
    note = next(f for f in found.findings if f.level == "known-fault")
    assert (note.kind, note.name, note.line, note.effect, note.fails) == ("query", "both", 3, SAID, False)
    assert note.report == "siddhi-io/siddhi#1793"
    for shown in (text(report), html(report)):
        assert "known-fault in query both" in shown
        assert "lose a match of this" in shown
    assert '"level": "known-fault"' in as_json(report)
    assert '"ruleId": "known-fault"' in as_sarif(report)
