"""`python -m tests.chaos`."""

import sys

from .harness import main

sys.exit(main())
