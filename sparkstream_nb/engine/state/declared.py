"""State that is declared: from the declarations come room for more groups or partition instances, the snapshot, its
inverse, and the dropping of places of groups and instances that are gone.

    counts = per_group(rows=2)                       # an array with a place for each group: two rows of numbers
    newest = per_instance(fill=BEFORE_ALL)           # and for each partition instance; new places are `fill`
    emit = numbers(-1)                               # numbers of the whole operator
    due = plain_value()                              # plain data
    timers: Timers = part(Timers)                    # a part that has state of its own
    aggregators = parts()                            # several of them

A declaration is an attribute of the class; an operator has the array, or the part, under its name. A snapshot has it
under that name without the underscore, or as `saved_as`, in the order of the declarations, base classes first.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import copy
from typing import Any, ClassVar

import numpy as np

from ..columnar.arrays import Array, fill_at, grown
from .saving import Form, by_change, plain


class Declaration:
    """A piece of state, the same for all operators of a class. `is_saved`: a snapshot has it."""

    def __init__(self, saved_as: str = "", is_saved: bool = True) -> None:
        self.name, self.is_saved = saved_as, is_saved

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = self.name or name.lstrip("_")

    def create(self, owner: Any) -> Any:
        """The first value; parts that the constructor sets are None until then."""
        return None

    def widen(self, value: Any, places: int, owner: Any) -> Any:
        """`value` with room for this number of groups or instances."""
        return value

    def forget(self, value: Any, places: Array, owner: Any) -> None:
        """Drops what is held for these groups or instances."""

    def state(self, value: Any, form: Form, owner: Any) -> Any:
        """Plain data."""
        return value

    def load(self, value: Any, state: Any, owner: Any) -> Any:
        """The value that `state` is of."""
        return state

    def bytes(self, value: Any) -> int:
        """Bytes held."""
        return 0


class PerPlace(Declaration):
    """An array with a place for each group, or with this number of `rows` of them; new places are `fill`. A snapshot
    has all its room. A `dtype` or `fill` that is a text names the attribute that has it (a fill: one for each row). One
    that is not saved is restored by the operator's `load`."""

    def __init__(
        self, fill: Any = 0, rows: int | None = None, *, dtype: Any = np.int64, is_saved: bool = True
    ) -> None:
        super().__init__(is_saved=is_saved)
        self.fill, self.rows, self.dtype = fill, rows, dtype

    def _fill(self, owner: Any) -> Any:
        return getattr(owner, self.fill)[:, None] if isinstance(self.fill, str) else self.fill

    def create(self, owner: Any) -> Array:
        dtype = getattr(owner, self.dtype) if isinstance(self.dtype, str) else self.dtype
        return np.zeros(0 if self.rows is None else (self.rows, 0), dtype)

    def widen(self, value: Array, places: int, owner: Any) -> Array:
        return value if value.shape[-1] >= places else grown(value, places, self._fill(owner))

    def forget(self, value: Array, places: Array, owner: Any) -> None:
        fill_at(value, places, self._fill(owner))

    def load(self, value: Array, state: Any, owner: Any) -> Array:
        return np.array(state)

    def bytes(self, value: Array) -> int:
        return value.nbytes


class PerInstance(PerPlace):
    """An array with a place for each partition instance of an operator that has `instances`, their number; a snapshot
    has no room beyond these."""

    def state(self, value: Array, form: Form, owner: Any) -> Any:
        return value[..., : owner.instances]


class PerKey(PerPlace):
    """An array with a place for each key. Keys are never dropped; a snapshot ends with the last one that is not `fill`.
    """

    def forget(self, value: Array, places: Array, owner: Any) -> None:
        """Keys stay."""

    def state(self, value: Array, form: Form, owner: Any) -> Any:
        filled_places = np.flatnonzero(value != self.fill)
        return value[: int(filled_places[-1]) + 1 if len(filled_places) else 0].copy()


class Numbers(Declaration):
    """Numbers of the whole operator, with these values at first."""

    def __init__(self, *values: int) -> None:
        super().__init__()
        self.values = values

    def create(self, owner: Any) -> Array:
        return np.array(self.values, np.int64)

    def load(self, value: Array, state: Any, owner: Any) -> Array:
        return np.array(state)


class Plain(Declaration):
    """Plain data, with its first value."""

    def __init__(self, first: Any = None) -> None:
        super().__init__()
        self.first = first

    def create(self, owner: Any) -> Any:
        return copy(self.first)

    def state(self, value: Any, form: Form, owner: Any) -> Any:
        return copy(value)

    def load(self, value: Any, state: Any, owner: Any) -> Any:
        return copy(state)


class Part(Declaration):
    """A part of the operator with state of its own: what `make` gives, or what the constructor sets; where it is None,
    so is its state. It is saved in this form (None: as the operator is)."""

    def __init__(
        self, make: Callable[[], Any] | None = None, *, saved_as: str = "", form: Form | None = None
    ) -> None:
        super().__init__(saved_as)
        self.make, self.form = make, form

    def create(self, owner: Any) -> Any:
        return None if self.make is None else self.make()

    def forget(self, value: Any, places: Array, owner: Any) -> None:
        if value is not None:
            value.forget(places)

    def state(self, value: Any, form: Form, owner: Any) -> Any:
        return (self.form or form)(value)

    def load(self, value: Any, state: Any, owner: Any) -> Any:
        if value is not None:
            value.load(state)
        return value


class Parts(Part):
    """Several parts, in order, which the constructor sets."""

    def state(self, value: Any, form: Form, owner: Any) -> Any:
        return [super(Parts, self).state(p, form, owner) for p in value]

    def load(self, value: Any, state: Any, owner: Any) -> Any:
        for p, s in zip(value, state, strict=True):
            super().load(p, s, owner)
        return value


# The attributes that declarations become are of other types: to a type checker they may be anything.
per_group: Any = PerPlace
per_instance: Any = PerInstance
per_key: Any = PerKey
numbers: Any = Numbers
plain_value: Any = Plain
part: Any = Part
parts: Any = Parts


class DeclaredState:
    """An operator, or a part of one, whose state is declared. It calls `_create` before it sets parts of its own."""

    _declarations: ClassVar[Mapping[str, Declaration]] = {}

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        values = {name: value for c in reversed(cls.__mro__) for name, value in vars(c).items()}
        cls._declarations = {name: value for name, value in values.items() if isinstance(value, Declaration)}

    def _create(self) -> None:
        """Begins with no state."""
        for name, declaration in self._declarations.items():
            setattr(self, name, declaration.create(self))

    def _widen(self, places: int) -> None:
        """Makes room for this number of groups or instances."""
        for name, declaration in self._declarations.items():
            setattr(self, name, declaration.widen(getattr(self, name), places, self))

    def _drop(self, places: Array) -> None:
        """Drops what is held for these groups or instances."""
        for name, declaration in self._declarations.items():
            declaration.forget(getattr(self, name), places, self)

    def state(self) -> dict[str, Any]:
        """A snapshot as plain data."""
        return self._state(plain)

    def save_state(self) -> dict[str, Any]:
        """`state`, with parts as they are saved by change."""
        return self._state(by_change)

    def _state(self, form: Form) -> dict[str, Any]:
        items = [(d, getattr(self, name)) for name, d in self._declarations.items() if d.is_saved]
        return {d.name: d.state(value, form, self) for d, value in items}

    def load(self, state: dict[str, Any]) -> None:
        """The inverse of `state` and `save_state`."""
        for name, d in self._declarations.items():
            if d.is_saved:
                setattr(self, name, d.load(getattr(self, name), state[d.name], self))


class DeclaredByInstance(DeclaredState):
    """An operator whose declared state is of partition instances."""

    def forget(self, instances: Array) -> None:
        """Drops all that is held for these partition instances."""
        self._drop(instances)

    @property
    def bytes(self) -> int:
        """Bytes held."""
        return sum(d.bytes(getattr(self, name)) for name, d in self._declarations.items())
