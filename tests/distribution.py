"""How xdist gives tests to its processes: all tests in a browser to one, which has the one JupyterLab of a run.

xdist has a mark for groups of tests, which does nothing with pytest 9.2 (pytest-xdist's issue 1386). So groups are made
here, for `--dist loadfile`, and for `--dist loadgroup`, where each of the other tests is on its own.
"""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from xdist.scheduler import LoadScopeScheduling


LONGEST = (
    "tests/app/deployment/test_shared.py", "tests/runners/test_masters.py", "tests/app/deployment/test_changes.py",
    "tests/runners/test_mending.py", "tests/chaos/test_chaos.py", "tests/engine/test_bounds.py",
    "tests/chaos/test_soak.py", "tests/lab/test_saved_secrets.py",
)  # fmt: skip
"""Files of a minute and more: they come first, so that no process is left with one of them at the end."""


def group_of(test: str, *, by_file: bool) -> str:
    """The tests of the same group go to the same process, one after the other. `test` is a test's id."""
    file = test.partition("::")[0]
    if PurePosixPath(file).match("tests/lab/test_*browser.py"):
        return "browser"
    return file if by_file else test


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Puts what takes longest first: the tests in a browser, which follow each other, and the longest files."""
    items.sort(key=lambda i: group_of(i.nodeid, by_file=True) != "browser" and not i.nodeid.startswith(LONGEST))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> LoadScopeScheduling | None:
    """The scheduler for `loadfile` and `loadgroup`; None for other values of `--dist`."""
    from xdist.scheduler import LoadScopeScheduling

    way = config.getoption("dist")
    if way not in ("loadfile", "loadgroup"):
        return None

    class Groups(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return group_of(nodeid, by_file=way == "loadfile")

    config.option.loadscopereorder = False  # what comes first is begun first
    return Groups(config, log)
