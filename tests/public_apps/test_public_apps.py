"""The page of public apps: of the whole list, and what the program says of apps in a real repository."""

from __future__ import annotations

import hashlib
import re
import subprocess
from pathlib import Path

import pytest

from public_apps.__main__ import PAGE, Address, Cause, Verdict, judge, page, read_addresses, text_of

WHOLE = "define stream S (v int); from S[v > 1] select v insert into O;"
JMS = "@source(type='jms', @map(type='json')) define stream S (v int); from S select v insert into O;"


def test_the_page_has_each_address_once_and_no_text() -> None:
    addresses = read_addresses()
    text = PAGE.read_text(encoding="utf-8")
    rows = re.findall(r"(?m)^\| `(.+)` \| (as it is|with `--offline`|no|not fetched) \| (.*) \|$", text)
    assert [place for place, _, _ in rows] == [a.place for a in addresses]
    assert len({a.sha256 for a in addresses}) == len(addresses)
    verdicts = [verdict for _, verdict, _ in rows]
    whole, offline = verdicts.count(Verdict.WHOLE.value), verdicts.count(Verdict.OFFLINE.value)
    assert f"| accepted as they are | {whole} (" in text
    assert f"with [`--offline`](../guides/offline.md) | {whole + offline} (" in text
    assert all(reason for _, verdict, reason in rows if verdict in (Verdict.OFFLINE.value, Verdict.REFUSED.value))
    assert not re.search(r"(?i)define\s+(stream|table)\s+\w+\s*\(|insert into \w+;", text)


@pytest.mark.parametrize(
    ("text", "verdict", "cause", "reason"),
    [
        (WHOLE, Verdict.WHOLE, Cause.NONE, ""),
        (JMS, Verdict.OFFLINE, Cause.CONNECTOR, "jms"),
        (JMS.replace("select v", "select geo:geocode(v) as v"), Verdict.REFUSED, Cause.EXTENSION, "geo"),
        (f"@Plan:name('p') {WHOLE}", Verdict.REFUSED, Cause.SIDDHI_3, "@Plan"),
        (f"apiVersion: siddhi.io/v1alpha2\nspec: {WHOLE}", Verdict.REFUSED, Cause.TEMPLATE, "apiVersion"),
        ("define stream S (v int) from S", Verdict.REFUSED, Cause.SYNTAX, "';' is missing"),
        (WHOLE.replace("v > 1", "w > 1"), Verdict.REFUSED, Cause.ERROR, "'w'"),
        (WHOLE.replace("v > 1", "v > ${LIMIT}"), Verdict.WHOLE, Cause.NONE, ""),
    ],
    ids=["whole", "offline", "extension", "siddhi3", "template", "syntax", "error", "variable"],
)
def test_an_app_is_judged(text: str, verdict: Verdict, cause: Cause, reason: str) -> None:
    result = judge(Address("o/r", "c", "a.siddhi", "", ""), text)
    assert (result.verdict, result.cause) == (verdict, cause)
    assert reason in result.reason
    assert "\n" not in result.reason


def test_texts_come_from_a_clone_and_are_the_ones_of_the_list(tmp_path: Path) -> None:
    clone = tmp_path / "owner+apps"
    clone.mkdir()
    (clone / "a.siddhi").write_text(WHOLE, encoding="utf-8")
    (clone / "page.md").write_text(f"# Apps\n\n```\nno app\n```\n\n  ```sql\n  {WHOLE}\n  ```\n", encoding="utf-8")
    me = ["-c", "user.name=me", "-c", "user.email=me@example.org"]
    for words in (["init", "--quiet"], ["add", "--all"], [*me, "commit", "--quiet", "--message=all"]):
        subprocess.run(["git", *words], cwd=clone, check=True)
    head = subprocess.run(["git", "rev-parse", "HEAD"], cwd=clone, check=True, capture_output=True, text=True)
    digest = hashlib.sha256(WHOLE.encode()).hexdigest()

    def address(path: str, block: str = "", sha256: str = digest, repository: str = "owner/apps") -> Address:
        return Address(repository, head.stdout.strip(), path, block, sha256)

    assert text_of(address("a.siddhi"), tmp_path) == WHOLE
    assert text_of(address("page.md", "1"), tmp_path) == WHOLE
    missing = [
        address("b.siddhi"), address("page.md", "7"), address("a.siddhi", sha256="0" * 64),
        address("a.siddhi", repository="owner/other"),
    ]  # fmt: skip
    results = [judge(a, text_of(a, tmp_path)) for a in [address("a.siddhi"), *missing]]
    assert [r.verdict for r in results] == [Verdict.WHOLE, *[Verdict.NOT_FETCHED] * 4]
    text = page(results)
    assert "| apps of 2 repositories | 5 |" in text
    assert "| fetched | 1 |" in text
    assert "| `b.siddhi` | not fetched |  |" in text
