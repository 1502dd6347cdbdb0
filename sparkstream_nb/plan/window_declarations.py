"""Every window, of this package and of others: its declaration, its signature, and the arguments of a bound one."""

from __future__ import annotations

from .nodes import Const, Expr, WindowStep
from .plugins import WithExtensions
from .signatures import windows
from .signatures.signature import Signature

DECLARATIONS = WithExtensions(windows.BUILT_IN, "window", "declaration")
"""Every window by the name that SiddhiQL gives it."""
SIGNATURES: WithExtensions[Signature] = WithExtensions(windows.TABLE, "window", "signature")


def argument(window: WindowStep, parameter: str) -> Expr | None:
    """The argument of a bound window that the signature calls `parameter`; None if the call has none."""
    overload = next(o for o in SIGNATURES[window.function].overloads if o.accepts(window.args))
    return next((a for i, a in enumerate(window.args) if overload.param(i).name == parameter), None)


def streams_current_events(window: WindowStep) -> bool:
    """True if a batch window hands its events on at once (`stream.current.event`)."""
    flag = argument(window, "stream.current.event")
    return isinstance(flag, Const) and flag.value is True
