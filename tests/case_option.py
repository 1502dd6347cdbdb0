"""The option `--case ID` of pytest: of the tests over case files, only what concerns these cases.

`pytest tests/engine/test_cases.py --case 'windows/*' --case tables/order/desc` runs the cases with such ids, in which
`*` stands for any characters, and leaves out all tests that are not about cases of `tests/cases`.

This module is a plugin of pytest: `tests/conftest.py` names it in `pytest_plugins`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from reference.parts import Case, Part


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--case", action="append", default=[], metavar="ID",
        help="run only cases of tests/cases with this id (* for any characters); may be given several times",
    )  # fmt: skip


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leaves out what does not concern the cases asked for."""
    if not config.getoption("case"):
        return
    kept, left_out = [], []
    for item in items:
        part = getattr(getattr(item, "callspec", None), "params", {}).get("part")
        (kept if isinstance(part, Part) and list(asked(part, config)) else left_out).append(item)
    if items and not kept:
        raise pytest.UsageError(f"--case: none of these tests runs a case {' or '.join(config.getoption('case'))}")
    items[:] = kept
    config.hook.pytest_deselected(items=left_out)


def asked(part: Part, config: pytest.Config) -> Iterator[tuple[int, Case]]:
    """The cases of a part that this run asks for, each with the number of its line: all, or those of `--case`."""
    given = config.getoption("case", default=[])
    wanted = re.compile("|".join(re.escape(g).replace(r"\*", ".*") for g in given), re.DOTALL)
    return ((i, c) for i, c in part.numbered() if not given or wanted.fullmatch(c["id"]))
