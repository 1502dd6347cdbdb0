"""The page of public apps: which are accepted as they are, which with `--offline`, and why the others are not.

    python -m tests.public_apps FOLDER    writes docs/reference/public-apps.md

`addresses.tsv` has the apps by repository, commit and path (with the number of a fenced block in a Markdown page, which
otherwise is empty) and the SHA-256 of the text; their texts are not part of this project. FOLDER has clones of the
repositories, each as OWNER+NAME (`git clone https://github.com/OWNER/NAME FOLDER/OWNER+NAME`); an app whose repository,
commit or path is not there is listed as not fetched.
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import re
import subprocess
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import Enum
from itertools import groupby
from pathlib import Path

from sparkstream_nb.app.audit.checking import check
from sparkstream_nb.engine.node import NodeEngine
from sparkstream_nb.errors import NotInThisBuild, SiddhiError, SiddhiSyntaxError
from sparkstream_nb.plan.connectors.without_connections import compile_offline
from sparkstream_nb.plan.gaps import find_gaps
from sparkstream_nb.plan.nodes import Plan
from sparkstream_nb.siddhi_process import script_of

ROOT = Path(__file__).parents[2]
ADDRESSES = Path(__file__).parent / "addresses.tsv"
PAGE = ROOT / "docs" / "reference" / "public-apps.md"
NODE = {"shardId": "node-1"}
HEAD = """# Public apps: which are accepted, which are not, and why

Apps that others published, by their addresses: WSO2's samples, documentation and products, and repositories of others.
Their texts are not part of this project. `python -m tests.public_apps FOLDER` writes this page from clones of the
repositories. Equal texts are listed once, and of a Markdown page the blocks with `@App:name`. README's 715 apps are of
92 repositories; this list has those whose repositories could be fetched.

| apps of {repositories} repositories | {apps} |
| --- | --- |
| fetched | {fetched} |
| of these for Siddhi 4 and 5 | {current} |
| accepted as they are | {whole} ({whole_share:.0%}) |
| accepted as they are or with [`--offline`](../guides/offline.md) | {offline} ({offline_share:.0%}) |

*As it is* means: syntax, names, types and all parts of the app, with its sources, sinks and stores, are in this build,
and the engine that runs it can be built. No broker or database is asked, and no event is sent. *With `--offline`*
means the same without sources, sinks and stores, with a value for each `${{...}}`. A reason is the first message of
`sparkstream check`.

| why not as it is | with `--offline` | not at all |
| --- | --- | --- |
"""


@dataclass(frozen=True)
class Address:
    """Where a public app is: `block` is the number of a fenced block of a Markdown page, or empty."""

    repository: str
    commit: str
    path: str
    block: str
    sha256: str

    @property
    def place(self) -> str:
        """The place in the repository."""
        return f"{self.path}, block {self.block}" if self.block else self.path


class Verdict(Enum):
    """Whether an app is accepted; the value is the page's word for it."""

    WHOLE = "as it is"
    OFFLINE = "with `--offline`"
    REFUSED = "no"
    NOT_FETCHED = "not fetched"


class Cause(Enum):
    """The kind of reason why an app is not accepted as it is; the value is the page's word for it."""

    NONE = ""
    CONNECTOR = "a source, sink, store or option of one that is not included"
    EXTENSION = "a function, window or stream function of an extension that is not included"
    SIDDHI_3 = "an execution plan of Siddhi 3"
    TEMPLATE = "a template with placeholders, or an app inside a file of another format"
    SYNTAX = "its text is no SiddhiQL"
    ERROR = "an error in the app: names, types, rules"


@dataclass(frozen=True)
class AppResult:
    """A public app with the verdict, and the reason why it is not accepted as it is, in the words of the message."""

    address: Address
    verdict: Verdict
    cause: Cause = Cause.NONE
    reason: str = ""


def read_addresses() -> list[Address]:
    """The apps of `addresses.tsv`."""
    with ADDRESSES.open(encoding="utf-8", newline="") as file:
        return [Address(**row) for row in csv.DictReader(file, delimiter="\t")]


def fenced_blocks(page: str) -> Iterator[str]:
    """The texts in the fenced blocks of a Markdown page, without their common indentation."""
    for match in re.finditer(r"^[ \t]*(`{3,}|~{3,})[^\n]*\n(.*?)^[ \t]*\1", page, re.DOTALL | re.MULTILINE):
        lines = match[2].splitlines()
        indent = min((len(line) - len(line.lstrip()) for line in lines if line.strip()), default=0)
        yield "\n".join(line[indent:] for line in lines)


def text_of(address: Address, folder: Path) -> str | None:
    """The app's text from a clone; None where that lacks it, or has another text there."""
    clone = folder / address.repository.replace("/", "+")
    candidates = (clone / ".git", clone / "repo" / ".git", clone / "repo", clone)
    git = next((g for g in candidates if (g / "HEAD").exists()), None)
    if git is None:
        return None
    command = ["git", f"--git-dir={git}", "show", f"{address.commit}:{address.path}"]
    process = subprocess.run(command, capture_output=True, check=False)
    if process.returncode:
        return None
    text = process.stdout.decode("utf-8", "replace")
    if address.block:
        text = [*fenced_blocks(text), *[""] * int(address.block)][int(address.block)]
    return text if hashlib.sha256(text.encode()).hexdigest() == address.sha256 else None


def judge(address: Address, text: str | None) -> AppResult:
    """The verdict on an app; a text that is None was not fetched."""
    if text is None:
        return AppResult(address, Verdict.NOT_FETCHED)
    if re.search(r"@Plan:", text, re.IGNORECASE):
        return AppResult(address, Verdict.REFUSED, Cause.SIDDHI_3, "`@Plan:...`")
    text = script_of(text, address.place) or text
    checked = check(text)
    if checked.plan is not None and not find_gaps(checked.plan):
        assemble(checked.plan)
        return AppResult(address, Verdict.WHOLE)
    cause, reason = cause_of(text, checked.error, checked.plan)
    try:
        _, plan = compile_offline(text, NODE, dict.fromkeys(re.findall(r"\$\{(\w+)\}", text), "1"))
    except SiddhiError as error:
        return AppResult(address, Verdict.REFUSED, *cause_of(text, error, None))
    if find_gaps(plan):
        return AppResult(address, Verdict.REFUSED, *cause_of(text, None, plan))
    assemble(plan)
    return AppResult(address, Verdict.OFFLINE, cause, reason)


def assemble(plan: Plan) -> None:
    """Builds the node engine that would run the app. Raises what a deployment would."""
    NodeEngine(plan, allow_scripts=True)


def cause_of(text: str, error: SiddhiError | None, plan: Plan | None) -> tuple[Cause, str]:
    """Why an app is not accepted, by the error, or by the gaps of its plan."""
    if error is None:
        assert plan is not None
        gap = find_gaps(plan)[0]
        cause = Cause.EXTENSION if gap.name in ("extension", "script:r", "script:scala") else Cause.CONNECTOR
        return cause, f"{gap.what}: {gap.extension}" if gap.extension else gap.what
    message = re.sub(r"^line \d+, column \d+: ", "", str(error).splitlines()[0])
    if isinstance(error, SiddhiSyntaxError):
        foreign = re.search(r"^\s*(apiVersion|kind|spec):|\{\{|<%|\$[a-z]\w*\b", text, re.MULTILINE)
        return (Cause.TEMPLATE if foreign else Cause.SYNTAX), message
    if isinstance(error, NotInThisBuild):
        return Cause.EXTENSION, message
    outside = re.search(r"belongs to WSO2's \S+, and this build leaves it out", message)
    return (Cause.CONNECTOR if outside else Cause.ERROR), message


def page(results: Iterable[AppResult]) -> str:
    """The page's text."""
    results = list(results)
    verdicts, present = Counter(r.verdict for r in results), [r for r in results if r.verdict != Verdict.NOT_FETCHED]
    current = [r for r in present if r.cause != Cause.SIDDHI_3]
    whole, offline = verdicts[Verdict.WHOLE], verdicts[Verdict.OFFLINE]
    head = HEAD.format(
        apps=len(results), repositories=len({r.address.repository for r in results}), fetched=len(present),
        current=len(current), whole=whole, offline=whole + offline, whole_share=whole / max(1, len(current)),
        offline_share=(whole + offline) / max(1, len(current)),
    )  # fmt: skip
    out = head.splitlines()
    for cause in list(Cause)[1:]:
        counts = Counter(r.verdict for r in present if r.cause == cause)
        if counts:
            out.append(f"| {cause.value} | {counts[Verdict.OFFLINE]} | {counts[Verdict.REFUSED]} |")
    for repository, group in groupby(results, key=lambda r: r.address.repository):
        listed = list(group)
        commit = listed[0].address.commit
        link = f"[{commit[:12]}](https://github.com/{repository}/tree/{commit})"
        out += ["", f"## {repository}", "", f"| app at {link} | accepted | reason |", "| --- | --- | --- |"]
        for result in listed:
            cells = (f"`{result.address.place}`", result.verdict.value, result.reason)
            out.append(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |")
    return "\n".join(out) + "\n"


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, metavar="FOLDER", help="clones of the repositories")
    folder = parser.parse_args().folder
    results = [judge(address, text_of(address, folder)) for address in read_addresses()]
    PAGE.write_text(page(results), encoding="utf-8")
    print(*(f"{count} {verdict.value}" for verdict, count in Counter(r.verdict for r in results).items()), sep=", ")


if __name__ == "__main__":
    main()
