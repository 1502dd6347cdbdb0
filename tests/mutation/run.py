"""Mutation testing: puts small faults into the engine, one at a time, and tells which of them no test notices.

`python tests/mutation/run.py [AREA...] [--count N] [--seed N] [--tests] [--only FAULTS]` draws N faults of each area. A
fault is noticed by a case of `tests/cases` that comes out otherwise: by operator, by chunk, cut into micro-batches, or
with restarts; with `--tests` those that are left are shown to the area's unit tests as well. Each fault runs in a
process of its own, forked from one that has imported nothing of what may be at fault; the loops of these modules run as
plain Python. Only cases and tests that reach the fault's line are run. It takes minutes to find them; `.work` has the
answer for as long as the files of all areas stay unchanged, and of unit tests also their file.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib
import importlib.machinery
import json
import os
import pickle
import random
import re
import signal
import sys
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path[:0] = [str(ROOT), str(HERE), str(HERE.parent)]

import loops  # noqa: E402
import mutants  # noqa: E402
import unit_tests  # noqa: E402
from reached_lines import LineTrace, Place, merge_reach  # noqa: E402

ENGINE = ROOT / "sparkstream_nb" / "engine"
AREAS = {
    "joins": ("joins/*.py",),
    "tables": ("tables/*.py", "runtime/table_cycles.py", "runtime/batch_splitter.py"),
    "windows": ("windows/*.py",),
    "order": ("runtime/operator_graph.py", "node.py"),
}
TESTS = {
    "joins": (
        "test_compaction.py", "test_buffers.py", "test_passing.py", "test_noted_tables.py", "test_hostile_events.py",
    ),
    "tables": (
        "test_noted_tables.py", "test_repeats.py", "test_stretches.py", "test_stored_tables.py", "test_state_rows.py",
        "test_hostile_events.py", "test_parts.py", "test_needed.py", "test_changed_apps.py",
    ),
    "windows": (
        "test_parts.py", "test_state_rows.py", "test_declarations.py", "test_compaction.py", "test_window_memory.py",
        "test_buffers.py", "test_cron.py", "test_hostile_events.py", "test_properties.py", "test_purge.py",
        "test_next_due.py", "../tracing/test_window_traces.py",
    ),
    "order": (
        "test_ways.py", "test_noted_tables.py", "test_repeats.py", "test_stretches.py", "test_passing.py",
        "test_sinks.py", "test_changed_apps.py",
    ),
}  # fmt: skip
"""The files of an area's unit tests, from `tests/engine`."""
SURVIVED = "SURVIVED"
LONG = 20
"""Seconds after which a case does not end."""
FEW, MANY = 300, 1000
"""The most cases that are also cut and restarted, and that are run at all."""

Case = dict[str, Any]
Variant = tuple[str, str]
"""The digest of a case, and how it is run."""


@dataclass(frozen=True)
class Survey:
    """By the digests of cases: the cases that were surveyed, those that reach a line, and the variants that do not come
    out as they should, which tell nothing: Siddhi loses what it holds of some windows in a restart."""

    cases: frozenset[str]
    reach: Mapping[Place, frozenset[str]]
    wrong: frozenset[Variant]

    def merge(self, other: Survey) -> Survey:
        """Both surveys, of different cases, as one."""
        reach = merge_reach(self.reach, other.reach)
        return Survey(self.cases | other.cases, reach, self.wrong | other.wrong)


def files(areas: Sequence[str]) -> list[Path]:
    found = [path for area in areas for pattern in AREAS[area] for path in sorted(ENGINE.glob(pattern))]
    return [path for path in found if path.name != "__init__.py"]


def outcome(case: Case, how: str) -> str | None:
    """What differs from the case's answer."""
    from reference import replay

    r = random.Random(case["id"])
    places = sorted(r.sample(range(1, len(case["feed"])), min(3, len(case["feed"]) - 1))) if case["feed"] else []
    if how == "restarts":
        feed = [x for i, step in enumerate(case["feed"]) for x in (*([{"restart": True}] if i in places else []), step)]
        return replay.verdict({**case, "feed": feed})
    return replay.verdict(case, by_chunk=how == "by_chunk", cuts=places if how == "cuts" else ())


def notices(case: Case, how: str) -> bool:
    """Whether a case comes out otherwise, fails or does not end."""
    signal.alarm(LONG)
    try:
        return outcome(case, how) is not None
    except Exception:
        return True
    finally:
        signal.alarm(0)


def forked(work: Callable[[], Any]) -> Any:
    """What `work` answers in a process of its own; None where that dies."""
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(read)
        quiet = os.open(os.devnull, os.O_WRONLY)
        os.dup2(quiet, 1)
        os.dup2(quiet, 2)
        try:
            with os.fdopen(write, "wb") as out:
                pickle.dump(work(), out)
        except BaseException:
            os._exit(1)
        os._exit(0)
    os.close(write)
    try:
        with os.fdopen(read, "rb") as answer:
            return pickle.load(answer)
    except EOFError:
        return None
    finally:
        os.waitpid(pid, 0)


def _too_long(*_: Any) -> None:
    raise TimeoutError


def survey_cases(cases: Mapping[str, Case], paths: Sequence[Path]) -> Survey:
    """Runs the cases as they are, in all variants; by operator and by chunk it notes which lines each reaches."""
    signal.signal(signal.SIGALRM, _too_long)
    trace = LineTrace(paths)
    wrong = set()
    for digest, case in cases.items():
        for how in ("by_operator", "by_chunk"):
            trace.start()
            if notices(case, how):
                wrong.add((digest, how))
            trace.stop(digest)
        wrong |= {(digest, how) for how in ("cuts", "restarts") if notices(case, how)}
        # A trigger at 'start' fires once more when a node starts anew, and so it should.
        if re.search(r"at\s*['\"]start", case["app"], re.IGNORECASE):
            wrong.add((digest, "restarts"))
    return Survey(frozenset(cases), trace.reach(), frozenset(wrong))


def judged(
    mutant: mutants.Mutant, cases: Mapping[str, Case], variants: Sequence[Variant], tests: Collection[str]
) -> str:  # fmt: skip
    """By what a fault is noticed; empty if by nothing. `tests`: the ids of the unit tests that are tried."""
    signal.signal(signal.SIGALRM, _too_long)
    plain = importlib.machinery.SourceFileLoader.get_code

    def get_code(self: Any, name: str) -> Any:
        if self.path == str(mutant.path):
            return compile(mutants.mutated(mutant), self.path, "exec")
        return plain(self, name)

    importlib.machinery.SourceFileLoader.get_code = get_code  # type: ignore[method-assign]
    try:
        from reference import replay  # noqa: F401
    except Exception:
        return "import"
    for digest, how in variants:
        if notices(cases[digest], how):
            return f"case {cases[digest]['id']} {how}"
    return unit_tests.run(tests) if tests else ""


def digest_of(case: Case) -> str:
    """A digest of a case."""
    return hashlib.sha256(json.dumps(case).encode()).hexdigest()[:16]


def survey_file(paths: Sequence[Path]) -> Path:
    """Where a survey is that holds for these files as they are."""
    digest = hashlib.sha256()
    for path in paths:
        digest.update(str(path).encode() + path.read_bytes())
    return ROOT / ".work" / f"mutation-{digest.hexdigest()[:16]}.pickle"


def load_survey(cases: Mapping[str, Case], paths: Sequence[Path]) -> Survey:
    """A survey of all cases. It is in a file, as it takes minutes; cases that this lacks are surveyed and added."""
    file = survey_file(paths)
    survey = pickle.loads(file.read_bytes()) if file.exists() else Survey(frozenset(), {}, frozenset())
    new = [digest for digest in cases if digest not in survey.cases]
    halves = [{digest: cases[digest] for digest in new[i::2]} for i in range(2)] if new else []
    with ThreadPoolExecutor(2) as pool:
        for part in pool.map(lambda half: forked(lambda: survey_cases(half, paths)), halves):
            if part is None:
                sys.exit("the process that surveys the cases has died: without faults the engine does not run them")
            survey = survey.merge(part)
    if new:
        file.parent.mkdir(exist_ok=True)
        file.write_bytes(pickle.dumps(survey))
    return survey


def load_reach_of_tests(area: str, paths: Sequence[Path]) -> dict[Place, frozenset[str]]:
    """The ids of an area's unit tests that reach a line. By test file in a file, for all of them as they are."""
    tests = [ROOT / "tests" / "engine" / name for name in TESTS[area]]
    reach: dict[Place, frozenset[str]] = {}
    with ThreadPoolExecutor(2) as pool:
        for part in pool.map(partial(_load_reach_of_file, paths=paths), tests):
            reach = merge_reach(reach, part)
    return reach


def _load_reach_of_file(test: Path, paths: Sequence[Path]) -> dict[Place, frozenset[str]]:
    file = survey_file([*paths, test])
    if not file.exists():
        reach = forked(lambda: unit_tests.survey([test], paths))
        if reach is None:
            print(f"{test.name}: a test ended its process: none of the file is run", flush=True)
            return {}
        file.parent.mkdir(exist_ok=True)
        file.write_bytes(pickle.dumps(reach))
    return pickle.loads(file.read_bytes())  # type: ignore[no-any-return]


def chosen(mutant: mutants.Mutant, survey: Survey) -> Iterator[Variant]:
    """The variants to be run for a fault."""
    digests = sorted(survey.reach.get((str(mutant.path), mutant.line), ()))
    random.Random(1).shuffle(digests)
    order = [
        (digests[:FEW], ("by_operator", "by_chunk", "cuts", "restarts")),
        (digests[FEW:MANY], ("by_operator", "by_chunk")),
    ]
    for some, ways in order:
        yield from ((digest, how) for how in ways for digest in some if (digest, how) not in survey.wrong)


def read_cases() -> dict[str, Case]:
    """Siddhi's cases that the engine answers as it does, by their digests."""
    from reference import replay

    listed = {i for d in replay.listed_differences() for i in d["cases"]}
    cases = [c for c in replay.siddhi_cases() if c["id"] not in listed and "error" not in c["expect"]]
    return {digest_of(c): c for c in cases}


def drawn(area: str, asked: argparse.Namespace) -> list[mutants.Mutant]:
    """The area's faults to be tried."""
    if not asked.only:
        return mutants.sample(files([area]), asked.count, asked.seed)
    every = (m for path in files([area]) for m in mutants.mutants(path))
    return [m for m in every if f"{m.path.name}:{m.number}" in asked.only.split(",")]


def main() -> None:
    """Prints a line for each fault, and how many of an area none noticed."""
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("areas", nargs="*", default=list(AREAS), help=", ".join(AREAS))
    p.add_argument("--count", type=int, default=40)
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--tests", action="store_true", help="run the area's unit tests as well")
    p.add_argument("--only", help="FILE.py:NUMBER,... of faults to try again", default="")
    asked = p.parse_args()
    paths = files(list(AREAS))
    modules = {".".join(path.relative_to(ROOT).with_suffix("").parts) for path in paths}
    loops.run_as_python(modules)
    for name in ("plan", "engine.expressions"):  # so that no fault's process has to import them
        importlib.import_module(f"sparkstream_nb.{name}")
    assert not modules & set(sys.modules), modules & set(sys.modules)
    cases = forked(read_cases)
    survey = load_survey(cases, paths)
    print(f"{len(cases)} cases, {len(survey.wrong)} variants left out", flush=True)
    for area in asked.areas:
        reach = load_reach_of_tests(area, paths) if asked.tests else {}
        judge = partial(_in_its_process, cases=cases, survey=survey, reach_of_tests=reach)
        answers = []
        with ThreadPoolExecutor(2) as pool:
            faults = drawn(area, asked)
            for m, by in zip(faults, pool.map(judge, faults), strict=True):
                answers.append(by)
                print(f"{area} {m.path.relative_to(ENGINE)}:{m.line} #{m.number} {m.what}: {by}", flush=True)
        print(f"{area}: {len(answers)} faults, {answers.count(SURVIVED)} not noticed", flush=True)


def _in_its_process(
    mutant: mutants.Mutant,
    cases: Mapping[str, Case],
    survey: Survey,
    reach_of_tests: Mapping[Place, frozenset[str]],
) -> str:
    tests = reach_of_tests.get((str(mutant.path), mutant.line), frozenset())
    by = forked(lambda: judged(mutant, cases, list(chosen(mutant, survey)), tests))
    return "the process died, or did not end" if by is None else by or SURVIVED


if __name__ == "__main__":
    main()
