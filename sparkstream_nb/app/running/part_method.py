"""Methods and properties of an app's parts, as the app has them."""

from __future__ import annotations

from collections.abc import Callable
from functools import update_wrapper, wraps
from operator import attrgetter
from types import MethodType
from typing import TYPE_CHECKING, Any, Concatenate, Generic, ParamSpec, Self, TypeVar, cast, overload

from ...argument_types import explain_arguments

P = ParamSpec("P")
R = TypeVar("R")


class PartMethod(Generic[P, R]):
    """A method of the part that an app has as its attribute `part`, in the app under the same name, with its signature
    and docstring. Wrong arguments are told by `Misuse`."""

    def __init__(self, part: str, method: Callable[Concatenate[Any, P], R]) -> None:
        self._part = part
        name = method.__name__

        @wraps(method)
        def call(of_part: Any, *args: P.args, **kwargs: P.kwargs) -> R:
            answer: R = getattr(of_part, name)(*args, **kwargs)
            return answer

        self._method = explain_arguments(call)
        update_wrapper(cast(Any, self), method)

    @overload
    def __get__(self, app: None, owner: type) -> Callable[Concatenate[Any, P], R]: ...

    @overload
    def __get__(self, app: object, owner: type) -> Callable[P, R]: ...

    def __get__(self, app: object | None, owner: type) -> Callable[..., R]:
        return self._method if app is None else MethodType(self._method, getattr(app, self._part))


class PartProperty(property, Generic[R]):
    """A property of the part that an app has as its attribute `part`, in the app under the same name, with its type and
    docstring."""

    def __init__(self, part: str, getter: Callable[[Any], R]) -> None:
        """`getter` is the property of the part's class: a getter to a type checker."""
        read = cast(Callable[[Any], R], cast(property, getter).fget)
        path = attrgetter(f"{part}.{read.__name__}")

        @wraps(read)
        def call(app: Any) -> R:
            value: R = path(app)
            return value

        super().__init__(call)  # its docstring is the getter's

    if TYPE_CHECKING:

        @overload
        def __get__(self, app: None, owner: type) -> Self: ...

        @overload
        def __get__(self, app: object, owner: type | None = None) -> R: ...

        def __get__(self, app: object | None, owner: type | None = None) -> R | Self: ...
