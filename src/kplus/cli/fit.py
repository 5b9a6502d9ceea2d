"""``kplus fit``: cluster a table and write labels, model and picture."""

import json
import math
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from kplus.cli.console import CommandError, count, note, notes_for_warnings, status
from kplus.cli.models import FitOptions, accepted, check_model, make_model
from kplus.cli.output import (
    check_folder,
    check_index_name,
    label_table,
    staged_folder,
    write_labels,
)
from kplus.cli.progress import PassProgress
from kplus.cli.scaling import (
    Profile,
    ScaledBlocks,
    category_columns,
    profile,
    scale_hint,
    scaling_record,
)
from kplus.cli.summary import (
    Rows,
    cluster_means,
    cluster_records,
    finite,
    print_clusters,
)
from kplus.cli.tables import Choice, Table, column_names, read_table
from kplus.core.types import Array, IntArray

__all__ = ["FitOptions", "fit"]

_OUTPUTS = ("labels.csv", "labels.parquet", "model.kplus", "clusters.png")
_MAX_DRAWN = 5000


def fit(options: FitOptions) -> None:
    """Run the command."""
    _check(options)
    check_folder(options.outdir, _OUTPUTS, options.force)
    if options.plot:
        from kplus.plots.style import require_matplotlib

        require_matplotlib()  # better now than after the fit
    silent = options.quiet
    with status(f"Reading {options.data}", silent):
        table = read_table(options.data, _choice(options))
        model = make_model(options, table.coding)
        found = _profile(table, model)
    names = column_names(table)
    _check_against(table, options)
    hint = None if options.scale else scale_hint(found, names)
    if hint and not silent and _weighs_scales(model):
        note(hint)
    source, X = table.source, table.data
    if options.scale:
        originals = category_columns(table.data, table.coding)
        source = ScaledBlocks(source, found.mean, found.scale, table.names, originals)
        X = source.whole()
    with staged_folder(options.outdir, _OUTPUTS) as folder:
        seconds = _fit_model(options, model, X)
        if not silent:
            _tell_unclear(model)
        if options.scale:
            model.scaling_ = scaling_record(table.names, found)
        rows = Rows(source, model.labels_, names, table.coding, found, options.scale)
        files = _write(options, table, rows, model, folder)
    centers = getattr(model, "cluster_centers_", None)
    records = cluster_records(rows, int(model.n_clusters_), centers)
    _report(options, _result(options, table, model, seconds, files, records))


def _choice(options: FitOptions) -> Choice:
    return replace(
        options.choice, categorical=options.categorical, accepts=accepted(options)
    )


def _profile(table: Table, model: Any) -> Profile:
    """What the columns hold; refuses what the model does not take."""
    from sklearn.utils import get_tags

    remedy = ""
    if hasattr(model, "observations"):
        remedy = " Or say --observations diag_gaussian, which takes missing values."
    return profile(
        table.source,
        column_names(table),
        table.coding,
        takes_missing=get_tags(model).input_tags.allow_nan,
        remedy=remedy,
    )


def _weighs_scales(model: Any) -> bool:
    """Whether a column of large numbers outweighs the others."""
    kind = getattr(model, "observations", "spherical_gaussian")
    return bool(kind == "spherical_gaussian")


def _tell_unclear(model: Any) -> None:
    if hasattr(model, "path_") and not model.path_.is_clear:
        note(
            f"The number of clusters is not clear-cut: {model.n_clusters_} holds "
            f"over the widest range of penalties, an information criterion would "
            f"take {model.path_.by_bic}. Compare a few with --clusters."
        )


def _check(options: FitOptions) -> None:
    """Refuse options that cannot be met, whatever the data."""
    penalty, clusters = options.penalty, options.clusters
    if penalty is not None and clusters is not None:
        raise CommandError("Give --penalty or --clusters, not both.")
    if clusters is not None and options.max_clusters is not None:
        raise CommandError("Give --clusters or --max-clusters, not both.")
    if penalty is not None and not (penalty > 0 and math.isfinite(penalty)):
        raise CommandError(f"--penalty must be a positive number, not {penalty}.")
    for name in ("clusters", "max_clusters", "restarts", "max_iter"):
        value = getattr(options, name)
        if value is not None and value < 1:
            option = name.replace("_", "-")
            raise CommandError(f"--{option} must be at least 1, not {value}.")
    if options.jobs == 0:
        raise CommandError("--jobs must be a number of threads, or -1 for all.")
    if not 0 <= options.seed < 2**32:
        raise CommandError(f"--seed must lie in 0 ... 2³² - 1, not {options.seed}.")
    if options.format not in ("csv", "parquet"):
        raise CommandError(f"--format is csv or parquet, not {options.format!r}.")
    check_model(options)


def _check_against(table: Table, options: FitOptions) -> None:
    check_index_name(table)
    n_rows = table.source.n_rows
    if options.clusters is not None and options.clusters > n_rows:
        raise CommandError(
            f"--clusters {options.clusters} is more than the {n_rows} rows of "
            f"{options.data}."
        )


def _fit_model(options: FitOptions, model: Any, X: Any) -> float:
    """Fit, and return the seconds that it took."""
    with (
        status("Clustering", options.quiet) as show,
        notes_for_warnings(options.quiet),
    ):
        if show is not None:
            model.set_callbacks(PassProgress(show))
        start = time.perf_counter()
        model.fit(X)
        seconds = time.perf_counter() - start
    model.set_callbacks()  # the progress is over
    return seconds


def _write(
    options: FitOptions, table: Table, rows: Rows, model: Any, folder: Path
) -> dict[str, str]:
    """Write all files to `folder`; return where they will be in the end."""
    from kplus.io.save import save

    names = {"labels": f"labels.{options.format}", "model": "model.kplus"}
    with open(folder / names["labels"], "xb") as file:
        write_labels(label_table(table, model.labels_), file, options.format)
    save(model, folder / names["model"])
    if options.plot and not len(rows.numbers):
        if not options.quiet:
            note("There is no picture: it would show numbers, and no column has any.")
    elif options.plot:
        names["plot"] = "clusters.png"
        _draw(model, rows, folder / names["plot"])
    return {kind: str(options.outdir / name) for kind, name in names.items()}


class _Numbers:
    """The columns of numbers, with the column's mean where a value is missing."""

    def __init__(self, rows: Rows) -> None:
        self._rows, self._columns = rows, rows.numbers
        self._fill = rows.found.mean[self._columns]
        if rows.scaled:
            self._fill = np.zeros(len(self._columns))
        self.n_rows, self.n_features = rows.source.n_rows, len(self._columns)
        self.block_rows = rows.source.block_rows
        names = getattr(rows.source, "feature_names", None)
        if names is not None:
            self.feature_names = [names[j] for j in self._columns]

    def read(self, index: int) -> Array:
        return self._filled(self._rows.source.read(index))

    def take(self, rows: IntArray) -> Array:
        return self._filled(self._rows.source.take(rows))

    def _filled(self, rows: Array) -> Array:
        values = rows[:, self._columns]
        out: Array = np.where(np.isnan(values), self._fill, values)
        return out


def _draw(model: Any, rows: Rows, path: Path) -> None:
    # A figure of its own, without pyplot: no screen is needed or touched.
    from matplotlib.figure import Figure

    from kplus.plots import ClusterDisplay

    centers = getattr(model, "cluster_centers_", None)
    if centers is None:
        centers = cluster_means(rows, int(model.n_clusters_))
    figure = Figure(figsize=(8, 5), layout="constrained")
    ClusterDisplay.from_predictions(
        _Numbers(rows),
        rows.labels,
        centers=centers,
        ax=figure.subplots(),
        max_points=_MAX_DRAWN,
    )
    figure.savefig(path, dpi=150)


def _result(
    options: FitOptions,
    table: Table,
    model: Any,
    seconds: float,
    files: dict[str, str],
    records: list[dict[str, Any]],
) -> dict[str, Any]:
    return {
        "model": options.model,
        "n_rows": table.source.n_rows,
        "n_features": table.source.n_features,
        "n_clusters": int(model.n_clusters_),
        **_measures(model),
        "iterations": int(model.n_iter_),
        "seconds": seconds,
        "scaled": options.scale,
        "files": files,
        "clusters": records,
    }


def _measures(model: Any) -> dict[str, Any]:
    """What the model judges its clusters by."""
    if hasattr(model, "lower_bound_"):
        return {
            "observations": model.observations,
            "lower_bound": finite(model.lower_bound_),
        }
    return {"objective": finite(model.objective_), "penalty": finite(model.penalty_)}


def _report(options: FitOptions, result: dict[str, Any]) -> None:
    if options.json:
        print(json.dumps(result, indent=2, allow_nan=False))
        return
    if options.quiet:
        return
    print_clusters(result["clusters"], _title(options, result))
    for path in result["files"].values():
        note(f"Wrote {path}")


def _title(options: FitOptions, result: dict[str, Any]) -> str:
    clusters = count(result["n_clusters"], "cluster")
    rows, columns = (
        count(result["n_rows"], "row"),
        count(result["n_features"], "column"),
    )
    scaled = " (standardised)" if options.scale else ""
    return (
        f"{options.model}: {clusters} of {rows}, {columns}{scaled}\n"
        f"{_measure_words(options, result)}, "
        f"{count(result['iterations'], 'pass')} in {result['seconds']:.2f} s"
    )


def _measure_words(options: FitOptions, result: dict[str, Any]) -> str:
    if "lower_bound" in result:
        per_row = result["lower_bound"] / result["n_rows"]
        return f"{result['observations']}, lower bound {per_row:.6g} nats a row"
    # A number of clusters that was asked for comes without a penalty.
    penalty = f"penalty {result['penalty']:.6g}, " if options.clusters is None else ""
    return f"{penalty}objective {result['objective']:.6g}"
