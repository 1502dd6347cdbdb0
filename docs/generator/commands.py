"""Reference pages of the magics and of the command line, from their parsers of arguments."""

from __future__ import annotations

import argparse
from collections.abc import Iterable

from sparkstream_nb.cli import parser
from sparkstream_nb.lab.arguments import deploy_options, line_options
from sparkstream_nb.options import Options

from .markdown import code, fence, table


def magics() -> str:
    """The page of `%%siddhi` and `%siddhi`."""
    lines = line_options()
    rows = [(f"[{code(f'%siddhi {name}')}](#siddhi-{name})", p.description or "") for name, p in lines.items()]
    out = [
        "# Magics",
        "",
        "`%load_ext sparkstream_nb` loads them. `%siddhi` lists the commands, `%siddhi COMMAND --help` describes one, "
        "and `%config SiddhiMagic` lists settings that hold for all cells. Text in brackets is one word, and a word "
        "may be in either kind of quotes.",
        "",
        table(["magic", "what it does"], [("[`%%siddhi`](#siddhi-app)", deploy_options().description or ""), *rows]),
        "## %%siddhi { #siddhi-app }",
        "",
        *_entry(deploy_options()),
    ]
    for name, p in lines.items():
        out += [f"## %siddhi {name} {{ #siddhi-{name} }}", "", *_entry(p)]
    return "\n".join(out)


def command_line() -> str:
    """The page of `sparkstream`."""
    commands = _commands(parser())
    rows = [(f"[{code(p.prog)}](#{name})", p.description or "") for name, p in commands]
    out = [
        "# Command line",
        "",
        "`sparkstream COMMAND`, or `python -m sparkstream_nb COMMAND`. Exit codes: 0 where all is well, 1 where an app "
        "or its data are wrong, 2 where the command is called wrongly.",
        "",
        table(["command", "what it does"], rows),
    ]
    for name, p in commands:
        out += [f"## sparkstream {name} {{ #{name} }}", "", *_entry(p)]
    return "\n".join(out)


def _commands(p: argparse.ArgumentParser) -> list[tuple[str, Options]]:
    sub = next(a for a in p._actions if isinstance(a, argparse._SubParsersAction))
    return list(sub.choices.items())


def _entry(p: Options) -> Iterable[str]:
    """The description of a command, its arguments and options, and its example."""
    arguments = [a for a in p._actions if not a.option_strings]
    options = [a for a in p._actions if a.option_strings and not isinstance(a, argparse._HelpAction)]
    yield from ((p.description or "").replace("%%", "%"), "")
    if p.example:
        yield fence(p.example, "siddhi" if p.prog.startswith("%") else "console")
    for title, actions in (("argument", arguments), ("option", options)):
        if actions:
            yield table([title, "meaning"], [(code(_call(a)), _help(a)) for a in actions])


def _call(a: argparse.Action) -> str:
    metavar = a.metavar or (None if a.nargs == 0 else "|".join(map(str, a.choices)) if a.choices else a.dest.upper())
    value = metavar if isinstance(metavar, str) else " ".join(metavar or ())
    if not a.option_strings:
        return f"[{value}]" if a.nargs in ("?", "*") else f"{value} ..." if a.nargs == "+" else value
    takes = "" if a.nargs == 0 else f" {value}" + (" ..." if a.nargs == "+" else "")
    return ", ".join(a.option_strings) + takes


def _help(a: argparse.Action) -> str:
    text = (a.help or "").replace("%%", "%")
    text = text[:1].upper() + text[1:]
    return text + ("." if text and not text.endswith(".") else "")
