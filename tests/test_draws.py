"""The draw of a commit: three commits in a row with other remainders try all that `--third` leaves out of each."""

from __future__ import annotations

import pytest

import profiles


def drawn(items: list[pytest.Item], monkeypatch: pytest.MonkeyPatch) -> list[set[str]]:
    found = []
    for third in range(profiles.THIRDS):
        monkeypatch.setattr(profiles, "third", lambda third=third: third)
        found.append({item.nodeid for item in items if profiles.is_of_this_third(item)})
    return found


def test_three_thirds_have_each_test(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    items = request.session.items
    thirds = drawn(items, monkeypatch)
    assert set.union(*thirds) == {item.nodeid for item in items}
    assert request.node.nodeid in set.intersection(*thirds)  # it shows nothing by a further way


@pytest.mark.parametrize(
    ("marks", "expected"),
    [
        # What shows by a further way what others show.
        (["thorough"], [0, 0, 1]),
        (["hypothesis"], [0, 0, 1]),
        (["spark", "rotates"], [0, 0, 1]),
        (["spark", "contract", "thorough"], [0, 0, 1]),
        # What starts Spark, a browser or a server.
        (["spark"], [1, 1, 1]),
        (["thorough", "browser"], [1, 1, 1]),
        (["thorough", "server"], [1, 1, 1]),
        (["spark", "thorough"], [1, 1, 1]),
    ],
)
def test_a_test_is_in_one_third_or_in_all(
    marks: list[str], expected: list[int], request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    item = request.node
    before = list(item.own_markers)
    item.own_markers += [getattr(pytest.mark, name).mark for name in marks]
    thirds = drawn([item], monkeypatch)
    item.own_markers[:] = before
    assert sorted(map(len, thirds)) == expected
