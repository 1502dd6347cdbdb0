"""The display of apps and their results: `text` and `html`, by class.

Both are functions of the data alone. Texts of users' events are escaped; long answers are cut, and say so. A new class
of result needs one function for each of the two: in `plans_shown.py` if it is about an app's text alone, else in
`results_shown.py`, which loads the modules that run apps.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import singledispatch
from importlib import import_module
from typing import Any, TypeVar

from ..app.results.frontend import Displayed
from ..errors import escape_controls
from .drawings.result_blocks import Block, blocks_html, blocks_text

T = TypeVar("T")

# Rows shown where neither the call nor `%config SiddhiMagic.displaylimit` says otherwise.
DISPLAY_LIMIT = 20
_FORMS = (
    "plans_shown",
    "results_shown",
    "attachable",
    "branch_shown",
    "history_shown",
    "moments_shown",
    "why_not_shown",
    "overview_shown",
    "profile_shown",
    "rescheduled_shown",
    "rules_shown",
    "selection_shown",
    "tests_shown",
    "traces_shown",
)
"""The modules that register forms, the light ones first."""


class Form:
    """A function of an app or a result, by its class: `register` adds one for a class. Results have no control
    characters. Raises TypeError for a class that has no such form.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._forms = singledispatch(self._load)

    def __call__(self, value: object) -> str:
        return escape_controls(self._forms(value))

    @property
    def register(self) -> Callable[..., Any]:
        """`singledispatch`'s decorator."""
        return self._forms.register

    def _load(self, value: object) -> str:
        """The form of a class that is not registered yet: loads one module after the other until it is."""
        none: Callable[[Any], str] = self._forms.dispatch(object)
        for module in _FORMS:
            import_module(f".{module}", __package__)
            form: Callable[[Any], str] = self._forms.dispatch(type(value))
            if form is not none:
                return form(value)
        raise TypeError(f"{type(value).__name__} has no {self._name}")


text = Form("plain text")
"""An app or a result in plain text."""
html = Form("HTML")
"""An app or a result as HTML."""


def blocks_of(kind: type[T]) -> Callable[[Callable[[T], Sequence[Block]]], Callable[[T], Sequence[Block]]]:
    """Registers both forms of a class by a function that gives its blocks."""

    def register(function: Callable[[T], Sequence[Block]]) -> Callable[[T], Sequence[Block]]:
        text.register(kind, lambda value: blocks_text(function(value)))
        html.register(kind, lambda value: blocks_html(function(value)))
        return function

    return register


def bundle(value: Displayed, include: Any = None, exclude: Any = None) -> dict[str, str]:
    """Both forms by their MIME types, as IPython's formatter asks for them."""
    value = value.still()  # the same in both
    return {"text/plain": text(value), "text/html": html(value)}


def limit_of(limit: int | None = None) -> int:
    """The number of rows to show if a call asks for `limit` (None: for no number)."""
    return DISPLAY_LIMIT if limit is None else limit
