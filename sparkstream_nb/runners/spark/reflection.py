"""Fields of Java's and Spark's own classes that are not open to all.

They are no part of an API. Who reads them does without where they are gone, or the JVM does not open them: `CHANGED`
has what is raised then.
"""

from __future__ import annotations

from typing import Any

from py4j.protocol import Py4JError

CHANGED = (Py4JError, OSError, TypeError, AttributeError)


def field_of(class_: Any, name: str) -> Any:
    """The field that a Java class itself declares, made readable. Raises what is in `CHANGED`."""
    found = class_.getDeclaredField(name)
    found.setAccessible(True)
    return found


def value_of(thing: Any, name: str) -> Any:
    """What a Java object has in a field that its class itself declares. Raises what is in `CHANGED`."""
    return field_of(thing.getClass(), name).get(thing)
