"""Build the site: `python -m docs.generator`. With `--pages FOLDER` only the Markdown that it is built from."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path

from .pages import ROOT, write_pages

STAGED = ROOT / ".work" / "site-pages"
"""The folder that `conf/mkdocs.yml` reads."""


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pages", metavar="FOLDER", type=Path, help="only write the Markdown pages, into this folder")
    parser.add_argument("--into", metavar="FOLDER", type=Path, default=ROOT / "site", help="the site (default: site/)")
    parser.add_argument(
        "--url", default="", help="the address that the site will have, for its list of pages and its page of errors"
    )
    given = parser.parse_args()
    write_pages(given.pages or STAGED)
    if given.pages:
        return 0
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "-f", str(ROOT / "conf" / "mkdocs.yml")]
    built = subprocess.run(
        [*command, "--site-dir", str(given.into.resolve())],
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1", "SPARKSTREAM_SITE_URL": given.url},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if built.returncode:
        print(built.stdout, file=sys.stderr)
    else:
        print(f"The site is in {given.into}: python -m http.server --bind 127.0.0.1 -d {given.into}")
    return built.returncode


if __name__ == "__main__":
    raise SystemExit(main())
