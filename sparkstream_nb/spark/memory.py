"""How much memory one of Spark's Python processes on this machine may take: an event that asks for more is an error.

Without a limit the system ends some process when memory is short, and that may be any. `$SPARKSTREAM_WORKER_MEMORY` is
the limit as a person sets it, such as `4GB`; by default it is most of what the machine, or its control group, has.
"""

from __future__ import annotations

import contextlib
import os
import resource
from pathlib import Path

from ..retention import bytes_of

VARIABLE = "SPARKSTREAM_WORKER_MEMORY"
SHARE = 0.6
_GROUP = Path("/sys/fs/cgroup/memory.max")


def limit() -> int:
    """Bytes. Raises `Misuse` where the variable is no size."""
    own = os.environ.get(VARIABLE)
    if own:
        return bytes_of(VARIABLE, own)
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    with contextlib.suppress(OSError, ValueError):  # there is no group, or it has no limit
        memory = min(memory, int(_GROUP.read_text()))
    return int(SHARE * memory)


def apply_limit() -> None:
    """Limits this process, and those that it forks: what asks for more memory raises MemoryError."""
    most = resource.getrlimit(resource.RLIMIT_DATA)[1]
    with contextlib.suppress(OSError, ValueError):  # a system that knows no such limit
        resource.setrlimit(resource.RLIMIT_DATA, (limit(), most))
