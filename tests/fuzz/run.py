"""The differential fuzzer: seeded apps and feeds through the reference engine and the node engine, compared.

`python tests/fuzz/run.py --seed 1 --count 1000 --area joins,tables` prints each difference as a case made small, and
appends it to tests/cases/fuzz/found.jsonl with Siddhi's answer, ready to be moved to the cases. What Siddhi itself
answers differently from run to run, fails on, or takes too long for is not counted, nor is what needs a declared gap.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from fuzz.compose import AREAS, compose
from fuzz.oracle import Oracle, missing
from fuzz.shrink import shrink
from reference import replay
from reference.compare import difference
from reference.engine_cases import run_case
from sparkstream_nb.errors import NotInThisBuild, SiddhiError
from sparkstream_nb.plan import compile_app
from sparkstream_nb.plan.shard_safety.known_faults import known_faults

Case = dict[str, Any]

FOUND = replay.CASES / "fuzz" / "found.jsonl"
BATCH = 50
LISTED = {
    "A group under `every` restarts when what must not come has come", "A match that a rate limit holds keeps its time",
}  # fmt: skip
"""Differences that the apps have; others are left out of them."""


def told(case: Case) -> str | None:
    """How the engine differs from the case's answer in either way of running; None where it does not, or where an
    event fails here, since Siddhi drops the rest of its chunk with it."""
    for by_chunk in (False, True):
        try:
            got = run_case(case, by_chunk=by_chunk)
            if got.get("fault"):
                return None
            words = difference({**case, "got": got})
        except NotInThisBuild:
            return None
        except Exception as e:
            words = f"{type(e).__name__}: {e}"
        if words is not None:
            return words + (" (by chunk)" if by_chunk else "")
    return None


def is_listed(case: Case) -> bool:
    """True if the app has a query with the `LISTED` difference."""
    try:
        plan = compile_app(case["app"], properties=case.get("properties", {}))
    except SiddhiError:
        return False
    return any(note.fault.difference in LISTED for note in known_faults(plan))


def kind(words: str) -> str:
    """What kind of difference the words tell of, so that shrinking does not slip to another."""
    first = words.split()[0]
    return "events" if first.startswith(("stream", "query")) else first


def answered(case: Case) -> bool:
    """Whether Siddhi's answer is one to hold against: it is the same each time, and no event failed.

    An event that fails in some query of its stream does not reach the stream's later readers, the oracle among them.
    """
    if "expect" not in case or case["expect"].get("fault"):
        return False
    if any("null" in r.get("message", "") for r in case["expect"].get("results", ())):
        return False  # a retrieval that ran into a null pointer
    sent, seen = Counter[str](), case["expect"].get("streams", {})
    for step in case["feed"]:
        if isinstance(step, list):
            sent[step[0]] += 1
        elif "batch" in step:
            sent[step["stream"]] += len(step["batch"])
    return "error" in case["expect"] or all(len(seen.get(stream, ())) >= n for stream, n in sent.items())


def runs_here(case: Case) -> bool:
    """Whether the app needs no declared gap. What the engine refuses Siddhi is asked about, too."""
    try:
        compile_app(case["app"], properties=case.get("properties", {}))
    except SiddhiError:
        return True
    return not replay.needed(case)


class Fuzzer:
    """Asks, compares and shrinks; `counts` says what became of the apps."""

    def __init__(self, once: Oracle, thrice: Oracle) -> None:
        self.once, self.thrice = once, thrice
        self.counts: Counter[str] = Counter()

    def interesting(self, case: Case, like: str) -> bool:
        """Whether the case differs as `like` tells. The engine is asked first where it alone can say no."""
        case = {k: v for k, v in case.items() if k != "expect"}
        try:
            compile_app(case["app"], properties=case.get("properties", {}))
        except NotInThisBuild:
            return False
        except SiddhiError:
            if not like.startswith("rejected"):
                return False
        answer = self.once.answer(case)
        if not answered(answer) or ("error" in answer["expect"]) != like.startswith("accepted"):
            return False
        words = told(answer)
        return words is not None and kind(words) == kind(like) and not is_listed(case)

    def take(self, cases: list[Case], seconds: float) -> list[Case]:
        """Compares the cases; returns those that differ, made small."""
        found = []
        for answer in self.once.answers(cases):
            area = answer["id"].split("/")[1]
            if not answered(answer):
                self.counts["not counted: " + str(answer.get("skip", "an event failed"))] += 1
                continue
            words = told(answer)
            if words is None:
                self.counts["rejected by both" if "error" in answer["expect"] else f"same: {area}"] += 1
                continue
            if is_listed(answer):
                self.counts["not counted: a listed difference"] += 1
                continue
            found.append((answer, words))
        small = []
        for case, words in found:
            again = self.thrice.answer({k: v for k, v in case.items() if k != "expect"})
            if not answered(again) or told(again) is None:
                self.counts["not counted: not deterministic"] += 1
                continue
            self.counts["different"] += 1
            case.pop("expect")
            case = shrink(case, lambda c, words=words: self.interesting(c, words), seconds)
            case = self.thrice.answer(case)
            if not answered(case) or told(case) is None:  # the small one is shaky; the finding is not
                continue
            self.report(case)
            small.append(case)
        return small

    def report(self, case: Case) -> None:
        """Prints a finding and adds it to the found cases."""
        print(f"\n--- {case['id']}: {told(case)}\n{case['app']}", flush=True)
        for step in case["feed"]:
            print("   ", json.dumps(step))
        FOUND.parent.mkdir(parents=True, exist_ok=True)
        with FOUND.open("a", encoding="utf-8") as out:
            out.write(json.dumps(case, ensure_ascii=False) + "\n")


def main() -> int:
    """Runs `--count` apps from `--seed` on, or for `--time` seconds; 1 if any differs."""
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--count", type=int, default=500, help="apps that count, beyond which it ends")
    p.add_argument("--time", type=float, default=0, help="seconds after which it ends; 0: none")
    p.add_argument("--area", default="", help=f"comma-separated, of: {', '.join(AREAS)}")
    p.add_argument("--shrink", type=float, default=20, help="seconds to spend on making a finding small")
    p.add_argument("--most", type=int, default=20, help="findings after which it ends")
    a = p.parse_args()
    if lacking := missing():
        print(lacking, file=sys.stderr)
        return 2
    areas = [area for area in a.area.split(",") if area] or list(AREAS)
    start, number, findings = time.monotonic(), 0, 0
    with Oracle() as once, Oracle(runs=3) as thrice:
        fuzzer = Fuzzer(once, thrice)
        while sum(n for what, n in fuzzer.counts.items() if what.startswith(("same", "diff"))) < a.count:
            if (a.time and time.monotonic() - start > a.time) or findings >= a.most:
                break
            cases = []
            while len(cases) < min(BATCH, a.count):
                case = compose(a.seed, number, areas[number % len(areas)])
                number += 1
                if runs_here(case):
                    cases.append(case)
                else:
                    fuzzer.counts["needs a gap"] += 1
            findings += len(fuzzer.take(cases, a.shrink))
    for what, n in sorted(fuzzer.counts.items()):
        print(f"{n:7} {what}")
    print(f"seed {a.seed}, apps 0 to {number - 1}, {time.monotonic() - start:.0f} s")
    return fuzzer.counts["different"] > 0


if __name__ == "__main__":
    sys.exit(main())
