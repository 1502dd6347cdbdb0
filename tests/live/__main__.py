"""Records what live clusters answer to random retrievals, or put out; see the package."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from fuzz.oracle import Oracle

from . import __doc__ as description
from .cluster import missing, with_answers
from .random_cases import case
from .shares import random_share
from .shares import with_answers as with_outputs

parser = argparse.ArgumentParser(prog="python -m tests.live", description=description)
parser.add_argument("--seed", type=int, default=1)
parser.add_argument("--count", type=int, default=10)
parser.add_argument("--outputs", action="store_true", help="what nodes put out that share the events of random apps")
options = parser.parse_args()
if options.outputs:
    shares = (random_share(options.seed, number) for number in range(options.count))
    with Oracle() as oracle:
        for share in with_outputs((s for s in shares if s is not None), oracle):
            print(json.dumps(share.json, separators=(",", ":")))
    sys.exit()
if missing():
    sys.exit(f"needs {missing()}")
for answered in with_answers(case(options.seed, number) for number in range(options.count)):
    print(json.dumps(answered, separators=(",", ":")))
