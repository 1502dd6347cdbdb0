"""Annotations that may occur only once (Siddhi's `AnnotationHelper`)."""

from __future__ import annotations

from ...errors import SiddhiBindError
from ...lang import tree

_KIND = "DuplicateAnnotationException"


def single(annotations: tuple[tree.Annotation, ...], name: str) -> tree.Annotation | None:
    """The annotation called `name`, in any case, or None. Raises SiddhiBindError if there are two."""
    matches = [a for a in annotations if a.name.lower() == name.lower()]
    if len(matches) > 1:
        raise SiddhiBindError(
            f"@{matches[1].name} is given twice", matches[1].span, hint="Keep one of them.", kind=_KIND
        )
    return matches[0] if matches else None


def single_value(annotations: tuple[tree.Annotation, ...], name: str, key: str | None) -> str | None:
    """The value under `key` (None: the one without a key) of the annotation called `name`, or None.

    Raises SiddhiBindError if there are two.
    """
    a = single(annotations, name)
    elements = [e for e in a.elements if (e.key and e.key.lower()) == key] if a is not None else []
    if len(elements) > 1:
        what = "values without a name" if key is None else f"values of '{key}'"
        raise SiddhiBindError(f"@{name} has two {what}", elements[1].span, hint="Keep one of them.", kind=_KIND)
    return elements[0].value if elements else None
