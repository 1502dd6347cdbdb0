"""`unitconversion:*` (siddhi-execution-unitconversion 2.0): a number of one unit in another one, as a double.

The sizes of units are as in that extension and its library (tec.units 0.8), whose year has 365.2525 days.
"""

from __future__ import annotations

from collections.abc import Mapping

from ....plan.nodes import Call
from ....plan.signatures.scalars import UNIT_CONVERSIONS
from ....types import Type
from ...columnar.column_data import Column
from ..env import Env
from ..java_arithmetic import as_type
from ..rowwise import Builder, eager

_UNITS: tuple[Mapping[str, float], ...] = (
    {
        "Mm": 1e6, "km": 1e3, "m": 1.0, "cm": 1e-2, "mm": 1e-3, "um": 1e-6, "nm": 1e-9,
        "mi": 1609.344, "yd": 0.9144, "ft": 0.3048, "in": 0.0254,
    },
    {
        "t": 1e6, "kg": 1e3, "g": 1.0, "mg": 1e-3, "ug": 1e-6,
        "lb": 453.5924, "oz": 28.34952, "st": 1e3 / 0.157473, "LT": 1e3 / 0.000984207, "ST": 1e3 / 0.00110231,
    },
    {"y": 365.2525 * 86_400, "d": 86_400.0, "h": 3_600.0, "m": 60.0, "s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9},
    {"m3": 1e3, "l": 1.0, "ml": 1e-3},
)  # fmt: skip
"""Sizes by symbol: lengths (m), masses (g), times (s) and volumes (l). `m` is a metre and a minute."""
_NULL = "the input of a unit conversion cannot be null"


def _factor(name: str) -> float:
    """The factor of a conversion such as `kgTog`."""
    source, target = name.split("To")
    (units,) = (units for units in _UNITS if source in units and target in units)
    return units[source] / units[target]


def _conversion(factor: float) -> Builder:
    def convert(columns: list[Column], env: Env, call: Call) -> Column:
        (column,) = columns
        if column.null is not None:
            env.fail(column.null, _NULL)
        return Column(Type.DOUBLE, as_type(column.values, Type.DOUBLE) * factor, column.null)

    return eager(convert)


TABLE: Mapping[str, Builder] = {f"unitconversion:{name}": _conversion(_factor(name)) for name in UNIT_CONVERSIONS}
