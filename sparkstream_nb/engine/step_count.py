"""Counter of the steps of node engines, which another thread reads to show progress."""

from __future__ import annotations


class StepCount:
    """`count` steps went through the operators: those of a batch are counted while it is carried out."""

    __slots__ = ("count",)

    def __init__(self) -> None:
        self.count = 0
