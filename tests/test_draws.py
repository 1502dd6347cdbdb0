"""The draw of a commit: three commits in a row with other remainders try all that `--third` leaves out of each."""

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


def thirds(items: Sequence[Drawn | pytest.Item], monkeypatch: pytest.MonkeyPatch) -> list[set[str]]:
    found = []
    for third in range(profiles.THIRDS):
        monkeypatch.setattr(profiles, "third", lambda third=third: third)
        found.append({item.nodeid for item in profiles.of_this_third(items)})
    return found


def test_three_thirds_have_each_test(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    items = request.session.items
    found = thirds(items, monkeypatch)
    assert set.union(*found) == {item.nodeid for item in items}
    assert request.node.nodeid in set.intersection(*found)  # it shows nothing by a further way


@pytest.mark.parametrize(
    ("marks", "expected"),
    [
        # What others show too.
        (["thorough"], 1),
        (["hypothesis"], 1),
        (["spark", "rotates"], 1),
        (["spark", "contract", "thorough"], 1),
        (["thorough", "browser"], 1),
        # What starts Spark, a kernel or a server: each file has one at least.
        (["spark"], 3),
        (["thorough", "notebook"], 3),
        (["server", "contract"], 3),
        (["spark", "thorough"], 3),
    ],
)
def test_alone_in_its_file_a_test_is_in_one_third_or_in_all(
    marks: list[str], expected: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert sum(map(len, thirds([Drawn("tests/a.py::test", marks)], monkeypatch))) == expected


@pytest.mark.parametrize(("tests", "of_each"), [(2, [1, 1, 1]), (3, [1, 1, 1]), (7, [3, 2, 2])])
def test_a_file_that_starts_something_is_in_each_third(
    tests: int, of_each: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    items = [Drawn(f"tests/{file}.py::test_{i}", ["spark"]) for file in "ab" for i in range(tests)]
    found = thirds(items, monkeypatch)
    for file in "ab":
        assert [sum(f"/{file}.py" in nodeid for nodeid in third) for third in found] == of_each
    assert set.union(*found) == {item.nodeid for item in items}


def test_a_browser_takes_all_of_a_file_or_none(monkeypatch: pytest.MonkeyPatch) -> None:
    items = [Drawn(f"tests/a.py::test_{i}", ["browser"]) for i in range(4)]
    assert sorted(map(len, thirds(items, monkeypatch))) == [0, 0, 4]
