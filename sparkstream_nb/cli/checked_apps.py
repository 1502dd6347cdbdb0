"""Apps that commands only look at: their plans, and notes on them."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ..errors import Misuse, SparkStreamError
from ..plan import Plan
from ..plan.open_names import compile_open
from ..plan.remarks import notes
from .app_texts import describe_error, text_of
from .surroundings import NODE, surroundings_of


@dataclass(frozen=True)
class CheckedApp:
    """An app's plan on one node, and the notes on it."""

    plan: Plan
    notes: list[str]


def opener(options: Any) -> Callable[[str], CheckedApp]:
    """Compilation of apps with the deployment files of `--conf`, and without any."""
    surroundings = surroundings_of(options)

    def open_app(path: str) -> CheckedApp:
        with text_of(path) as text:
            if surroundings is None:
                plan, names = compile_open(text, NODE, dict(options.param))
            else:
                plan, names = surroundings.compile_text(text)
            return CheckedApp(plan, [f"note: {note}" for note in notes(plan, names)])

    return open_app


def for_each_app(options: Any, one: Callable[[str], None]) -> int:
    """Run `one` for each app; its errors are printed, and the exit code is 1 then."""
    code = 0
    for path in options.apps:
        try:
            one(path)
        except Misuse:
            raise
        except SparkStreamError as e:
            print(describe_error(e), file=sys.stderr)
            code = 1
    return code
