"""Mutation testing: puts small faults into the engine, one at a time, and tells which of them no test notices.

`python tests/mutation/run.py [AREA...] [--count N] [--seed N] [--tests] [--out FILE]` draws N faults of each area. A
fault is noticed by a case of `tests/cases` that comes out otherwise: by operator, by chunk, cut into micro-batches, or
with restarts; with `--tests` those that are left are shown to the area's unit tests as well. Each fault runs in a
process of its own, forked from one that has imported nothing of what may be at fault; the loops of these modules run as
plain Python. Only cases that reach the fault's line are run.
"""

from __future__ import annotations

import argparse
import hashlib
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
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path[:0] = [str(ROOT), str(HERE), str(HERE.parent)]

import loops  # noqa: E402
import mutants  # noqa: E402

ENGINE = ROOT / "sparkstream_nb" / "engine"
AREAS = {
    "joins": ("join*.py", "lookups.py"),
    "tables": ("tables.py", "table_*.py", "circles.py", "stretches.py"),
    "windows": ("windows/*.py",),
    "order": ("graph.py", "node.py"),
}
TESTS = {
    "joins": ("test_compaction.py", "test_metamorphic.py", "test_buffers.py", "test_passing.py", "test_noted_tables.py"),
    "tables": ("test_noted_tables.py", "test_repeats.py", "test_stretches.py", "test_metamorphic.py"),
    "windows": ("test_compaction.py", "test_properties.py", "test_metamorphic.py", "test_window_memory.py", "test_parts.py"),
    "order": ("test_ways.py", "test_noted_tables.py", "test_repeats.py", "test_stretches.py", "test_passing.py", "test_metamorphic.py"),
}
LONG = 20
"""Seconds after which a case does not end."""
FEW = 300
"""So many cases are also cut and restarted."""

Variant = tuple[int, str]
"""The case's number, and how it is run."""


def files(areas: Sequence[str]) -> list[Path]:
    return [path for area in areas for pattern in AREAS[area] for path in sorted(ENGINE.glob(pattern))]


def outcome(case: dict[str, Any], how: str) -> str | None:
    """What differs from the case's answer."""
    from reference import replay

    r = random.Random(case["id"])
    places = sorted(r.sample(range(1, len(case["feed"])), min(3, len(case["feed"]) - 1))) if case["feed"] else []
    if how == "restarts":
        feed = [x for i, step in enumerate(case["feed"]) for x in (*([{"restart": True}] if i in places else []), step)]
        return replay.verdict({**case, "feed": feed})
    return replay.verdict(case, by_chunk=how == "by_chunk", cuts=places if how == "cuts" else ())


def notices(case: dict[str, Any], how: str) -> bool:
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
        if not os.environ.get("MUTATION_LOUD"):
            os.dup2(quiet, 1)
            os.dup2(quiet, 2)
        try:
            with os.fdopen(write, "wb") as out:
                pickle.dump(work(), out)
        except BaseException:
            os._exit(1)
        os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as answer:
        blob = answer.read()
    os.waitpid(pid, 0)
    return pickle.loads(blob) if blob else None


class Timeout(Exception):
    pass


def _too_long(*_: Any) -> None:
    raise Timeout


def reached(cases: Sequence[dict[str, Any]], paths: Sequence[Path]) -> tuple[dict[tuple[str, int], set[int]], set[Variant]]:
    """By file and line, the numbers of the cases that reach it; and the variants that do not come out as they should."""
    signal.signal(signal.SIGALRM, _too_long)
    names = {str(p) for p in paths}
    lines: dict[tuple[str, int], set[int]] = {}
    now: set[tuple[str, int]] = set()

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
    return lines, wrong


def unstable(cases: Sequence[dict[str, Any]]) -> set[Variant]:
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


def judged(mutant: mutants.Mutant, cases: Sequence[dict[str, Any]], variants: Sequence[Variant], tests: Sequence[str]) -> str:
    """By what a fault is noticed; '' if by nothing."""
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

        _few_examples(settings)
        settings.register_profile("mutation", phases=[Phase.generate], derandomize=True, database=None)
        settings.load_profile("mutation")
        os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
        args = ["-xq", "-p", "no:cacheprovider", "-c", os.devnull, f"--rootdir={ROOT}", "--import-mode=importlib"]
        signal.alarm(300)
        status = pytest.main([*args, *(str(HERE.parent / "engine" / t) for t in tests)])
        if status != 0:
            return "tests" if status == 1 else f"pytest answers {status}"
    return ""


def surveyed(cases: Sequence[dict[str, Any]], paths: Sequence[Path]) -> tuple[dict[tuple[str, int], set[int]], set[Variant]]:
    """As `reached`, of all variants; kept in a file, as it takes minutes."""
    digest = hashlib.sha256(json.dumps(cases).encode())
    for path in paths:
        digest.update(str(path).encode() + path.read_bytes())
    kept = ROOT / ".work" / f"mutation-{digest.hexdigest()[:16]}.pickle"
    if not kept.exists():
        with ThreadPoolExecutor(2) as pool:
            first = pool.submit(forked, lambda: reached(cases, paths))
            second = pool.submit(forked, lambda: unstable(cases))
            (at, wrong), more = first.result(), second.result()
        once = {i for i, c in enumerate(cases) if re.search(r"at\s*['\"]start", c["app"], re.IGNORECASE)}
        kept.parent.mkdir(exist_ok=True)
        kept.write_bytes(pickle.dumps((at, wrong | more | {(i, "restarts") for i in once})))
    return pickle.loads(kept.read_bytes())


def chosen(mutant: mutants.Mutant, at: dict[tuple[str, int], set[int]], wrong: set[Variant]) -> Iterator[Variant]:
    """The variants to be run for a fault."""
    found = sorted(at.get((str(mutant.path), mutant.line), ()))
    random.Random(1).shuffle(found)
    order = [(found[:FEW], ("by_operator", "by_chunk", "cuts", "restarts")), (found[FEW:], ("by_operator", "by_chunk"))]
    for numbers, ways in order:
        yield from ((i, how) for how in ways for i in numbers if (i, how) not in wrong)


def main() -> int:
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("areas", nargs="*", default=list(AREAS))
    p.add_argument("--count", type=int, default=40)
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--tests", action="store_true")
    p.add_argument("--only", help="FILE.py:NUMBER,... of faults to try again", default="")
    a = p.parse_args()
    paths = files(list(AREAS))
    modules = {".".join(path.relative_to(ROOT).with_suffix("").parts) for path in paths}
    loops.run_as_python(modules)
    import sparkstream_nb.plan
    import sparkstream_nb.engine.expressions  # noqa: F401

    assert not modules & set(sys.modules), modules & set(sys.modules)

    def read() -> Any:
        from reference import replay

        listed = {i for d in replay.listed_differences() for i in d["cases"]}
        return [c for c in replay.siddhi_cases() if c["id"] not in listed and "error" not in c["expect"]]

    cases = forked(read)
    at, wrong = surveyed(cases, paths)
    print(f"{len(cases)} cases, {len(wrong)} variants left out", flush=True)
    for area in a.areas:
        if a.only:
            asked = a.only.split(",")
            every = [m for path in files([area]) for m in mutants.mutants(path)]
            drawn = [m for m in every if f"{m.path.name}:{m.number}" in asked]
        else:
            drawn = mutants.sample(files([area]), a.count, a.seed)
        with ThreadPoolExecutor(2) as pool:
            tests = TESTS[area] if a.tests else ()
            jobs = [
                pool.submit(forked, lambda m=m: judged(m, cases, list(chosen(m, at, wrong)), tests)) for m in drawn
            ]
            told = []
            for m, job in zip(drawn, jobs, strict=True):
                by = job.result()
                told.append(by)
                where = f"{m.path.relative_to(ENGINE)}:{m.line} #{m.number}"
                print(f"{area} {where} {m.what}: {'died' if by is None else by or 'SURVIVED'}", flush=True)
        left = sum(by == "" for by in told)
        by_tests = sum(by == "tests" for by in told)
        print(f"== {area}: {len(told)} faults, {left} not noticed, {by_tests} only by tests", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
