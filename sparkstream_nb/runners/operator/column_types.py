"""Spark's types of columns, by their simple names (`DataType.simpleString`), as SiddhiQL's attribute types."""

from __future__ import annotations

from ...types import Type

_TYPES = {
    "string": Type.STRING,
    "boolean": Type.BOOL,
    "tinyint": Type.INT,
    "smallint": Type.INT,
    "int": Type.INT,
    "bigint": Type.LONG,
    "float": Type.FLOAT,
    "double": Type.DOUBLE,
    "timestamp": Type.LONG,
    "timestamp_ntz": Type.LONG,
    "date": Type.LONG,
}
SPARK = {
    Type.STRING: "string",
    Type.BOOL: "boolean",
    Type.INT: "int",
    Type.LONG: "bigint",
    Type.FLOAT: "float",
    Type.DOUBLE: "double",
    Type.OBJECT: "string",
}
"""Spark's type of an output's attribute, by SiddhiQL's: an object is its JSON."""
_TIMES = ("timestamp", "timestamp_ntz", "date")
_WIDENED = {
    Type.LONG: ("tinyint", "smallint", "int"),
    Type.FLOAT: ("tinyint", "smallint"),
    Type.DOUBLE: ("tinyint", "smallint", "int", "float"),
}


def type_of_column(spark: str) -> Type | None:
    """SiddhiQL's type of a column; None if it has none. A time is a long: milliseconds since 1970."""
    return _TYPES.get(_plain(spark))


def fits_column(spark: str, type: Type) -> bool:
    """True if every value of a column is one of an attribute's type: of the same, or of one that is wider."""
    return type_of_column(spark) is type or _plain(spark) in _WIDENED.get(type, ())


def described_column(spark: str) -> str:
    """A column's type for a message: Spark's name, and SiddhiQL's if it is another word."""
    type_ = type_of_column(spark)
    return spark if type_ is None or str(type_) == spark else f"{spark} ({type_} in SiddhiQL)"


def _plain(spark: str) -> str:
    """Texts of a limited length, or with a collation, are texts."""
    return "string" if spark.startswith(("char(", "varchar(", "string ")) else spark
