"""Functions, aggregators and windows of your own, for SiddhiQL, in a package of your own.

    from sparkstream_nb.extending import function

    @function("acme:initials(name string) -> string", help="The first letters of a name.")
    def initials(name):
        return "".join(word[0] for word in name.split())

A package names the module that has them by an entry point of the group `sparkstream_nb.extensions`. It has to be
installed where an app is deployed and where Spark's workers run. The guide "Write your own function, window or sink"
has an example of each, and describes what else is in this module: the notation in which aggregators and windows are
written.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, TypeVar

from .engine.aggregators.aggregator_base import Grouped as Aggregator
from .engine.aggregators.aggregator_base import Outputs
from .engine.columnar.rows import CURRENT, EXPIRED, RESET
from .engine.columnar.timers import Schedule
from .engine.expressions.plugin_functions import by_arrow, by_numpy, by_row
from .engine.notation.kernels import compiled, inlined, struct
from .engine.state.declared import numbers, per_group, per_instance
from .engine.windows.declared_state import lengths
from .engine.windows.declared_window import DeclaredWindow as Window
from .engine.windows.timed_window import Due, Event, timed_window
from .engine.windows.window_protocol import Emission, WindowSetup
from .plan.plugins import MARK, Extension
from .plan.signatures.signature import Check, RuleError, Signature, signatures
from .plan.signatures.windows import WindowDeclaration
from .types import Type

__all__ = [
    "CURRENT", "EXPIRED", "RESET", "Aggregator", "Due", "Emission", "Event", "Outputs", "RuleError", "Schedule", "Type",
    "Window", "WindowSetup", "aggregator", "compiled", "function", "inlined", "lengths", "numbers", "per_group",
    "per_instance", "window",
]  # fmt: skip

F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")
C = TypeVar("C", bound=type)

_BUILDERS = {"arrow": by_arrow, "rows": by_row}


def function(
    signature: str, *, help: str, over: Literal["rows", "arrow", "numpy"] = "rows", nulls: bool = False
) -> Callable[[F], F]:
    """Marks a scalar function.

    `signature`: a line for each overload, as `acme:price(amount double, currency string) -> double`. The types are
    SiddhiQL's; `num` is int, long, float or double, `prim` these, string and bool, `any` each of them; several are
    joined by `|`. `!` behind a type: a constant. `...` as the last parameter repeats the one before it. The result may
    be `$1`, the type of the first argument. `help`: a sentence, for completion and tooltips.

    `over`: the function takes Python values of an event (`rows`), or Arrow or numpy arrays over many events, and
    answers one array of the same length (text only as `rows` and `arrow`, objects only as `rows`). Unless `nulls`, it
    is null where an argument is null, and not asked. It has to give the same answer for the same arguments: it is
    asked once for arguments that are equal. What it raises becomes the error of the event.

    Raises ValueError for a signature that is none.
    """
    parsed_signature = _signature(signature, needs_result=True)
    types = {t for o in parsed_signature.overloads for p in o.params for t in p.types}
    if over != "rows" and not all(o.params for o in parsed_signature.overloads):
        reason = "takes no arguments, so that there is no length to answer"
        raise ValueError(f"'{parsed_signature.key}' {reason}: leave over='{over}' out")
    if over != "rows" and Type.OBJECT in types:
        raise ValueError(f"'{parsed_signature.key}' takes objects, which no array has: leave over='{over}' out")
    if over == "numpy" and (nulls or Type.STRING in types):
        what = "texts or nulls, which numpy arrays have not"
        raise ValueError(f"'{parsed_signature.key}' takes {what}: use over='arrow'")

    def mark(implementation: F) -> F:
        builder = by_numpy(implementation) if over == "numpy" else _BUILDERS[over](implementation, nulls=nulls)
        return _mark(implementation, Extension("function", parsed_signature, help, builder))

    return mark


def aggregator(signature: str, *, help: str, check: Check | None = None) -> Callable[[C], C]:
    """Marks the class of an aggregator for `select`, derived from `Aggregator`. `signature` and `help` as for
    `function`; `check` gets the bound arguments and raises RuleError for those that it refuses. Raises ValueError for a
    signature that is none."""
    parsed_signature = _signature(signature, check, needs_result=True)
    return lambda cls: _mark(struct(cls), Extension("aggregator", parsed_signature, help, cls))


def window(
    signature: str,
    *,
    help: str,
    processing_mode: Literal["slide", "batch", "group"],
    retained_by: Literal["clock", "start", "key", "events"],
    check: Check | None = None,
    **properties: Any,
) -> Callable[[C], C]:
    """Marks the class of a window, derived from `Window`. `signature` has no result; `help` and `check` as for
    `aggregator`. The further properties are fields of `WindowDeclaration`: they permit quicker ways; without them,
    nothing is assumed. Raises ValueError for a signature that is none."""
    parsed_signature = _signature(signature, check, needs_result=False)
    declaration = WindowDeclaration(
        signature,
        processing_mode=processing_mode,
        retained_by=retained_by,
        check=check,
        **{**_NOTHING_ASSUMED, **properties},
    )
    return lambda cls: _mark(timed_window(cls), Extension("window", parsed_signature, help, cls, declaration))


_NOTHING_ASSUMED = {
    "in_partition": "shared",
    "reads": "arguments",
    "resets_per_chunk": False,
    "single_chunk": False,
    "carries_group_id": False,
    "timers_emit": "current",
    "example": "",
}


def _signature(text: str, check: Check | None = None, *, needs_result: bool) -> Signature:
    read = signatures(text)
    if len(read) != 1:
        raise ValueError(f"the lines of a signature have one name, not {', '.join(read) or 'none'}")
    (parsed_signature,) = read.values()
    if ":" not in parsed_signature.key:
        raise ValueError(f"'{parsed_signature.key}' needs a namespace, as in 'acme:{parsed_signature.key}'")
    for overload in parsed_signature.overloads:
        if overload.result == "?" or (overload.result is None) == needs_result:
            ending = "ends with ' -> ' and a type" if needs_result else "has no result"
            raise ValueError(f"the signature of '{parsed_signature.key}' {ending}")
    return Signature(parsed_signature.key, parsed_signature.overloads, check=check)


def _mark(implementation: T, extension: Extension) -> T:
    setattr(implementation, MARK, extension)
    return implementation
