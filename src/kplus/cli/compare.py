"""``kplus compare``: several models on one table, side by side."""

from typing import Any

import pyarrow as pa

from kplus.cli.console import CommandError, count, note, report, status
from kplus.cli.options import Options, column_options
from kplus.cli.output import check_folder, staged_folder, write_table
from kplus.cli.report import command_line
from kplus.cli.resources import allowed
from kplus.cli.results import finite, print_table
from kplus.cli.tables import Choice, from_stdin, read_table, reading_options
from kplus.cli.told import told

__all__ = ["compare"]

_OUTPUTS = {"comparison.csv", "comparison.html"}


def compare(options: Options) -> None:
    """Run the command."""
    from kplus.validation import compare as validation

    models = options.models and [name.strip() for name in options.models.split(",")]
    _check(options, models, validation.NAMES)
    choice = Choice(
        **column_options(options),
        **reading_options(options),
        categorical=tuple(options.categorical or ()),
        accepts="mixed",
    )
    with allowed(options), from_stdin(options):
        with status(f"Reading {options.data}", options.quiet):
            table = read_table(options.data, choice)
        for words in [] if options.quiet else told(table, options):
            note(words)
        with status("Comparing", options.quiet) as show:
            comparison = _compared(validation.compare, table, models, options, show)
    _report(options, comparison, _write(options, comparison))


def _check(options: Options, models: Any, known: Any) -> None:
    """Refuse what cannot be, before the table is read."""
    for name in models or ():
        if name not in known:
            raise CommandError(
                f"--models: there is no {name!r}; there are {', '.join(known)}."
            )
    least_of = {"rows": (options.most_rows, 10), "stability": (options.stability, 0)}
    for flag, (value, least) in least_of.items():
        if value is not None and value < least:
            raise CommandError(f"--{flag} must be at least {least}, not {value}.")
    if options.folder is not None:
        check_folder(options.folder, _OUTPUTS, options.force)


def _compared(run: Any, table: Any, models: Any, options: Options, show: Any) -> Any:
    given = {"max_rows": options.most_rows, "n_resamples": options.stability}
    try:
        return run(
            table.data,
            models,
            random_state=options.seed,
            n_jobs=options.jobs,
            progress=show,
            **{name: value for name, value in given.items() if value is not None},
        )
    except ValueError as error:
        raise CommandError(str(error)) from error


def _write(options: Options, comparison: Any) -> dict[str, str]:
    """Write the table and the page, if there is a folder for them."""
    if options.folder is None:
        return {}
    from kplus.report.comparison import report_comparison

    names = {"comparison": "comparison.csv", "page": "comparison.html"}
    table = pa.Table.from_pylist(_records(comparison))
    with staged_folder(options.folder, _OUTPUTS) as folder:
        with open(folder / names["comparison"], "xb") as file:
            write_table(table, file, "csv")
        command = command_line("compare", options)
        report_comparison(comparison, folder / names["page"], command=command)
    return {kind: str(options.folder / name) for kind, name in names.items()}


def _records(comparison: Any) -> list[dict[str, Any]]:
    """A record for each model, as JSON and CSV have it."""
    return [
        {
            "model": c.name,
            "groups": c.n_groups if c.model is not None else None,
            "clear": c.is_clear,
            "stability": finite(c.overall_stability),
            "apart": finite(c.apart),
            "held_out": finite(c.held_out),
            "cpu_seconds": finite(c.seconds),
            "advice": comparison.advice(c),
        }
        for c in comparison.candidates
    ]


def _report(options: Options, comparison: Any, files: dict[str, str]) -> None:
    result: dict[str, Any] = {}
    if options.json:
        result = {
            "n_rows": comparison.n_rows,
            "n_compared": len(comparison.rows),
            "models": _records(comparison),
            "best": comparison.best.name,
            "clusterings": [c.name for c in comparison.clusterings],
            "agreement": comparison.agreement.tolist(),
            "files": files,
        }
    elif not options.quiet:
        headings, *rows = comparison.lines()
        models = count(len(rows), "model")
        title = f"{models} on {count(comparison.n_rows, 'row')} of {options.data}"
        print_table(headings, rows, title, "\n".join(comparison.notes()))
    report(options, result, [f"Wrote {path}" for path in files.values()], indent=2)
