"""Counter of the steps of node engines, which another thread reads to show progress."""

from __future__ import annotations


class StepCount:
    """`count` steps went through the operators. They are counted while a batch is carried out."""

    __slots__ = ("count",)

    def __init__(self) -> None:
        self.count = 0
