"""Rows of a table in an SQL server in the order of one of its columns, for a source that polls it.

The database compares and orders: values that are equal to it, such as texts in a collation, are never split. Sessions
read times in UTC, and no query takes longer than a minute. A value that Python does not have comes as `UnreadValue`.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import sqlalchemy as sa
from sqlalchemy import event

from ..errors import StoreError, did_you_mean
from .address import Database
from .dialects import DIALECTS, Dialect
from .sql import describe_sql_error
from .unread import UnreadValue

T = TypeVar("T")
_POLLED = "a whole number, a decimal, a text, a date, or a time with its date"
"""Allowed types of the polling column: their values are compared in their order, and exactly."""


@dataclass(frozen=True)
class PolledRow:
    """A row that was read: its value in the polled column, and the values of the requested columns."""

    at: Any
    values: tuple[Any, ...]


class PolledTable:
    """The table `name` of a server, `schema.table` if it is in another schema than the user's, read by its `column`.

    Used by one thread, except `cancel`. All methods except `close` and `cancel` raise StoreError, with one line, if the
    database cannot be reached or refuses.
    """

    def __init__(self, database: Database, name: str, column: str) -> None:
        self.database, self.name, self.column = database, name, column
        self._dialect: Dialect = DIALECTS[database.kind]
        self._engine: sa.Engine | None = None
        self._polled_column: sa.ColumnElement[Any] = sa.column("")
        self._read: list[sa.ColumnElement[Any]] = []
        self._table: sa.TableClause = sa.table("")
        self._end: str | None = None
        """The least value of the column that nothing follows; None if it has no such."""
        self._lock = threading.Lock()
        self._busy: Any = None
        """The driver's connection while a query runs."""

    def open(self, columns: Sequence[str], *, all_needed: bool) -> None:
        """Look up the table and its `columns`, whose values rows will have in this order: a name as written,
        else in any case. One that is missing is null unless `all_needed`.

        Raises StoreError for a table or column that is missing, and a polled column of another type than `_POLLED`.
        """
        self.close()
        self._engine = self._new_engine()
        self._run_transaction(lambda c: self._look_up(c, columns, all_needed=all_needed))

    def greatest(self) -> Any:
        """The greatest value of the polled column that others may follow; None if the table has none."""
        query = sa.select(sa.func.max(self._polled_column)).select_from(self._table).where(*self._before_end())
        return self._run_transaction(lambda c: self._at(c.execute(query).scalar()))

    def after(self, last: Any, most: int) -> tuple[list[PolledRow], bool]:
        """The rows whose polled value is greater than `last` (None: all that have one), in its order, about `most` of
        them, and whether there may be more. Rows of equal value are all there, or none of them. Those whose value
        nothing follows are `endless`."""
        above = self._polled_column.is_not(None) if last is None else self._polled_column > self._bound(last)
        query = self._rows().where(above, *self._before_end()).order_by(self._polled_column)

        def work(c: sa.Connection) -> tuple[list[PolledRow], bool]:
            rows = self._read_rows(c, query.limit(most))
            if len(rows) < most:
                return rows, False
            end = rows[-1].at
            # Of texts only the database knows which are equal.
            before = [] if isinstance(end, str) else [r for r in rows if r.at != end]
            if before:
                return before, True
            return self._read_rows(c, query.where(self._polled_column <= self._bound(end))), True

        return self._run_transaction(work)

    def endless(self, most: int) -> list[PolledRow]:
        """The rows whose polled value nothing can follow, as NaN and `infinity`, up to `most` of them: behind such a
        value no row would ever be read."""
        if self._end is None:
            return []
        query = self._rows().where(self._polled_column >= self._bound(UnreadValue(self._end))).limit(most)
        return self._run_transaction(lambda c: self._read_rows(c, query))

    def close(self) -> None:
        """Closes the connection; `open` may follow."""
        engine, self._engine = self._engine, None
        if engine is not None:
            engine.dispose()

    def cancel(self) -> None:
        """Ends a query that is under way, from another thread."""
        with self._lock:
            if self._busy is not None:
                self._dialect.interrupt(self._busy)

    # ------------------------------------------------------------------------------------------------------ the rest

    def _new_engine(self) -> sa.Engine:
        engine = self._dialect.engine(self.database, self._dialect.poll_args)

        @event.listens_for(engine, "connect")
        def prepare(connection: Any, _: Any) -> None:
            with contextlib.closing(connection.cursor()) as cursor:
                for statement in self._dialect.poll_settings:
                    cursor.execute(statement)
            connection.commit()
            self._dialect.read_any_value(connection)

        return engine

    def _run_transaction(self, work: Callable[[sa.Connection], T]) -> T:
        """Runs `work` in a transaction of its own."""
        if self._engine is None:
            raise StoreError(f"{self.database} is closed")
        try:
            with self._engine.connect() as c:
                with self._lock:
                    self._busy = c.connection.driver_connection
                try:
                    return work(c)
                finally:
                    with self._lock:
                        self._busy = None
        except sa.exc.SQLAlchemyError as error:
            raise StoreError(f"{self.database}: {describe_sql_error(error)}") from None

    def _rows(self) -> sa.Select[Any]:
        return sa.select(self._polled_column, *self._read).select_from(self._table)

    def _read_rows(self, c: sa.Connection, query: sa.Select[Any]) -> list[PolledRow]:
        return [PolledRow(self._at(r[0]), tuple(r[1:])) for r in c.execute(query)]

    def _at(self, value: Any) -> Any:
        """A value of the polled column. PyMySQL gives a date that Python does not have, `0000-00-00`, as a text."""
        has_dates = isinstance(self._polled_column.type, sa.DateTime | sa.Date)
        return UnreadValue(value) if has_dates and isinstance(value, str) else value

    def _before_end(self) -> list[sa.ColumnElement[bool]]:
        return [] if self._end is None else [self._polled_column < self._bound(UnreadValue(self._end))]

    def _bound(self, value: Any) -> sa.ColumnElement[Any]:
        if not isinstance(value, UnreadValue):
            return sa.bindparam(None, value, type_=self._polled_column.type)
        text, type_ = sa.bindparam(None, value.text, type_=sa.String()), self._polled_column.type
        if not self._dialect.casts_texts:
            return text
        # A number of limited digits would not be infinite.
        return sa.cast(text, sa.Numeric() if isinstance(type_, sa.Numeric) else type_)

    def _look_up(self, c: sa.Connection, columns: Sequence[str], *, all_needed: bool) -> None:
        inspector = sa.inspect(c)
        schema, _, table_name = self.name.rpartition(".")
        within = _spelt(schema, inspector.get_schema_names()) if schema else None
        names = [*inspector.get_table_names(within), *inspector.get_view_names(within)]
        name = _spelt(table_name, names) if not schema or within is not None else None
        if name is None:
            raise StoreError(_missing_message(f"{self.database} has no table '{self.name}'", table_name, names))
        types = {str(x["name"]): x["type"] for x in inspector.get_columns(name, within)}
        polled_name = self._column(types, self.column)
        if not _can_be_polled(types[polled_name]):
            raise StoreError(
                f"column '{polled_name}' of table '{self.name}' is {types[polled_name]}; rows are read by {_POLLED}"
            )
        read = [
            None if not all_needed and _spelt(column, types) is None else self._column(types, column)
            for column in columns
        ]
        # Without types but for the one that is compared: the driver's values are taken as they are.
        self._table = sa.table(
            name, *(sa.column(n, types[n] if n == polled_name else None) for n in types), schema=within
        )
        self._polled_column = self._table.c[polled_name]
        self._end = self._dialect.endless_value(c, types[polled_name])
        self._read = [sa.null().label(None) if n is None else self._table.c[n] for n in read]

    def _column(self, types: Mapping[str, Any], name: str) -> str:
        column_name = _spelt(name, types)
        if column_name is None:
            raise StoreError(
                _missing_message(f"table '{self.name}' in {self.database} has no column '{name}'", name, types)
            )
        return column_name


def _can_be_polled(type_: Any) -> bool:
    exact = isinstance(type_, sa.Integer | sa.Numeric) and not isinstance(type_, sa.Float)
    text = isinstance(type_, sa.String) and not isinstance(type_, sa.Enum)  # enums are ordered in their own way
    return exact or text or isinstance(type_, sa.DateTime | sa.Date)


def _spelt(text: str, names: Sequence[str] | Mapping[str, Any]) -> str | None:
    """The one of `names` that is meant; None if there is none, or several differ in their case alone."""
    if text in names:
        return text
    matches = [name for name in names if name.lower() == text.lower()]
    return matches[0] if len(matches) == 1 else None


def _missing_message(message: str, name: str, names: Sequence[str] | Mapping[str, Any]) -> str:
    hint = did_you_mean(name, names)
    return message if hint is None else f"{message}. {hint}"
