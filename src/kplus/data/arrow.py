"""Tables of typed columns that Arrow holds or reads; types of columns."""

import json
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from copy import copy
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from kplus.core.errors import DataError, MissingPackageError, NotNumbersError
from kplus.data.blocks import holding
from kplus.data.paths import Stamps
from kplus.data.selection import refuse_twice, unknown_column

if TYPE_CHECKING:
    from kplus.data.reading import Reading

try:
    import pyarrow as pa
    import pyarrow.compute as pc
except ImportError as error:
    raise MissingPackageError(
        "Parquet and Arrow files need pyarrow, which is not installed: "
        "pip install 'kplus[parquet]'"
    ) from error

__all__ = [
    "UNNAMED",
    "Columns",
    "as_missing",
    "as_text",
    "is_categorical",
    "is_number",
    "is_single",
    "plain_type",
    "replaced",
]

UNNAMED = ""
"""Name of a first column without one: the row names that pandas and R write."""


class Columns(ABC):
    """A table of typed columns, kept in pieces of rows.

    Parameters
    ----------
    schema : pyarrow.Schema
    counts : sequence of int
        Rows of each piece.
    """

    def __init__(self, schema: Any, counts: Sequence[int]) -> None:
        self.schema = self._common = schema
        self.counts = list(counts)
        self._selected: list[str] | None = None
        self.stamps: Stamps | None = None
        self.decimal = "."  # the decimal mark of text that leaves it open
        self.reading: Reading | None = None  # how it is read, if that is settled
        self.kept: tuple[str, ...] = ()  # columns that were asked for by name

    @property
    def remote(self) -> bool:
        """Whether workers elsewhere can read it; see `Cut`."""
        return False

    @abstractmethod
    def _column(self, piece: int, name: str, as_dictionary: bool) -> Any:
        """A column of a piece as it is stored; text may be a dictionary if asked."""

    def column(self, piece: int, name: str, *, as_dictionary: bool = False) -> Any:
        """A column of a piece; text as a dictionary if asked, which is quicker."""
        common, wanted = (t.field(name).type for t in (self._common, self.schema))
        column = self._column(piece, name, as_dictionary and common == wanted)
        if as_dictionary and column.type == pa.dictionary(pa.int32(), wanted):
            return column
        column = _cast(_cast(column, common), wanted)
        return column.dictionary_encode() if as_dictionary else column

    def odd_cells(self) -> dict[str, Any]:
        """The cells that are missing now, as they were no numbers."""
        return {}

    @property
    def n_rows(self) -> int:
        return sum(self.counts)

    @property
    def index_names(self) -> list[str]:
        """Names of the columns that hold the index of the frame once saved."""
        names = [UNNAMED, *_noted_index(self.schema.metadata or {})]
        return [n for n in names if isinstance(n, str) and n in self.schema.names]

    @property
    def names(self) -> list[str]:
        """Names of the columns to use: those selected, or all but the index."""
        if self._selected is not None:
            return self._selected
        index = self.index_names
        return [name for name in self.schema.names if name not in index]

    def select(self, names: Sequence[str] | None) -> Self:
        """The same table with these `names` only, in this order; None: as it is."""
        if names is None:
            return self
        for name in names:
            if name not in self.schema.names:
                raise unknown_column(str(self), name, self.schema.names)
        refuse_twice(str(self), names)
        other = copy(self)
        other._selected = list(names)
        return other

    def retype(self, types: dict[str, Any]) -> Self:
        """The same table with other types of some columns."""
        if not types:
            return self
        other = copy(self)
        for name, dtype in types.items():
            place = other.schema.get_field_index(name)
            other.schema = other.schema.set(place, pa.field(name, dtype))
        return other

    def parts(self, name: str) -> Iterator[Any]:
        """A column, piece by piece."""
        for piece in range(len(self.counts)):
            yield self.column(piece, name)

    def head(self, name: str, n_rows: int) -> Any:
        """The first values of a column, as plain text where it holds text."""
        chunks: list[Any] = []
        for part in self.parts(name):
            part = part[: n_rows - sum(map(len, chunks))]
            chunks += part.chunks
            if sum(map(len, chunks)) == n_rows:
                break
        dtype = self.schema.field(name).type
        whole = pa.chunked_array(chunks, type=dtype)
        return whole.cast(pa.string()) if pa.types.is_string_view(dtype) else whole

    def plain_parts(self, name: str) -> Iterator[Any]:
        """As `parts`; dictionaries and views of text as plain text."""
        for part in self.parts(name):
            yield part.cast(plain_type(part.type))

    def numbers(self, piece: int, name: str, dtype: type[Any]) -> NDArray[Any]:
        """A column of numbers of a piece; a null is NaN."""
        column = self.column(piece, name).cast(pa.from_numpy_dtype(dtype), safe=False)
        return column.to_numpy()  # type: ignore[no-any-return]

    def float_type(self) -> type[Any]:
        """float32 if that holds every column to use exactly, else float64."""
        if not self.names:
            raise DataError(f"{self} has no columns to read.")
        types = {name: self.schema.field(name).type for name in self.names}
        bad = [(name, str(t)) for name, t in types.items() if not is_number(t)]
        if bad:
            raise NotNumbersError(
                f"{holding(bad, str(self))}, not numbers. Leave out what is no number, "
                f"or encode it as numbers first; DPMixture and CRAFT take categories."
            )
        return np.float32 if all(map(is_single, types.values())) else np.float64

    def read(self, names: Sequence[str]) -> Any:
        """Some columns, of any type, whole, as an Arrow table."""
        fields = [self.schema.field(name) for name in names]
        whole = [
            pa.chunked_array(
                [chunk for part in self.parts(field.name) for chunk in part.chunks],
                type=field.type,
            )
            for field in fields
        ]
        return pa.table(whole, schema=pa.schema(fields))


def as_text(files: Columns, names: Iterable[str]) -> Columns:
    """Numbers and dates that are to be categories as text, as CSV files have them."""
    types = {name: files.schema.field(name).type for name in names}
    return files.retype(
        {name: pa.string() for name, t in types.items() if not is_categorical(t)}
    )


def as_missing(files: Columns, names: Iterable[str]) -> Columns:
    """Columns without any value as numbers, all of them missing."""
    return files.retype(dict.fromkeys(names, pa.float64()))


def _noted_index(metadata: dict[bytes, bytes]) -> list[Any]:
    """What pandas noted of its index; a note that makes no sense is none."""
    try:
        note = json.loads(metadata.get(b"pandas", b"{}"))
    except (ValueError, RecursionError):
        return []
    names = note.get("index_columns") if isinstance(note, dict) else None
    return names if isinstance(names, list) else []


# ------------------------------------------------------------------- types


def is_number(dtype: Any) -> bool:
    """Whether an Arrow type holds numbers; yes and no count as 1 and 0."""
    kind = pa.types
    tests = kind.is_integer, kind.is_floating, kind.is_boolean, kind.is_decimal
    return any(test(dtype) for test in tests)


def is_categorical(dtype: Any) -> bool:
    """Whether an Arrow type holds text, categories, or yes and no."""
    kind = pa.types
    text = kind.is_string, kind.is_large_string, kind.is_string_view
    return any(test(dtype) for test in (*text, kind.is_dictionary, kind.is_boolean))


def is_single(dtype: Any) -> bool:
    """Whether float32 holds every value of an Arrow type."""
    return dtype in (pa.float16(), pa.float32())


def plain_type(dtype: Any) -> Any:
    """The type of the values of a dictionary; plain text for views of it."""
    if pa.types.is_dictionary(dtype):
        dtype = dtype.value_type
    return pa.string() if pa.types.is_string_view(dtype) else dtype


def replaced(column: Any, rows: NDArray[Any], values: Any) -> Any:
    """A column with other values in some rows, of the same type if it holds them.

    Columns of whole numbers get the nearest.
    """
    dtype = column.type
    values = np.asarray(values)
    if pa.types.is_integer(dtype) and values.dtype.kind in "fiu":  # not text of codes
        limits = np.iinfo(dtype.to_pandas_dtype())
        values = np.clip(np.rint(values), limits.min, limits.max)
    elif pa.types.is_boolean(dtype):
        values = values >= 0.5
    new = pa.array(values)
    dtype = new.type if pa.types.is_null(dtype) else dtype
    plain = plain_type(dtype)
    # Arrow replaces no text of the larger kinds.
    narrow = pa.string() if pa.types.is_large_string(plain) else plain
    old, new = _cast(column, plain).cast(narrow), new.cast(narrow, safe=False)
    mask = np.zeros(len(column), dtype=bool)
    mask[rows] = True
    out = pc.replace_with_mask(old, mask, new)
    if not pa.types.is_dictionary(dtype) or not column.num_chunks:
        return out.cast(dtype)
    known = column.unify_dictionaries().chunk(0).dictionary  # in the order declared
    more = pc.unique(new.filter(pc.invert(pc.is_in(new, known))))
    known = pa.concat_arrays([known, more.cast(known.type)])
    places = pc.index_in(out, known).combine_chunks().cast(dtype.index_type)
    whole = pa.DictionaryArray.from_arrays(places, known, ordered=dtype.ordered)
    return pa.chunked_array([whole])


def _cast(column: Any, dtype: Any) -> Any:
    if column.null_count == len(column):  # of any type
        return pa.chunked_array([pa.nulls(len(column), dtype)])
    return column if column.type == dtype else column.cast(dtype)
