"""``kplus fit``: cluster a table and write labels, model and picture."""

import json
import math
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kplus.cli.console import CommandError, count, note, notes_for_warnings, status
from kplus.cli.output import (
    check_folder,
    check_index_name,
    label_table,
    staged_folder,
    write_labels,
)
from kplus.cli.progress import PassProgress
from kplus.cli.scaling import Profile, ScaledBlocks, profile, scale_hint, scaling_record
from kplus.cli.summary import cluster_records, finite, print_clusters
from kplus.cli.tables import Choice, Table, column_names, read_table
from kplus.core.types import Blocks

__all__ = ["FitOptions", "fit"]

MODELS = {"dp-means": "DPMeans"}
"""Names of the models on the command line, and their classes."""

_OUTPUTS = ("labels.csv", "labels.parquet", "model.kplus", "clusters.png")
_MAX_DRAWN = 5000


@dataclass(frozen=True)
class FitOptions:
    """What the user asked for; the help of ``kplus fit`` tells what it means."""

    data: Path
    outdir: Path
    model: str
    penalty: float | None
    clusters: int | None
    choice: Choice
    categorical: tuple[str, ...]
    scale: bool
    format: str
    seed: int
    restarts: int
    jobs: int | None
    max_iter: int | None
    plot: bool
    json: bool
    quiet: bool
    force: bool


def fit(options: FitOptions) -> None:
    """Run the command."""
    _check(options)
    check_folder(options.outdir, _OUTPUTS, options.force)
    if options.plot:
        from kplus.plots.style import require_matplotlib

        require_matplotlib()  # better now than after the fit
    silent = options.quiet
    with status(f"Reading {options.data}", silent):
        table = read_table(options.data, options.choice)
        names = column_names(table)
        found = profile(table.source, names)
    _check_against(table, options)
    hint = None if options.scale else scale_hint(found, names)
    if hint and not silent:
        note(hint)
    source, X = table.source, table.data
    if options.scale:
        source = ScaledBlocks(source, found.mean, found.scale, table.names)
        X = source.whole()
    with staged_folder(options.outdir, _OUTPUTS) as folder:
        model, seconds = _fit_model(options, X)
        if not silent and hasattr(model, "path_") and not model.path_.is_clear:
            note(
                f"The number of clusters is not clear-cut: {model.n_clusters_} holds "
                f"over the widest range of penalties, an information criterion would "
                f"take {model.path_.by_bic}. Compare a few with --clusters."
            )
        files = _write(options, table, source, found, model, folder)
    records = cluster_records(
        source, model.labels_, model.cluster_centers_, found, options.scale, names
    )
    _report(options, _result(options, table, model, seconds, files, records))


def _check(options: FitOptions) -> None:
    """Refuse options that cannot be met, whatever the data."""
    penalty, clusters = options.penalty, options.clusters
    if options.model not in MODELS:
        raise CommandError(
            f"There is no model {options.model!r}; there is {', '.join(MODELS)}."
        )
    if options.categorical:
        raise CommandError(
            f"{options.model} clusters numbers and cannot take categories such as "
            f"{options.categorical[0]!r}; craft, a model for mixed data, will. "
            f"Until then leave such columns out with --drop."
        )
    if penalty is not None and clusters is not None:
        raise CommandError("Give --penalty or --clusters, not both.")
    if penalty is not None and not (penalty > 0 and math.isfinite(penalty)):
        raise CommandError(f"--penalty must be a positive number, not {penalty}.")
    for name in ("clusters", "restarts", "max_iter"):
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


def _check_against(table: Table, options: FitOptions) -> None:
    check_index_name(table)
    n_rows = table.source.n_rows
    if options.clusters is not None and options.clusters > n_rows:
        raise CommandError(
            f"--clusters {options.clusters} is more than the {n_rows} rows of "
            f"{options.data}."
        )


def _fit_model(options: FitOptions, X: Any) -> tuple[Any, float]:
    """Return the fitted model and the seconds that it took."""
    import kplus

    model = getattr(kplus, MODELS[options.model])(
        penalty="auto" if options.penalty is None else options.penalty,
        n_clusters=options.clusters,
        n_init=options.restarts,
        n_jobs=options.jobs,
        random_state=options.seed,
    )
    if options.max_iter is not None:
        model.set_params(max_iter=options.max_iter)
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
    return model, seconds


def _write(
    options: FitOptions,
    table: Table,
    source: Blocks,
    found: Profile,
    model: Any,
    folder: Path,
) -> dict[str, str]:
    """Write all files to `folder`; return where they will be in the end."""
    from kplus.io.save import save

    if options.scale:
        model.scaling_ = scaling_record(table.names, found)
    names = {"labels": f"labels.{options.format}", "model": "model.kplus"}
    with open(folder / names["labels"], "xb") as file:
        write_labels(label_table(table, model.labels_), file, options.format)
    save(model, folder / names["model"])
    if options.plot:
        names["plot"] = "clusters.png"
        _draw(model, source, folder / names["plot"])
    return {kind: str(options.outdir / name) for kind, name in names.items()}


def _draw(model: Any, source: Blocks, path: Path) -> None:
    # A figure of its own, without pyplot: no screen is needed or touched.
    from matplotlib.figure import Figure

    from kplus.plots import ClusterDisplay

    figure = Figure(figsize=(8, 5), layout="constrained")
    ClusterDisplay.from_predictions(
        source,
        model.labels_,
        centers=model.cluster_centers_,
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
        "objective": finite(model.objective_),
        "penalty": finite(model.penalty_),
        "iterations": int(model.n_iter_),
        "seconds": seconds,
        "scaled": options.scale,
        "files": files,
        "clusters": records,
    }


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
    # A number of clusters that was asked for comes without a penalty.
    penalty = f"penalty {result['penalty']:.6g}, " if options.clusters is None else ""
    return (
        f"{options.model}: {clusters} of {rows}, {columns}{scaled}\n"
        f"{penalty}objective {result['objective']:.6g}, "
        f"{count(result['iterations'], 'pass')} in {result['seconds']:.2f} s"
    )
