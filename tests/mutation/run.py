"""Mutation testing: puts small faults into the engine, one at a time, and tells which of them no test notices.

`python tests/mutation/run.py [AREA...] [--count N] [--seed N] [--tests] [--only FAULTS]` draws N faults of each area. A
fault is noticed by a case of `tests/cases` that comes out otherwise: by operator, by chunk, cut into micro-batches, or
with restarts; with `--tests` those that are left are shown to the area's unit tests as well. Each fault runs in a
process of its own, forked from one that has imported nothing of what may be at fault; the loops of these modules run as
plain Python. Only cases that reach the fault's line are run.
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
from collections.abc import Callable, Iterator, Sequence
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
    "tables": ("test_noted_tables.py", "test_repeats.py", "test_stretches.py"),
    "windows": ("test_compaction.py", "test_properties.py", "test_window_memory.py", "test_parts.py"),
    "order": (
        "test_ways.py", "test_noted_tables.py", "test_repeats.py", "test_stretches.py", "test_passing.py",
        "test_sinks.py", "test_changed_apps.py",
    ),
}
SURVIVED = "SURVIVED"
LONG = 20
"""Seconds after which a case does not end."""
ENOUGH = 1200
"""Seconds after which unit tests are taken for endless."""
FEW = 300
"""So many cases are also cut and restarted."""

Case = dict[str, Any]
Variant = tuple[int, str]
"""The case's number, and how it is run."""
Place = tuple[str, int]
"""A file and a line."""


@dataclass(frozen=True)
class Survey:
    """Which cases, by their numbers, reach a line; and the variants that do not come out as they should, which tell
    nothing: Siddhi loses what it holds of some windows in a restart."""

    reach: dict[Place, set[int]]
    wrong: set[Variant]


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


def reached(cases: Sequence[Case], paths: Sequence[Path]) -> Survey:
    """Runs all cases as they are, by operator and by chunk, and notes which lines each reaches."""
    signal.signal(signal.SIGALRM, _too_long)
    names = {str(p) for p in paths}
    lines: dict[Place, set[int]] = {}
    now: set[Place] = set()

    def within(frame: Any, event: str, _: Any) -> Any:
        if event == "line":
            now.add((frame.f_code.co_filename, frame.f_lineno))
        return within

    def called(frame: Any, event: str, _: Any) -> Any:
        if frame.f_code.co_filename not in names:
            return None
        now.add((frame.f_code.co_filename, frame.f_lineno))
        return within

    wrong = set()
    for i, case in enumerate(cases):
        for how in ("by_operator", "by_chunk"):
            now.clear()
            sys.settrace(called)
            if notices(case, how):
                wrong.add((i, how))
            sys.settrace(None)
            for place in now:
                lines.setdefault(place, set()).add(i)
    return Survey(lines, wrong)


def unstable(cases: Sequence[Case]) -> set[Variant]:
    """The variants with cuts and restarts that do not come out as they should."""
    signal.signal(signal.SIGALRM, _too_long)
    return {(i, how) for i, case in enumerate(cases) for how in ("cuts", "restarts") if notices(case, how)}


def _few_examples(settings: Any) -> None:
    """Loops as plain Python are slow: random tests try fewer examples than they say."""
    made = settings.__init__

    def init(self: Any, *args: Any, **given: Any) -> None:
        if "max_examples" in given:
            given["max_examples"] = min(given["max_examples"], 50)
        made(self, *args, **given)

    settings.__init__ = init


def judged(
    mutant: mutants.Mutant, cases: Sequence[Case], variants: Sequence[Variant], tests: Sequence[str]
) -> str:  # fmt: skip
    """By what a fault is noticed; empty if by nothing."""
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
    for i, how in variants:
        if notices(cases[i], how):
            return f"case {cases[i]['id']} {how}"
    if tests:
        import pytest
        from hypothesis import Phase, settings

        os.environ.setdefault("SPARKSTREAM_PROFILE", "merge")
        import profiles  # noqa: F401  (loads its own profile, here, and not once pytest runs)

        _few_examples(settings)
        settings.register_profile("mutation", phases=[Phase.generate], derandomize=True, database=None)
        settings.load_profile("mutation")
        os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
        args = ["-xq", "-p", "no:cacheprovider", "-c", os.devnull, f"--rootdir={ROOT}", "--import-mode=importlib"]
        signal.signal(signal.SIGALRM, lambda *_: os._exit(1))
        signal.alarm(ENOUGH)
        status = pytest.main([*args, *(str(HERE.parent / "engine" / t) for t in tests)])
        if status != 0:
            return "tests" if status == 1 else f"pytest answers {status}"
    return ""


def surveyed(cases: Sequence[Case], paths: Sequence[Path]) -> Survey:
    """A survey of all variants; kept in a file, as it takes minutes."""
    digest = hashlib.sha256(json.dumps(cases).encode())
    for path in paths:
        digest.update(str(path).encode() + path.read_bytes())
    kept = ROOT / ".work" / f"mutation-{digest.hexdigest()[:16]}.pickle"
    if not kept.exists():
        with ThreadPoolExecutor(2) as pool:
            first = pool.submit(forked, lambda: reached(cases, paths))
            more = pool.submit(forked, lambda: unstable(cases)).result()
            found = first.result()
        # A trigger at 'start' fires once more when a node starts anew, and so it should.
        once = (i for i, c in enumerate(cases) if re.search(r"at\s*['\"]start", c["app"], re.IGNORECASE))
        kept.parent.mkdir(exist_ok=True)
        kept.write_bytes(pickle.dumps(Survey(found.reach, found.wrong | more | {(i, "restarts") for i in once})))
    return pickle.loads(kept.read_bytes())  # type: ignore[no-any-return]


def chosen(mutant: mutants.Mutant, survey: Survey) -> Iterator[Variant]:
    """The variants to be run for a fault."""
    found = sorted(survey.reach.get((str(mutant.path), mutant.line), ()))
    random.Random(1).shuffle(found)
    order = [(found[:FEW], ("by_operator", "by_chunk", "cuts", "restarts")), (found[FEW:], ("by_operator", "by_chunk"))]
    for numbers, ways in order:
        yield from ((i, how) for how in ways for i in numbers if (i, how) not in survey.wrong)


def read_cases() -> list[Case]:
    """Siddhi's cases that the engine answers as it does."""
    from reference import replay

    listed = {i for d in replay.listed_differences() for i in d["cases"]}
    return [c for c in replay.siddhi_cases() if c["id"] not in listed and "error" not in c["expect"]]


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
    p.add_argument("--tests", action="store_true", help="run the area's unit tests as well; takes minutes a fault")
    p.add_argument("--only", help="FILE.py:NUMBER,... of faults to try again", default="")
    asked = p.parse_args()
    paths = files(list(AREAS))
    modules = {".".join(path.relative_to(ROOT).with_suffix("").parts) for path in paths}
    loops.run_as_python(modules)
    for name in ("plan", "engine.expressions"):  # so that no fault's process has to import them
        importlib.import_module(f"sparkstream_nb.{name}")
    assert not modules & set(sys.modules), modules & set(sys.modules)
    cases = forked(read_cases)
    survey = surveyed(cases, paths)
    print(f"{len(cases)} cases, {len(survey.wrong)} variants left out", flush=True)
    for area in asked.areas:
        tests = TESTS[area] if asked.tests else ()
        judge = partial(_in_its_process, cases=cases, survey=survey, tests=tests)
        told = []
        with ThreadPoolExecutor(2) as pool:
            found = drawn(area, asked)
            for m, by in zip(found, pool.map(judge, found), strict=True):
                told.append(by)
                print(f"{area} {m.path.relative_to(ENGINE)}:{m.line} #{m.number} {m.what}: {by}", flush=True)
        print(f"{area}: {len(told)} faults, {told.count(SURVIVED)} not noticed", flush=True)


def _in_its_process(mutant: mutants.Mutant, cases: Sequence[Case], survey: Survey, tests: Sequence[str]) -> str:
    by = forked(lambda: judged(mutant, cases, list(chosen(mutant, survey)), tests))
    return "the process died, or did not end" if by is None else by or SURVIVED


if __name__ == "__main__":
    main()
