"""`sparkstream mcp` and PyPI's client of MCP: each tool, what an agent may not do, and odd arguments."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import psutil
import pytest
from mcp import Client
from mcp.client.stdio import StdioServerParameters, stdio_client

from sparkstream_nb.cli.agents.agent_tools import TOOLS, AgentGrants, request_of, tool_of
from sparkstream_nb.cli.agents.documentation import pages, search_documentation, sections_of
from sparkstream_nb.cli.registry import COMMANDS
from sparkstream_nb.errors import Misuse
from tests.apps.receiver import receiver
from tests.event_loops import run_async
from tests.processes import free_port

ROOT = Path(__file__).parents[2]
APP = """define stream S (k string, v int);
@info(name = 'q') from S#window.length(2) select k, sum(v) as total group by k insert into O;
"""
FEED = {"S": "k,v\na,1\nb,2\na,3\na,4\n"}
TEST = "app: app.siddhi\n\nsend S\n  k | v\n  a | {v}\n\nexpect O\n  k | total\n  a | 1\n"
Call = tuple[str, dict[str, Any]]


def answers(calls: Sequence[Call], *options: str, env: Mapping[str, str] | None = None) -> list[tuple[bool, str]]:
    """Whether each answer is an error, and its text, of one server with these options of its command line."""

    async def call_all() -> list[tuple[bool, str]]:
        server = StdioServerParameters(
            command=sys.executable, args=["-m", "sparkstream_nb", "mcp", *options],
            env={"PYTHONPATH": str(ROOT), **(env or {})},
        )  # fmt: skip
        async with Client(stdio_client(server)) as client:
            listed = (await client.list_tools()).tools
            assert [t.name for t in listed] == [t.name for t in TOOLS]
            results = await asyncio.gather(*(client.call_tool(name, arguments) for name, arguments in calls))
            return [(r.is_error, r.content[0].text) for r in results]

    return run_async(call_all())


def check_answers(calls: Sequence[tuple[str, dict[str, Any], str]]) -> None:
    """Each answer has a part, and is no error."""
    for (name, arguments, part), (is_error, text) in zip(calls, answers([(n, a) for n, a, _ in calls]), strict=True):
        assert not is_error, (name, text)
        assert part in text, (name, arguments, text)
        assert "Ctrl-C" not in text


def test_an_app_is_written_checked_and_run() -> None:
    check_answers(
        [
            ("search_documentation", {"query": "sessions of a user"}, "docs/cookbook/sessions.md"),
            ("check", {"app": f"{APP} from X"}, "app.siddhi:3:8: found the end of the text"),
            ("run", {"app": APP, "feed": FEED, "nodes": 2, "routing": "hash:k"}, "4 events"),
        ]
    )


@pytest.mark.thorough
def test_each_tool_answers_as_its_command() -> None:
    feed = {"app": APP, "feed": FEED}
    calls: list[tuple[str, dict[str, Any], str]] = [
        ("check", {"app": APP}, "app.siddhi: no mistakes found (1 query, 0 aggregations)"),
        ("explain", {"app": APP}, "routing: node-dependent: window 'length'"),
        ("explain", {"app": APP, "repair": True}, "partition with (k of S)"),
        ("run", {**feed, "nodes": 2, "routing": "hash:k"}, "4 events"),
        ("run", {"app": f"define table T (k string); {APP} from S select k insert into T;", "feed": FEED,
                 "query": ["from T select count() as n"], "last": 1}, "node-1"),
        ("trace", {**feed, "query": "q"}, "q: length(2) over 4 events"),
        ("follow", {**feed, "event": 1}, "Event 1 of S (a, 1)"),
        ("test", {"app": APP, "test": TEST.format(v=1)}, "1 passed"),
        ("test", {"app": APP, "test": TEST.format(v=2)}, "1 failed"),
        ("compare", {**feed, "new": APP.replace("length(2)", "length(3)")}, "#window.length(2)"),
        ("divergence", {**feed, "nodes": 2}, "app on 2 nodes, under round_robin, against one node"),
        ("search_documentation", {"query": "sessions of a user"}, "docs/cookbook/sessions.md"),
    ]
    assert {name for name, _, _ in calls} == {t.name for t in TOOLS}
    check_answers(calls)


SINK = """@sink(type='file', file.uri='{folder}/out.csv', @map(type='csv'))
define stream O (k string, v int);
define stream S (k string, v int);
from S select k, v insert into O;
"""
POST = SINK.replace("type='file', file.uri='{folder}/out.csv'", "type='http', publisher.url='{url}'")


def test_what_was_not_granted_is_refused_in_a_sentence(tmp_path: Path) -> None:
    """No call writes, reads or sends anything outside."""
    granted, outside = tmp_path / "granted", tmp_path / "outside"
    granted.mkdir()
    outside.mkdir()
    (outside / "S.csv").write_text("k,v\na,1\n")
    (outside / "other.siddhi").write_text("define stream Elsewhere (k string);")
    (granted / "link.csv").symlink_to(outside / "S.csv")
    url = f"http://127.0.0.1:{free_port()}/in"
    feed = {"S": "k,v\na,1\n"}
    environment = "define stream S (k string, v int); from S[k == '${A_SECRET}'] select k insert into O;"
    header = POST.format(url=url).replace("@map", "headers=\"'X-Key:${env:A_SECRET}'\", @map")
    script = "define function f[javascript] return string {{ return 'x'; }}; define stream S (k string, v int);"
    script += " from S select f(k) as k insert into O;"
    calls: list[tuple[Call, str]] = [
        (("run", {"app": SINK.format(folder=outside), "feed": feed, "connected": True}), "which is not allowed"),
        (("run", {"app": POST.format(url=f"{url}2"), "feed": feed, "connected": True}), "which is not allowed"),
        (("run", {"app": APP, "feed_files": {"S": str(outside / "S.csv")}}), "which is not allowed"),
        (("run", {"app": APP, "feed_files": {"S": str(granted / "link.csv")}}), "which is not allowed"),
        (("trace", {"app": APP, "feed_files": {"S": f"{granted}/../outside/S.csv"}}), "which is not allowed"),
        (("run", {"app": APP, "feed": {f"S={outside}/S.csv,T": "k,v\n"}}), "is not the name of a stream"),
        (("run", {"app": APP, "feed": feed, "variables": {"A=1 --allow": "x"}}), "is not the name of a variable"),
        (("run", {"app": APP, "feed": feed, "allow": ["file=/"]}), "run has no argument 'allow'"),
        (("run", {"app": APP, "feed": feed, "routing": "x --allow=file=/"}), "is not a valid route"),
        (("trace", {"app": APP, "feed": feed, "query": "--svg=/tmp/x"}), "begins with '-'"),
        (("run", {"app": environment, "feed": feed}), "${A_SECRET} has no value"),
        (("run", {"app": header, "feed": feed, "connected": True}), "${env:A_SECRET} has no value"),
        (("run", {"app": header.replace("env:", "sec:"), "feed": feed, "connected": True}), "has no value"),
        (("run", {"app": script.format(), "feed": feed}), "allow-scripts"),
        (("test", {"test": TEST.replace("app.siddhi", str(outside / "other.siddhi"))}), "write app: app.siddhi"),
        (("test", {"test": TEST.replace("app.siddhi", "../../other.siddhi")}), "write app: app.siddhi"),
    ]
    grants = ("--allow", f"file={granted}", "--allow", f"http={url}")
    texts = answers([c for c, _ in calls], *grants, env={"A_SECRET": "s3cret"})
    for (call, part), (is_error, text) in zip(calls, texts, strict=True):
        assert is_error, call
        assert part in text, (call, text)
        assert "Traceback" not in text
        assert "s3cret" not in text
        assert "Elsewhere" not in text
    assert sorted(p.name for p in outside.iterdir()) == ["S.csv", "other.siddhi"]
    assert [p.name for p in granted.iterdir()] == ["link.csv"]


def test_what_was_granted_works(tmp_path: Path) -> None:
    (tmp_path / "S.csv").write_text("k,v\nred,1\nblue,2\n")
    with receiver() as server:
        header = "headers=\"'X-Key:${env:A_KEY}'\""
        post = f"@sink(type='http', publisher.url='{server.url}', {header}, @map(type='json'))"
        text = f"{post}\n{SINK.format(folder=tmp_path)}"
        arguments = {"app": text, "feed_files": {"S": str(tmp_path / "S.csv")}}
        offline, connected = answers(
            [("run", arguments), ("run", {**arguments, "connected": True, "seconds": 3})],
            "--allow", f"file={tmp_path}", "--allow", f"http={server.url}", "--allow-env", "A_KEY",
            env={"A_KEY": "a-key"},
        )  # fmt: skip
        assert not offline[0], offline[1]
        assert not connected[0], connected[1]
        assert "red" in offline[1]
        assert [r.headers["X-Key"] for r in server.requests] == ["a-key", "a-key"]
    assert (tmp_path / "out.csv").read_text() == "red,1\nblue,2\n"


def test_time_and_size_of_a_call() -> None:
    """A call that takes longer is ended, with its process."""
    rows = "".join(f"a,{i}\n" for i in range(1_001))
    slow, many, long, shown, late = answers(
        [
            ("run", {"app": APP, "feed": FEED, "connected": True, "seconds": 300}),
            ("run", {"app": APP, "feed": {"S": f"k,v\n{rows}"}}),
            ("check", {"app": f"-- {'x' * 1_000_000}"}),
            ("check", {"app": APP + "from S\x1b[2J\x00\u202e select k insert into O;"}),
            ("follow", {"app": APP, "feed": FEED, "output": "O=99"}),
        ],
        "--seconds", "20", "--rows", "1000",
    )  # fmt: skip
    assert slow == (True, "it took longer than 20 s: send fewer events, or a simpler app")
    assert many == (True, "the feed of a call has 1,000 rows at most, and this one about 1,002")
    assert long[0]
    assert "1,000,000 characters at most" in long[1]
    assert late == (True, "O has fewer than 99 outputs")
    assert not set(shown[1]) & {"\x1b", "\x00", "\u202e"}


@pytest.mark.parametrize("ending", ["input", "signal"])
def test_a_command_under_way_ends_with_the_server(ending: str) -> None:
    call = {"name": "run", "arguments": {"app": APP, "feed": FEED, "connected": True, "seconds": 100}}
    hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
    messages = [("initialize", hello, 1), ("notifications/initialized", {}, None), ("tools/call", call, 2)]
    server = subprocess.Popen(
        [sys.executable, "-m", "sparkstream_nb", "mcp"], env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert server.stdin is not None
    assert server.stdout is not None
    with server:
        for method, params, id in messages:
            message = {"jsonrpc": "2.0", "method": method, "params": params} | ({} if id is None else {"id": id})
            server.stdin.write(json.dumps(message) + "\n")
            server.stdin.flush()
            if id == 1:
                assert '"serverInfo"' in server.stdout.readline()
        process = psutil.Process(server.pid)
        end = time.monotonic() + 60
        while not (children := process.children(recursive=True)):
            assert time.monotonic() < end, "no command was begun"
        if ending == "signal":
            server.terminate()
        else:
            server.stdin.close()
        server.wait(30)
        assert not psutil.wait_procs(children, timeout=20)[1]


def test_wrong_arguments_are_named() -> None:
    for name, arguments, message in (
        ("runs", {}, "there is no tool 'runs'. Did you mean 'run'?"),
        ("run", {}, "run needs app: the app: SiddhiQL text"),
        ("run", {"app": 5}, "app of run is of type string, not 5"),
        ("run", {"app": APP, "nods": 2}, "run has no argument 'nods'. Did you mean 'nodes'?"),
        ("run", {"app": APP, "nodes": True}, "nodes of run is of type integer, not True"),
        ("run", {"app": APP, "feed": {"S": [1]}}, r"feed of run is of type object of texts, not {'S': \[1\]}"),
        ("run", {"app": APP, "query": "from T"}, "query of run is of type array of texts, not 'from T'"),
        ("run", {"app": APP, "seconds": 3}, "give connected as well"),
        ("run", {"app": APP, "time": "a\0b"}, r"a command cannot have a NUL .* in a word: '--time=a\\x00b'"),
        ("run", {"app": APP, "variables": {"A": "\ud800"}}, "half of a surrogate pair"),
        ("run", {"app": APP, "feed": {"S": "k\r" + "a\r" * 10_002}}, "10,000 rows at most"),
    ):
        with pytest.raises(Misuse, match=message):
            request_of(tool_of(name), arguments, AgentGrants())


def test_the_tools_are_commands_with_these_options() -> None:
    """The search alone is none."""
    assert {t.name for t in TOOLS} - {c.name for c in COMMANDS} == {"search_documentation"}
    everything = {"app": APP, "feed": {"S": "k\n"}, "variables": {"A": "-x"}, "time": "--allow", "nodes": 2}
    request = request_of(tool_of("run"), everything, AgentGrants(allow=("file=/",), allow_env=("B",)))
    assert request.words == [
        "run", "--feed=S=feed-0.csv", "--time=--allow", "--param=A=-x", "--nodes=2", "--home=home", "--master=inline",
        "--offline", "--allow-env=B", "app.siddhi",
    ]  # fmt: skip
    assert set(request.files) == {"app.siddhi", "feed-0.csv"}


def test_the_documentation_is_searched_by_words() -> None:
    assert "docs/guides/agents.md" in pages()
    assert not [p for p in pages() if p.startswith("docs/notes/")]
    for question, place in (
        ("late events", "docs/guides/late-events.md"),
        ("SHARD_ID of aggregations", "docs/wso2/shard-ids.md"),
        ("externalTimeBatch", "window externalTimeBatch (reference)"),
        ("how is a secret kept out of an app", "docs/guides/secrets.md"),
    ):
        assert place in search_documentation(question), question
    assert search_documentation("qwertzuiop") == "Nothing in the documentation has these words."
    with pytest.raises(Misuse, match="query needs a word"):
        search_documentation("?!")
    text = "# A\none\n## B { #b }\n```\n# no heading\n```\n## C\n### D\nfour\n"
    assert [(s.title, s.text) for s in sections_of("p", text)] == [
        ("A", "one"), ("A > B", "```\n# no heading\n```"), ("A > C > D", "four"),
    ]  # fmt: skip


def test_without_the_package_the_command_says_what_is_missing(tmp_path: Path) -> None:
    program = "import sys; sys.modules['mcp'] = None; from sparkstream_nb.cli import main; sys.exit(main(['mcp']))"
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "sparkstream mcp needs the package mcp: pip install 'sparkstream-nb[mcp]'\n"
