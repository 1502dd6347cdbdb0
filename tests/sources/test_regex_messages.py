"""Files in mode regex, files that are one message, and the transport properties of messages of files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from sparkstream_nb.app import App
from sparkstream_nb.engine.expressions.javaregex import compile_java
from sparkstream_nb.errors import SparkStreamError
from sparkstream_nb.sources.regex_messages import MessageCutter
from tests.apps.waiting import rows, until


def cutter_of(begin: str, end: str) -> MessageCutter:
    return MessageCutter(compile_java(begin) if begin else None, compile_java(end) if end else None)


@pytest.mark.parametrize(
    ("begin", "end", "text", "messages", "complete_messages"),
    [
        (r"\<", r"\>", "noise <a>\n<b\nc> more <d", ["<a>", "<b\nc>"], ["<a>", "<b\nc>"]),
        ("to", "end", "to 1end to to2end", ["to 1end", "to to2end"], ["to 1end", "to to2end"]),
        ("#", "", "x#1\n#2#3", ["#1\n", "#2"], ["#1\n", "#2", "#3"]),
        ("", ";+", "a;b;;c", ["a;", "b;;"], ["a;", "b;;"]),
        ("", "x*", "ab", ["a", "b"], ["a", "b"]),
        ('"', '"', 'a"b"c"d"', ['"b"', '"d"'], ['"b"', '"d"']),
        ("<", ">", "", [], []),
    ],
)
def test_messages_between_patterns(
    begin: str, end: str, text: str, messages: list[str], complete_messages: list[str]
) -> None:
    cutter = cutter_of(begin, end)
    assert [m.decode() for m in cutter.cut(text.encode(), is_complete=False).messages] == messages
    assert [m.decode() for m in cutter.cut(text.encode(), is_complete=True).messages] == complete_messages
    for cut in range(len(text)):  # wherever the first part of a file that grows ends
        first = cutter.cut(text[:cut].encode(), is_complete=False)
        second = cutter.cut(text.encode()[first.end :], is_complete=True)
        if end != ";+":  # a match of this one may grow
            assert [m.decode() for m in (*first.messages, *second.messages)] == complete_messages


def test_bytes_that_are_no_text() -> None:
    data = b"\xff<\xc3\xa4\xfe><\xc3"
    cut = cutter_of("<", ">").cut(data, is_complete=False)
    assert (cut.messages, data[cut.end :], cut.pending_bytes) == ([b"<\xc3\xa4\xfe>"], b"<\xc3", 2)
    assert cutter_of("<", ">").cut(b"ab", is_complete=False).pending_bytes == 0


def regex_app(file: Path, options: str, mapping: str = "") -> str:
    return rf"""
    @source(type='file', mode='REGEX', file.uri='file:{file}', file.polling.interval='20', {options}
       @map(type='text', fail.on.missing.attribute='false', regex.A='(\w+)\s([-0-9]+)', regex.B='volume\s([-0-9]+)',
            @attributes(symbol='A[1]', price='A[2]', volume='B'{mapping})))
    define stream S (symbol string, price float, volume long{", path string, eof bool" if mapping else ""});
    from S[not(symbol is null)] select * insert into O;
    """


BOTH = r"begin.regex='\<', end.regex='\>',"


@pytest.mark.contract
def test_a_noisy_file_that_grows(run: Callable[..., App], tmp_path: Path) -> None:
    file = tmp_path / "in" / "noisy.txt"
    file.parent.mkdir()
    file.write_text("IBM, <WSO2 100 volume 5> noise\n <IBM 60 vol")
    app = run(regex_app(file, f"{BOTH} tailing='true',"), allow=[f"file={file.parent}"])
    until(app, lambda: rows(app, "O") == 1)
    app.stop()
    with file.open("a") as f:
        f.write("ume 7> and <GOOG 50 volume 9> noise")
    again = run(regex_app(file, f"{BOTH} tailing='true',"), allow=[f"file={file.parent}"])
    assert again.catch_up(60)
    expected = [["WSO2", 100.0, 5], ["IBM", 60.0, 7], ["GOOG", 50.0, 9]]
    assert again.output("O").frame[["symbol", "price", "volume"]].to_numpy().tolist() == expected
    assert again.errors.frame.empty


def test_a_file_with_an_end(run: Callable[..., App], tmp_path: Path) -> None:
    file = tmp_path / "in" / "noisy.txt"
    file.parent.mkdir()
    file.write_text("<WSO2 100 volume 5>\n<IBM 60 volume 7>\n")
    properties = ", path='trp:file.path', eof='trp:eof'"
    options = f"{BOTH} tailing='false', action.after.process='DELETE',"
    app = run(regex_app(file, options, properties), allow=[f"file={file.parent}"])
    until(app, lambda: rows(app, "O") == 2)
    assert app.output("O").frame["eof"].tolist() == [False, True]
    assert app.output("O").frame["path"].tolist() == [str(file)] * 2
    until(app, lambda: not file.exists())


def test_lines_know_their_file_and_the_last_one(run: Callable[..., App], tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "a.csv").write_text("code|n\nx|1\ny|2\n")
    app = run(
        f"""
        @source(type='file', mode='LINE', dir.uri='{folder}', tailing='false', header.present='true',
                dir.polling.interval='20',
                @map(type='csv', delimiter='|', @attributes(code='0', n='1', path='trp:file.path', name='trp:file.name',
                     eof='trp:eof')))
        define stream S (code string, n int, path string, name string, eof string);
        from S select * insert into O;
        """,
        allow=[f"file={folder}"],
    )
    until(app, lambda: rows(app, "O") == 2)
    path = str(folder / "a.csv")
    expected = [["x", 1, path, "a.csv", "false"], ["y", 2, path, "a.csv", "true"]]
    assert app.output("O").frame[["code", "n", "path", "name", "eof"]].to_numpy().tolist() == expected


def test_a_binary_file_is_one_message(run: Callable[..., App], tmp_path: Path) -> None:
    file = tmp_path / "in" / "x.bin"
    file.parent.mkdir()
    file.write_text('{"k": "a"}')
    app = run(
        f"""
        @source(type='file', mode='BINARY.FULL', file.uri='file:{file}', action.after.process='MOVE',
                move.after.process='file:{tmp_path}/moved', file.polling.interval='20',
                @map(type='json', @attributes(k='k', eof='trp:eof')))
        define stream S (k string, eof bool);
        from S select * insert into O;
        """,
        allow=[f"file={tmp_path}"],
    )
    until(app, lambda: rows(app, "O") == 1)
    assert app.output("O").frame[["k", "eof"]].to_numpy().tolist() == [["a", True]]
    until(app, (tmp_path / "moved" / "x.bin").exists)


def xml_app(file: Path, tailing: str) -> str:
    return f"""
    @source(type='file', file.uri='file:{file}', mode='line', tailing='{tailing}', file.polling.interval='20',
            @map(type='xml', enclosing.element='/osm/node', enable.streaming.xml.content='true',
                 @attributes(id='/node/@id')))
    define stream S (id string);
    from S select * insert into O;
    """


def test_a_document_that_is_read_line_by_line_elsewhere(run: Callable[..., App], tmp_path: Path) -> None:
    file = tmp_path / "in" / "x.xml"
    file.parent.mkdir()
    file.write_text("<osm>\n<node\nid='1'/>\n<node id='2'/>\n</osm>\n")
    app = run(xml_app(file, "false"), allow=[f"file={file.parent}"])
    until(app, lambda: rows(app, "O") == 2)
    assert app.output("O").frame["id"].tolist() == ["1", "2"]
    assert app.errors.frame.empty
    with pytest.raises(SparkStreamError, match="needs tailing='false': a document has an end"):
        run(xml_app(file, "true"), name="other", home=tmp_path / "other", allow=[f"file={file.parent}"])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("", "mode='regex' needs begin.regex or end.regex"),
        ("begin.regex='(a',", "begin.regex and end.regex are regular expressions of Java"),
        ("begin.regex='a', mode='line',", "begin.regex and end.regex go with mode='regex'"),
        ("end.regex='a', action.after.process='delete',", "needs tailing='false'"),
    ],
)
def test_what_is_refused(run: Callable[..., App], tmp_path: Path, options: str, message: str) -> None:
    text = regex_app(tmp_path / "x.txt", options)
    if "mode='line'" in options:
        text = text.replace("mode='REGEX', ", "")
    with pytest.raises(SparkStreamError) as raised:
        run(text, allow=[f"file={tmp_path}"])
    assert message in str(raised.value)


def test_a_pattern_that_takes_too_long(run: Callable[..., App], tmp_path: Path) -> None:
    (tmp_path / "x.txt").write_text("a" * 5_000 + "\n")
    options = "begin.regex='(a+)+[bc]', end.regex='c', tailing='false',"
    app = run(regex_app(tmp_path / "x.txt", options), allow=[f"file={tmp_path}"])
    until(app, lambda: len(app.errors.frame) == 1)
    assert "the pattern backtracks too much" in app.errors.frame["reason"].tolist()[0]
