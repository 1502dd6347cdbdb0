"""Mistakes on the command line: each answers one short message and exit code 1 or 2, and Spark is not started."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

import sparkstream_nb.app.deploying  # noqa: F401  # it is patched below
from sparkstream_nb import cli

LONGEST = 500
"""Characters of a message at most."""
PLACE = re.compile(r"[^:\n]+\.siddhi:\d+:\d+: ")
"""How a mistake in a file begins, as editors read it."""

APP = """define stream S (a string, b int, at long);
define table T (a string);
from S[b > 3] select a, b insert into O;
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder: a right app, a feed for it, and files of every kind of trouble."""
    files = {
        "app.siddhi": APP,
        "wrong.siddhi": APP.replace("select a,", "select aa,"),
        "syntax.siddhi": APP.replace("select a,", "select a;"),
        "param.siddhi": APP.replace("3", "${LEAST}"),
        "gap.siddhi": f"@source(type='jms') {APP}",
        "script.siddhi": "define function f[javascript] return int { return 1; };" + APP.replace("a, b", "f(b) as c"),
        "comments.siddhi": "-- nothing yet\n",
        "window.siddhi": f"{APP}@info(name = 'plain') from S select a insert into P;"
        "@info(name = 'window') from S#window.length(2) select a insert into W;",
        "words.csv": "a,b,at\nx,x,1000\n",
        "s.csv": "a,b,at\nx,5,1000\n",
        "short.csv": "a,at\nx,1000\n",
        "other.csv": "a,b,a tx\nx,5,1000\n",
        "empty.csv": "",
        "broken.parquet": "PAR1",
        "text.txt": "a,b,at\n",
    }
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    (tmp_path / "latin.siddhi").write_bytes(b"-- na\xefve\n")
    (tmp_path / "a_folder").mkdir()
    monkeypatch.chdir(tmp_path)
    return tmp_path


RUN = "run app.siddhi"
MISTAKES = [
    ("", 2, "COMMAND is missing"),
    ("chekc app.siddhi", 2, "sparkstream: there is no command 'chekc'. Did you mean 'check'?"),
    ("check", 2, "sparkstream check: APP.siddhi is missing. Write sparkstream check APP.siddhi"),
    ("check none.siddhi", 1, "file not found: none.siddhi"),
    ("check wron.siddhi", 1, "file not found: wron.siddhi. Did you mean 'wrong.siddhi'?"),
    ("check a_folder", 1, "a_folder is a folder: name a file in it"),
    ("check latin.siddhi", 1, "latin.siddhi is not UTF-8 text (line 1): save it as UTF-8"),
    ("check comments.siddhi", 1, "expected a definition or a query"),
    ("check wrong.siddhi", 1, "Did you mean 'a'?"),
    ("check syntax.siddhi", 1, "syntax.siddhi:3:"),
    ("run param.siddhi", 1, "Give it as --param LEAST=VALUE"),
    ("check app.siddhi --parm LEAST=3", 2, "sparkstream check: unknown option --parm. Did you mean '--param'?"),
    ("trace app.siddhi", 2, "sparkstream trace: name the events to trace the app with: --feed STREAM=FILE"),
    ("trace app.siddhi --feed S=s.csv", 2, "the app has no window, pattern or sequence: there is nothing to trace"),
    ("trace window.siddhi plain --feed S=s.csv", 2, "the query 'plain' has no window, pattern or sequence"),
    ("trace window.siddhi windw --feed S=s.csv", 2, "no query or named window 'windw'. Did you mean 'window'?"),
    ("trace window.siddhi window --feed S=none.csv", 1, "file not found: none.csv"),
    ("trace window.siddhi window --feed S=short.csv", 1, "short.csv has no column 'b' for stream S"),
    ("trace window.siddhi window --feed S=empty.csv", 1, "empty.csv"),
    ("trace window.siddhi window --feed S=words.csv", 2, "S: 1 of 1 rows do not fit: b: 'x' is not"),
    ("trace window.siddhi window --feed S=s.csv --svg a_folder", 2, "a_folder cannot be written"),
    ("trace wrong.siddhi --feed S=s.csv", 1, "Did you mean 'a'?"),
    ("fmt", 2, "sparkstream fmt: FILE is missing. Write sparkstream fmt FILE"),
    ("fmt none.siddhi", 1, "file not found: none.siddhi"),
    ("fmt syntax.siddhi", 1, "syntax.siddhi:3:"),
    ("explain more", 1, "file not found: more"),
    ("explain wrong.siddhi", 1, "Did you mean 'a'?"),
    ("query app.siddhi", 2, "sparkstream query: QUERY is missing. Write sparkstream query APP.siddhi QUERY"),
    ("query app.siddhi x --by-shards", 2, "unknown option --by-shards. Did you mean '--by-shard'?"),
    ("query app.siddhi selec", 1, "line 1, column 1"),
    ("run", 2, "APP.siddhi is missing"),
    ("run none.siddhi", 1, "file not found"),
    ("run wrong.siddhi", 1, "Did you mean 'a'?"),
    ("run gap.siddhi", 1, "this build cannot run a source of type 'jms' yet"),
    ("run script.siddhi", 1, "--allow-scripts"),
    (f"{RUN} --limits chars=3", 2, "limits: 'chars=3' is not one of characters=..., nesting=..., firings=..."),
    (f"{RUN} --limits nesting=0", 2, "limits: nesting is a whole number from 1 to 200, not 0"),
    (f"{RUN} --limits firings=few", 2, "limits: firings cannot be 'few'. Write a whole number"),
    (f"{RUN} --noodes 3", 2, "sparkstream run: unknown option --noodes. Did you mean '--nodes'?"),
    (f"{RUN} --feed S=s.csv --sep ;", 2, "unknown option --sep. The separator of a CSV file is found out"),
    (f"{RUN} --delimiter=;", 2, "unknown option --delimiter. The separator of a CSV file is found out"),
    (f"{RUN} --header 1", 2, "unknown option --header. The first line of a CSV file names its columns"),
    (f"{RUN} --na-values n/a", 2, "unknown option --na-values. Did you mean '--missing'?"),
    (f"{RUN} --decimal comma", 2, "--decimal: 'comma' is neither a comma nor a point"),
    (f"{RUN} --nodes", 2, "--nodes needs a value: --nodes N"),
    ("audit a.siddhi --json d.json", 2, "--json has no value: leave 'd.json' out. To write a file: --json > d.json"),
    ("audit a.siddhi --json b.siddhi", 2, "unexpected argument 'b.siddhi'. Write sparkstream audit APP.siddhi"),
    (f"{RUN} --offline=yes", 2, "--offline has no value: leave 'yes' out"),
    (f"{RUN} --nodes 0", 2, "--nodes: '0' is not a whole number above 0"),
    (f"{RUN} --nodes three", 2, "--nodes: 'three' is not a whole number above 0"),
    (f"{RUN} --mode activ-active", 2, "--mode cannot be 'activ-active'. Did you mean 'active-active'?"),
    (f"{RUN} --mode single --nodes 2", 2, "mode single has one node, not 2"),
    (f"{RUN} --routing random", 2, "'random' is not a valid route. Write round_robin"),
    (f"{RUN} --routing hash:c", 2, "no input stream has an attribute 'c'"),
    (f"{RUN} --routing node:2", 2, "there is no node 2: the deployment has only node 1"),
    (f"{RUN} --nodes 2 --shard-ids a,b,c", 2, "there are 2 nodes, and 3 shard ids were given: a, b, c"),
    (f"{RUN} --master sparc://host:7077", 2, "'sparc://host:7077' is not the address of a Spark"),
    (f"{RUN} --shared s4://bucket/folder", 2, "'s4://bucket/folder' is no address where Spark's machines and this one"),
    (f"{RUN} --shared s3://me:secret@bucket/folder", 2, "has credentials in it"),
    (f"{RUN} --store a_folder", 1, "a_folder is a folder: name a file"),
    (f"{RUN} --store s.csv", 1, "s.csv is not a DuckDB file"),
    (f"{RUN} --start noon", 2, "'noon' is neither ms since 1970 nor a time"),
    (f"{RUN} --timezone Berlin", 2, "'Berlin' is not a time zone"),
    (f"{RUN} --param LEAST", 2, "--param: 'LEAST' is not NAME=VALUE"),
    (f"{RUN} --last some", 2, "--last: 'some' is not a whole number above 0"),
    (f"{RUN} --feed s.csv", 2, "--feed: 's.csv' is not STREAM=FILE"),
    (f"{RUN} --feed SS=s.csv", 2, "the app has no stream 'SS'. Did you mean 'S'?"),
    (f"{RUN} --feed S=none.csv", 1, "file not found: none.csv"),
    (f"{RUN} --feed S=ss.csv", 1, "file not found: ss.csv. Did you mean 's.csv'?"),
    (f"{RUN} --feed S=a_folder", 1, "a_folder cannot be fed: give a .csv or a .parquet file"),
    (f"{RUN} --feed S=text.txt", 1, "text.txt cannot be fed: give a .csv or a .parquet file. A table as text, with"),
    (f"{RUN} --feed S=s.csv.gz", 1, "s.csv.gz cannot be fed: give a .csv or a .parquet file. It is compressed: gunzip"),
    (f"{RUN} --feed S=empty.csv", 1, "empty.csv is empty: its first line must name the columns"),
    (f"{RUN} --feed S=broken.parquet", 1, "broken.parquet is not a parquet file"),
    (f"{RUN} --feed S=short.csv", 1, "short.csv has no column 'b' for stream S. Its columns: a, at."),
    (f"{RUN} --feed S=s.csv --time att", 1, "s.csv has no column 'att' of event times. Did you mean 'at'?"),
    (f"{RUN} --feed S=other.csv", 1, "Did you mean 'a tx'? Its columns: a tx, a, b. Write --map at=\"a tx\"; --map"),
    (f"{RUN} --feed S=other.csv --map at=a t", 2, "'t'. A value with spaces is in quotes, such as --map at=\"a t\""),
    ("check s.csv", 1, "s.csv is a CSV file, and no app's text: feed a stream with it, sparkstream run APP.siddhi"),
    ("apps --remove T", 2, "sparkstream apps: --remove is no option: write sparkstream apps remove ..."),
    (f"{RUN} --feed S=s.csv --feed S=short.csv", 1, "short.csv has no column 'b'"),
    (f"{RUN} --query selec", 1, "line 1, column 1"),
    (f"{RUN} --query from_T", 1, "line 1, column 1"),
    ("manager", 2, "sparkstream manager: --conf is missing"),
    ("manager --conf none.yaml", 2, "there is no deployment file none.yaml"),
    ("manager --conf a_folder", 2, "there is no .yaml file in a_folder"),
    ("manager --conf text.txt", 2, "text.txt is not a deployment file"),
    ("manager --conf none.yaml --port 70000", 2, "--port: '70000' is not a port: a number from 0 to 65535"),
    ("manager --conf none.yaml --wach .", 2, "sparkstream manager: unknown option --wach. Did you mean '--watch'?"),
    ("split", 2, "APP.siddhi is missing"),
    ("split app.siddhi", 2, "split: --kafka or --nats is missing. Write sparkstream split "),
    ("split app.siddhi --kafka h:1 --nats h:1", 2, "--nats: not allowed with argument --kafka"),
    ("split app.siddhi --kafka here", 2, "kafka: 'here' is not HOST:PORT"),
    ("split app.siddhi --kafka h:1 --into s.csv", 2, "s.csv cannot be written"),
    ("split app.siddhi --kafka h:1 --make-topics", 2, "h:1, which is not allowed. Add --allow kafka=h:1"),
    ("replay cases.jsonl", 2, "the command 'replay' was removed. Write the events and the expected outputs into"),
    ("bench workloads.json s.csv", 2, "the command 'bench' was removed. To time an app on your own events:"),
]


@pytest.mark.parametrize(("words", "code", "message"), MISTAKES)
def test_a_mistake_is_one_message(
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    words: str,
    code: int,
    message: str,
) -> None:
    def started(master: str | None) -> None:
        raise AssertionError("Spark was started")

    monkeypatch.setattr(sys.modules["sparkstream_nb.app.deploying"], "_session", started)
    assert cli.main(words.split()) == code
    shown = capsys.readouterr()
    assert shown.out == ""
    assert message in shown.err
    assert shown.err.startswith("sparkstream") or PLACE.match(shown.err)
    assert len(shown.err) < LONGEST


@pytest.mark.parametrize(
    ("words", "code"),
    [(f"{RUN} --feed S=s.csv --time att", 1), (f"{RUN} --noodes 3", 2), ("check wrong.siddhi", 1)],
)
def test_a_mistake_ends_the_process_with_its_code(folder: Path, words: str, code: int) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "sparkstream_nb", *words.split()], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (code, "")
    assert done.stderr.startswith("sparkstream") or PLACE.match(done.stderr)
    assert "Traceback" not in done.stderr
    assert len(done.stderr) < LONGEST


def test_every_help_fits_and_is_whole(capsys: pytest.CaptureFixture[str]) -> None:
    for words in ([], ["check"], ["explain"], ["fmt"], ["run"], ["split"]):
        assert cli.main([*words, "--help"]) == 0
        shown = capsys.readouterr().out
        assert shown.startswith(f"usage: {' '.join(['sparkstream', *words])}")
        assert max(map(len, shown.splitlines())) <= 88
