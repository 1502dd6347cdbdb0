"""Processes of this machine."""

from __future__ import annotations

import os


def runs(process: int) -> bool:
    """Whether the process of this number runs."""
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        pass
    return True
