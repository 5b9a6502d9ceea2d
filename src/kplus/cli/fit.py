"""``kplus fit``: find clusters or features in a table, and write what was found.

What is common is here; the classes of `Findings` know what differs.
"""

import json
import math
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from kplus.cli.clusters import Clusters
from kplus.cli.console import CommandError, count, note, notes_for_warnings, status
from kplus.cli.craft import DescribedClusters
from kplus.cli.features import Features
from kplus.cli.ibp import BuffetFindings
from kplus.cli.interrupted import (
    check_new,
    go_on,
    interruption,
    kept_command,
    note_command,
)
from kplus.cli.models import (
    FitOptions,
    accepted,
    check_model,
    finds_features,
    has_buffet,
    make_model,
)
from kplus.cli.output import (
    check_folder,
    check_index_name,
    staged_folder,
    write_labels,
    write_rows,
)
from kplus.cli.progress import PassProgress
from kplus.cli.resources import allowed
from kplus.cli.scaling import (
    Profile,
    ScaledBlocks,
    profile,
    scale_hint,
    scaling_record,
)
from kplus.cli.summary import Findings, Rows
from kplus.cli.tables import Choice, Table, column_names, read_table

__all__ = ["FitOptions", "fit"]

_OUTPUTS = (
    "labels.csv",
    "labels.parquet",
    "clusters.png",
    "description.csv",
    "features.csv",
    "features.parquet",
    "components.csv",
    "features.png",
    "model.kplus",
)
"""All that any run may write: a new one replaces the whole of an earlier one."""


def fit(options: FitOptions) -> None:
    """Run the command."""
    _check(options)
    check_folder(options.outdir, _OUTPUTS, options.force)
    check_new(options)
    if options.plot:
        from kplus.plots.display import require_matplotlib

        require_matplotlib()  # better now than after the fit
    with allowed(options):
        _run(options)


def _run(options: FitOptions) -> None:
    with status(f"Reading {options.data}", options.quiet):
        table = read_table(options.data, _choice(options))
        model = make_model(options, table.coding)
        found = _profile(table, model)
    _check_against(table, options)
    if not (options.scale or options.quiet) and _weighs_scales(options, model):
        _hint(options, table, found)
    source, X = table.source, table.data
    if options.scale:
        X = source = ScaledBlocks(
            source, found.mean, found.scale, table.names, table.coding
        )
    with kept_command(options):
        with staged_folder(options.outdir, _OUTPUTS) as folder:
            seconds, ended = _fit_model(options, model, X)
            if options.scale:
                model.scaling_ = scaling_record(table.names, found)
            rows = Rows(source, column_names(table), table.coding, found, options.scale)
            findings = _findings(options, model, rows, X)
            files = _write(options, table, findings, model, folder)
        if not ended and options.checkpoint is not None:
            note_command(replace(options, force=True))  # going on replaces the files
        _tell(options, findings)
        result = _result(options, model, rows, findings, seconds, files)
        _report(options, findings, result)
        if not ended:
            raise interruption(options, model.n_iter_)


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


def _weighs_scales(options: FitOptions, model: Any) -> bool:
    """Whether a column of large numbers outweighs the others."""
    if options.model == "craft":
        return False
    kind = getattr(model, "observations", "spherical_gaussian")
    return bool(kind == "spherical_gaussian")


def _hint(options: FitOptions, table: Table, found: Profile) -> None:
    hint = scale_hint(found, column_names(table))
    if hint:
        with_it = " Say --negative shift with it." if options.nonnegative else ""
        note(f"{hint}{with_it}")


def _check(options: FitOptions) -> None:
    """Refuse options that cannot be met, whatever the data."""
    penalty, clusters, groups = options.penalty, options.clusters, options.groups
    if penalty is not None and clusters is not None:
        raise CommandError(f"Give --penalty or --{groups}, not both.")
    if clusters is not None and options.max_clusters is not None:
        raise CommandError(f"Give --{groups} or --max-{groups}, not both.")
    if penalty is not None and not (penalty > 0 and math.isfinite(penalty)):
        raise CommandError(f"--penalty must be a positive number, not {penalty}.")
    for name in ("clusters", "max_clusters", "restarts", "max_iter"):
        value = getattr(options, name)
        if value is not None and value < 1:
            option = name.replace("clusters", groups).replace("_", "-")
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
            f"--{options.groups} {options.clusters} is more than the {n_rows} rows of "
            f"{options.data}."
        )


def _fit_model(options: FitOptions, model: Any, X: Any) -> tuple[float, bool]:
    """Fit; return the seconds that it took, and whether it came to its end."""
    doing = "Finding features" if finds_features(model) else "Clustering"
    ended = True
    with status(doing, options.quiet) as show, notes_for_warnings(options.quiet):
        if show is not None:
            model.set_callbacks(PassProgress(show, doing))
        start = time.perf_counter()
        try:
            if options.resume and options.checkpoint is not None:
                go_on(model, X, options.checkpoint)
            else:
                model.fit(X, checkpoint=options.checkpoint)
        except KeyboardInterrupt as stop:
            if not model.__sklearn_is_fitted__():
                raise interruption(options, None) from stop
            ended = False
        seconds = time.perf_counter() - start
    model.set_callbacks()  # the progress is over
    return seconds, ended


def _findings(options: FitOptions, model: Any, rows: Rows, X: Any) -> Findings:
    if has_buffet(model):
        return BuffetFindings(model, rows, X)
    if finds_features(model):
        return Features(model, rows, X)
    if options.model == "craft":
        return DescribedClusters(model, rows)
    return Clusters(model, rows)


def _write(
    options: FitOptions, table: Table, findings: Findings, model: Any, folder: Path
) -> dict[str, str]:
    """Write all files to `folder`; return where they will be in the end."""
    from kplus.io.save import save

    main = findings.main
    names = {main: f"{main}.{options.format}"}
    with open(folder / names[main], "xb") as file:
        write_rows(table, findings.pieces(), file, options.format)
    for kind, part in findings.tables().items():
        names[kind] = f"{kind}.csv"
        with open(folder / names[kind], "xb") as file:
            write_labels(part, file, "csv")
    names["model"] = "model.kplus"
    save(model, folder / names["model"])
    if options.plot and findings.no_picture() is None:
        names["plot"] = findings.picture
        findings.draw(folder / names["plot"])
    return {kind: str(options.outdir / name) for kind, name in names.items()}


def _tell(options: FitOptions, findings: Findings) -> None:
    if options.quiet:
        return
    for words in findings.notes():
        note(words)
    why = findings.no_picture() if options.plot else None
    if why is not None:
        note(why)


def _result(
    options: FitOptions,
    model: Any,
    rows: Rows,
    findings: Findings,
    seconds: float,
    files: dict[str, str],
) -> dict[str, Any]:
    return {
        "model": options.model,
        "n_rows": rows.source.n_rows,
        "n_features": rows.source.n_features,
        **findings.measures(),
        "iterations": int(model.n_iter_),
        "seconds": seconds,
        "scaled": options.scale,
        "files": files,
        **findings.records(),
    }


def _report(options: FitOptions, findings: Findings, result: dict[str, Any]) -> None:
    if options.json:
        print(json.dumps(result, indent=2, allow_nan=False))
        return
    if options.quiet:
        return
    findings.print(_title(options, findings, result))
    for path in result["files"].values():
        note(f"Wrote {path}")


def _title(options: FitOptions, findings: Findings, result: dict[str, Any]) -> str:
    found, measures = findings.title()
    rows, columns = (
        count(result["n_rows"], "row"),
        count(result["n_features"], "column"),
    )
    scaled = " (standardised)" if options.scale else ""
    return (
        f"{options.model}: {found} of {rows}, {columns}{scaled}\n"
        f"{measures}, {count(result['iterations'], 'pass')} in "
        f"{result['seconds']:.2f} s"
    )
