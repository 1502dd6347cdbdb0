"""The draw of a commit: six commits with other remainders try all that `--sixth` leaves out of each."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

import profiles


class Drawn:
    """A test, as far as a draw looks at it."""

    def __init__(self, nodeid: str, marks: Sequence[str]) -> None:
        self.nodeid = nodeid
        self.marks = [getattr(pytest.mark, name).mark for name in marks]

    def iter_markers(self) -> list[pytest.Mark]:
        return self.marks


def draws(items: Sequence[Drawn | pytest.Item], monkeypatch: pytest.MonkeyPatch) -> list[set[str]]:
    """What each of six commits takes."""
    found = []
    for seed in range(profiles.SIXTHS):
        monkeypatch.setattr(profiles, "seed", lambda seed=seed: seed)
        found.append({item.nodeid for item in profiles.drawn_items(items)})
    return found


def test_six_draws_have_each_test(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    items = request.session.items
    found = draws(items, monkeypatch)
    assert set.union(*found) == {item.nodeid for item in items}
    assert request.node.nodeid in set.intersection(*found)  # it shows nothing by a further way


@pytest.mark.parametrize(
    ("marks", "expected"),
    [
        # What others show too.
        (["thorough"], 1),
        (["hypothesis"], 1),
        (["spark", "contract", "thorough"], 1),
        (["spark", "rotates"], 1),
        # What starts Spark, a kernel or a server: each file has one at least. Of browsers and notebooks, a file.
        (["thorough", "browser"], 6),
        (["spark"], 6),
        (["thorough", "notebook"], 6),
        (["server", "contract"], 6),
        (["spark", "thorough"], 6),
    ],
)
def test_alone_in_its_file_a_test_is_in_some_draws_or_in_all(
    marks: list[str], expected: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert sum(map(len, draws([Drawn("tests/a.py::test", marks)], monkeypatch))) == expected


@pytest.mark.parametrize(("tests", "of_each"), [(2, [1] * 6), (6, [1] * 6), (8, [2, 2, 1, 1, 1, 1])])
def test_a_file_that_starts_something_is_in_each_draw(
    tests: int, of_each: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    items = [Drawn(f"tests/{file}.py::test_{i}", ["spark"]) for file in "ab" for i in range(tests)]
    found = draws(items, monkeypatch)
    for file in "ab":
        assert [sum(f"/{file}.py" in nodeid for nodeid in draw) for draw in found] == of_each
    assert set.union(*found) == {item.nodeid for item in items}


@pytest.mark.parametrize(("name", "marks"), [("tests/{}.py::test_{}", ["browser"]), ("{}.ipynb::Cell {}", [])])
def test_what_continues_goes_by_whole_files(name: str, marks: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    items = [Drawn(name.format(file, i), marks) for file in "abcdefgh" for i in range(5)]
    found = draws(items, monkeypatch)
    assert list(map(len, found)) == [10, 10, 5, 5, 5, 5]  # two of the eight files, or one
    assert set.union(*found) == {item.nodeid for item in items}
