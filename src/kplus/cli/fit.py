"""``kplus fit``: find clusters or features in a table, and write what was found.

What is common is here; the subclasses of `Results` know what differs.
"""

import sys
import time
from contextlib import AbstractContextManager, nullcontext, redirect_stdout
from importlib import import_module
from pathlib import Path
from typing import Any

from kplus.cli.console import (
    CommandError,
    PassProgress,
    count,
    note,
    notes_for_warnings,
    report,
    status,
)
from kplus.cli.interrupted import (
    check_new,
    fit_or_resume,
    interruption,
    read_command,
    save_command,
    saved_command,
)
from kplus.cli.models import MODELS, accepted, make_model
from kplus.cli.options import COMMANDS, Options, column_options
from kplus.cli.output import (
    check_folder,
    check_index_name,
    opened,
    staged_folder,
    write_rows,
    write_table,
)
from kplus.cli.resources import allowed
from kplus.cli.results import Results
from kplus.cli.scaling import Profile, profile_columns, scale_hint, scaled_table
from kplus.cli.stability import check_stability, stability_of, stability_record
from kplus.cli.tables import Choice, Table, from_stdin, read_table, reading_options
from kplus.cli.told import told

__all__ = ["fit", "fit_model", "read_to_fit", "resume"]

_FORMATS = ("csv", "parquet")
_OUTPUTS = {
    *(f"{main}.{kind}" for main in ("labels", "features") for kind in _FORMATS),
    *("clusters.png", "features.png", "description.csv", "components.csv"),
    "model.kplus",
    "report.html",
}
"""All that any run may write: a new one replaces the whole of an earlier one."""


def fit(options: Options) -> None:
    """Run the command."""
    _run(options, begun=False)


def resume(given: Options) -> None:
    """Run ``kplus resume``: the same from a checkpoint."""
    options = read_command(given.begun, COMMANDS["fit"].options.split())
    for name in ("memory_limit", "scratch", "scheduler"):
        setattr(options, name, getattr(given, name) or getattr(options, name))
    _run(options, begun=True)


def _run(options: Options, *, begun: bool) -> None:
    if options.format not in _FORMATS:
        raise CommandError(f"--format is csv or parquet, not {options.format!r}.")
    model = make_model(options)
    check_stability(options)
    _check_places(options)
    check_folder(options.outdir, _OUTPUTS, options.force)
    if not begun:
        check_new(options.checkpoint)
    if options.plot:
        from kplus.plots.display import require_matplotlib

        require_matplotlib()  # better now than after the fit
    with allowed(options), from_stdin(options):
        _find(options, model, begun)


def _check_places(options: Options) -> None:
    """Where to read from, and where to write to if nothing was said."""
    from_pipe = str(options.data) == "-"
    if options.outdir is None:
        data = options.data.parent if "*" in options.data.name else options.data
        name = data.resolve().name.split(".")[0] or "table"
        options.outdir = Path(f"{'stdin' if from_pipe else name}-kplus")
    to_pipe = str(options.outdir) == "-"
    if options.checkpoint is not None and (from_pipe or to_pipe):
        raise CommandError("--checkpoint needs a file of data and a folder (-o).")
    if to_pipe and (options.json or options.plot):
        raise CommandError("-o - prints the labels alone; leave --json and --plot out.")


def _find(options: Options, model: Any, begun: bool) -> None:
    """Read, fit, write, report."""
    with status(f"Reading {options.data}", options.quiet):
        table, profile = read_to_fit(options, model)
    if options.scale:
        table = scaled_table(table, profile.mean, profile.scale)
    with saved_command(options):
        with _target(options) as folder:
            seconds, ended = fit_model(options, model, table, begun)
            if options.scale:
                model.scaling_ = profile.scaling(table.names)
            if table.reading:
                model.reading_ = table.reading
            module, name = MODELS[options.model].results.split(":")
            kind = getattr(import_module(f"kplus.cli.{module}"), name)
            results: Results = kind(model, table, profile, options.scale)
            files = _write(options, table, results, folder)
        sure = stability_of(options, model, table) if ended else None
        if options.report and files:
            from kplus.cli.report import report_of_fit

            with status("Writing the report", options.quiet):
                files["report"] = str(report_of_fit(options, model, table, sure))
        if not ended and options.checkpoint is not None:
            options.force = True  # resuming replaces the files
            save_command(options)
        with redirect_stdout(sys.stdout if files else sys.stderr):
            _report(options, results, seconds, files, sure)
        if not ended:
            raise interruption(options, model.n_iter_)


def _target(options: Options) -> AbstractContextManager[Path | None]:
    """A folder for the files; None: labels are printed."""
    if str(options.outdir) == "-":
        return nullcontext()
    return staged_folder(options.outdir, _OUTPUTS)


def read_to_fit(options: Options, model: Any) -> tuple[Table, Profile]:
    """The table, and what its columns hold; refuses what the model does not take."""
    categorical = tuple(options.categorical or ())
    choice = Choice(
        **column_options(options),
        **reading_options(options),
        categorical=categorical,
        weights=options.weights,
        accepts=accepted(options),
        constants=MODELS[options.model].finds == "features",
    )
    table = read_table(options.data, choice)
    remedy = ""
    if hasattr(model, "observations"):
        remedy = " Or leave --observations out: it takes missing values then."
    profile = profile_columns(table, model, remedy)
    if not options.append:
        check_index_name(table)
    n_rows = table.source.n_rows
    if options.clusters is not None and options.clusters > n_rows:
        flag = MODELS[options.model].flag("clusters")
        raise CommandError(
            f"{flag} {options.clusters} is more than the {n_rows} rows of "
            f"{options.data}."
        )
    for words in [] if options.quiet else told(table, options):
        note(words)
    hint = scale_hint(model, profile, table.column_names)
    if hint is not None and not (options.scale or options.quiet):
        note(hint)
    return table, profile


def fit_model(
    options: Options, model: Any, table: Table, begun: bool
) -> tuple[float, bool]:
    """Fit; return the seconds that it took, and whether it came to its end."""
    clusters = MODELS[options.model].finds == "clusters"
    doing = "Clustering" if clusters else "Finding features"
    ended = True
    with status(doing, options.quiet) as show, notes_for_warnings(options.quiet):
        if show is not None:
            model.set_callbacks(PassProgress(show, doing))
        start = time.perf_counter()
        try:
            fit_or_resume(model, table, options.checkpoint, begun)
        except KeyboardInterrupt as stop:
            if not model.__sklearn_is_fitted__():
                raise interruption(options, None) from stop
            ended = False
        seconds = time.perf_counter() - start
    model.set_callbacks()  # the progress is over
    return seconds, ended


def _write(
    options: Options, table: Table, results: Results, folder: Path | None
) -> dict[str, str]:
    """Write all files to `folder`; return where they will be in the end."""
    from kplus.persist.save import save

    if folder is None:
        with opened(None) as (out, kind):
            write_rows(table, results.pieces(), out, kind)
        return {}
    main = MODELS[options.model].main
    names = {main: f"{main}.{options.format}"}
    with open(folder / names[main], "xb") as file:
        beside = options.data if options.append else None
        write_rows(table, results.pieces(), file, options.format, beside)
    for kind, part in results.tables().items():
        names[kind] = f"{kind}.csv"
        with open(folder / names[kind], "xb") as file:
            write_table(part, file, "csv")
    names["model"] = "model.kplus"
    save(results.model, folder / names["model"])
    if options.plot and results.no_picture() is None:
        names["plot"] = results.picture
        results.draw(folder / names["plot"])
    return {kind: str(options.outdir / name) for kind, name in names.items()}


def _report(
    options: Options,
    results: Results,
    seconds: float,
    files: dict[str, str],
    sure: Any = None,
) -> None:
    """Report what was found: notes, then JSON or a table and the names of files."""
    source, passes = results.table.source, int(results.model.n_iter_)
    why = results.no_picture() if options.plot else None
    for words in filter(None, [*results.notes(), why] if not options.quiet else []):
        note(words)
    result: dict[str, Any] = {}
    read = results.table.reading
    if options.json:
        result = {
            "model": options.model,
            "n_rows": source.n_rows,
            "n_features": source.n_features,
            f"n_{MODELS[options.model].groups}": results.n_found,
            **results.measures(),
            "iterations": passes,
            "seconds": seconds,
            "scaled": options.scale,
            "left_out": {} if read is None else read.left_out,
            "odd_cells": {}
            if read is None
            else {n: o.odd for n, o in read.odd.items()},
            "files": files,
            **results.as_json(),
            "stability": stability_record(sure),
        }
    elif not options.quiet:
        rows, columns = count(source.n_rows, "row"), count(source.n_features, "column")
        number = count(results.n_found, results.noun)
        scaled = " (standardised)" if options.scale else ""
        choice = getattr(results.model, "choice_", None)
        results.print(
            f"{options.model}: {number} of {rows}, {columns}{scaled}\n"
            f"{results.quality()}, {count(passes, 'pass')} in {seconds:.2f} s"
            + ("" if choice is None else f"\nchosen {choice}")
            + ("" if sure is None else f"\n{sure.in_a_line()}")
        )
    report(options, result, [f"Wrote {path}" for path in files.values()], indent=2)
