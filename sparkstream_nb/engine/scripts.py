"""`define function f[javascript] return T { ... }`: run by an embedded QuickJS, with limits, and only where allowed.

A script sees its arguments as `data[0]`, `data[1]` ... and nothing of the machine: the interpreter has no files, no
network, no modules. A call may take a second and an interpreter 64 MB. A number is converted to the return type as Java
narrows numbers, anything to its text where a string is returned.

The result must depend on the arguments alone: a script is called once for equal arguments, and its global variables are
not part of the app's state.
"""

from __future__ import annotations

import json
import math
import threading
from collections.abc import Mapping
from typing import Any

import quickjs

from ..errors import SiddhiBindError
from ..plan import nodes
from ..types import Type
from .expressions.env import Script

SECONDS = 1.0
MEMORY = 64 * 1024 * 1024
STACK = 512 * 1024

_WIDTH = {Type.INT: 32, Type.LONG: 64}

# Numbers and truth values come out as they are, all else as its JSON; a bigint as i and its digits. No text is put
# together with +: QuickJS then gives a rope for what has some 512 characters and more, which the binding does not know.
_CALL = """(function (...data) {
  const x = %s(data);
  if (x === null || x === undefined) return null;
  if (typeof x === "number") return x;
  if (typeof x === "bigint") return ["i", x].join("");
  if (typeof x === "boolean") return x;
  return JSON.stringify(x);
})"""


class _Interpreter:
    """One interpreter with the functions of an app; QuickJS lets only the thread that made it use it."""

    def __init__(self, functions: Mapping[str, nodes.FunctionDef]) -> None:
        context = quickjs.Context()
        context.set_memory_limit(MEMORY)
        context.set_max_stack_size(STACK)
        context.set_time_limit(SECONDS)
        self.context = context
        self.calls: dict[str, Any] = {}
        for id, f in functions.items():
            context.eval(f"function {id}(data) {{{f.body}\n}}")
            self.calls[id] = context.eval(_CALL % id)

    def call(self, id: str, args: list[Any]) -> Any:
        return self.calls[id](*(self._given(a) for a in args))

    def _given(self, value: Any) -> Any:
        if isinstance(value, set | frozenset):
            value = list(value)
        return self.context.parse_json(json.dumps(value)) if isinstance(value, list | dict) else value


class Scripts:
    """The script functions of an app, by name. Raises SiddhiBindError for a body that is not valid JavaScript."""

    def __init__(self, functions: Mapping[str, nodes.FunctionDef]) -> None:
        self._functions = functions
        self._per_thread = threading.local()
        try:
            self._interpreter()
        except quickjs.JSException as e:
            raise SiddhiBindError(f"a script of the app does not compile: {str(e).splitlines()[0]}") from e

    def _interpreter(self) -> _Interpreter:
        interpreter: _Interpreter | None = getattr(self._per_thread, "interpreter", None)
        if interpreter is None:
            interpreter = self._per_thread.interpreter = _Interpreter(self._functions)
        return interpreter

    def functions(self) -> dict[str, Script]:
        """The functions that expressions call."""
        return {id: self._function(id, f.returns) for id, f in self._functions.items()}

    def _function(self, id: str, returns: Type) -> Script:
        def script(args: list[Any]) -> Any:
            return convert_answer(self._interpreter().call(id, args), returns)

        return script


def convert_answer(answer: Any, type: Type) -> Any:
    """A script's result as a value of `type`. Raises ValueError if it cannot be converted."""
    if answer is None:
        return None
    value: Any = answer
    if isinstance(answer, str):
        value = int(answer[1:]) if answer[0] == "i" else json.loads(answer)
    if type is Type.OBJECT:
        return int(value) if isinstance(value, float) and value.is_integer() and abs(value) < 2**31 else value
    if type is Type.STRING:
        return _text(value)
    if type is Type.BOOL:
        if isinstance(value, bool):
            return value
    elif isinstance(value, int | float) and not isinstance(value, bool):
        return _narrow_number(value, type)
    raise ValueError(f"the script answered {_text(value)}, which is no {type.value}")


def _narrow_number(value: float, type: Type) -> int | float:
    """Java's `intValue`, `longValue`, `floatValue`, `doubleValue` of a number: whole parts, cut at the type's ends."""
    if type not in _WIDTH:
        return float(value)
    if isinstance(value, float) and math.isnan(value):
        return 0
    end = 1 << (_WIDTH[type] - 1)
    integer = int(value) if math.isfinite(value) else end if value > 0 else -end
    return min(end - 1, integer) if integer > 0 else max(-end, integer)


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e21:
        return str(int(value))
    return value if isinstance(value, str) else json.dumps(value)


def scripts_of(plan: nodes.Plan, allowed: bool) -> dict[str, Script]:
    """The script functions of a plan. Raises SiddhiBindError if there are any and scripts are not allowed."""
    refuse_scripts(plan, allowed)
    return Scripts(plan.functions).functions() if plan.functions else {}


def refuse_scripts(plan: nodes.Plan, allowed: bool) -> None:
    """Raises SiddhiBindError if a plan has script functions and they are not allowed."""
    if plan.functions and not allowed:
        first = next(iter(plan.functions))
        raise SiddhiBindError(
            f"function '{first}' is a script, and scripts are disabled",
            hint="If you trust the app, allow them: allow_scripts=True in Python, --allow-scripts in a cell and on the "
            "command line. They run with limits on time and memory, and reach no files and no network.",
            kind="ExtensionNotFoundException",
        )
