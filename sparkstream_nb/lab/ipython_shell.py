"""The IPython shell of this process."""

from __future__ import annotations

import sys
from typing import Any


def shell() -> Any:
    """The IPython shell that runs here; None if there is none."""
    if sys.modules.get("IPython") is None:
        return None
    from IPython.core.getipython import get_ipython

    return get_ipython()
