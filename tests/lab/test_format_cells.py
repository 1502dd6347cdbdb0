"""`%siddhi fmt` and `%%siddhi --fmt`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from sparkstream_nb.errors import Misuse, SiddhiError

UGLY = "define stream S(a int); -- in\nfrom S select a insert into O"
NEAT = "define stream S (a int); -- in\n\nfrom S\nselect a\ninsert into O;\n"


@pytest.fixture
def inputs(shell: Any, monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, bool]]:
    """What replaces the cell."""
    out: list[tuple[str, bool]] = []
    monkeypatch.setattr(shell, "set_next_input", lambda text, replace=False: out.append((text, replace)))
    return out


def test_a_cell_is_formatted_in_its_place(shell: Any, inputs: Any, capsys: pytest.CaptureFixture[str]) -> None:
    assert shell.run_cell(f"%%siddhi Trades --nodes 2  --fmt\n\n{UGLY}\n").success
    assert inputs == [(f"%%siddhi Trades --nodes 2  --fmt\n{NEAT.rstrip()}", True)]
    assert shell.run_cell(inputs[0][0]).success
    assert len(inputs) == 1
    assert "The cell was formatted already." in capsys.readouterr().out


def test_a_wrong_cell_stays_as_it_is(shell: Any, inputs: Any) -> None:
    error = shell.run_cell(f"%%siddhi --fmt\n{UGLY} into").error_in_exec
    assert isinstance(error, SiddhiError)
    assert str(error).startswith("line 3, column 31: ")
    with pytest.raises(Misuse, match="leave --query out"):
        shell.run_cell_magic("siddhi", "Trades --fmt --query", "from A select *")
    assert inputs == []


def test_a_file_is_rewritten_and_a_variable_printed(
    shell: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "app.siddhi"
    file.write_text(UGLY)
    shell.run_line_magic("siddhi", f"fmt {file}")
    assert file.read_text() == NEAT
    shell.run_line_magic("siddhi", f"fmt {file}")
    shell.user_ns["ugly_text"] = UGLY
    shell.run_line_magic("siddhi", "fmt ugly_text")
    assert capsys.readouterr().out == f"{file}: formatted\n{file}: was formatted already\n{NEAT}"
    with pytest.raises(Misuse, match="Did you mean 'ugly_text'"):
        shell.run_line_magic("siddhi", "fmt ugly_txt")
