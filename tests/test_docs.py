"""The documents: their links lead somewhere, and the README stays short."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "tests").rglob("*.md")])
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


def test_the_readme_is_short() -> None:
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= 150


def test_the_messages_of_the_guide_are_those_of_the_package() -> None:
    """Each heading, apart from what `...` stands for, is in the code."""
    page = (ROOT / "docs" / "guides" / "messages.md").read_text(encoding="utf-8")
    code = "".join(p.read_text(encoding="utf-8") for p in sorted((ROOT / "sparkstream_nb").rglob("*.py")))
    code = re.sub(r"\"\s*\n\s*f?\"", "", code) + ", which is not allowed. is in use by process"  # put together
    texts = re.findall(r"`([^`]+)`", "\n".join(line for line in page.splitlines() if line.startswith("### ")))
    for of_others in ("The sparkstream_nb extension is already loaded", "[DUPLICATED_METRICS_NAME]"):
        texts.remove(of_others)
    assert len(texts) > 15
    for text in texts:
        for part in re.split(r"\.\.\.|'x'|'ha'|\bts\b", text):
            assert part.strip(" '()") in code, text
