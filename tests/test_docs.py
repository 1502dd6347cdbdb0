"""The documents: their links lead somewhere, the names in them are in the code, and the README stays short."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "tests").rglob("*.md")])
WORD = re.compile(r"\w+")
ROOMS = "|".join(rf"{p.name}[./]" for p in (ROOT / "sparkstream_nb").iterdir() if p.is_dir() and p.name != "app")
OF_OTHERS = frozenset(
    ["FigureWidget", "before_COLUMN", "match_recognize", "update_display", "write_html", "TradeTotals_SECONDS",
     "TradeTotals_YEARS", "acme_siddhi.py", "test_acme_siddhi.py", "partition_batch"]
)  # fmt: skip
"""Names of Jupyter's, Spark's and others' code, and of what a page makes."""
LINK = re.compile(r"\[[^\]]*\]\(([^)#\s]*)(#[^)\s]*)?\)")


def anchors(page: Path) -> set[str]:
    """The anchors that GitHub gives the headings of a page."""
    found = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {"#" + re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in found}


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    text = re.sub(r"```.*?```|`[^`\n]*`", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    broken = []
    for place, anchor in LINK.findall(text):
        if "://" in place or place.startswith("mailto:"):
            continue
        target = page.parent / place if place else page
        if not target.exists() or (anchor and target.suffix == ".md" and anchor not in anchors(target)):
            broken.append(place + anchor)
    assert not broken


@dataclass
class PackageNames:
    """The files of the repository, the words of its code, and the words of each class and module of the package."""

    files: set[str] = field(default_factory=set)
    words: set[str] = field(default_factory=set)
    words_of: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))

    @staticmethod
    @cache
    def read() -> PackageNames:
        names = PackageNames()
        names.files = {f"/{path.name}" for path in ROOT.iterdir()}
        for folder in ("sparkstream_nb", "tests", "docs", "conf", "notebooks", ".ci"):
            for path in (ROOT / folder).rglob("*"):
                names.files.add("/" + path.relative_to(ROOT).as_posix())
                if path.suffix in (".py", ".js", ".toml", ".yml", ".java"):
                    names.words |= set(WORD.findall(path.read_text(encoding="utf-8")))
        for path in (ROOT / "sparkstream_nb").rglob("*.py"):
            text = path.read_text(encoding="utf-8")
            module = path.parent.name if path.stem == "__init__" else path.stem
            names.words_of[module] |= set(WORD.findall(text))
            names.words_of[path.parent.name].add(path.stem)
            for node in ast.walk(ast.parse(text)):
                if isinstance(node, ast.ClassDef):
                    bases = [base.id for base in node.bases if isinstance(base, ast.Name)]
                    names.words_of[node.name] |= set(WORD.findall(ast.unparse(node))).union(bases)
        return names

    def has(self, owner: str, member: str) -> bool:
        """True if the class or module has the name, or a base class of it has."""
        words = self.words_of[owner]
        bases = (w for w in words if w != owner and w[:1].isupper() and w in self.words_of)
        return member in words or any(member in self.words_of[base] for base in bases)


def stale_names(text: str) -> list[str]:
    """The names in backticks of files, members of classes and modules, and functions that are not there."""
    names, stale = PackageNames.read(), []
    for name in re.findall(r"`([^`\n]+)`", re.sub(r"```.*?```", "", text, flags=re.DOTALL)):
        member = re.fullmatch(r"[\w/.]*?(\w+)\.(\w+)(\(\))?", name)
        if re.fullmatch(r"[\w/.-]+\.(py|js|java|jsonl|md|sh|toml|yml)", name):
            wrong = not any(file.endswith("/" + name.removeprefix("../")) for file in names.files)
        elif re.fullmatch(r"[A-Z][a-z]+\.[a-z_]+", name) and member and member[1] not in names.words_of:
            wrong = True
        elif member is not None and (member[1][:1].isupper() or re.match(ROOMS, name)) and member[1] in names.words_of:
            wrong = not names.has(member[1], member[2])
        else:
            is_compound = re.fullmatch(r"[a-z]\w*_\w+(\(\))?|[A-Z]\w*[a-z][A-Z]\w*", name) is not None
            wrong = is_compound and not {name.strip("()"), name.removeprefix("sparkstream_")} & names.words
        if wrong:
            stale.append(name)
    return stale


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_names_of_code_exist(page: Path) -> None:
    if page.name in ("CHANGELOG.md", "performance-experiments.md"):  # what was there once
        return
    if page.name == "public-apps.md":  # paths and names of other repositories
        return
    stale = stale_names(page.read_text(encoding="utf-8"))
    assert sorted(set(stale) - OF_OTHERS) == []


def test_a_stale_name_is_noticed() -> None:
    stale = ["engine/selector.py", "App.feeed", "runners/choice.kind_on", "_".join(["make", "it", "so()"])]
    text = "".join(f"`{name}` " for name in [*stale, "App.feed", "choice.py", "kind_of", "sparkstream_state_rows"])
    assert stale_names(text) == stale


def test_the_readme_is_short() -> None:
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= 150


def test_the_messages_of_the_guide_are_those_of_the_package() -> None:
    """Each heading, apart from what `...` stands for, is in the code."""
    page = (ROOT / "docs" / "guides" / "messages.md").read_text(encoding="utf-8")
    code = "".join(p.read_text(encoding="utf-8") for p in sorted((ROOT / "sparkstream_nb").rglob("*.py")))
    code = re.sub(r"\"\s*\n\s*f?\"", "", code) + ", which is not allowed. is in use by process"  # put together
    texts = re.findall(r"`([^`]+)`", "\n".join(line for line in page.splitlines() if line.startswith("### ")))
    texts.remove("The sparkstream_nb extension is already loaded")  # of IPython's
    assert len(texts) > 15
    for text in texts:
        for part in re.split(r"\.\.\.|'x'|'ha'|\bts\b", text):
            assert part.strip(" '()") in code, text
