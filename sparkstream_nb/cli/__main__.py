"""`python -m sparkstream_nb.cli` is the command `sparkstream`."""

from __future__ import annotations

import sys

from .command_line import main

if __name__ == "__main__":
    sys.exit(main())
