"""The edit distance of two words."""

from __future__ import annotations


def edit_distance(one: str, other: str, most: int) -> int | None:
    """The edit distance with transpositions (optimal string alignment); None if above `most`."""
    if abs(len(one) - len(other)) > most:
        return None
    before: list[int] = []
    last = list(range(len(other) + 1))
    for i, a in enumerate(one):
        now = [i + 1]
        for j, b in enumerate(other):
            cost = min(last[j + 1] + 1, now[j] + 1, last[j] + (a != b))
            if i and j and a == other[j - 1] and one[i - 1] == b:
                cost = min(cost, before[j - 1] + 1)
            now.append(cost)
        before, last = last, now
    return last[-1] if last[-1] <= most else None
