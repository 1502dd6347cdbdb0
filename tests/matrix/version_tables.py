"""The tables of docs/spark-versions.md: versions of Spark and Python, and managed platforms."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date

from tests.matrix.pairs import ROOT, Pair
from tests.matrix.platforms import Platform

PAGE = ROOT / "docs" / "spark-versions.md"
DATA_PACKAGES = ("pandas", "pyarrow", "numpy", "protobuf")
STEPS = ("contract", "kills", "notebook", "clusters")
"""Steps of a run with a column of their own."""
FAILED, NOT_TRIED = "failed", "not tried"
"""Of a platform, instead of the day of the run that it passed."""
_END = "<!-- end -->"


@dataclass(frozen=True)
class VersionTable:
    """A table of the page: the line before it, and its columns, of which the first `keys` name a row."""

    begin: str
    columns: tuple[str, ...]
    keys: int


VERSIONS = VersionTable(
    "<!-- what `make matrix` found -->",
    ("Spark", "Python", "beside it", "contract on Spark", "kills", "first notebook", "standalone, Connect"),
    keys=2,
)
MANAGED = VersionTable(
    "<!-- what `make matrix` found with the versions of platforms -->",
    (
        "platform", "Spark", "Python", "Java", "pandas, pyarrow, numpy, protobuf", "beside them", "contract on Spark",
        "kills", "first notebook", "standalone, Connect", "tried",
    ),
    keys=1,
)  # fmt: skip


@dataclass
class PairResult:
    """The result of a pair: a short text for each column of the table, and what failed."""

    pair: Pair
    texts: dict[str, str] = field(default_factory=dict)
    failures: list[str] = field(default_factory=list)

    @property
    def table(self) -> VersionTable:
        """The table that it belongs in."""
        return VERSIONS if self.pair.platform is None else MANAGED

    @property
    def cells(self) -> list[str]:
        """Its row of the table."""
        steps = [self.texts.get(name, "–") for name in ("pyspark", *STEPS)]
        platform = self.pair.platform
        if platform is None:
            return [self.pair.spark, self.pair.version, *steps]
        packages = self.texts.get("packages", "–")
        row = [platform.name, self.pair.spark, self.pair.version, str(platform.java), packages, *steps]
        return [*row, FAILED if self.failures else date.today().isoformat()]


def describe_packages(platform: Platform, versions: Mapping[str, str]) -> str:
    """The versions that apps were tried with, and a platform's own where that is another."""
    texts = [versions[name] for name in DATA_PACKAGES]
    if "protobuf" in platform.newer:
        texts[-1] += f" (its own: {platform.packages['protobuf']})"
    return ", ".join(texts) + ("" if platform.packages else " (it names none)")


def read_rows(page: str, table: VersionTable) -> list[list[str]]:
    """The cells of a table's rows on the page."""
    lines = page.partition(table.begin + "\n")[2].partition(_END)[0].splitlines()[2:]
    return [line.removeprefix("| ").removesuffix(" |").split(" | ") for line in lines]


def passed_platforms(page: str) -> frozenset[str]:
    """Names of the platforms that passed by the page: a commit is tried on these alone."""
    return frozenset(row[0] for row in read_rows(page, MANAGED) if row[-1] not in (FAILED, NOT_TRIED))


def replace_rows(page: str, results: Sequence[PairResult]) -> str:
    """The page with the rows of these results in place of earlier ones."""
    for table in (VERSIONS, MANAGED):
        head, _, rest = page.partition(table.begin + "\n")
        rows = {tuple(row[: table.keys]): row for row in read_rows(page, table)}
        rows |= {tuple(r.cells[: table.keys]): r.cells for r in results if r.table is table}
        lines = [table.columns, ["---"] * len(table.columns), *(rows[key] for key in sorted(rows))]
        body = "".join(f"| {' | '.join(cells)} |\n" for cells in lines)
        page = f"{head}{table.begin}\n{body}{_END}{rest.partition(_END)[2]}"
    return page


def write_rows(results: Sequence[PairResult]) -> None:
    """Puts the results into the tables of the page."""
    PAGE.write_text(replace_rows(PAGE.read_text(encoding="utf-8"), results), encoding="utf-8")

