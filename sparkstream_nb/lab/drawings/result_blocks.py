"""Results as blocks, one below the other: a heading, notes and tables, as plain text and as HTML."""

from __future__ import annotations

import html
from collections.abc import Iterable

from .text_tables import MUTED, Grid, paragraph


class Heading(str):
    """The first line of a result."""

    __slots__ = ()


Block = str | Grid
"""A table, a heading, or the plain text of a note."""


def blocks_text(blocks: Iterable[Block]) -> str:
    """Blocks as plain text, with an empty line between them."""
    return "\n\n".join(block if isinstance(block, str) else block.text() for block in blocks)


def blocks_html(blocks: Iterable[Block]) -> str:
    """Blocks as HTML; every text is escaped."""
    return "".join(map(_block_html, blocks))


def _block_html(block: Block) -> str:
    if isinstance(block, Grid):
        return block.html()
    escaped_text = html.escape(block)
    return paragraph(f"<b>{escaped_text}</b>" if isinstance(block, Heading) else escaped_text)


def subject_html(subject: str, words: str) -> str:
    """The subject of a result in bold, and muted words about it."""
    return paragraph(f'<b>{html.escape(subject)}</b> <span style="{MUTED}">{html.escape(words)}</span>')


def muted_html(words: str) -> str:
    """A muted line below a result; "" for no words."""
    return paragraph(f'<span style="{MUTED}">{html.escape(words)}</span>') if words else ""


def folded_html(summary: str, body: str) -> str:
    """HTML that is folded under a summary."""
    return f"<details><summary>{html.escape(summary)}</summary>{body}</details>"
