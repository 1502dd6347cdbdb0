"""Outputs of an app as Spark's DataFrames, streaming and batch."""

from __future__ import annotations

import warnings
from dataclasses import replace
from types import ModuleType
from typing import TYPE_CHECKING, Any, Literal

import pyarrow as pa

from ... import argument_checks
from ...errors import Misuse, SparkUnavailable, nearest, shown
from ...journal.visible_folder import check_visible, is_visible
from ...lang.printer import name_text
from ...outputs.committed_outputs import BatchRange
from ...runners.operator.output_rows import columns_of_events, columns_of_schema
from ...runners.output_columns import as_spark_table, empty_table, rows_as_table
from ...runners.spark.settings import NO_SPARK
from ...types import Schema, Type
from .retrievals import Retrievals
from .runtime import AppRuntime

if TYPE_CHECKING:
    from ...runners.spark.output_source import DataFrame, OutputFrameSpec, SparkSession

_COLUMNS = ("_timestamp", "_node")


class OutputFrames:
    """Frames over the committed outputs of an app, and over its tables."""

    def __init__(self, app: AppRuntime, retrievals: Retrievals) -> None:
        self._app, self._retrievals = app, retrievals

    def stream(
        self,
        name: str,
        *,
        start: Literal["beginning", "now"] = "beginning",
        max_rows: int | None = None,
        session: SparkSession | None = None,
    ) -> DataFrame:
        """A streaming DataFrame of Spark's over the committed outputs of a derived stream, each of them once.

        Its columns are the stream's attributes (an object as JSON), `_timestamp`, and `_node`, the number from 1 that
        the node has had since it came. `start`: the first output that is kept, or those that are committed from now on;
        a query that has a checkpoint continues from there. `max_rows`: how many outputs one of Spark's micro-batches
        has at most, unless a single one of the app's has more (None: all that are there); it needs Spark 4.2.
        `session`: by default the app's own, or the running one if the app runs inline. Spark's workers have to see the
        app's folder; over Connect, the server's Python needs this package. A warning counts outputs that are no
        longer kept.

        Raises `Misuse` for a name that is no derived stream, and for an app with `shared=...`; SparkUnavailable without
        a Spark that can do it. The query fails if outputs that it has not read are no longer kept, and if its
        checkpoint is of an earlier run of the app, which was deployed with `fresh=True` since.
        """
        app = self._app
        app.check_open()
        if start not in ("beginning", "now"):
            raise Misuse(f"start is 'beginning' or 'now', not {shown(start)}")
        argument_checks.optional_int("max_rows", max_rows, 1)
        self._check_stream(name)
        if app.app_run.shared is not None:
            raise Misuse(
                f"{app.name} is deployed with shared=..., and its outputs are in a folder that Spark's machines do not "
                f"see: app.table('{name}') reads them here. Deploy it with home=... in a folder that they share"
            )
        spark = self._session(session)
        check_visible(spark, app.outputs.folder, f"app.table('{name}') reads the outputs here")
        app.outputs.note_committed(app.progress.batch)
        if max_rows is not None and not _output_source().TOLD_START.in_(spark.version):
            raise Misuse(f"max_rows needs Spark 4.2 or later, and this is {spark.version}: leave it out")
        spec = replace(self._spec(name), max_rows=max_rows)
        if start == "now":
            return _output_source().stream_frame(spark, _after(spec, spec.open().last_committed()))
        self._warn_of_dropped(name, "the stream begins with the first that is kept")
        return _output_source().stream_frame(spark, spec)

    def table(self, name: str, *, session: SparkSession | None = None) -> DataFrame:
        """A batch DataFrame of Spark's: of a derived stream, the outputs that are committed at the call, with the
        columns that `stream` gives, where events that were sent before are waited for as by `output`; of a table or a
        named window, the rows that `query("from NAME select *")` gives.

        Raises `Misuse` for a name that is none of these, and SparkUnavailable as `stream` does.
        """
        app = self._app
        app.check_open()
        argument_checks.require_str("name", name)
        if name in app.plan.tables or name in app.plan.windows:
            return self._held_rows(name, session)
        self._check_stream(name)
        spark = self._session(session)
        if app.state == "running":
            app.waits.settle_briefly()
        app.outputs.note_committed(app.progress.batch)
        self._warn_of_dropped(name, "the frame has those that are kept")
        spec = self._spec(name)
        with app.outputs.tidying:
            reader = spec.open()
            spec = _after(spec, reader.find_start(), reader.last_committed())
        if app.app_run.shared is None and is_visible(spark, app.outputs.folder):
            return _output_source().batch_frame(spark, spec)
        batch_range = BatchRange(spec.after or 0, spec.last or 0)
        tables = [as_spark_table(t, spec.schema, spec.title) for t in reader.read(batch_range)]
        return _output_source().local_frame(spark, pa.concat_tables([empty_table(spec.schema), *tables]), spec.columns)

    def _held_rows(self, name: str, session: Any) -> DataFrame:
        """The rows of a table or a named window."""
        spark = self._session(session)
        answer = self._retrievals.query(f"from {name_text(name)} select *")
        schema = Schema.of(*((column, Type(type)) for column, type in answer.columns))
        self._check_columns(name, schema)
        return _output_source().local_frame(spark, rows_as_table(schema, answer.rows), columns_of_schema(schema))

    def _session(self, session: Any) -> SparkSession:
        return _output_source().session_for_frames(session, getattr(self._app.session, "spark", None))

    def _spec(self, name: str) -> OutputFrameSpec:
        app = self._app
        schema = app.schemas[name]
        self._check_columns(name, schema)
        return _output_source().OutputFrameSpec(
            app.outputs.folder.absolute(), app.app_run.run, name, f"{app.name}.{name}", schema,
            columns_of_events(schema), app.app_run.batches.get(name, 0),
        )  # fmt: skip

    def _check_stream(self, name: str) -> None:
        """Raises `Misuse` for a name that is no stream with outputs."""
        app = self._app
        argument_checks.require_str("name", name)
        derived_streams = [s for s in app.schemas if s not in app.plan.input_streams]
        if name in derived_streams:
            return
        if name in app.schemas:
            raise Misuse(
                nearest(f"no query of {app.name} writes to '{name}', so it has no outputs", "", derived_streams)
            )
        if name in app.plan.aggregations:
            raise Misuse(
                f"'{name}' of {app.name} is an aggregation. app.aggregation('{name}', per='hours') gives its buckets "
                "as a frame of pandas, which spark.createDataFrame takes"
            )
        if name in app.plan.tables or name in app.plan.windows:
            raise Misuse(f"'{name}' of {app.name} is no stream: app.table('{name}') gives its rows")
        raise Misuse(nearest(f"{app.name} has no stream '{name}'", name, derived_streams))

    def _check_columns(self, name: str, schema: Schema) -> None:
        """Raises `Misuse` for attributes whose names a frame of Spark's cannot have."""
        column_names = dict(zip(_COLUMNS, _COLUMNS, strict=True))
        for attribute in schema.names:
            if attribute.lower() in column_names:
                raise Misuse(
                    f"{self._app.name}.{name}: '{column_names[attribute.lower()]}' and '{attribute}' are one column to "
                    "Spark. Rename the attribute: as ..."
                )
            column_names[attribute.lower()] = attribute

    def _warn_of_dropped(self, name: str, what: str) -> None:
        dropped_events = self._app.outputs.dropped_events.get(name, 0)
        if dropped_events:
            title = f"{self._app.name}.{name}"
            warnings.warn(f"{dropped_events:,} outputs of {title} are no longer kept (retention): {what}", stacklevel=5)


def _output_source() -> ModuleType:
    """The module of frames, which needs pyspark. Raises SparkUnavailable without it."""
    try:
        from ...runners.spark import output_source
    except ModuleNotFoundError as error:
        if error.name not in ("pyspark", "py4j"):
            raise
        raise SparkUnavailable(NO_SPARK) from error
    return output_source


def _after(spec: OutputFrameSpec, after: int, last: int | None = None) -> OutputFrameSpec:
    return replace(spec, after=after, last=last)
