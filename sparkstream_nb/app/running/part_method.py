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


class PartAttribute(property, Generic[R]):
    """An attribute of the part that an app has as its attribute `part`, in the app under the same name, to be read."""

    def __init__(self, part: str, doc: str | None) -> None:
        self._part = part
        self._path: Callable[[Any], R]

        def read(app: Any) -> R:
            return self._path(app)

        read.__doc__ = doc  # a subclass of property takes the docstring of its getter alone
        super().__init__(read)

    def __set_name__(self, owner: type, name: str) -> None:
        self._path = attrgetter(f"{self._part}.{name}")

    if TYPE_CHECKING:

        @overload
        def __get__(self, app: None, owner: type) -> Self: ...

        @overload
        def __get__(self, app: object, owner: type | None = None) -> R: ...

        def __get__(self, app: object | None, owner: type | None = None) -> R | Self: ...


class PartProperty(PartAttribute[R]):
    """A property of the part that an app has as its attribute `part`, in the app under the same name, with its type and
    docstring."""

    def __init__(self, part: str, getter: Callable[[Any], R] | PartAttribute[R]) -> None:
        """`getter` is the property of the part's class: a getter to a type checker."""
        super().__init__(part, getter.__doc__)
