"""``kplus predict``: give rows of a table the clusters or features of a saved model."""

import json
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from kplus.cli.console import CommandError, note, notes_for_warnings, status
from kplus.cli.models import feature_bits, finds_features
from kplus.cli.output import check_index_name, row_table, write_labels
from kplus.cli.scaling import ScaledBlocks, category_columns, profile
from kplus.cli.tables import Choice, Table, column_names, read_table
from kplus.core.errors import ModelFormatError
from kplus.engine.categories import Coding

__all__ = ["PredictOptions", "predict"]

_KINDS = {".csv": "csv", ".parquet": "parquet", ".pq": "parquet"}


@dataclass(frozen=True)
class PredictOptions:
    """What the user asked for; the help of ``kplus predict`` tells what it means."""

    model: Path
    data: Path
    output: Path | None
    index: str | None
    proba: bool
    json: bool
    quiet: bool
    force: bool


def predict(options: PredictOptions) -> None:
    """Run the command."""
    kind = _check_output(options)
    from kplus.io.save import load

    model = load(options.model)
    if options.proba and not hasattr(model, "predict_proba"):
        plain = "has a feature or has it not"
        if not finds_features(model):
            plain = "is in one cluster"
        raise CommandError(
            f"--proba: a {type(model).__name__} has no shares; a row {plain}."
        )
    with status(f"Reading {options.data}", options.quiet):
        table = _read_for(model, options)
        _check_values(model, table)
    with status("Labelling", options.quiet), notes_for_warnings(options.quiet):
        X = _input_for(model, table)
        answers = _answers(model, X, options.proba)
    found = row_table(table, answers)
    if options.output is not None:
        _write(options.output, found, kind)
    elif not options.json:
        sys.stdout.flush()
        write_labels(found, sys.stdout.buffer, kind)
        sys.stdout.buffer.flush()
    if options.json:
        print(json.dumps(_result(options, table, answers), allow_nan=False))
    elif options.output is not None and not options.quiet:
        note(f"Wrote {options.output}")


def _answers(model: Any, X: Any, proba: bool) -> dict[str, NDArray[Any]]:
    """What the model says of each row."""
    if finds_features(model):
        return {"features": feature_bits(model, X)}
    answers = {"labels": model.predict(X)}
    return answers | {"shares": model.predict_proba(X)} if proba else answers


def _check_values(model: Any, table: Table) -> None:
    """Refuse values that the model does not take, by the names of their columns."""
    from sklearn.utils import get_tags

    takes_missing = get_tags(model).input_tags.allow_nan
    profile(
        table.source, column_names(table), table.coding, takes_missing=takes_missing
    )


def _check_output(options: PredictOptions) -> str:
    """Return the kind of output."""
    output = options.output
    if output is None:
        return "csv"
    kind = _KINDS.get(output.suffix.lower())
    if kind is None:
        raise CommandError(f"{output}: -o needs a name in {', '.join(_KINDS)}.")
    if output.is_dir():
        raise CommandError(f"{output} is a folder; -o needs the name of a file.")
    if output.exists() and not options.force:
        raise CommandError(f"{output} is there already; --force replaces it.")
    return kind


def _read_for(model: Any, options: PredictOptions) -> Table:
    """Open the data with the columns of the model, in their order."""
    scaling = _scaling(model)
    names = getattr(model, "feature_names_in_", None)
    if scaling is not None:
        names = scaling["columns"]
    columns = None
    if names is not None and options.data.suffix.lower() != ".npy":
        columns = [str(name) for name in names]
    coding = _coding(model, columns)
    text = () if coding is None else coding.text_names
    accepts = "numbers" if coding is None else "mixed"
    choice = Choice(
        options.index,
        columns,
        categorical=text,
        accepts=accepts,
        coding=coding,
        unknown=getattr(model, "handle_unknown", "error"),
    )
    try:
        table = read_table(options.data, choice)
    except CommandError as error:
        if columns is None:
            raise
        raise CommandError(f"{error} The model needs {_listed(columns)}.") from error
    check_index_name(table)
    if table.source.n_features != model.n_features_in_:
        raise CommandError(
            f"{options.data} has {table.source.n_features} columns, but the model was "
            f"fitted on {model.n_features_in_}."
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


def _scaling(model: Any) -> dict[str, Any] | None:
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


def _input_for(model: Any, table: Table) -> Any:
    scaling = _scaling(model)
    if scaling is None:
        return table.data
    mean, scale = scaling["mean"], scaling["scale"]
    originals = category_columns(table.data, table.coding)
    return ScaledBlocks(table.source, mean, scale, table.names, originals).whole()


def _write(path: Path, found: Any, kind: str) -> None:
    from kplus.io.atomic import atomic_file

    with atomic_file(path) as file:
        write_labels(found, file, kind)


def _result(
    options: PredictOptions, table: Table, answers: dict[str, NDArray[Any]]
) -> dict[str, Any]:
    result: dict[str, Any] = {"n_rows": table.source.n_rows}
    if options.output is None:
        return result | {kind: values.tolist() for kind, values in answers.items()}
    main = next(iter(answers))
    return result | {"files": {main: os.fspath(options.output)}}
