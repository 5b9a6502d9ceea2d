"""What a model says of very many rows, written part by part."""

import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO

import narwhals.stable.v2 as nw
import numpy as np
import scipy.sparse as sp

from kplus.data.categories import Coding
from kplus.data.open import Coder, is_stored, row_slices
from kplus.data.selection import FROM_DTYPE
from kplus.data.wrapped import RowRange
from kplus.engine.resources import resources_now
from kplus.persist.atomic import atomic_file

__all__ = ["parts_of", "write_answers"]

PART_ROWS = 2**17
"""Rows of a part: whole blocks of any size that is chosen by default."""

_MOST_WORKERS = 8  # that share a part: this process holds the answers of all of it

_NAMES = {"predict": "cluster", "predict_proba": "share", "transform": "feature"}


def write_answers(
    method: Callable[[Any], Any], X: Any, path: str | os.PathLike[str]
) -> None:
    """Write what a fitted model says of each row to a file, part by part.

    Memory holds the answers of some 100,000 rows, or of so many for each of up to eight
    workers of a Dask client, never those of all rows. The file has them in the order of
    the rows, and is there whole or not at all.

    Parameters
    ----------
    method : bound method of a fitted estimator
        Such as ``model.predict``, ``model.predict_proba``, ``model.transform`` or
        ``model.impute``: it takes rows, and returns an entry or a line for each.
    X : array-like, sparse matrix, data frame, path or blocks
        The rows, as `method` takes them; with a path they are not held in memory
        either.
    path : path-like
        A ``.npy`` file, for an array as `method` returns it (dense if it is sparse); or
        a ``.parquet`` file, with a column ``cluster``, or with columns ``share 0``,
        ``share 1``, ... or ``feature 0``, ``feature 1``, ... or, from ``impute``, those
        of the table.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import numpy as np
    >>> import kplus
    >>> home = pathlib.Path(tempfile.mkdtemp())
    >>> np.save(home / "rows.npy", np.array([[0.0], [9.0], [1.0], [8.0], [0.5]]))
    >>> model = kplus.DPMeans(penalty=20).fit(home / "rows.npy")
    >>> kplus.write_answers(model.predict, home / "rows.npy", home / "labels.npy")
    >>> np.load(home / "labels.npy")
    array([0, 1, 0, 1, 0], dtype=int32)
    """
    model = getattr(method, "__self__", None)
    if not hasattr(model, "get_params"):
        raise TypeError("method must be that of a fitted model, such as model.predict.")
    target = Path(path)
    writers = {".npy": _write_npy, ".parquet": _write_parquet, ".pq": _write_parquet}
    if target.suffix.lower() not in writers:
        raise ValueError(f"{path}: the name of the file must end in .npy or .parquet.")
    n_rows, parts = parts_of(model, X)
    answers = (_dense(method(part)) for part in parts)
    called = getattr(method, "__name__", "")
    name: str | Sequence[str] = _NAMES.get(called, "answer")
    if called == "impute":
        name = list(getattr(model, "feature_names_in_", ())) or "column"
    with atomic_file(target) as file:
        writers[target.suffix.lower()](file, answers, n_rows, name)


def _dense(answer: Any) -> Any:
    if nw.dependencies.is_into_dataframe(answer):
        return nw.from_native(answer, eager_only=True)
    return np.asarray(answer.toarray() if sp.issparse(answer) else answer)


def _write_npy(file: BinaryIO, answers: Iterator[Any], n_rows: int, name: Any) -> None:
    begun = False
    for answer in answers:
        if isinstance(answer, nw.DataFrame):
            raise ValueError(
                "A table with names or categories does not go into a .npy file; give "
                "the name of a .parquet file."
            )
        if not begun:
            fields = {
                "descr": answer.dtype.str,
                "fortran_order": False,
                "shape": (n_rows, *answer.shape[1:]),
            }
            np.lib.format.write_array_header_1_0(file, fields)
            begun = True
        file.write(np.ascontiguousarray(answer).tobytes())


def _write_parquet(
    file: BinaryIO, answers: Iterator[Any], n_rows: int, name: str | Sequence[str]
) -> None:
    import pyarrow.parquet as pq

    writer = None
    try:
        for answer in answers:
            table = _arrow(answer, name)
            if writer is None:
                writer = pq.ParquetWriter(file, table.schema)
            writer.write_table(table)
    finally:
        if writer is not None:
            writer.close()


def _arrow(answer: Any, name: str | Sequence[str]) -> Any:
    """An Arrow table of some answers; `name` is of one column, or of each."""
    import pyarrow as pa

    if isinstance(answer, nw.DataFrame):
        return answer.to_arrow()
    if answer.ndim == 1:
        return pa.table({name: pa.array(answer)})
    if isinstance(name, str):
        name = [f"{name} {k}" for k in range(answer.shape[1])]
    return pa.table([pa.array(part) for part in answer.T.copy()], names=list(name))


# ---------------------------------------------------------------------- parts


def parts_of(model: Any, X: Any) -> tuple[int, Iterator[Any]]:
    """The number of rows, and the rows part by part, as a fitted model takes them."""
    if not is_stored(X):
        return row_slices(X, PART_ROWS)
    blocks, coding = _blocks(model, X)
    return blocks.n_rows, _runs(blocks, coding)


def _runs(blocks: Any, coding: Coding | None) -> Iterator[RowRange]:
    step = -(-_part_rows(blocks) // blocks.block_rows) * blocks.block_rows
    for start in range(0, blocks.n_rows, step):
        run = RowRange(blocks, start, min(start + step, blocks.n_rows), coding)
        yield run
        run.release(0, run.n_rows)  # who maps files need not keep all of them


def _part_rows(blocks: Any) -> int:
    """More where workers read them, so that each has something to do."""
    client = resources_now().client
    if client is None or not getattr(blocks, "remote", False):
        return PART_ROWS
    n_workers = len(client.scheduler_info(n_workers=-1)["workers"])
    return PART_ROWS * min(max(1, n_workers), _MOST_WORKERS)


def _blocks(model: Any, X: Any) -> tuple[Any, Coding | None]:
    """Blocks of what is not in memory, coded as the model has it."""
    size = getattr(model, "batch_size", None)
    coding: Coding | None = getattr(model, "_coding", None)
    unknown = getattr(model, "handle_unknown", "error")
    reading = getattr(model, "reading_", None)
    coder = Coder(False, FROM_DTYPE, coding, unknown, size, reading)
    blocks, _ = coder.open(X)
    return blocks, coding
