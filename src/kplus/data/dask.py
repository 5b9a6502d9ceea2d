"""dask.array and dask.dataframe, computed one partition at a time."""

import threading
import warnings
from typing import Any

import numpy as np

from kplus.core.errors import DataError, MissingPackageError
from kplus.core.types import Array
from kplus.data.arrow import Columns
from kplus.data.blocks import PieceBlocks
from kplus.data.selection import refuse_twice
from kplus.engine import cluster

try:
    import dask
    import pyarrow as pa
except ImportError as error:
    raise MissingPackageError(
        "Dask collections need dask and pyarrow: pip install 'kplus[dask]'"
    ) from error

__all__ = ["DaskArrayBlocks", "DaskColumns", "open_collection"]

_SHIPPED_BYTES = 10**8


def open_collection(X: Any) -> "DaskArrayBlocks | DaskColumns":
    """Open a dask.array or dask.dataframe as a table."""
    if hasattr(X, "npartitions") and hasattr(X, "columns"):
        return DaskColumns(X)
    if hasattr(X, "chunks") and hasattr(X, "ndim"):
        return DaskArrayBlocks(X)
    raise DataError(
        f"X is a {type(X).__module__}.{type(X).__name__}; of dask, arrays and data "
        f"frames can be used."
    )


def compute(part: Any) -> Any:
    """What a part of a collection is: by the client if there is one, else here."""
    client = cluster.active_client()
    if client is None:
        return dask.compute(part, scheduler="synchronous")[0]
    return cluster.Cluster(client).compute(part)


def _counts(parts: list[Any]) -> list[int]:
    """Rows of parts, for collections that do not know."""
    lengths = [dask.delayed(len)(part) for part in parts]
    return [int(n) for n in compute(dask.delayed(lengths))]


class DaskArrayBlocks(PieceBlocks):
    """Blocks of a dask.array with two dimensions; a piece is a chunk of rows."""

    def __init__(self, X: Any, block_rows: int | None = None) -> None:
        if X.ndim != 2:
            raise DataError(
                f"The dask.array has {X.ndim} dimensions; a matrix is needed."
            )
        if X.dtype.kind not in "biuf":
            raise DataError(f"The dask.array holds {X.dtype}, not real numbers.")
        X = X.rechunk({1: -1})
        self.delayed = list(X.to_delayed().ravel())
        self.remote = not _is_persisted(X)
        counts = X.chunks[0]
        if np.isnan(counts).any():
            counts = _counts(self.delayed)
        _warn_of_shipping(X)
        dtype = np.float32 if X.dtype == np.float32 else np.float64
        super().__init__(counts, X.shape[1], block_rows, dtype)

    def decode(self, piece: int) -> Array:
        return np.array(compute(self.delayed[piece]), dtype=self._dtype, order="C")


class DaskColumns(Columns):
    """The columns of a dask.dataframe; a piece is a partition."""

    def __init__(self, frame: Any) -> None:
        self._names = [str(name) for name in frame.columns]
        refuse_twice(str(self), self._names)
        self.delayed = list(frame.to_delayed())
        self._remote = not _is_persisted(frame)
        self._last = threading.local()
        schema = self._table(frame._meta).schema
        if any(pa.types.is_null(dtype) for dtype in schema.types):
            schema = self._table(compute(self.delayed[0])).schema  # objects: text?
        super().__init__(schema, _counts(self.delayed))

    def __str__(self) -> str:
        return "The dask.dataframe"

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_last"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__ |= state
        self._last = threading.local()

    @property
    def remote(self) -> bool:
        return self._remote

    def _column(self, piece: int, name: str, as_dictionary: bool) -> Any:
        if getattr(self._last, "piece", None) != piece:
            self._last.table = self._table(compute(self.delayed[piece]))
            self._last.piece = piece
        return self._last.table.column(name)

    def _table(self, frame: Any) -> Any:
        frame = frame.set_axis(self._names, axis=1)
        return pa.Table.from_pandas(frame, preserve_index=False)


def _is_persisted(X: Any) -> bool:
    """Whether parts are in the memory of workers, where one cannot ask another."""
    return any(
        type(value).__name__ == "Future" for value in dict(X.__dask_graph__()).values()
    )


def _warn_of_shipping(X: Any) -> None:
    """An array of the driver's memory goes to the workers with every pass."""
    held = [
        value
        for value in dict(X.__dask_graph__()).values()
        if isinstance(value, np.ndarray)
    ]
    if (
        cluster.active_client() is not None
        and sum(value.nbytes for value in held) > _SHIPPED_BYTES
    ):
        warnings.warn(
            "The dask.array was made of an array in memory, which is sent to the "
            "workers in every pass. Save it to files that all workers can read, and "
            "give their path.",
            UserWarning,
            stacklevel=2,
        )
