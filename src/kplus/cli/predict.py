"""``kplus predict``: give rows of a table the clusters or features of a saved model."""

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from kplus.base.answers import parts_of
from kplus.cli.console import CommandError, note, notes_for_warnings, status
from kplus.cli.models import feature_answers, model_of
from kplus.cli.options import Options
from kplus.cli.output import check_file, check_index_name, opened, write_rows
from kplus.cli.resources import allowed
from kplus.cli.scaling import ScaledBlocks, profile_columns, takes_missing
from kplus.cli.tables import Choice, Table, read_table
from kplus.core.errors import ColumnChoiceError, ModelFormatError
from kplus.data.categories import Coding
from kplus.data.paths import find_files

__all__ = ["input_for", "predict", "read_for", "scaling_of"]


def predict(options: Options) -> None:
    """Run the command."""
    from kplus.persist.save import load

    check_file(options.output, options.force)
    with allowed(options):
        model = load(options.model_file)
        if options.proba:
            _check_proba(model)
        with status(f"Reading {options.data}", options.quiet):
            table = read_for(model, options.data, options.index)
        X = input_for(model, table)
        with status("Labelling", options.quiet), notes_for_warnings(options.quiet):
            result = _answer(model, X, table, options)
    if options.json:
        print(json.dumps({"n_rows": table.source.n_rows} | result, allow_nan=False))
    elif options.output is not None and not options.quiet:
        note(f"Wrote {options.output}")


def _answer(model: Any, X: Any, table: Table, options: Options) -> dict[str, Any]:
    """Write or print the answers, some rows after the other; return what JSON has."""
    if options.output is None and options.json:
        answers = _answers(model, X, options.proba)
        return {kind: values.tolist() for kind, values in answers.items()}
    _, parts = parts_of(model, X)
    pieces = (_answers(model, part, options.proba) for part in parts)
    with opened(options.output) as (file, kind):
        write_rows(table, pieces, file, kind)
    if options.output is None:
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


# ------------------------------------------------- tables for a saved model


def read_for(model: Any, path: Path, index: str | None) -> Table:
    """Open a file with the columns of the model, in their order, and check it."""
    scaling = scaling_of(model)
    names = getattr(model, "feature_names_in_", None)
    if scaling is not None:
        names = scaling["columns"]
    kind = find_files(path).kind
    expected = None
    if names is not None and kind not in ("npy", "zarr"):
        expected = [str(name) for name in names]
    coding = _coding(model, expected)
    columns: list[str] | None = None
    text: Sequence[str] = ()
    if kind != "rows":  # where columns were chosen before
        columns, text = expected, () if coding is None else coding.text_names
    choice = Choice(
        index,
        columns,
        categorical=text,
        accepts="numbers" if coding is None else "mixed",
        coding=coding,
        unknown=getattr(model, "handle_unknown", "error"),
        empty=takes_missing(model),
    )
    try:
        table = read_table(path, choice)
    except ColumnChoiceError as error:
        needed = _listed(columns or ())
        raise CommandError(f"{error} The model needs {needed}.") from error
    check_index_name(table)
    if None not in (expected, table.names) and table.names != expected:
        raise CommandError(
            f"{path} has the columns {_listed(table.names or ())}. The model needs "
            f"{_listed(expected or ())}, in this order."
        )
    if table.source.n_features != model.n_features_in_:
        raise CommandError(
            f"{path} has {table.source.n_features} columns, but the model was "
            f"fitted on {model.n_features_in_}."
        )
    profile_columns(table, model)  # before anything is printed
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


def scaling_of(model: Any) -> dict[str, Any] | None:
    """Return what ``kplus fit --scale`` stored, checked."""
    scaling = getattr(model, "scaling_", None)
    if scaling is None:
        return None
    try:
        shapes = {scaling[key].shape for key in ("mean", "scale")}
        names = scaling["columns"]
        good = shapes == {(model.n_features_in_,)} and (
            names is None or len(names) == model.n_features_in_
        )
    except (TypeError, KeyError, AttributeError):
        good = False
    if not good:
        raise ModelFormatError("The model's scaling is not that of its columns.")
    return dict(scaling)


def input_for(model: Any, table: Table) -> Any:
    """What the model takes: the table, in the units of the fit."""
    scaling = scaling_of(model)
    if scaling is None:
        return table.data
    mean, scale = scaling["mean"], scaling["scale"]
    return ScaledBlocks(table.source, mean, scale, table.names, table.coding)
