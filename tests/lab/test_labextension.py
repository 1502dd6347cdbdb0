"""The extension of JupyterLab is that of this version, and knows its words."""

from __future__ import annotations

import json

import sparkstream_nb
from lab.jupyter_lab import LABEXTENSION
from sparkstream_nb.lab import vocabulary


def test_the_words_are_those_of_the_language() -> None:
    message = "run `python -m sparkstream_nb.lab.vocabulary`: a keyword, a function or a window has come or gone"
    assert vocabulary.FILE.read_text(encoding="utf-8") == vocabulary.javascript(), message


def test_the_extension_has_the_version_of_the_package() -> None:
    package = json.loads((LABEXTENSION / "package.json").read_text(encoding="utf-8"))
    assert package["version"] == sparkstream_nb.__version__
    assert (LABEXTENSION / package["jupyterlab"]["_build"]["load"]).is_file()
