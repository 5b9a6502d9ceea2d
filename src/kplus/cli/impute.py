"""``kplus impute``: fill the gaps of a table, by a saved model or one fitted to it.

The table is read and written part by part. Columns that the model does not know, and
all that was observed, stay as they are.
"""

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from inspect import signature
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from kplus.base.answers import parts_of
from kplus.cli.console import CommandError, count, notes_for_warnings, report, status
from kplus.cli.fit import fit_model, read_to_fit
from kplus.cli.models import make_model
from kplus.cli.options import COMMANDS, OPTIONS, Options
from kplus.cli.original import Ahead, Original, needs_quotes
from kplus.cli.output import check_file, opened, write_tables
from kplus.cli.predict import read_for
from kplus.cli.resources import allowed
from kplus.cli.scaling import scaling_of
from kplus.cli.tables import Table, from_stdin
from kplus.core.reading import read_all
from kplus.data.arrow import is_categorical, plain_type, replaced
from kplus.data.text_numbers import BLANKS
from kplus.persist.save import load

__all__ = ["impute"]

_DRAW = "draw"  # the column that tells tables apart
_OF_A_FIT = (
    *("index", "columns", "drop", "categorical", "numbers", "keep", "weights"),
)


def impute(options: Options) -> None:
    """Run the command."""
    check_file(options.output, options.force)
    if options.draws is not None and options.draws < 1:
        raise CommandError(f"--draws must be at least 1, not {options.draws}.")
    options.data = options.table or options.model_or_data
    with allowed(options), from_stdin(options):
        job = _fitted(options) if options.table is None else _loaded(options)
        with status("Filling gaps", options.quiet), notes_for_warnings(options.quiet):
            if options.output is None and options.json:
                job.run(options.draws, options.draw_seed, True)
            else:
                tables = job.tables(options.draws, options.draw_seed)
                with opened(options.output) as (file, kind):
                    if kind == "csv":
                        tables = map(_plain, tables)
                    write_tables(tables, file, kind, job.needs_quotes())
    _report(options, job)


def _report(options: Options, job: "_Filling") -> None:
    counts = job.n_filled
    values, columns = (
        count(int(n), noun)
        for n, noun in ((counts.sum(), "value"), (np.count_nonzero(counts), "column"))
    )
    words = f"Filled {values} in {columns}" if counts.any() else "No value was missing"
    words += "." if options.draws is None else f", {count(options.draws, 'time')}."
    result: dict[str, Any] = {}
    if options.json:
        names = job.table.column_names
        result = {
            "n_rows": job.table.source.n_rows,
            "n_filled": int(counts.sum()),
            "columns": {n: int(c) for n, c in zip(names, counts, strict=True) if c},
        }
        if options.output is None:
            result["values"] = job.values
        else:
            result["files"] = {"table": os.fspath(options.output)}
    files = [] if options.output is None else [f"Wrote {options.output}"]
    report(options, result, [words, *files])


# --------------------------------------------------------------------- models


def _loaded(options: Options) -> "_Filling":
    """By a model file, which knows its columns."""
    for name in _OF_A_FIT:
        if getattr(options, name):
            raise CommandError(
                f"--{name} is for a table that a model is fitted to; "
                f"{options.model_or_data} knows its columns. Leave one of them out."
            )
    path = options.model_or_data
    model = load(path)
    if not hasattr(model, "impute"):
        raise CommandError(
            f"{path} holds a {type(model).__name__}, which does not fill gaps; kplus "
            f"fit --model dp-mixture, craft, meibp, ibp-gibbs or ibp-variational makes "
            f"a model that does."
        )
    can_draw = "n_draws" in signature(model.impute).parameters
    if options.draws is not None and not can_draw:
        raise CommandError(
            f"--draws is for models of dp-mixture and craft; a {type(model).__name__} "
            f"fills gaps with what it expects. Leave it out."
        )
    table, X = read_for(model, options, None)
    return _Filling(model, table, X, options)


def _fitted(options: Options) -> "_Filling":
    """By the default mixture, fitted to the table itself."""
    path = options.data
    if path.suffix == ".kplus":
        raise CommandError(
            f"{path} is a model; name the table, too: kplus impute MODEL DATA."
        )
    names = COMMANDS["fit"].options.split()
    given = {name: OPTIONS[name].default for name in names} | vars(options)
    of_fit = Options(**given | {"seed": options.draw_seed})
    model = make_model(of_fit)
    with status(f"Reading {path}", options.quiet):
        table, _ = read_to_fit(of_fit, model)
    fit_model(of_fit, model, table, begun=False)
    if table.reading:
        model.reading_ = table.reading
    return _Filling(model, table, table.data, options)


# --------------------------------------------------------------------- tables


@dataclass
class _Filling:
    """A model, a table, and what was filled in on the way."""

    model: Any
    table: Table
    X: Any  # as the model takes it
    options: Options
    n_filled: NDArray[np.int64] = field(init=False)  # of each column
    values: list[dict[str, Any]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.n_filled = np.zeros(self.table.source.n_features, np.int64)
        self._original = Original(self.options.data, self.table, as_read=True)
        if self.options.draws is not None and _DRAW in self._original.names:
            raise CommandError(
                f"--draws adds a column {_DRAW!r}, but {self.options.data} has one; "
                f"rename it."
            )

    def needs_quotes(self) -> bool:
        """Whether some text has to be quoted in CSV."""
        coding = self.table.coding
        for categories in () if coding is None else coding.categories:
            if needs_quotes(pa.array(map(str, categories or ()), pa.string())):
                return True
        return self._original.needs_quotes()

    def run(self, draws: int | None, seed: int, keep: bool = False) -> None:
        """Fill in without writing."""
        for _ in self.tables(draws, seed, keep):
            pass

    def tables(self, draws: int | None, seed: int, keep: bool = False) -> Iterator[Any]:
        """Arrow tables one below the other; `keep` notes the values, too."""
        rng = np.random.default_rng(seed)
        for draw in range(draws or 1):
            start, ahead = 0, self._original.ahead()
            for part in parts_of(self.model, self.X)[1]:
                gaps = np.isnan(read_all(part))
                if draws is None:
                    answer = self.model.impute(part)
                else:
                    answer = self.model.impute(part, n_draws=1, random_state=rng)[0]
                columns = self._filled(_Answer(answer, self), gaps, ahead)
                if draw == 0:
                    self.n_filled += gaps.sum(axis=0)
                if keep:
                    self._keep(columns, gaps, start, None if draws is None else draw)
                if draws is not None:
                    columns = {_DRAW: pa.array(np.full(len(gaps), draw))} | columns
                yield pa.table(columns)
                start += len(gaps)

    def _filled(
        self, answer: "_Answer", gaps: NDArray[np.bool_], ahead: dict[str, Ahead]
    ) -> dict[str, Any]:
        """All columns of some rows; takes from `gaps` what is none."""
        columns = {name: column.take(len(gaps)) for name, column in ahead.items()}
        for j, name in enumerate(self.table.column_names):
            if name not in columns:  # there are no files of columns
                columns[name] = pa.array(answer.column(j))
                continue
            if answer.is_category(j):  # else one that the fit has not seen
                gaps[:, j] &= _is_missing(columns[name])
            rows = np.flatnonzero(gaps[:, j])
            if len(rows):
                columns[name] = replaced(columns[name], rows, answer.column(j)[rows])
        return columns

    def _keep(
        self,
        columns: dict[str, Any],
        gaps: NDArray[np.bool_],
        start: int,
        draw: int | None,
    ) -> None:
        names = self.table.column_names
        which = {} if draw is None else {_DRAW: draw}
        self.values += [
            which
            | {
                "row": start + i,
                "column": names[j],
                "value": columns[names[j]][i].as_py(),
            }
            for i, j in np.argwhere(gaps).tolist()
        ]


class _Answer:
    """Columns of what a model filled in, in the units of the table."""

    def __init__(self, rows: Any, of: _Filling) -> None:
        self._rows, self._coding = rows, of.table.coding
        if nw.dependencies.is_into_dataframe(rows):
            self._rows = nw.from_native(rows, eager_only=True)
        self._scaling = scaling_of(of.model)

    def is_category(self, j: int) -> bool:
        return self._coding is not None and self._coding.categories[j] is not None

    def column(self, j: int) -> NDArray[Any]:
        values: NDArray[Any] = np.asarray(self._rows[:, j])
        if self._scaling is None or self.is_category(j):
            return values
        return np.asarray(values * self._scaling["scale"][j] + self._scaling["mean"][j])


def _is_missing(column: Any) -> NDArray[np.bool_]:
    """Where a column of categories has no value, or what stands for none."""
    plain = column.cast(plain_type(column.type))
    missing = plain.is_null()
    if is_categorical(plain.type) and not pa.types.is_boolean(plain.type):
        blanks = pa.array(BLANKS, plain.type)
        missing = pc.or_(missing, pc.is_in(pc.utf8_trim_whitespace(plain), blanks))
    where: NDArray[np.bool_] = missing.to_numpy()
    return where


def _plain(table: Any) -> Any:
    """Text and numbers where Arrow has dictionaries, which CSV files have not."""
    columns = [column.cast(plain_type(column.type)) for column in table.columns]
    return pa.table(columns, names=table.column_names)
