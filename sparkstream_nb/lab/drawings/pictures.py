"""Common parts of pictures: each is one SVG element, drawn in Python."""

from __future__ import annotations

import base64
import html

from ...charts.style import WIDTH


def on_white(picture: str) -> str:
    """An SVG element on a white ground: an image does not know the page's theme, and no ink reads on light and dark."""
    begin, end, rest = picture.partition(">")
    return f'{begin}{end}<rect width="100%" height="100%" rx="4" fill="#fff"/>{rest}'


DARK_PICTURE = ".sparkstream-picture{filter:invert(.93) hue-rotate(180deg)}"
"""The style that turns pictures dark."""
_IN_THE_DARK = (
    "<style>@media screen{:is([data-jp-theme-light=false],[data-md-color-scheme=slate],.vscode-dark,"
    f".vscode-high-contrast,html[theme=dark]) {DARK_PICTURE}}}</style>"
)
"""Turns pictures dark where the page is: JupyterLab and pages of nbconvert, this project's site, VS Code, Colab. An
untrusted notebook is stripped of it, and has pictures on white."""


def embed_svg(picture: str, alt: str) -> str:
    """An SVG element as an HTML image as wide as the page, because untrusted notebooks are stripped of SVG elements."""
    return image_tag(on_white(picture), alt, f"width:100%;max-width:{1.4 * WIDTH:.0f}px")


def dark_where_page_is(picture: str) -> str:
    """An SVG element on a white ground as HTML, dark where the page is. Untrusted notebooks are stripped of it."""
    return f'{_IN_THE_DARK}<div class="sparkstream-picture">{picture}</div>'


def image_tag(picture: str, alt: str, style: str, attributes: str = "") -> str:
    """An SVG element on a white ground as an HTML image, which is dark where the page is."""
    data = base64.b64encode(picture.encode()).decode()
    return (
        f'{_IN_THE_DARK}<img src="data:image/svg+xml;base64,{data}" alt="{html.escape(alt)}" {attributes}'
        f'style="{style}" class="sparkstream-picture">'
    )
