"""What the pictures have in common: each is one SVG element, drawn in Python."""

from __future__ import annotations

import base64
import html

WIDTH = 900
"""The width (px) of a picture that is saved."""
INK = "#6b7280"
"""Reads on light and on dark."""
_CHARACTER = 6.7  # the width of a character in px, about


def text_width(text: str) -> float:
    """The width of a line of text (px), about."""
    return _CHARACTER * len(text)


def embedded(picture: str, alt: str) -> str:
    """An SVG element as an HTML image, because untrusted notebooks are stripped of SVG elements."""
    data = base64.b64encode(picture.encode()).decode()
    style = f"width:100%;max-width:{1.4 * WIDTH:.0f}px"
    return f'<img src="data:image/svg+xml;base64,{data}" alt="{html.escape(alt)}" style="{style}">'
