"""Records what live clusters answer to random cases; see the package."""

from __future__ import annotations

import argparse
import json
import sys

from . import __doc__ as description
from .cluster import missing, with_answers
from .random_cases import case

parser = argparse.ArgumentParser(prog="python -m tests.live", description=description)
parser.add_argument("--seed", type=int, default=1)
parser.add_argument("--count", type=int, default=10)
options = parser.parse_args()
if missing():
    sys.exit(f"needs {missing()}")
for answered in with_answers(case(options.seed, number) for number in range(options.count)):
    print(json.dumps(answered, separators=(",", ":")))
