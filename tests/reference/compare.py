#!/usr/bin/env python3
"""Hold results against expectations.  compare.py RESULTS.jsonl [--show N] [--min PERCENT]

Each line of RESULTS is a case with both `expect` (Siddhi's) and `got` (ours, in the same shape). Derived streams and
queries that Siddhi showed must be equal event by event, in order, timestamps included; numbers to 1e-6 relative.
On-demand answers are compared in order where the query orders them, else as bags; their column names and types count
where Siddhi gives them. A rejected app must be rejected. Prints passes by topic, and with --show the first N
differences; exits 1 under --min.
"""
import argparse
import json
import math
from collections import Counter


def same(a, b):
    if isinstance(a, bool) or isinstance(b, bool):
        return a is b
    if isinstance(a, (int, float)) and isinstance(b, (int, float)):
        if a == b == 0:  # -0.0 is another value than 0.0
            return math.copysign(1, a) == math.copysign(1, b)
        return math.isclose(a, b, rel_tol=1e-6, abs_tol=1e-9)
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(same(a[k], b[k]) for k in a)
    return a == b


def key(row):
    return json.dumps([f"{v:.5g}" if isinstance(v, (int, float)) and not isinstance(v, bool) else v for v in row])


def first_difference(kind, name, want, have):
    for i, (w, h) in enumerate(zip(want, have, strict=False)):
        if not same(w, h):
            return f"{kind} {name}[{i}]: expected {json.dumps(w)}, got {json.dumps(h)}"
    if len(want) != len(have):
        rest = want[len(have):] or have[len(want):]
        return f"{kind} {name}: expected {len(want)} events, got {len(have)}; first left over {json.dumps(rest[0])}"
    return None


def difference(case):
    """What tells `got` from `expect`, in words, or None where they agree."""
    want, have = case["expect"], case.get("got")
    if not isinstance(have, dict):
        return "no result: " + str(case.get("failure", "missing"))
    if "error" in want:
        return None if "error" in have else f"accepted, should be rejected: {want['message']}"
    if "error" in have:
        return f"rejected: {have['error']}: {have.get('message')}"
    fed = {s[0] if isinstance(s, list) else s.get("stream") for s in case["feed"]}
    for name, events in want["streams"].items():
        if name in fed:  # what was sent in proves nothing
            continue
        d = first_difference("stream", name, events, have.get("streams", {}).get(name, []))
        if d:
            return d
    for name, q in want["queries"].items():
        for part in ("in", "out"):
            d = first_difference(f"query.{part}", name, q[part], have.get("queries", {}).get(name, {}).get(part, []))
            if d:
                return d
    asked = [s["query"] for s in case["feed"] if isinstance(s, dict) and "query" in s]
    got = have.get("results", [])
    for i, w in enumerate(want.get("results", [])):
        h = got[i] if i < len(got) else {}
        if "error" in w:
            if "error" not in h:
                return f"on-demand {i}: should fail: {w['message']}"
            continue
        if "rows" not in h:
            return f"on-demand {i}: {h.get('error', 'no answer')}: {h.get('message')}"
        a, b = w["rows"], h["rows"]
        if "order by" not in asked[i].lower():
            a, b = sorted(a, key=key), sorted(b, key=key)
        d = first_difference("on-demand", i, a, b)
        if d:
            return d
        if w.get("columns") and h.get("columns") and w["columns"] != h["columns"]:
            return f"on-demand {i}: columns {w['columns']}, got {h['columns']}"
    return None


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("results")
    p.add_argument("--show", type=int, default=0)
    p.add_argument("--min", type=float, default=0)
    p.add_argument("--depth", type=int, default=1, help="how many parts of the id make a topic")
    a = p.parse_args()
    total, passed, shown = Counter(), Counter(), 0
    with open(a.results) as lines:
        for line in lines:
            case = json.loads(line)
            if "expect" not in case:
                continue
            topic = "/".join(case["id"].replace(".", "/").split("/")[: a.depth])
            total[topic] += 1
            d = difference(case)
            if d is None:
                passed[topic] += 1
            elif shown < a.show:
                shown += 1
                print(f"{case['id']}: {d}")
    for topic in sorted(total):
        print(f"{topic:40} {passed[topic]:5} / {total[topic]}")
    n, k = sum(total.values()), sum(passed.values())
    share = 100 * k / n if n else 0
    print(f"{k} of {n} cases as Siddhi: {share:.2f} %")
    return share < a.min or not n


if __name__ == "__main__":
    raise SystemExit(main())
