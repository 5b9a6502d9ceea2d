"""``kplus impute``: fill the gaps of a table with what a saved model expects there."""

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from kplus.cli.console import CommandError, count, note, notes_for_warnings, status
from kplus.cli.options import Options
from kplus.cli.output import check_file, opened, write_table
from kplus.cli.predict import input_for, read_for, scaling_of
from kplus.cli.resources import allowed
from kplus.cli.tables import Table
from kplus.core.reading import read_all
from kplus.core.types import Array

__all__ = ["impute"]


def impute(options: Options) -> None:
    """Run the command."""
    from kplus.persist.save import load

    check_file(options.output, options.force)
    with allowed(options):
        model = load(options.model_file)
        if not hasattr(model, "impute"):
            raise CommandError(
                f"{options.model_file} holds a {type(model).__name__}, which does not "
                f"fill gaps; kplus fit --model meibp, ibp-gibbs or ibp-variational "
                f"makes a model that does."
            )
        with status(f"Reading {options.data}", options.quiet):
            table = read_for(model, options.data, None)
            rows = read_all(table.source)
        gaps = np.isnan(rows)
        with status("Filling gaps", options.quiet), notes_for_warnings(options.quiet):
            filled = np.where(gaps, _expected(model, table), rows)
        if options.output is not None or not options.json:
            whole = _whole(options.data, table, gaps, filled)
            with opened(options.output) as (file, kind):
                write_table(whole, file, kind)
    if options.json:
        print(json.dumps(_result(options, table, gaps, filled), allow_nan=False))
    elif not options.quiet:
        _report(options, gaps)


def _expected(model: Any, table: Table) -> Array:
    """What the model says of all entries, in the units of the file."""
    values = model.impute(input_for(model, table))
    scaling = scaling_of(model)
    if scaling is not None:
        values = values * scaling["scale"] + scaling["mean"]
    return np.asarray(values)


def _whole(path: Path, table: Table, gaps: NDArray[Any], filled: Array) -> Any:
    """All columns of the file: those with gaps filled, the others as they were."""
    names = table.column_names
    frame = None if table.names is None else _read_all(path, names)
    if frame is None:
        columns = dict(zip(names, filled.T.copy(), strict=True))
        if table.index is not None:
            chunks = [chunk for part in table.index() for chunk in part.chunks]
            columns = {table.index_name: pa.chunked_array(chunks)} | columns
        return pa.table(columns)
    for j in np.flatnonzero(gaps.any(axis=0)):
        place = frame.column_names.index(names[j])
        frame = frame.set_column(place, names[j], pa.array(filled[:, j]))
    return frame


def _read_all(path: Path, names: Sequence[str]) -> Any:
    """The file as an Arrow table; `names` are the columns of the model.

    None for a folder of ``kplus convert``, which has no others.
    """
    from kplus.data.files import open_files
    from kplus.data.open import has_columns

    files = open_files(path)
    if not has_columns(files):
        return None
    # Identifiers with leading zeros, dates and the like stay as they are written.
    others = set(files.schema.names).difference(names)
    files = open_files(path, text=sorted(others))
    assert has_columns(files)
    return files.read(files.schema.names)


def _result(
    options: Options, table: Table, gaps: NDArray[Any], filled: Array
) -> dict[str, Any]:
    names, counts = table.column_names, gaps.sum(axis=0).tolist()
    result: dict[str, Any] = {
        "n_rows": len(gaps),
        "n_filled": sum(counts),
        "columns": {name: n for name, n in zip(names, counts, strict=True) if n},
    }
    if options.output is not None:
        return result | {"files": {"table": os.fspath(options.output)}}
    return result | {
        "values": [
            {"row": i, "column": names[j], "value": float(filled[i, j])}
            for i, j in np.argwhere(gaps).tolist()
        ]
    }


def _report(options: Options, gaps: NDArray[Any]) -> None:
    values = count(int(gaps.sum()), "value")
    columns = count(int(gaps.any(axis=0).sum()), "column")
    note(f"Filled {values} in {columns}." if gaps.any() else "No value was missing.")
    if options.output is not None:
        note(f"Wrote {options.output}")
