"""The commands and their options, and how typer gets them.

Those in `FITTED` are parameters of estimators: what values they take is said by
the constraints of the estimator, and their help, unless it is given here, is the first
sentence of the parameter in the docstring of the estimator.
"""

import csv
from collections.abc import Callable, Mapping
from functools import partial
from inspect import Parameter, Signature
from pathlib import Path
from types import SimpleNamespace
from typing import Annotated, Any, NamedTuple

from typer import Argument, Context, Exit
from typer import Option as TyperOption

__all__ = [
    "COMMANDS",
    "FITTED",
    "HELP",
    "OPTIONS",
    "PARAMETERS",
    "Options",
    "as_command",
    "column_options",
]

Options = SimpleNamespace
"""The values of a command line by the names in `OPTIONS`."""


class Option(NamedTuple):
    """An option, or, with flags of None, an argument; a default of `...`: required."""

    kind: type
    default: Any
    help: str = ""
    metavar: str | None = None
    panel: str | None = None
    flags: str | None = ""  # else from the name


class Command(NamedTuple):
    """A command; `module` has a function of its name."""

    module: str
    help: str
    options: str


_NUMBER, _COLUMNS, _FITTING = "How many", "Columns", "Fitting"
_IBP = "Indian buffet process (meibp, ibp-gibbs, ibp-variational)"
_RESOURCES = "Memory and workers"

_text, _texts = partial(Option, str, None), partial(Option, list, None)
_whole, _real = partial(Option, int, None), partial(Option, float, None)
_path, _required = partial(Option, Path, None), partial(Option, Path, ...)
_flag = partial(Option, bool, False)

_METAVARS = {bool: "", int: "N", float: "X"}  # of options that have none

FITTED = {
    "observations": _text(
        "What rows look like, such as diag_gaussian, poisson or mixed; else chosen by "
        "the table.",
        "NAME",
    ),
    "penalty": _real(
        "Price of a cluster (dp-means: λ², a squared distance; craft: λ, in nats) or "
        "feature (λ², a sum of squared errors); else found.",
        panel=_NUMBER,
    ),
    "clusters": _whole(
        "Number of clusters, or of features; else found.",
        panel=_NUMBER,
        flags="--clusters --components",
    ),
    "max_clusters": _whole(
        "Never find more clusters, or features, than that.",
        panel=_NUMBER,
        flags="--max-clusters --max-components",
    ),
    "cells": _text(
        "Clusters of any shape: join so many small cells, or auto.",
        "N|auto",
        _NUMBER,
    ),
    "noise": _flag(
        "Give rows that belong nowhere the label -1; their share is learned.",
        panel=_NUMBER,
    ),
    "numeric": _text("", "NAME", _COLUMNS),
    "feature_fraction": _real(metavar="M", panel=_COLUMNS),
    "sharing": _real(metavar="S", panel=_COLUMNS),
    "prior": _text("", "NAME", _IBP),
    "negative": _text("", "NAME", _IBP),
    "noise_scale": _real(panel=_IBP),
    "sweeps": _whole(panel=_IBP),
    "burn_in": _whole(panel=_IBP),
    "seed": Option(int, 0, panel=_FITTING),
    "restarts": _whole(panel=_FITTING),
    "jobs": _whole(panel=_FITTING),
    "max_iter": _whole(panel=_FITTING),
}
"""The options that are parameters of estimators."""

PARAMETERS = {
    "clusters": ("n_clusters", "n_components"),
    "max_clusters": ("max_clusters", "max_components"),
    "sweeps": ("n_samples",),
    "seed": ("random_state",),
    "restarts": ("n_init",),
    "jobs": ("n_jobs",),
}
"""The parameters that an option stands for, where they have another name."""

OPTIONS = FITTED | {
    "data": _required(
        "Table: a file (.csv, .csv.gz, .xlsx, .jsonl, .json, .npy, .parquet, .arrow, "
        ".feather), - for CSV from standard input, a folder of such files, a pattern "
        "in quotes ('data/*.parquet'), a Zarr array, or a folder of kplus convert.",
        "DATA",
        flags=None,
    ),
    "model_file": _required("File of kplus fit.", "MODEL", flags=None),
    "model_or_data": _required(
        "File of kplus fit; left out, a mixture is fitted to DATA first.",
        "MODEL",
        flags=None,
    ),
    "table": _path("Table with gaps, as kplus fit takes it.", "DATA", flags=None),
    "draws": _whole(
        "Draw so many tables, one below the other, for multiple imputation; else fill "
        "in what is expected.",
        "M",
    ),
    "draw_seed": Option(int, 0, "Seed of the draws, and of a fit.", flags="--seed"),
    "begun": _required("What kplus fit had as --checkpoint.", "DIR", flags=None),
    "outdir": _path(
        "Folder for the results; kplus fit takes NAME-kplus, after the table, if it is "
        "left out, and prints the labels as CSV and nothing else with -.",
        "DIR",
        flags="-o --output",
    ),
    "folder": _path(
        "Folder to write the results to; else they are printed only.",
        "DIR",
        flags="-o --output",
    ),
    "models": _text(
        "Models to compare: dp-mixture, dp-means, craft, bp-means, k-features, meibp, "
        "ibp-variational; else the first three.",
        "A,B,...",
    ),
    "most_rows": _whole(
        "Of more rows a sample of so many is compared; else 5,000.", "N", flags="--rows"
    ),
    "output": _path(
        "Write a .csv or .parquet file; else, or with -, print CSV.",
        "FILE",
        flags="-o --output",
    ),
    "model": Option(
        str,
        "dp-mixture",
        "What to fit: clusters (dp-mixture, dp-means, or craft, which tells each by "
        "its own columns), or features, of which a row may have several (bp-means, "
        "k-features; with an Indian buffet process prior meibp, ibp-gibbs, "
        "ibp-variational).",
        "NAME",
    ),
    "index": _text("Column that names the rows; else they are numbered.", "COL"),
    "columns": _text("Columns to use; else all.", "A,B,...", _COLUMNS),
    "drop": _texts("Column to leave out; may be repeated.", "COL", _COLUMNS),
    "categorical": _texts(
        "Column of categories, whatever it looks like; may be repeated.",
        "COL",
        _COLUMNS,
    ),
    "numbers": _texts(
        "Column of numbers, whatever it looks like: cells that are none count as "
        "missing; may be repeated.",
        "COL",
        _COLUMNS,
    ),
    "keep": _texts(
        "Column to use though it seems to name rows, to be free text or constant; may "
        "be repeated.",
        "COL",
        _COLUMNS,
    ),
    "dates": Option(
        str,
        "ignore",
        "What to make of dates: nothing, their parts (year, month, weekday, hour), or "
        "their age in days, up to the latest one.",
        "ignore|parts|age",
        _COLUMNS,
    ),
    "skip_first": Option(
        int, 0, "Leave out so many lines above the names of columns.", "N", _COLUMNS
    ),
    "skip_last": Option(
        int, 0, "Leave out so many lines at the end, such as totals.", "N", _COLUMNS
    ),
    "unknown": _text(
        "What a category is that the fit has not seen: an error, or missing; else as "
        "the model was told.",
        "error|missing",
    ),
    "weights": _text(
        "Column that says how much each row counts, from 0 on; it is no feature.",
        "COL",
        _COLUMNS,
    ),
    "scale": _flag(
        "Give all columns mean 0 and standard deviation 1.",
        panel=_COLUMNS,
        flags="--scale/--no-scale",
    ),
    "checkpoint": _path(
        "Write now and then how far the fit has got; kplus resume DIR continues it.",
        "DIR",
        _FITTING,
    ),
    "memory_limit": _text(
        "How much memory to take, as in 2GB; what is remembered of each row goes to "
        "files when it would take more.",
        "SIZE",
        _RESOURCES,
    ),
    "scratch": _path(
        "Folder for such files; with workers on several machines one that all of them "
        "reach.",
        "DIR",
        _RESOURCES,
    ),
    "scheduler": _text(
        "Dask scheduler whose workers to use.", "tcp://HOST:PORT", _RESOURCES
    ),
    "stability": _whole(
        "Fit to so many resamples to see whether the answer comes back; else 10 for "
        "dp-means and craft, of small tables. 0: none.",
        "N",
        _FITTING,
    ),
    "format": Option(str, "csv", "Format of the table of rows.", "csv|parquet"),
    "append": _flag(
        "Write the whole table, with what was found of each row as columns after its "
        "own.",
    ),
    "plot": _flag("Also draw a picture.", flags="--plot/--no-plot"),
    "report": Option(
        bool,
        True,
        "Also write report.html, a page that explains what was found.",
        flags="--report/--no-report",
    ),
    "rows": _path(
        "Table to show, as kplus fit takes it; else what the model keeps.",
        "DATA",
        flags=None,
    ),
    "page": _path(
        "Write this .html file; else report.html beside MODEL.",
        "FILE",
        flags="-o --output",
    ),
    "title": _text("Title of the page.", "TEXT"),
    "image_shape": _text(
        "Rows and columns of pixels, where a row is a picture, as in 28x28.", "HxW"
    ),
    "proba": _flag(
        "Also write the share of each cluster in a row, or the probability of each "
        "feature."
    ),
    "dtype": _text(
        "Type of the numbers; else float32 where all columns are.", "float32|float64"
    ),
    "json": _flag("Print one JSON object."),
    "quiet": _flag("Print errors only.", flags="--quiet -q"),
    "force": _flag("Replace what is there."),
}
"""All of them."""

_ALLOWED = "memory_limit scratch scheduler"
_ENDS = "skip_first skip_last"
_AS_WHAT = f"categorical numbers keep dates {_ENDS}"

COMMANDS = {
    "fit": Command(
        "fit",
        "Find clusters or features in a table; write what each row has, and the model.",
        "data outdir model observations penalty clusters max_clusters cells noise "
        f"index columns drop {_AS_WHAT} weights scale numeric feature_fraction "
        "sharing prior negative noise_scale sweeps burn_in seed restarts jobs max_iter "
        f"checkpoint stability {_ALLOWED} format append plot report json quiet force",
    ),
    "resume": Command(
        "fit",
        "Continue a fit that was interrupted; the result is the same, bit for bit.",
        f"begun {_ALLOWED}",
    ),
    "predict": Command(
        "predict",
        "Give the rows of a table the clusters or features of a model file.",
        "model_file data output index append proba unknown "
        f"{_ENDS} {_ALLOWED} json quiet force",
    ),
    "report": Command(
        "report",
        "Write a page that explains a model: its groups, how sure they are, and why.",
        f"model_file rows page index stability title image_shape {_ENDS} {_ALLOWED} "
        "json quiet force",
    ),
    "impute": Command(
        "impute",
        "Fill the gaps of a table with what a model expects there, or with draws.",
        "model_or_data table output draws draw_seed index columns drop categorical "
        f"numbers keep weights {_ENDS} {_ALLOWED} json quiet force",
    ),
    "compare": Command(
        "compare",
        "Fit several models to a table, and say how they compare.",
        f"data folder models most_rows stability index columns drop {_AS_WHAT} seed "
        f"jobs {_ALLOWED} json quiet force",
    ),
    "path": Command(
        "path",
        "Say which number of clusters is best for each penalty of dp-means.",
        f"data folder max_clusters index columns drop numbers keep dates {_ENDS} scale "
        f"seed {_ALLOWED} plot json quiet force",
    ),
    "convert": Command(
        "convert",
        "Write a table to a folder from which fits read it quickly, part by part.",
        f"data outdir index columns drop {_AS_WHAT} dtype json quiet force",
    ),
    "inspect": Command("inspect", "Tell what is in a model file.", "model_file json"),
}
"""All commands."""


def _print_help(context: Context, wanted: bool) -> None:
    if wanted:
        print(context.get_help())
        raise Exit


HELP = TyperOption(
    "--help",
    "-h",
    callback=_print_help,
    is_eager=True,
    metavar="",
    help="Show this message and exit.",
)
"""As typer's own, which calls itself <bool>."""


def as_command(
    run: Callable[[Options], None],
    names: list[str],
    help_texts: Mapping[str, str],
) -> Callable[..., None]:
    """A function that typer makes a command of, with options of `names`.

    It calls `run` with their values; `help_texts` replace those in `OPTIONS`.
    """

    def command(help: bool = False, **values: Any) -> None:
        run(Options(**values))

    parameters = []
    for name in names:
        kind, default, text, metavar, panel, flags = OPTIONS[name]
        text = help_texts.get(name, text)
        metavar = _METAVARS.get(kind) if metavar is None else metavar
        about: Any = {"metavar": metavar, "help": text, "rich_help_panel": panel}
        info: Any = Argument(**about)
        if flags is not None:
            flags = flags or f"--{name.replace('_', '-')}"
            info = TyperOption(*flags.split(), **about)
        value: Any = list[str] if kind is list else kind
        parameters.append(
            Parameter(
                name,
                Parameter.KEYWORD_ONLY,
                default=Parameter.empty if default is ... else default,
                annotation=Annotated[value | None if default is None else value, info],
            )
        )
    last = Annotated[bool, HELP]
    parameters.append(
        Parameter("help", Parameter.KEYWORD_ONLY, default=False, annotation=last)
    )
    command.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
    return command


def column_options(options: Options) -> dict[str, Any]:
    """Which columns to use; a name with a comma may be put in quotes."""
    columns = options.columns
    if columns is not None:
        columns = [name.strip() for name in next(csv.reader([columns]), [])]
    return {
        "index": options.index,
        "columns": columns,
        "drop": tuple(options.drop or ()),
    }
