"""Cells of notebooks that tests make."""

from __future__ import annotations

LOAD = "from sparkstream_nb.runners.spark import jvm\njvm.drop()\n%load_ext sparkstream_nb"
"""Loads the extension, and begins no JVM, as apps run in the kernel."""
