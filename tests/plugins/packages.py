"""Packages with extensions, as `pip install` would put them into a folder."""

from __future__ import annotations

import re
from pathlib import Path

GUIDE = Path(__file__).parents[2] / "docs" / "guides" / "extending.md"


def put_package(folder: Path, name: str, source: str, version: str = "1.0") -> None:
    """A package of one module, its entry point, and its metadata."""
    module = name.replace("-", "_")
    (folder / f"{module}.py").write_text(source, encoding="utf-8")
    for former in folder.glob(f"{module}-*.dist-info"):
        former.rename(folder / f"{module}-{version}.dist-info")
    info = folder / f"{module}-{version}.dist-info"
    info.mkdir(exist_ok=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n", encoding="utf-8")
    (info / "entry_points.txt").write_text(f"[sparkstream_nb.extensions]\nx = {module}\n", encoding="utf-8")


def of_guide() -> tuple[str, str]:
    """The module of the guide's package, and its tests."""
    blocks = re.findall(r"^```python\n(.*?)^```", GUIDE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    return "\n\n".join(blocks[:-1]), blocks[-1]
