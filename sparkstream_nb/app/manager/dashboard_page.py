"""The manager's dashboard: one page with its style and its script, which loads the apps again every two seconds.

It has no part from elsewhere, and the browser is told to take none: its style and script are named by their hashes.
"""

from __future__ import annotations

from base64 import b64encode
from hashlib import sha256
from pathlib import Path

from ..results.overview_html import STYLE

_FOLDER = Path(__file__).parent
_SCRIPT = (_FOLDER / "dashboard.js").read_text(encoding="utf-8")
_STYLE = (_FOLDER / "dashboard.css").read_text(encoding="utf-8") + STYLE


def _hash(text: str) -> str:
    """A script or style as a source of a content security policy."""
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"


PAGE_POLICY = (
    f"default-src 'none'; style-src {_hash(_STYLE)}; script-src {_hash(_SCRIPT)}; connect-src 'self'; "
    "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
"""The content security policy of the page."""


def dashboard_page(apps_html: str) -> str:
    """The page with the overview of all apps, HTML as `overview_html` gives it."""
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<link rel="icon" href="data:,">
<title>SparkStream: apps</title>
<style>{_STYLE}</style>
</head>
<body>
<header><h1>Apps</h1><p class="failed" role="alert"></p></header>
<main>{apps_html}</main>
<script>{_SCRIPT}</script>
</body>
</html>
"""
