"""Annotations that may occur only once (Siddhi's `AnnotationHelper`)."""

from __future__ import annotations

from ...errors import SiddhiBindError
from ...lang import tree

_KIND = "DuplicateAnnotationException"


def single(annotations: tuple[tree.Annotation, ...], name: str) -> tree.Annotation | None:
    """The annotation called `name`, in any case, or None. Raises SiddhiBindError if there are two."""
    found = [a for a in annotations if a.name.lower() == name.lower()]
    if len(found) > 1:
        raise SiddhiBindError(f"@{found[1].name} is given twice", found[1].span, hint="Keep one of them.", kind=_KIND)
    return found[0] if found else None


def single_value(annotations: tuple[tree.Annotation, ...], name: str, key: str | None) -> str | None:
    """The value under `key` (None: the one without a key) of the annotation called `name`, or None.

    Raises SiddhiBindError if there are two.
    """
    a = single(annotations, name)
    found = [e for e in a.elements if (e.key and e.key.lower()) == key] if a is not None else []
    if len(found) > 1:
        what = "values without a name" if key is None else f"values of '{key}'"
        raise SiddhiBindError(f"@{name} has two {what}", found[1].span, hint="Keep one of them.", kind=_KIND)
    return found[0].value if found else None
