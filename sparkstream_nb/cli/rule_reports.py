"""Bounds on what a change of a text may do to its outputs, and reports of them for code hosts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from xml.etree import ElementTree

from ..app import RuleComparison
from ..app.results.rule_comparison import OUTCOMES
from ..sarif import sarif_log, sarif_result, sarif_uri
from ..testing.suite_results import xml_document, xml_text

_RULE = "changed-clause"


@dataclass(frozen=True)
class CheckedBound:
    """A bound of `--at-most`: its outcome as written, its text, and a sentence if more outputs have that outcome."""

    outcome: str
    text: str
    excess: str


def check_bounds(comparison: RuleComparison, bounds: Mapping[str, tuple[float, bool]]) -> list[CheckedBound]:
    """Checks bounds: by outcome a number, and true if it is percent of the outputs of the old text."""
    totals = comparison.totals
    outputs = sum(totals[outcome] for outcome in OUTCOMES if outcome != "new")
    results = []
    for outcome, (number, is_percent) in bounds.items():
        count = sum(totals[name] for name in _names_of(outcome))
        bound = number * outputs / 100 if is_percent else number
        text = f"{number:g} % of {outputs:,}" if is_percent else f"{number:g}"
        excess = f"{count:,} outputs are {outcome}, and at most {text} may be" if count > bound else ""
        results.append(CheckedBound(outcome, text, excess))
    return results


def _names_of(outcome: str) -> Sequence[str]:
    """The outcomes that a bound counts."""
    return OUTCOMES[1:] if outcome == "different" else [outcome.replace("-", " ")]


def as_junit(bounds: Sequence[CheckedBound], file: str) -> str:
    """JUnit XML: a test for each bound."""
    counts = {"tests": str(len(bounds)), "failures": str(sum(bool(b.excess) for b in bounds)), "errors": "0"}
    root = ElementTree.Element("testsuites", {"name": "sparkstream compare", **counts})
    suite = ElementTree.SubElement(root, "testsuite", {"name": xml_text(file), **counts})
    for bound in bounds:
        place = {"classname": xml_text(file), "name": f"at most {bound.text} {bound.outcome}", "file": xml_text(file)}
        case = ElementTree.SubElement(suite, "testcase", place)
        if bound.excess:
            ElementTree.SubElement(case, "failure", {"message": bound.excess, "type": "failure"}).text = bound.excess
    return xml_document(root)


def as_sarif(comparison: RuleComparison, bounds: Sequence[CheckedBound], file: str) -> str:
    """SARIF: a result for each changed clause, at its line in the new text, with the outputs that it causes. It is an
    error where more of these outcomes are there than a bound allows."""
    errors = {name for bound in bounds if bound.excess for name in _names_of(bound.outcome)}
    results = []
    for change, row in zip(comparison.changes, comparison.by_change.to_dict("records"), strict=True):
        counts = {o: int(row[o]) for o in OUTCOMES[1:] if row[o]}
        effect = ", ".join(f"{n:,} {outcome}" for outcome, n in counts.items()) or "no output differs"
        level = "error" if errors & counts.keys() else "note"
        line = comparison.texts.new_line(change)
        results.append(sarif_result(_RULE, level, f"{change}: {effect}.", sarif_uri(file), line))
    rule = {"id": _RULE, "shortDescription": {"text": "What a changed clause does to the outputs"}}
    return sarif_log("sparkstream compare", [rule], results) + "\n"
