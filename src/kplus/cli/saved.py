"""A saved model, and tables that are opened for it."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from kplus.cli.console import CommandError
from kplus.cli.output import check_index_name
from kplus.cli.scaling import ScaledBlocks, profile
from kplus.cli.tables import Choice, Table, column_names, read_table
from kplus.core.errors import ModelFormatError
from kplus.sources.categories import Coding
from kplus.sources.paths import find_files

__all__ = ["input_for", "read_for", "scaling_of"]


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
    accepts = "numbers" if coding is None else "mixed"
    choice = Choice(
        index,
        columns,
        categorical=text,
        accepts=accepts,
        coding=coding,
        unknown=getattr(model, "handle_unknown", "error"),
        empty=_takes_missing(model),
    )
    try:
        table = read_table(path, choice)
    except CommandError as error:
        if columns is None:
            raise
        raise CommandError(f"{error} The model needs {_listed(columns)}.") from error
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
    _check_values(model, table)
    return table


def _check_values(model: Any, table: Table) -> None:
    """Refuse values that the model does not take, by the names of their columns."""
    missing = _takes_missing(model)
    profile(table.source, column_names(table), table.coding, takes_missing=missing)


def _takes_missing(model: Any) -> bool:
    from sklearn.utils import get_tags

    return bool(get_tags(model).input_tags.allow_nan)


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
