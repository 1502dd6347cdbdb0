"""The display of an app's profile."""

from __future__ import annotations

from ..app.results.app_profile import Profile
from ..charts.value_texts import CountCell, Figure, format_count
from .display import html, limit_of, text
from .drawings.image import image
from .drawings.result_blocks import Block, Heading, blocks_html, blocks_text
from .drawings.text_tables import Grid


def _title(profile: Profile) -> str:
    events = format_count(profile.events, "event")
    return f"{profile.app}: {profile.ms:,.1f} ms of {format_count(len(profile.nodes), 'node')} for {events}"


def _blocks(profile: Profile) -> list[Block]:
    notes = [*profile.advice]
    time = profile.batch_time
    if time is not None:
        batches = "micro-batch" if time.count == 1 else f"{time.count:,} micro-batches"
        notes.append(
            f"The app's last {batches} took {time.ms:,.1f} ms: {time.node_ms:,.1f} ms in the slowest node, "
            f"{time.ms - time.node_ms:,.1f} ms around it ({(time.ms - time.node_ms) / max(time.ms, 1e-9):.0%})."
        )
    grids = [_parts(profile), _nodes(profile)]
    grids += [_keys(profile)] if profile.keys else []
    grids += [_growth(profile)] if profile.growth else []
    return [*notes, *grids]


def _parts(profile: Profile) -> Grid:
    """The parts over all nodes, the slowest first."""
    frame = profile.frame
    sums = frame.groupby(["element", "part"], sort=False)[["ms", "rows_in", "rows_out"]].sum(min_count=1)
    sums = sums.sort_values("ms", ascending=False)
    rows = [
        [
            element, part, Figure(f"{r.ms:,.2f}"), Figure(f"{r.ms / max(profile.ms, 1e-9):.0%}"),
            CountCell(int(r.rows_in)), "" if r.rows_out != r.rows_out else CountCell(int(r.rows_out)),
        ]
        for (element, part), r in zip(sums.index, sums.itertuples(), strict=True)
    ]  # fmt: skip
    columns = ["of", "part", "ms", "share", "rows in", "rows out"]
    return Grid(columns, rows[: limit_of()], total=len(rows), what="part")


def _nodes(profile: Profile) -> Grid:
    rows = [
        [n.node, CountCell(n.events), Figure(f"{n.ms:,.1f}"), CountCell(n.state_bytes), n.runs] for n in profile.nodes
    ]
    return Grid(["node", "events", "ms", "state (bytes)", "runs"], rows, what="node")


def _keys(profile: Profile) -> Grid:
    rows = [[k.stream, k.attribute, k.value, CountCell(k.events), Figure(f"{k.share:.1%}")] for k in profile.keys]
    return Grid(["stream", "key", "value", "events", "share"], rows[: limit_of()], total=len(rows), what="key")


def _growth(profile: Profile) -> Grid:
    def cell(number: int | None) -> object:
        return "" if number is None else CountCell(number)

    rows = [[g.element, *map(cell, (g.half_bytes, g.bytes, g.half_rows, g.rows))] for g in profile.growth]
    columns = ["state of", "bytes half-way", "bytes", "rows half-way", "rows"]
    return Grid(columns, rows[: limit_of()], total=len(rows), what="state")


@text.register
def _(profile: Profile) -> str:
    return blocks_text([Heading(_title(profile)), *_blocks(profile)])


@html.register
def _(profile: Profile) -> str:
    return blocks_html([Heading(_title(profile))]) + image(profile.picture()) + blocks_html(_blocks(profile))
