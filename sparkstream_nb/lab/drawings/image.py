"""Pictures as images, which a notebook saves."""

from __future__ import annotations

from ...charts.picture import Picture
from ...charts.style import WIDTH
from ...charts.svg_picture import svg
from .pictures import embed_svg


def image(picture: Picture, width: int = WIDTH) -> str:
    """A picture as an HTML image."""
    return embed_svg(svg(picture, width, has_titles=False), picture.summary or picture.title)
