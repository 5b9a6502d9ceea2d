"""The commands and their options; what they do is in the module of their name."""

import csv
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from typer import Argument, Option

from kplus import __version__
from kplus.cli.console import CommandError, Interrupted, note, report_error
from kplus.core.errors import CheckpointError, DataError, ModelFormatError

__all__ = ["app", "run"]

app = typer.Typer(
    help="Clustering where the data decide how many groups there are.",
    epilog="kplus COMMAND --help tells more.",
    add_completion=False,
    pretty_exceptions_enable=False,
)

# --- options that several commands share

Data = Annotated[
    Path, Argument(metavar="DATA", help="Table: .csv, .csv.gz, .npy or Parquet.")
]
ModelFile = Annotated[Path, Argument(metavar="MODEL", help="File of kplus fit.")]
TableFile = Annotated[
    Path | None,
    Option(
        "-o",
        "--output",
        metavar="FILE",
        help="Write a .csv or .parquet file; else print CSV.",
    ),
]
Index = Annotated[
    str | None,
    Option(metavar="COL", help="Column that names the rows; else they are numbered."),
]
Json = Annotated[bool, Option("--json", help="Print one JSON object.")]
Quiet = Annotated[bool, Option("--quiet", "-q", help="Print errors only.")]
Force = Annotated[bool, Option("--force", help="Replace what is there.")]

_NUMBER, _COLUMNS, _FITTING = "How many", "Columns", "Fitting"
_BUFFET = "Indian buffet process (meibp, ibp-gibbs, ibp-variational)"


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"kplus {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool,
        Option(
            "--version",
            callback=_print_version,
            is_eager=True,
            help="Print the version.",
        ),
    ] = False,
) -> None:
    pass


@app.command()
def fit(
    data: Data,
    outdir: Annotated[
        Path,
        Option("-o", "--output", metavar="DIR", help="Folder for the results."),
    ],
    model: Annotated[
        str,
        Option(
            metavar="NAME",
            help="What to fit: clusters (dp-mixture, dp-means, or craft, which tells "
            "each by its own columns), or features, of which a row may have several "
            "(bp-means, k-features; with an Indian buffet process prior meibp, "
            "ibp-gibbs, ibp-variational).",
        ),
    ] = "dp-mixture",
    observations: Annotated[
        str | None,
        Option(
            metavar="NAME",
            help="dp-mixture: what rows look like, such as diag_gaussian, poisson or "
            "mixed; else gaussian, or mixed with categories.",
        ),
    ] = None,
    penalty: Annotated[
        float | None,
        Option(
            help="Price of a cluster (dp-means: λ², a squared distance; craft: λ, in "
            "nats) or feature (λ², a sum of squared errors); else found.",
            rich_help_panel=_NUMBER,
        ),
    ] = None,
    clusters: Annotated[
        int | None,
        Option(
            "--clusters",
            "--components",
            help="Number of clusters, or of features; else found.",
            rich_help_panel=_NUMBER,
        ),
    ] = None,
    max_clusters: Annotated[
        int | None,
        Option(
            "--max-clusters",
            "--max-components",
            help="Never find more clusters, or features, than that.",
            rich_help_panel=_NUMBER,
        ),
    ] = None,
    index: Index = None,
    columns: Annotated[
        str | None,
        Option(
            metavar="A,B,...",
            help="Columns to use; else all.",
            rich_help_panel=_COLUMNS,
        ),
    ] = None,
    drop: Annotated[
        list[str] | None,
        Option(
            metavar="COL",
            help="Column to leave out; may be repeated.",
            rich_help_panel=_COLUMNS,
        ),
    ] = None,
    categorical: Annotated[
        list[str] | None,
        Option(
            metavar="COL",
            help="Column of categories, whatever it looks like; may be repeated.",
            rich_help_panel=_COLUMNS,
        ),
    ] = None,
    scale: Annotated[
        bool,
        Option(
            "--scale/--no-scale",
            help="Give all columns mean 0 and standard deviation 1.",
            rich_help_panel=_COLUMNS,
        ),
    ] = False,
    numeric: Annotated[
        str | None,
        Option(
            metavar="NAME",
            help="craft: how numbers are seen, gaussian, quantile (for heavy tails "
            "and spikes) or yeo-johnson; else gaussian.",
            rich_help_panel=_COLUMNS,
        ),
    ] = None,
    feature_fraction: Annotated[
        float | None,
        Option(
            metavar="M",
            help="craft: share of the columns that count in each cluster; else those "
            "that are worth it.",
            rich_help_panel=_COLUMNS,
        ),
    ] = None,
    sharing: Annotated[
        float | None,
        Option(
            metavar="S",
            help="craft: from 0, each cluster has columns of its own, to 1, all have "
            "the same; else 0.",
            rich_help_panel=_COLUMNS,
        ),
    ] = None,
    prior: Annotated[
        str | None,
        Option(
            metavar="NAME",
            help="meibp, ibp-gibbs: features are nonnegative or gaussian, of either "
            "sign; else as the model has it.",
            rich_help_panel=_BUFFET,
        ),
    ] = None,
    negative: Annotated[
        str | None,
        Option(
            metavar="NAME",
            help="What nonnegative features make of negative values: error, shift "
            "(take off the smallest of each column) or noise; else error.",
            rich_help_panel=_BUFFET,
        ),
    ] = None,
    noise_scale: Annotated[
        float | None,
        Option(
            help="Standard deviation of noise; else found.", rich_help_panel=_BUFFET
        ),
    ] = None,
    sweeps: Annotated[
        int | None,
        Option(help="ibp-gibbs: samples to draw.", rich_help_panel=_BUFFET),
    ] = None,
    burn_in: Annotated[
        int | None,
        Option(help="ibp-gibbs: sweeps before them.", rich_help_panel=_BUFFET),
    ] = None,
    seed: Annotated[
        int, Option(help="Seed of the random numbers.", rich_help_panel=_FITTING)
    ] = 0,
    restarts: Annotated[
        int, Option(help="Fits to take the best of.", rich_help_panel=_FITTING)
    ] = 1,
    jobs: Annotated[
        int | None,
        Option(help="Threads; -1 for all.", rich_help_panel=_FITTING),
    ] = None,
    max_iter: Annotated[
        int | None, Option(help="Most passes over the data.", rich_help_panel=_FITTING)
    ] = None,
    checkpoint: Annotated[
        Path | None,
        Option(
            metavar="DIR",
            help="Note now and then how far the fit has got; kplus resume DIR goes on.",
            rich_help_panel=_FITTING,
        ),
    ] = None,
    label_format: Annotated[
        str,
        Option("--format", metavar="csv|parquet", help="Format of the table of rows."),
    ] = "csv",
    plot: Annotated[
        bool, Option("--plot/--no-plot", help="Also draw a picture.")
    ] = False,
    json: Json = False,
    quiet: Quiet = False,
    force: Force = False,
) -> None:
    """Find clusters or features in a table; write what each row has, and the model."""
    from kplus.cli.fit import FitOptions
    from kplus.cli.fit import fit as run_fit
    from kplus.cli.tables import Choice

    run_fit(
        FitOptions(
            data=data,
            outdir=outdir,
            model=model,
            observations=observations,
            penalty=penalty,
            clusters=clusters,
            max_clusters=max_clusters,
            choice=Choice(index, _split(columns), tuple(drop or ())),
            categorical=tuple(categorical or ()),
            scale=scale,
            numeric=numeric,
            feature_fraction=feature_fraction,
            sharing=sharing,
            negative=negative,
            prior=prior,
            noise_scale=noise_scale,
            sweeps=sweeps,
            burn_in=burn_in,
            format=label_format,
            seed=seed,
            restarts=restarts,
            jobs=jobs,
            max_iter=max_iter,
            plot=plot,
            json=json,
            quiet=quiet,
            force=force,
            checkpoint=checkpoint,
        )
    )


@app.command()
def resume(
    checkpoint: Annotated[
        Path, Argument(metavar="DIR", help="What kplus fit had as --checkpoint.")
    ],
) -> None:
    """Go on with a fit that was interrupted; the result is the same, bit for bit."""
    from kplus.cli.fit import fit as run_fit
    from kplus.cli.interrupted import read_command

    run_fit(read_command(checkpoint))


def _split(columns: str | None) -> list[str] | None:
    """Split at commas; a name with a comma may be put in quotes."""
    if columns is None:
        return None
    return [name.strip() for name in next(csv.reader([columns]), [])]


@app.command()
def predict(
    model: ModelFile,
    data: Data,
    output: TableFile = None,
    index: Index = None,
    proba: Annotated[
        bool,
        Option(
            "--proba",
            help="Also write the share of each cluster in a row, or the probability of "
            "each feature.",
        ),
    ] = False,
    json: Json = False,
    quiet: Quiet = False,
    force: Force = False,
) -> None:
    """Give the rows of a table the clusters or features of a model file."""
    from kplus.cli.predict import PredictOptions
    from kplus.cli.predict import predict as run_predict

    run_predict(PredictOptions(model, data, output, index, proba, json, quiet, force))


@app.command()
def impute(
    model: ModelFile,
    data: Data,
    output: TableFile = None,
    json: Json = False,
    quiet: Quiet = False,
    force: Force = False,
) -> None:
    """Fill the gaps of a table with what a model of features expects there."""
    from kplus.cli.impute import ImputeOptions
    from kplus.cli.impute import impute as run_impute

    run_impute(ImputeOptions(model, data, output, json, quiet, force))


@app.command()
def inspect(model: ModelFile, json: Json = False) -> None:
    """Tell what is in a model file."""
    from kplus.cli.inspect import inspect_model

    inspect_model(model, json)


def run(argv: Sequence[str]) -> int:
    """Run a command line; return its exit code."""
    try:
        # Without arguments one wants to know what there is.
        code = app(list(argv) or ["--help"], prog_name="kplus", standalone_mode=False)
    except (CommandError, CheckpointError, DataError, ModelFormatError) as error:
        report_error(error)
        return 2
    except Interrupted as stop:
        note(str(stop))
        return 130
    except BrokenPipeError:  # such as kplus predict ... | head
        sys.stderr.close()
        return 1
    except OSError as error:
        report_error(error)
        return 2
    except ImportError as error:
        return _report_missing(error)
    except (KeyboardInterrupt, typer.Abort):  # newer versions of typer return 130
        return 130
    except Exception as error:
        return _report_usage(error)
    return code if isinstance(code, int) else 0


def _report_missing(error: ImportError) -> int:
    """Report that an optional package is not installed."""
    if "kplus[" in str(error):
        report_error(error)
    elif error.name in ("pyarrow", "rich"):
        note(f"Error: {error.name} is not installed: pip install 'kplus[cli]'")
    else:
        raise error
    return 2


def _report_usage(error: Exception) -> int:
    """Report what typer has to say about a command line, in one line."""
    # Its exceptions have no public name, but they all can format themselves.
    words = getattr(error, "format_message", None)
    if words is None:
        raise error
    context = getattr(error, "ctx", None)
    command = context.command_path if context else "kplus"
    message = words().rstrip(".").replace("\n", " ")
    note(f"Error: {message}. See {command} --help.")
    return 2
