"""``kplus predict``: give rows the clusters or features of a saved model."""

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kplus.base.answers import parts_of
from kplus.cli.console import CommandError, note, notes_for_warnings, report, status
from kplus.cli.models import model_of
from kplus.cli.options import Options
from kplus.cli.output import check_file, check_index_name, opened, write_rows
from kplus.cli.resources import allowed
from kplus.cli.scaling import (
    profile_columns,
    scaled_table,
    scaling_of,
    takes_missing,
)
from kplus.cli.tables import Choice, Table, from_stdin, read_table, skipped
from kplus.core.errors import ColumnChoiceError
from kplus.data.categories import Coding
from kplus.data.open import has_columns
from kplus.data.paths import find_files
from kplus.data.reading import Reading, odd_words
from kplus.persist.save import load

__all__ = ["feature_answers", "predict", "read_for", "take_unknown"]


def predict(options: Options) -> None:
    """Run the command."""
    check_file(options.output, options.force)
    if options.append and options.json and options.output is None:
        raise CommandError("--append writes a table: give its name with -o.")
    with allowed(options), from_stdin(options):
        model = load(options.model_file)
        take_unknown(model, options.unknown)
        if options.proba:
            _check_proba(model)
        table, X = read_for(model, options, options.index)
        with status("Labelling", options.quiet), notes_for_warnings(options.quiet):
            result = _answer(model, X, table, options)
    report(options, {"n_rows": table.source.n_rows} | result, _files(options))


def _files(options: Options) -> list[str]:
    return [] if _prints(options) else [f"Wrote {options.output}"]


def _prints(options: Options) -> bool:
    """Whether answers go to standard output."""
    return options.output is None or str(options.output) == "-"


def take_unknown(model: Any, unknown: str | None) -> None:
    """Tell a model what to make of categories that the fit has not seen."""
    if unknown is None:
        return
    if unknown not in ("error", "missing"):
        raise CommandError(f"--unknown is error or missing, not {unknown!r}.")
    if not hasattr(model, "handle_unknown"):
        raise CommandError(
            f"--unknown is for models of tables with categories; a "
            f"{type(model).__name__} has none. Leave it out."
        )
    model.handle_unknown = unknown


def _answer(model: Any, X: Any, table: Table, options: Options) -> dict[str, Any]:
    """Write or print the answers, some rows after the other; return what JSON has."""
    if _prints(options) and options.json:
        answers = _answers(model, X, options.proba)
        return {kind: values.tolist() for kind, values in answers.items()}
    _, parts = parts_of(model, X)
    pieces = (_answers(model, part, options.proba) for part in parts)
    with opened(options.output) as (file, kind):
        write_rows(table, pieces, file, kind, options.data if options.append else None)
    if _prints(options):
        return {}
    return {"files": {model_of(model).main: os.fspath(options.output)}}


def _check_proba(model: Any) -> None:
    """Refuse to give probabilities that a model does not have."""
    known = model_of(model)
    if hasattr(model, "predict_proba") or known.probabilities:
        return
    clusters = known.finds == "clusters"
    plain = "is in one cluster" if clusters else "has a feature or has it not"
    raise CommandError(f"--proba: a {known.estimator} has no shares; a row {plain}.")


def _answers(model: Any, X: Any, proba: bool) -> dict[str, NDArray[Any]]:
    """What the model says of each row."""
    if model_of(model).finds == "features":
        answers = feature_answers(model, X)
        return answers if proba else {"features": answers["features"]}
    answers = {"labels": model.predict(X)}
    return answers | {"shares": model.predict_proba(X)} if proba else answers


def feature_answers(model: Any, X: Any) -> dict[str, NDArray[Any]]:
    """Which features each row has, as zeros and ones; probabilities if there are."""
    Z = model.transform(X)
    if getattr(model, "sparse_output", False):  # such a model was saved in Python
        Z = Z.toarray()
    answers = {"features": np.asarray(Z > 0.5, dtype=np.uint8)}
    return answers | {"probabilities": Z} if model_of(model).probabilities else answers


# ------------------------------------------------- tables for a saved model


def read_for(model: Any, options: Options, index: str | None) -> tuple[Table, Any]:
    """The columns of the model, in their order; and what the model takes of them."""
    path, scaling = options.data, scaling_of(model)
    names = getattr(model, "feature_names_in_", None)
    if scaling is not None:
        names = scaling["columns"]
    if names is not None:
        names = [str(name) for name in names]
    with status(f"Reading {path}", options.quiet):
        table = _open(model, path, index, names, skipped(options))
        if not getattr(options, "append", False):
            check_index_name(table)
        if table.source.n_features != model.n_features_in_:
            raise CommandError(
                f"{path} has {table.source.n_features} columns, but the model was "
                f"fitted on {model.n_features_in_}."
            )
        profile_columns(table, model)  # before anything is printed
    odd = table.data.odd_cells() if has_columns(table.data) else {}
    if odd and not options.quiet:
        note(odd_words(odd))
    if scaling is None:
        return table, table.data
    return table, scaled_table(table, scaling["mean"], scaling["scale"]).data


def _open(
    model: Any,
    path: Path,
    index: str | None,
    names: list[str] | None,
    skip: tuple[int, int],
) -> Table:
    """The file with the columns `names` of the model, where it has names."""
    kind = find_files(path).kind
    if kind in ("npy", "zarr"):
        names = None
    coding = _coding(model, names)
    choice = Choice(
        index,
        accepts="numbers" if coding is None else "mixed",
        coding=coding,
        unknown=getattr(model, "handle_unknown", "error"),
        empty=takes_missing(model),
        skip=skip,
    )
    if kind != "rows":  # where columns were chosen before
        reading = getattr(model, "reading_", None) or Reading()
        columns = None if names is None else reading.sources(names)
        text = [] if coding is None else coding.text_names
        made = {new for of in reading.made.values() for new in of}
        choice = replace(
            choice,
            columns=columns,
            categorical=[name for name in text if name not in made],
            reading=reading,
        )
    try:
        table = read_table(path, choice)
    except ColumnChoiceError as error:
        needed = _listed(choice.columns or ())
        raise CommandError(f"{error} The model needs {needed}.") from error
    if names is not None and table.names not in (None, names):
        raise CommandError(
            f"{path} has the columns {_listed(table.names or ())}. The model needs "
            f"{_listed(names)}, in this order."
        )
    return table


def _coding(model: Any, columns: Sequence[str] | None) -> Coding | None:
    """The categories of the model, by the names that the columns have in the file."""
    categories = getattr(model, "categories_", None)
    if categories is None or not hasattr(model, "feature_names_in_"):
        return None  # the model knows columns by their numbers, if there are categories
    if columns is None or len(columns) != len(categories):
        raise CommandError(
            "The model was fitted on a table with categories, so that it needs a file "
            "with the names of the columns."
        )
    return Coding(tuple(columns), categories)


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - 12} more" if len(names) > 12 else ""
    return ", ".join(map(repr, names[:12])) + more
