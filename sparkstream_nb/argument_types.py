"""Wrong arguments explained by the annotations of public functions.

Most arguments are checked by hand, with a message of their own (`argument_checks`). For the others, an error that
Python or a library raises is no message for a user: if an argument does not fit its annotation, `explain_arguments`
raises `Misuse` in its place. An error with fitting arguments is a fault of this package, and stays as it is.
"""

from __future__ import annotations

import collections.abc
import functools
import inspect
import sys
import types
import typing
from collections.abc import Callable, Iterator, Mapping
from numbers import Integral, Real
from pathlib import PurePath
from typing import Any, Literal, TypeVar, Union, Unpack, get_args, get_origin

from .errors import Misuse, SparkStreamError, has_surrogate, shown

T = TypeVar("T")
_RAW = (TypeError, ValueError, AttributeError, KeyError, IndexError, ArithmeticError, RecursionError)
_LARGEST = 2**63
_ITEMS = 1_000
"""Items of a list whose types are looked at."""
_WORDS: Mapping[Any, str] = {
    str: "a text", bool: "True or False", int: "a whole number", float: "a number", type(None): "None",
    PurePath: "a path",
}  # fmt: skip


def explain_arguments(target: T) -> T:
    """A function, or a class with its public methods, whose wrong arguments are told by `Misuse`."""
    if inspect.isclass(target):
        for name, method in list(vars(target).items()):
            if not name.startswith("_") and inspect.isfunction(method):
                setattr(target, name, explain_arguments(method))
        return target
    function: Any = target

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except _RAW as error:
            if isinstance(error, SparkStreamError):
                raise
            reason = _describe_misfit(function, args, kwargs, error)
            if reason is None:
                raise
            raise Misuse(reason) from None

    return call  # type: ignore[return-value]


def _describe_misfit(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any], error: Exception
) -> str | None:
    """The first argument that does not fit its annotation, or that the machine cannot take, in words; None if there is
    none."""
    try:
        bound = inspect.signature(function).bind(*args, **kwargs)
    except TypeError:
        return None  # Python names the argument that is missing or too many
    for name, value, annotation in _arguments_of(function, bound):
        if not _fits(value, annotation):
            return f"{name} is {_describe(annotation)}, not {shown(value)}"
        if isinstance(error, OverflowError) and isinstance(value, int | float) and abs(value) >= _LARGEST:
            return f"{name} is too large: {shown(value)}"
        if isinstance(value, str | PurePath) and "\0" in str(value):
            return f"{name} has a NUL character: {shown(value)}"
        if isinstance(value, str) and has_surrogate(value):
            return f"{name} has half of a surrogate pair, which is no character: {shown(value)}"
    return None


def _arguments_of(function: Callable[..., Any], bound: inspect.BoundArguments) -> Iterator[tuple[str, Any, Any]]:
    """Name, value and annotation of the arguments of a call."""
    parameters = bound.signature.parameters
    for name, value in bound.arguments.items():
        annotation = _evaluate(parameters[name].annotation, function)
        match parameters[name].kind:
            case inspect.Parameter.VAR_KEYWORD:
                of = get_args(annotation)[0] if get_origin(annotation) is Unpack else None
                hints = {} if of is None else {n: _evaluate(a, of) for n, a in vars(of)["__annotations__"].items()}
                yield from ((key, one, hints.get(key, Any)) for key, one in value.items())
            case inspect.Parameter.VAR_POSITIONAL:
                yield from ((name, one, annotation) for one in value)
            case _ if value is not parameters[name].default:
                yield name, value, annotation


def _evaluate(annotation: Any, owner: Any) -> Any:
    """An annotation that may be a text, as postponed ones are; Any where a name is for type checkers alone."""
    text = annotation.__forward_arg__ if isinstance(annotation, typing.ForwardRef) else annotation
    if not isinstance(text, str):
        return text
    try:
        return eval(text, vars(sys.modules[owner.__module__]))
    except (NameError, AttributeError, TypeError):
        return Any


def _fits(value: Any, annotation: Any) -> bool:
    """True if a value is of an annotated type, or the annotation is of no kind that is known here."""
    origin, of = get_origin(annotation), get_args(annotation)
    if origin in (Union, types.UnionType):
        return any(_fits(value, one) for one in of)
    if origin is Literal:
        return any(type(value) is type(one) and value == one for one in of)
    if annotation is Any or annotation is inspect.Parameter.empty:
        return True
    if annotation is None or annotation is type(None):
        return value is None
    if annotation is bool:
        return isinstance(value, bool) or getattr(value, "dtype", None) == "bool"  # numpy's
    if annotation is int:
        return isinstance(value, Integral) and not isinstance(value, bool)
    if annotation is float:
        return isinstance(value, Real) and not isinstance(value, bool)
    if origin is collections.abc.Callable:
        return callable(value)
    if isinstance(origin, type):
        return _fits_items(value, origin, of)
    return not isinstance(annotation, type) or isinstance(value, annotation)


def _fits_items(value: Any, kind: type, of: tuple[Any, ...]) -> bool:
    """True for a collection whose first items are of their types; a text is none."""
    if isinstance(value, str | bytes) or not isinstance(value, kind):
        return False
    if isinstance(value, Mapping):
        items = list(value.items())[:_ITEMS]
        return len(of) != 2 or all(_fits(k, of[0]) and _fits(v, of[1]) for k, v in items)
    if len(of) != 1 or not isinstance(value, collections.abc.Sequence):
        return True
    return all(_fits(one, of[0]) for one in value[:_ITEMS])


def _describe(annotation: Any) -> str:
    """`a text or None`."""
    origin, of = get_origin(annotation), get_args(annotation)
    if origin in (Union, types.UnionType):
        return " or ".join(dict.fromkeys(map(_describe, of)))
    if origin is Literal:
        return " or ".join(map(repr, of))
    if origin is collections.abc.Callable:
        return "a function"
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return "a dict"
    if isinstance(origin, type):
        return f"several, each {_describe(of[0])}" if len(of) == 1 else "a list"
    if annotation is None:
        return "None"
    if isinstance(annotation, type):
        kind_words = next((words for kind, words in _WORDS.items() if issubclass(annotation, kind)), None)
        return kind_words or f"a {annotation.__name__}"
    return "of another type"
