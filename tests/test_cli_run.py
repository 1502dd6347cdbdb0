"""`sparkstream run`: the outputs that it prints, and its exit code."""

from __future__ import annotations

from pathlib import Path

import pytest

from sparkstream_nb import cli

APP = """
@app:name('Outputs')
define stream S (a int);
define stream Defined (a int);
@info(name='one') from S[a > 1] select a insert into Defined;
@info(name='two') from S[a > 2] select a insert into Inferred;
"""


def run_words(folder: Path, rows: str = "1\n2\n3\n") -> list[str]:
    """The words of a run of the app over a feed with these rows."""
    (folder / "app.siddhi").write_text(APP)
    (folder / "in.csv").write_text(f"a\n{rows}")
    home = ["--home", str(folder / "home"), "--fresh"]
    return ["run", str(folder / "app.siddhi"), "--master", "inline", *home, "--feed", f"S={folder / 'in.csv'}"]


def printed_streams(out: str) -> list[str]:
    return [line.split(",")[0] for line in out.splitlines() if line.startswith(("Defined", "Inferred"))]


@pytest.mark.parametrize(
    ("words", "streams"),
    [
        ([], ["Defined", "Inferred"]),
        (["--output", "Inferred"], ["Inferred"]),
        (["--output", "Inferred", "--output", "Defined"], ["Inferred", "Defined"]),
        (["--no-output"], []),
    ],
)
def test_run_prints_each_stream_that_a_query_writes(
    words: list[str], streams: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main([*run_words(tmp_path), *words]) == 0
    assert printed_streams(capsys.readouterr().out) == streams


@pytest.mark.parametrize(
    ("stream", "message"),
    [
        ("Definde", "--output: Outputs has no stream 'Definde'. Did you mean 'Defined'?"),
        ("S", "--output: no query writes to 'S'. Known: Defined, Inferred"),
    ],
)
def test_an_output_that_does_not_exist_is_refused(
    stream: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main([*run_words(tmp_path), "--output", stream]) == 2
    assert message in capsys.readouterr().err


FAR = "99999999999999"
"""An event time (ms) that is refused, as it is too far ahead."""


@pytest.mark.parametrize(
    ("rows", "words", "code", "message"),
    [
        (f"{FAR}\n", ["--time", "at"], 1, "Outputs: no row of the feed fits S: all were rejected"),
        ("x\ny\n", [], 1, "in.csv: none of its first 2 rows fits S. a is not an int: 2 values, such as 'x'"),
        ("x\n2\n", [], 0, ""),
        ("", [], 0, ""),
    ],
)
def test_a_stream_whose_rows_are_all_rejected_is_an_exit_code(
    rows: str, words: list[str], code: int, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = [*run_words(tmp_path, rows), *words]
    if words:
        (tmp_path / "in.csv").write_text(f"a,at\n1,{FAR}\n")
    assert cli.main(command) == code
    assert message in capsys.readouterr().err


def test_errors_name_nothing_of_notebooks(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """There are no magics in a shell, and the app is no longer of a process."""
    words = run_words(tmp_path)
    (tmp_path / "in.csv").write_text("a\nx\n2\n")
    assert cli.main(words) == 0
    told = capsys.readouterr()
    assert "%siddhi" not in told.out + told.err
    assert "app = sparkstream_nb.attach('Outputs')" in told.out
