"""Words that a stranger would have to translate: in docstrings, in documents, in names of functions and variables.

    python -m tests.plain_words            fails where a folder has more of them than conf/plain-words.toml allows
    python -m tests.plain_words --list F   those of a folder or page, with their places
    python -m tests.plain_words --lower    lowers the budgets to what there is; they never rise

`make check` runs it. The first line of a docstring says what the thing is or does: it does not begin with a question
word. Idioms are listed in `IDIOMS` and `PHRASES`. A function's name is a verb phrase (`pack_error`), a property's a
noun, and not a participle alone (`packed`). A variable, a parameter or an attribute is named after what it holds
(`rows`, `matches`, `restored_state`): `RIDDLES` say nothing, and a participle alone (`shown`, `written`) says what was
done, and not what it is. "Naming Things" of TigerBeetle's style guide has the reasons.
"""

from __future__ import annotations

import argparse
import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "sparkstream_nb"
BUDGETS = ROOT / "conf" / "plain-words.toml"
FIRST = frozenset(["What", "Whether", "Where", "That", "Those", "As", "Of", "So", "How", "Which"])
"""Words that no docstring begins with."""
IDIOMS = re.compile(
    r"\b(so many|so much|anew|of then|of now|whoever|nobody|anybody|comes to pass|is made of|of those that|that of the|"
    r"is that of|had better|till then|what (?:becomes|came|comes|there is)|where that (?:is|are)|"
    r"as (?:it|they) (?:is|are|was|were) then)\b",
    re.IGNORECASE,
)
PHRASES = re.compile(
    r"\b(those of|those beside|begins? again|(?:go|goes|going|went) on|(?:stand|stands|stood) for|"
    r"(?:come|comes|came) to|of its own accord|what goes with what|as (?:it is|they are) now|"
    r"know(?:s|n)? nothing of|nothing of (?:it|this))\b",
    re.IGNORECASE,
)
"""Idioms with a plainer word: `continues` for `goes on`, `restarts` for `begins again`, the noun for `those`."""

NOT_PARTICIPLES = frozenset(["feed", "recording", "routing"])
"""A verb and nouns that end as participles do."""

_RIDDLES = """
found said told given held kept taken known own life former anew brought care kin meld aside reach whole put calm ahead
away behind
"""
RIDDLES = frozenset(_RIDDLES.split())
"""Names of variables that only their author can read."""

PARTICIPLE = re.compile(r"\w+(ed|en|wn|own|ld|ept|(?<!m)ent|ound|aid|ade)|made|done|gone|lost|begun|built")
_NOUNS = """
absent agent argument background bed between bound build child children client component content current different
document element embed environment event experiment exponent extent feed field fold garden ground hold hundred increment
indent instrument moment need often parent patient payment percent present quotient recent replacement round seed seen
segment seven shade shared shield silent sound speed statement talent tangent then threshold token trade unknown when
world
"""
NOUNS = frozenset(_NOUNS.split())
"""Words that end as participles do, and are none."""

TABLES = {
    "budgets": "words that a stranger would have to translate",
    "participles": "functions named by a participle alone",
    "phrases": "phrases for which there is a plainer word",
    "riddles": "bindings of variables that only their author can read",
    "variables": "bindings of variables named by a participle alone",
}
"""Tables of the budgets, with what they count."""


@dataclass(frozen=True)
class Word:
    """A word at a place."""

    where: str
    place: str
    text: str
    table: str = "budgets"


def docstrings(file: Path) -> Iterator[tuple[int, str]]:
    """The docstrings of a module, its classes, functions, constants and fields, with their lines."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        for child in getattr(node, "body", ()) if isinstance(getattr(node, "body", ()), list) else ():
            if (
                isinstance(child, ast.Expr)
                and isinstance(child.value, ast.Constant)
                and isinstance(child.value.value, str)
            ):
                yield child.lineno, child.value.value.strip()


def bare_participles(file: Path) -> Iterator[tuple[int, str]]:
    """The functions and methods whose names are one word that ends as a participle does, with their lines."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and not node.name.startswith("__"):
            word = node.name.strip("_")
            if "_" not in word and word.endswith(("ed", "ing")) and word not in NOT_PARTICIPLES:
                yield node.lineno, node.name


def bindings(file: Path) -> Iterator[tuple[int, str]]:
    """The names that are bound to values in a module: variables, parameters and attributes, with their lines."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.lineno, node.id
        elif isinstance(node, ast.arg):
            yield node.lineno, node.arg
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.lineno, node.attr


def table_of(name: str) -> str | None:
    """The table in which the name of a variable counts; None for a plain one."""
    word = name.strip("_")
    if word != word.lower():  # a type, or a constant
        return None
    if word in RIDDLES:
        return "riddles"
    return "variables" if "_" not in word and word not in NOUNS and PARTICIPLE.fullmatch(word) else None


def find_words() -> list[Word]:
    """All of them: of the package by top folder, and of the documents as `docs`."""
    out = []
    for file in sorted(PACKAGE.rglob("*.py")):
        inside = file.relative_to(PACKAGE)
        where = inside.parts[0] if len(inside.parts) > 1 else "top"
        for line, text in docstrings(file):
            place = f"{file.relative_to(ROOT)}:{line}"
            if text.partition(" ")[0] in FIRST:
                out.append(Word(where, place, text.partition("\n")[0]))
            out += _idioms(where, place, text)
        for line, name in bare_participles(file):
            out.append(Word(where, f"{file.relative_to(ROOT)}:{line}", f"def {name}", "participles"))
        for line, name in bindings(file):
            table = table_of(name)
            if table is not None:
                out.append(Word(where, f"{file.relative_to(ROOT)}:{line}", name, table))
    for page in sorted([ROOT / "README.md", ROOT / "ARCHITECTURE.md", *(ROOT / "docs").rglob("*.md")]):
        text = re.sub(r"```.*?```", _lines_alone, page.read_text(encoding="utf-8"), flags=re.DOTALL)
        for number, line in enumerate(text.splitlines(), 1):
            line = re.sub(r"`[^`]*`", "", line)
            out += _idioms("docs", f"{page.relative_to(ROOT)}:{number}", line)
    return out


def _idioms(where: str, place: str, text: str) -> list[Word]:
    idioms = [Word(where, place, m[0]) for m in IDIOMS.finditer(text)]
    return idioms + [Word(where, place, m[0], "phrases") for m in PHRASES.finditer(text)]


def _lines_alone(block: re.Match[str]) -> str:
    return "\n" * block[0].count("\n")


def main() -> int:
    """The command; 1 where a budget is exceeded."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--list", metavar="FOLDER", help="the words of a folder, or of a file")
    parser.add_argument("--lower", action="store_true", help="lower the budgets to what there is")
    options = parser.parse_args()
    words = find_words()
    if options.list:
        for f in words:
            if f.where == options.list or f.place.startswith(options.list):
                print(f"{f.place}: {f.text}")
        return 0
    budgets: dict[str, dict[str, int]] = tomllib.loads(BUDGETS.read_text(encoding="utf-8"))
    count: dict[str, dict[str, int]] = {table: {} for table in TABLES}
    for f in words:
        count[f.table][f.where] = count[f.table].get(f.where, 0) + 1
    if options.lower:
        BUDGETS.write_text("\n".join(_lowered(t, budgets.get(t, {}), count[t]) for t in TABLES), encoding="utf-8")
        return 0
    over = [(t, w, n) for t in TABLES for w, n in count[t].items() if n > budgets.get(t, {}).get(w, 0)]
    for table, where, n in over:
        print(f"{where}: {n} {TABLES[table]}, {budgets.get(table, {}).get(where, 0)} are allowed: "
              f"python -m tests.plain_words --list {where}", file=sys.stderr)  # fmt: skip
    return int(bool(over))


def _lowered(table: str, budget: dict[str, int], count: dict[str, int]) -> str:
    """A table of the file of budgets, with no number above what there is."""
    lowered = {w: min(n, budget.get(w, n)) for w, n in sorted({**dict.fromkeys(budget, 0), **count}.items())}
    head = f"# {TABLES[table].capitalize()} (tests/plain_words.py) that each folder may have. They only fall.\n"
    return f"{head}[{table}]\n" + "".join(f"{w} = {n}\n" for w, n in lowered.items())


if __name__ == "__main__":
    raise SystemExit(main())
