"""Private fields of Java's and Spark's own classes.

They are no part of an API. Callers do without them if they are gone, or if the JVM does not open them: `CHANGED` has
the exceptions raised then.
"""

from __future__ import annotations

from typing import Any

from py4j.protocol import Py4JError

CHANGED = (Py4JError, OSError, TypeError, AttributeError)


def field_of(class_: Any, name: str) -> Any:
    """The field that a Java class itself declares, made readable. Raises the exceptions in `CHANGED`."""
    field = class_.getDeclaredField(name)
    field.setAccessible(True)
    return field


def value_of(thing: Any, name: str) -> Any:
    """Value of a field that a Java object's class itself declares. Raises the exceptions in `CHANGED`."""
    return field_of(thing.getClass(), name).get(thing)
