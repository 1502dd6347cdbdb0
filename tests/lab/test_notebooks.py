"""The notebooks where what they use is not there, and as they look."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

NOTEBOOKS = Path(__file__).parents[2] / "notebooks"
NUMBERED = re.compile(r"^(\d{1,9})[.)] ", re.MULTILINE)


@pytest.mark.notebook
@pytest.mark.thorough
@pytest.mark.timeout(300)
def test_your_own_data_needs_no_cluster_and_no_broker(tmp_path: Path) -> None:
    made = tmp_path / "run.ipynb"
    command = [
        sys.executable, "-m", "nbconvert", "--to", "notebook", "--execute", "--output", str(made),
        str(NOTEBOOKS / "08_your_own_data.ipynb"),
    ]  # fmt: skip
    # Nothing listens at port 1, neither for Spark nor for Kafka.
    nowhere = {"SPARKSTREAM_KAFKA": "127.0.0.1:1", "SPARKSTREAM_MASTER": "spark://127.0.0.1:1"}
    env = {**os.environ, **nowhere, "SPARKSTREAM_HOME": str(tmp_path / "apps")}
    found = subprocess.run(command, env=env, capture_output=True, text=True, timeout=280, check=False)
    assert found.returncode == 0, found.stderr[-3000:]
    cells = [c for c in json.loads(made.read_text(encoding="utf-8"))["cells"] if c["cell_type"] == "code"]
    said = ["".join("".join(o.get("text", "")) for o in c["outputs"]) for c in cells]
    skipped = next(i for i, text in enumerate(said) if text.startswith("Skipped from here on: needs a Kafka broker"))
    assert said[skipped].count("\n") == 1
    assert any(text.startswith("15 alarms, a day later: True") for text in said[:skipped])
    assert [text for text in said[skipped + 1 :] if text] == ["stopped: Rooms\n"]


@pytest.mark.parametrize("book", sorted(NOTEBOOKS.glob("*.ipynb")), ids=lambda book: book.stem)
def test_no_sentence_of_a_notebook_begins_as_an_item_of_a_list(book: Path) -> None:
    """Markdown makes `70. No node ...` the item 70 of a list; a list that is meant begins with 1."""
    cells = [c for c in json.loads(book.read_text(encoding="utf-8"))["cells"] if c["cell_type"] == "markdown"]
    numbers = [int(n) for c in cells for n in NUMBERED.findall("".join(c["source"]))]
    assert all(n == 1 or n - 1 in numbers[:i] for i, n in enumerate(numbers))


@pytest.mark.parametrize("book", sorted(NOTEBOOKS.glob("*.ipynb")), ids=lambda book: book.stem)
def test_no_notebook_has_the_state_of_a_widget(book: Path) -> None:
    """It is of a kernel that has ended, and has the scripts of its time."""
    assert "widgets" not in json.loads(book.read_text(encoding="utf-8"))["metadata"]
