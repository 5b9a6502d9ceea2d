"""What people call to decide themselves how a table is read."""

import os
from collections.abc import Sequence
from datetime import date, datetime
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np

from kplus.core.errors import DataError
from kplus.data.blocks import FrameBlocks
from kplus.data.dates import DateNumbers
from kplus.data.files import open_files
from kplus.data.open import as_read, column_names, has_columns, open_data
from kplus.data.reading import Reading
from kplus.data.recognise import makers_of_dates
from kplus.data.roles import Wishes
from kplus.data.selection import unknown_column

__all__ = ["date_parts", "read_table"]

_DATES = ("ignore", "parts", "age")


def read_table(
    X: Any,
    *,
    keep: Sequence[str] = (),
    drop: Sequence[str] = (),
    categorical: Sequence[str] = (),
    numbers: Sequence[str] = (),
    dates: str = "ignore",
    skip_first: int = 0,
    skip_last: int = 0,
) -> Any:
    """Read a table with names of columns, and say what some of them are.

    `fit` recognises by itself what the columns of a data frame or a file are, as
    ``kplus fit`` does: it leaves out, with a warning, columns that name rows, dates,
    free text, constants and empty columns, and reads numbers that are written as text.
    Use this where it should do something else. Arrays of numpy are never touched.

    Parameters
    ----------
    X : data frame, path or open table
    keep : sequence of str
        Columns to use though they seem to name rows, to be free text or constant.
    drop : sequence of str
        Columns to leave out.
    categorical : sequence of str
        Columns to take as categories, whatever they look like.
    numbers : sequence of str
        Columns of text to read as numbers; cells that are none count as missing.
    dates : {"ignore", "parts", "age"}
        Leave out dates, or make columns of their parts, or of their age in days up to
        the latest one.
    skip_first, skip_last : int
        As in `open_files`.

    Returns
    -------
    table : object
        Give it to `fit`. A model remembers what it did, so that `predict` takes data
        frames and paths as they are.

    Examples
    --------
    >>> import pandas as pd
    >>> import kplus
    >>> frame = pd.DataFrame({"size": [1.0, 9.0] * 20, "joined": ["2026-01-05"] * 20
    ...                       + ["2026-03-09"] * 20})
    >>> model = kplus.DPMixture(random_state=0)
    >>> _ = model.fit(kplus.read_table(frame, dates="age"))
    >>> list(model.feature_names_in_)
    ['size', 'joined age (days)']
    >>> bool((model.predict(frame) == model.labels_).all())
    True
    """
    if dates not in _DATES:
        raise ValueError(f"dates must be one of {_DATES}, not {dates!r}.")
    if isinstance(X, (str, os.PathLike)):
        text = list(categorical)
        X = open_files(X, text=text, skip_first=skip_first, skip_last=skip_last)
    elif skip_first or skip_last:
        raise DataError("skip_first and skip_last are for files; slice a data frame.")
    table = open_data(X)
    if not (has_columns(table) or isinstance(table, FrameBlocks)):
        raise DataError("read_table takes tables with names of columns.")
    names = column_names(table)
    for name in (*keep, *drop, *categorical, *numbers):
        if name not in names:
            raise unknown_column("The table", name, names)
    table = _without(table, drop)
    wishes = Wishes(keep=keep, categorical=categorical, numbers=numbers, dates=dates)
    return as_read(_as_text(table, categorical), None, wishes)


def _without(table: Any, drop: Sequence[str]) -> Any:
    if not drop:
        return table
    if has_columns(table):
        return table.select([name for name in table.names if name not in drop])
    return FrameBlocks(table.frame.drop(list(drop)).to_native(), table.block_rows)


def _as_text(table: Any, names: Sequence[str]) -> Any:
    """Numbers that are to be categories as text."""
    if not names:
        return table
    if has_columns(table):
        from kplus.data.arrow import as_text

        return as_text(table, names)
    frame = table.frame.with_columns(nw.col(*names).cast(nw.String()))
    return FrameBlocks(frame.to_native(), table.block_rows)


def date_parts(
    frame: Any,
    how: str = "parts",
    *,
    cyclic: bool = False,
    latest: str | date | None = None,
) -> Any:
    """Replace the dates of a data frame by columns that models can use.

    Parameters
    ----------
    frame : data frame
        Of pandas, polars or Arrow. Dates may be text.
    how : {"parts", "age"}
        Year, month, weekday and hour, as far as these differ; or the age in days.
    cyclic : bool
        Months and weekdays as sine and cosine, for models that take numbers only,
        rather than as names.
    latest : str or date, optional
        The day up to which ages count; by default the latest of each column. Give it
        where new rows are to be read as those of the fit.

    Returns
    -------
    frame : data frame
        Of the same kind; all other columns are as they were.

    Examples
    --------
    >>> import pandas as pd
    >>> import kplus
    >>> frame = pd.DataFrame({"x": [1, 2], "day": ["2026-01-05", "2026-07-10"]})
    >>> kplus.date_parts(frame)
       x day month day weekday
    0  1       Jan         Mon
    1  2       Jul         Fri
    >>> kplus.date_parts(frame, "age", latest="2026-07-11")
       x  day age (days)
    0  1           187.0
    1  2             1.0
    """
    if how not in _DATES[1:]:
        raise ValueError(f"how must be one of {_DATES[1:]}, not {how!r}.")
    table = open_data(frame)
    if not isinstance(table, FrameBlocks):
        raise DataError("date_parts takes a data frame.")
    made = makers_of_dates(table, Wishes(dates=how, numbers_only=cyclic))
    if latest is not None:
        made = {name: _until(makers, latest) for name, makers in made.items()}
    return Reading(made=made).apply(table).frame.to_native()


def _until(makers: dict[str, Any], latest: str | date) -> dict[str, Any]:
    days = np.datetime64(latest if isinstance(latest, str | datetime) else str(latest))
    since = float(days.astype("datetime64[s]").astype(np.int64)) / 86_400.0
    return {
        name: DateNumbers("age", latest=since, text=maker.text)
        if maker.what == "age"
        else maker
        for name, maker in makers.items()
    }
