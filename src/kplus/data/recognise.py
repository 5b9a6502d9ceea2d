"""What the columns of a table are becomes how it is read."""

from dataclasses import replace
from typing import Any

import narwhals.stable.v2 as nw

from kplus.data.blocks import FrameBlocks
from kplus.data.coded_blocks import FileColumns, MemoryColumns
from kplus.data.dates import (
    DateFormat,
    DateNumbers,
    as_dates,
    latest_of,
    parts_of_interest,
)
from kplus.data.ends import odd_end
from kplus.data.reading import LEFT_OUT, Reading, YesNo
from kplus.data.roles import Role, Wishes, roles_of

__all__ = ["makers_of_dates", "recognised"]


def recognised(table: Any, wishes: Wishes) -> Any:
    """A table as it should be read; its `reading` says how that is.

    Parameters
    ----------
    table : FrameBlocks or Columns
    wishes : Wishes
    """
    frame = isinstance(table, FrameBlocks)
    columns: Any = MemoryColumns(table.frame) if frame else FileColumns(table)
    wishes = replace(wishes, keep=(*wishes.keep, *getattr(table, "kept", ())))
    names: list[str] = columns.names
    left: dict[str, str] = {}
    made: dict[str, dict[str, Any]] = {}
    notes: dict[str, str] = {}
    blanks: dict[str, str] = {}
    for j, (name, role) in enumerate(
        zip(names, roles_of(columns, wishes), strict=True)
    ):
        if role.note:
            notes[name] = role.note
        if role.blank:
            blanks[name] = role.blank
        makers = _makers(columns, j, role, wishes)
        if makers:
            made[name] = makers
        elif role.kind in LEFT_OUT:
            left[name] = role.kind
    if len(left) == len(names):  # rather constants than nothing
        left = {name: kind for name, kind in left.items() if kind != "constant"}
    reading = Reading(left, made, {}, notes, odd_end(columns), blanks)
    read = reading.apply(table)
    if made:
        read.reading = replace(reading, odd=read.odd_cells())
    return read


def makers_of_dates(table: Any, wishes: Wishes) -> dict[str, dict[str, Any]]:
    """What is made of the dates of a frame, by the names of their columns."""
    columns: Any = MemoryColumns(table.frame)
    made = {}
    for j, role in enumerate(roles_of(columns, wishes)):
        if role.kind == "dates":
            made[columns.names[j]] = _makers(columns, j, role, wishes)
    return made


def _makers(columns: Any, j: int, role: Role, wishes: Wishes) -> dict[str, Any]:
    """What is made of a column, by the names of the new ones; {}: it stays."""
    name: str = columns.names[j]
    if role.kind == "written numbers":
        return {name: role.form}
    if role.kind == "yes or no" and wishes.numbers_only:
        return {name: YesNo()}
    if wishes.dates == "ignore" and name in wishes.keep:
        wishes = replace(wishes, dates="parts")
    if role.kind != "dates" or wishes.dates == "ignore":
        return {}
    column = columns.head(j, columns.n_rows).column
    if column.dtype == nw.Duration:
        makers = [DateNumbers("days")]
    else:
        dates = as_dates(column, role.form)
        makers = _of_dates(dates, role.form, wishes)
    return {f"{name} {maker.suffix}": maker for maker in makers}


def _of_dates(dates: Any, form: DateFormat | None, wishes: Wishes) -> list[DateNumbers]:
    if wishes.dates == "age":
        return [DateNumbers("age", latest=latest_of(dates), text=form)]
    makers = []
    for part in parts_of_interest(dates):
        hows = ["names"] if part in ("month", "weekday") else ["sin", "cos"]
        if part == "year":
            hows = [""]
        elif wishes.numbers_only:
            hows = ["sin", "cos"]
        makers += [DateNumbers(part, how, text=form) for how in hows]
    return makers
