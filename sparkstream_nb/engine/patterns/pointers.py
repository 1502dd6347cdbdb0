"""Raw access to a pattern machine's memory in compiled loops, and their compilation.

Compiled functions take the machine (the header) as `m`, and read and write the fields that `machine_memory` declares by
name: `m.cells[c].next` is one load from one place. Loads carry aliasing information for LLVM: arrays of different pools
do not overlap, and most of the header, the table of states and the rows of a batch do not change while a loop runs. So
values need not be loaded again after every write.

Nothing asks whether a place is within its memory, unless numba's bounds checks are on (`NUMBA_BOUNDSCHECK=1`, with a
`NUMBA_CACHE_DIR` of its own): then each place is checked, and one beyond raises IndexError (`IS_CHECKED`).
"""

from __future__ import annotations

import hashlib
import operator
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from llvmlite import ir
from numba import njit, types
from numba.core import cgutils, config, datamodel, typing
from numba.core.typing.templates import AbstractTemplate, AttributeTemplate, infer_getattr, infer_global
from numba.extending import intrinsic, lower_builtin, lower_getattr_generic, lower_setattr_generic, register_model

from ..notation.intrinsics import ask_for
from .machine_memory import BLOCK_MARKS, BLOCK_SHIFT, LENGTHS, LINKED_POOLS, Machine
from .records import RECORDS, Field, Pool, Table

_signature: Any = typing.signature  # type: ignore[attr-defined]
_WORD, _OCTET = ir.IntType(64), ir.IntType(8)

_FIELDS = RECORDS["Machine"].fields

_HEADER, _MARKS = -1, -2
"""In place of a pool: the header, and the bytes that record writes."""

IS_CHECKED = bool(config.BOUNDSCHECK)  # type: ignore[attr-defined]
"""True if places are checked. The length of the memory is then the last member of a pointer."""

_NAMES = {f.offset: f.name for f in _FIELDS.values() if not f.is_reading}
_WRITABLE_FROM = {_FIELDS[name].offset: RECORDS[_FIELDS[name].item].words for name in LINKED_POOLS}
"""The first word that may be written of pools whose record 0 means none, by the pools' places in the header."""


# ------------------------------------------------------------------------------------------------------------- types


class MachineType(types.Type):
    """The header: a pointer to its words."""

    def __init__(self) -> None:
        super().__init__("pattern machine")
        self.dtype = types.int64


MACHINE = MachineType()


class Pointer(types.CPointer):
    """A pointer to numbers. `at`: where the header has the address of the memory that they are in; `is_fixed`: no loop
    writes it."""

    def __init__(self, at: int, dtype: Any, is_fixed: bool) -> None:
        super().__init__(dtype)  # type: ignore[no-untyped-call]
        self.at, self.is_fixed = at, is_fixed
        self.name = f"pointer {at} {dtype} {is_fixed}"

    @property
    def key(self) -> Any:
        return self.name


class RecordType(types.Type):
    """Something in a pool of records: of the kind `item`, with the other two attributes of `Pointer`;
    `is_recorded`: writes are recorded."""

    def __init__(self, at: int, item: str, is_fixed: bool, is_recorded: bool = False) -> None:
        self.at, self.item, self.is_fixed, self.is_recorded = at, item, is_fixed, is_recorded
        self.dtype = types.int64
        super().__init__(f"{type(self).__name__} {at} {item} {is_fixed} {is_recorded}")

    def as_type(self, other: type[RecordType], item: str) -> RecordType:
        """Another thing in the same pool."""
        return other(self.at, item, self.is_fixed, self.is_recorded)


class PoolType(RecordType):
    """A pool: a pointer to its words."""


class TableType(RecordType):
    """A table: a pointer to its words."""


class ReferenceType(RecordType):
    """A record: a pointer to the pool's words, and its offset in them."""


class RestType(RecordType):
    """The rest of a record, words (`item` empty) or a table: as a record, with the offset of the first word."""


class ColumnsType(RecordType):
    """Records column by column, or a grid (`item` empty): a pointer to the words of the first column, and the length of
    a column."""


class _Pair(datamodel.models.StructModel):
    def __init__(self, manager: Any, kind: Any) -> None:
        members = [("base", types.CPointer(types.int64)), ("offset", types.int64)]  # type: ignore[no-untyped-call]
        length = [("length", types.int64)] if IS_CHECKED else []
        super().__init__(manager, kind, members + length)  # type: ignore[no-untyped-call]


class _CheckedPointer(datamodel.models.StructModel):
    def __init__(self, manager: Any, kind: Any) -> None:
        members = [("base", types.CPointer(kind.dtype)), ("length", types.int64)]  # type: ignore[no-untyped-call]
        super().__init__(manager, kind, members)  # type: ignore[no-untyped-call]


_POINTER_MODEL = _CheckedPointer if IS_CHECKED else datamodel.models.PointerModel
_MODELS: list[tuple[Any, Any]] = [
    (MachineType, datamodel.models.PointerModel),
    *((t, _POINTER_MODEL) for t in (Pointer, PoolType, TableType)),
    *((t, _Pair) for t in (ReferenceType, RestType, ColumnsType)),
]
for _type, _model in _MODELS:
    register_model(_type)(_model)

_NUMBERS: dict[str, Any] = {"int": types.int64, "bool": types.boolean, "float": types.float64}
_POINTERS: dict[str, Any] = {"words": types.int64, "octets": types.uint8, "reals": types.float64}
_RECORDS: dict[str, type[RecordType]] = {"pool": PoolType, "table": TableType, "columns": ColumnsType}


def _type_of_field(owner: Any, field: Field) -> Any:
    """The type of a field of the header, of a record or of columns."""
    if isinstance(owner, ColumnsType):
        return owner.as_type(ColumnsType, "") if field.kind == "grid" else Pointer(owner.at, types.int64, False)
    if field.kind in _NUMBERS:
        return _NUMBERS[field.kind]
    if owner is not MACHINE:
        return owner.as_type(RestType, field.item)
    if field.kind in _RECORDS:
        return _RECORDS[field.kind](field.offset, field.item, not field.is_written, field.is_recorded)
    return Pointer(field.offset, _POINTERS[field.kind], not field.is_written)


@infer_getattr
class _MachineFields(AttributeTemplate):
    key = MachineType

    def generic_resolve(self, owner: Any, name: str) -> Any:  # type: ignore[override]
        field = _FIELDS.get(name)
        if field is None:
            return None
        if field.kind == "method":
            return types.BoundFunction(_METHODS[name], owner)
        return _type_of_field(owner, field)


@infer_getattr
class _RecordFields(AttributeTemplate):
    key = RecordType

    def generic_resolve(self, owner: Any, name: str) -> Any:  # type: ignore[override]
        field = RECORDS[owner.item].fields.get(name) if owner.item else None
        if field is None or not isinstance(owner, ReferenceType | ColumnsType):
            return None
        return _type_of_field(owner, field)


def _item_of(owner: Any, index: Any) -> tuple[Any, Any] | None:
    """The types of an item of a pool and of its index; None if it has none."""
    if isinstance(owner, ColumnsType) and isinstance(index, types.BaseTuple):
        return types.int64, types.UniTuple(types.int64, 2)  # type: ignore[no-untyped-call]
    if isinstance(owner, PoolType | TableType | RestType) and isinstance(index, types.Integer):
        return owner.as_type(ReferenceType, owner.item) if owner.item else types.int64, types.int64
    return None


@infer_global(operator.getitem)  # type: ignore[no-untyped-call]
class _GetItem(AbstractTemplate):
    def generic(self, args: Any, kws: Any) -> Any:
        item = _item_of(*args)
        return None if item is None else _signature(item[0], args[0], item[1])


@infer_global(operator.setitem)  # type: ignore[no-untyped-call]
class _SetItem(AbstractTemplate):
    def generic(self, args: Any, kws: Any) -> Any:
        item = _item_of(*args[:2])
        if item is None or item[0] != types.int64:
            return None
        return _signature(types.none, args[0], item[1], types.int64)


# -------------------------------------------------------------------------------------------------- loads and stores


def _describe(builder: Any, access: Any, at: int, is_fixed: bool) -> Any:
    """Mark a load or store for the compiler as one of pool `at`, which is `is_fixed` if no loop writes it."""
    module = builder.module
    if is_fixed:
        access.set_metadata("invariant.load", module.add_metadata([]))
    else:
        root = module.add_metadata(["pattern machine"])
        kind = module.add_metadata([f"pool {at}", root, _WORD(0)])
        access.set_metadata("tbaa", module.add_metadata([kind, kind, _WORD(0)]))
    return access


def _load_number(builder: Any, place: Any, at: int, is_fixed: bool, kind: str) -> Any:
    """The number of a field from the address of its word."""
    if kind == "float":
        place = builder.bitcast(place, ir.DoubleType().as_pointer())
    value = _describe(builder, builder.load(place), at, is_fixed)
    return builder.icmp_signed("!=", value, _WORD(0)) if kind == "bool" else value


def _store_number(builder: Any, place: Any, value: Any, at: int, kind: str) -> None:
    """The inverse of `_load_number`."""
    if kind == "float":
        place = builder.bitcast(place, ir.DoubleType().as_pointer())
    _describe(builder, builder.store(builder.zext(value, _WORD) if kind == "bool" else value, place), at, False)


def _record_write(builder: Any, owner: Any, base: Any, offset: Any) -> None:
    """Marks the block of a word as written."""
    if owner.is_recorded:
        block = builder.and_(builder.lshr(offset, _WORD(BLOCK_SHIFT)), _WORD(BLOCK_MARKS - 1))
        first = builder.bitcast(base, _OCTET.as_pointer())
        mark = builder.gep(first, [builder.sub(block, _WORD(BLOCK_MARKS))])
        _describe(builder, builder.store(_OCTET(1), mark), _MARKS, False)


def _make(context: Any, builder: Any, kind: Any, *members: Any) -> Any:
    """A value of several members; the last one, a length, is left out unless places are checked."""
    value = ir.Constant(context.get_value_type(kind), ir.Undefined)
    for i in range(len(value.type.elements)):
        value = builder.insert_value(value, members[i], i)
    return value


def _make_pointer(context: Any, builder: Any, kind: Any, base: Any, length: Any) -> Any:
    return _make(context, builder, kind, base, length) if IS_CHECKED else base


def _base(builder: Any, pointer: Any) -> Any:
    return builder.extract_value(pointer, 0) if IS_CHECKED else pointer


def _length(builder: Any, value: Any) -> Any:
    """The length of the memory that a pointer, a record or columns are in; None unless places are checked."""
    return builder.extract_value(value, len(value.type.elements) - 1) if IS_CHECKED else None


def _check(context: Any, builder: Any, at: int, index: Any, length: Any, first: int = 0) -> None:
    """Code that raises IndexError if a place is outside pool `at`, or before its word `first`, if places are
    checked."""
    if IS_CHECKED:
        below = _WORD(first)
        is_within = builder.icmp_unsigned("<", builder.sub(index, below), builder.sub(length, below))
        with cgutils.if_unlikely(builder, builder.not_(is_within)):  # type: ignore[no-untyped-call]
            context.call_conv.return_user_exc(builder, IndexError, (f"a place outside {_NAMES[at]} of a pattern",))


def _place(context: Any, builder: Any, owner: Any, value: Any, index: Any, is_write: bool = False) -> Any:
    """The address of item `index` of the memory of a pointer, a record or columns."""
    first = _WRITABLE_FROM.get(owner.at, 0) if is_write else 0
    _check(context, builder, owner.at, index, _length(builder, value), first)
    is_pair = isinstance(owner, ReferenceType | RestType | ColumnsType)
    return builder.gep(builder.extract_value(value, 0) if is_pair else _base(builder, value), [index])


def _load_address(context: Any, builder: Any, machine: Any, offset: int, kind: Any) -> tuple[Any, Any]:
    """The address at an offset of the header, as a pointer to numbers of type `kind`, and how many there are (None
    unless places are checked)."""
    words = [offset, LENGTHS + offset] if IS_CHECKED else [offset]
    word, *length = [
        _describe(builder, builder.load(builder.gep(machine, [_WORD(at)])), _HEADER, True) for at in words
    ]
    return builder.inttoptr(word, context.get_value_type(kind).as_pointer()), length[0] if length else None


@lower_getattr_generic(MachineType)  # type: ignore[no-untyped-call, untyped-decorator]
def _load_of_machine(context: Any, builder: Any, owner: Any, value: Any, name: str) -> Any:
    field = _FIELDS[name]
    if field.kind == "method":
        return value
    if field.kind in _NUMBERS:
        place = builder.gep(value, [_WORD(field.offset)])
        return _load_number(builder, place, _HEADER, not field.is_written, field.kind)
    kind = _type_of_field(owner, field)
    base, length = _load_address(context, builder, value, field.offset, kind.dtype)
    if field.kind != "columns":
        return _make_pointer(context, builder, kind, base, length)
    place = builder.gep(value, [_WORD(_FIELDS[field.column_length].offset)])
    column_length = _load_number(builder, place, _HEADER, True, "int")
    return _make(context, builder, kind, base, column_length, length)


@lower_setattr_generic(MachineType)  # type: ignore[no-untyped-call, untyped-decorator]
def _store_of_machine(context: Any, builder: Any, signature: Any, args: Any, name: str) -> None:
    field = _FIELDS[name]
    if not field.is_written:
        raise TypeError(f"no compiled code writes {name} of the machine")
    _store_number(builder, builder.gep(args[0], [_WORD(field.offset)]), args[1], _HEADER, field.kind)


@lower_getattr_generic(ReferenceType)  # type: ignore[no-untyped-call, untyped-decorator]
def _load_of_record(context: Any, builder: Any, owner: Any, value: Any, name: str) -> Any:
    field = RECORDS[owner.item].fields[name]
    base, offset = builder.extract_value(value, 0), builder.extract_value(value, 1)
    offset = builder.add(offset, _WORD(field.offset))
    if field.kind in _NUMBERS:
        place = _place(context, builder, owner, value, offset)
        return _load_number(builder, place, owner.at, owner.is_fixed, field.kind)
    return _make(context, builder, _type_of_field(owner, field), base, offset, _length(builder, value))


@lower_setattr_generic(ReferenceType)  # type: ignore[no-untyped-call, untyped-decorator]
def _store_of_record(context: Any, builder: Any, signature: Any, args: Any, name: str) -> None:
    owner = signature.args[0]
    field = RECORDS[owner.item].fields[name]
    base, offset = builder.extract_value(args[0], 0), builder.extract_value(args[0], 1)
    offset = builder.add(offset, _WORD(field.offset))
    place = _place(context, builder, owner, args[0], offset, is_write=True)
    _store_number(builder, place, args[1], owner.at, field.kind)
    _record_write(builder, owner, base, offset)


@lower_getattr_generic(ColumnsType)  # type: ignore[no-untyped-call, untyped-decorator]
def _column(context: Any, builder: Any, owner: Any, value: Any, name: str) -> Any:
    field = RECORDS[owner.item].fields[name]
    base, length = builder.extract_value(value, 0), builder.extract_value(value, 1)
    first = builder.mul(length, _WORD(field.offset))
    base, kind = builder.gep(base, [first]), _type_of_field(owner, field)
    if field.kind != "grid":
        return _make_pointer(context, builder, kind, base, length)
    rest = builder.sub(_length(builder, value), first) if IS_CHECKED else None
    return _make(context, builder, kind, base, length, rest)


def _place_in_columns(context: Any, builder: Any, owner: Any, columns: Any, index: Any) -> Any:
    length = builder.extract_value(columns, 1)
    column, row = builder.extract_value(index, 0), builder.extract_value(index, 1)
    _check(context, builder, owner.at, row, length)
    return _place(context, builder, owner, columns, builder.add(builder.mul(column, length), row))


@lower_builtin(operator.getitem, ColumnsType, types.BaseTuple)  # type: ignore[no-untyped-call, untyped-decorator]
def _load_of_columns(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    owner = signature.args[0]
    place = _place_in_columns(context, builder, owner, *args)
    return _load_number(builder, place, owner.at, owner.is_fixed, "int")


@lower_builtin(operator.setitem, ColumnsType, types.BaseTuple, types.Integer)  # type: ignore[no-untyped-call, untyped-decorator]
def _store_of_columns(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    owner = signature.args[0]
    _store_number(builder, _place_in_columns(context, builder, owner, *args[:2]), args[2], owner.at, "int")
    return context.get_dummy_value()


def _words_of(item: str) -> Any:
    return _WORD(RECORDS[item].words)


@lower_builtin(operator.getitem, PoolType, types.Integer)  # type: ignore[no-untyped-call, untyped-decorator]
def _item_of_pool(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    base, length = _base(builder, args[0]), _length(builder, args[0])
    return _make(context, builder, signature.return_type, base, args[1], length)


@lower_builtin(operator.getitem, TableType, types.Integer)  # type: ignore[no-untyped-call, untyped-decorator]
def _item_of_table(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    offset = builder.mul(args[1], _words_of(signature.args[0].item))
    base, length = _base(builder, args[0]), _length(builder, args[0])
    return _make(context, builder, signature.return_type, base, offset, length)


@lower_builtin(operator.getitem, RestType, types.Integer)  # type: ignore[no-untyped-call, untyped-decorator]
def _item_of_rest(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    owner, base, first = signature.args[0], builder.extract_value(args[0], 0), builder.extract_value(args[0], 1)
    if not owner.item:
        place = _place(context, builder, owner, args[0], builder.add(first, args[1]))
        return _load_number(builder, place, owner.at, owner.is_fixed, "int")
    offset = builder.add(first, builder.mul(args[1], _words_of(owner.item)))
    return _make(context, builder, signature.return_type, base, offset, _length(builder, args[0]))


@lower_builtin(operator.setitem, RestType, types.Integer, types.Integer)  # type: ignore[no-untyped-call, untyped-decorator]
def _store_of_rest(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    owner, base = signature.args[0], builder.extract_value(args[0], 0)
    offset = builder.add(builder.extract_value(args[0], 1), args[1])
    place = _place(context, builder, owner, args[0], offset, is_write=True)
    _store_number(builder, place, args[2], owner.at, "int")
    _record_write(builder, owner, base, offset)
    return context.get_dummy_value()


@lower_builtin(operator.getitem, Pointer, types.Integer)  # type: ignore[no-untyped-call, untyped-decorator]
def _load(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    owner = signature.args[0]
    place = _place(context, builder, owner, *args)
    return _describe(builder, builder.load(place), owner.at, owner.is_fixed)


@lower_builtin(operator.setitem, Pointer, types.Integer, types.Any)  # type: ignore[no-untyped-call, untyped-decorator]
def _store(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    owner = signature.args[0]
    _describe(builder, builder.store(args[2], _place(context, builder, owner, *args[:2])), owner.at, False)
    return context.get_dummy_value()


@intrinsic
def _ask(typingctx: Any, pool: Any, index: Any, word: Any) -> Any:
    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        offset = builder.mul(args[1], _words_of(pool.item)) if isinstance(pool, TableType) else args[1]
        ask_for(builder, builder.gep(_base(builder, args[0]), [builder.add(offset, args[2])]))
        return context.get_dummy_value()

    return types.void(pool, types.int64, types.int64), codegen


# ------------------------------------------------------------------------------------------- functions of the machine


def _form(arguments: int) -> tuple[Any, ...]:
    """The types of a unit's arguments."""
    return (MACHINE, *[types.int64] * arguments)


def _declare_method(field: Field) -> type[AbstractTemplate]:
    """`m.name(...)` in compiled code: calls the function whose address is in the header, which returns an int64."""
    form = _form(field.arguments)
    name = f"pattern machine.{field.name}"

    def generic(self: Any, args: Any, kws: Any) -> Any:
        return _signature(types.int64, *form[1:], recvr=self.this)

    def call(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        address = _describe(builder, builder.load(builder.gep(args[0], [_WORD(field.offset)])), _HEADER, True)
        function_type = context.call_conv.get_function_type(types.int64, form)
        pointer = builder.inttoptr(address, function_type.as_pointer())
        status, value = context.call_conv.call_function(builder, pointer, types.int64, form, args)
        if IS_CHECKED:
            with cgutils.if_unlikely(builder, status.is_error):  # type: ignore[no-untyped-call]
                context.call_conv.return_status_propagate(builder, status)
        return value

    lower_builtin(name, *form)(call)  # type: ignore[no-untyped-call]
    return type(f"_{field.name}", (AbstractTemplate,), {"key": name, "generic": generic})


_METHODS = {name: _declare_method(field) for name, field in _FIELDS.items() if field.kind == "method"}


def _package_stamp() -> str:
    """A hash of the sources of all compiled functions here, since each holds the bodies and constants of others."""
    digest = hashlib.sha256()
    for path in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()


_STAMP = _package_stamp()


def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compiles a function over pointers that is inlined into its callers: a call costs more than most such
    functions."""
    return _compile_uncached(function, no_cpython_wrapper=True, no_cfunc_wrapper=True, forceinline=True)


def called(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compiles a function over pointers that is not inlined, because it is long or rarely called."""
    return _compile_uncached(function, no_cpython_wrapper=True, no_cfunc_wrapper=True)


@dataclass(frozen=True, slots=True)
class Unit:
    """A compiled function that is called through its address in the header, as a method of the machine of the same
    name, with `arguments` int64, and that returns an int64.

    numba compiles a callee again into each caller, and so on up the call graph; a unit is compiled once, and only for a
    pattern that can call it.
    """

    function: Any
    arguments: int

    @property
    def address(self) -> int:
        """The address of its machine code. Compiles it, or loads it from numba's cache."""
        form = _form(self.arguments)
        self.function.compile(types.int64(*form))
        library, description = self.function.overloads[form].library, self.function.overloads[form].fndesc
        return int(library.get_pointer_to_function(description.llvm_func_name))


def unit(function: Callable[..., int]) -> Unit:
    """Makes a function over the header and int64 a unit."""
    return Unit(compiled(function), function.__code__.co_argcount - 1)


def entry(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compiles a function that Python calls."""
    return _compile_uncached(function)


def _compile_uncached(function: Callable[..., Any], **options: bool) -> Callable[..., Any]:
    """numba's cache looks at a function's own file only; here a change of any counts."""
    dispatcher: Any = cast(Any, njit)(cache=True, **options)(function)
    dispatcher._cache._cache_file._source_stamp = _STAMP
    return cast(Callable[..., Any], dispatcher)


@intrinsic
def _machine(typingctx: Any, address: Any) -> Any:
    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.inttoptr(args[0], _WORD.as_pointer())

    return MACHINE(types.int64), codegen


@intrinsic
def _as_word(typingctx: Any, real: Any) -> Any:
    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.bitcast(args[0], _WORD)

    return types.int64(types.float64), codegen


machine: Callable[[int], Machine] = cast(Any, _machine)
"""The machine whose header is at an address."""
as_word: Callable[[float], int] = cast(Any, _as_word)
"""The int64 with the bits of a float64."""
ask: Callable[[Pool[Any] | Table[Any], int, int], None] = cast(Any, _ask)
"""`ask(m.cells, c, word)` asks for the cache line of a word of a record ahead of time (`intrinsics.prefetch`)."""
