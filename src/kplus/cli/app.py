"""The commands and their options; what they do is in the module of their name."""

import csv
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer
from typer import Argument, Option

from kplus import __version__
from kplus.cli.console import (
    CommandError,
    Interrupted,
    note,
    report_error,
    report_missing,
    report_usage,
)
from kplus.cli.options import (
    COLUMNS,
    FITTING,
    Categorical,
    Checkpoint,
    Columns,
    Data,
    Drop,
    Force,
    Index,
    Json,
    MemoryLimit,
    ModelFile,
    Quiet,
    Scheduler,
    Scratch,
    TableFile,
)
from kplus.core.errors import CheckpointError, DataError, ModelFormatError

__all__ = ["app", "run"]

app = typer.Typer(
    help="Clustering where the data decide how many groups there are.",
    epilog="kplus COMMAND --help tells more.",
    add_completion=False,
    pretty_exceptions_enable=False,
)

_NUMBER = "How many"
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
    columns: Columns = None,
    drop: Drop = None,
    categorical: Categorical = None,
    scale: Annotated[
        bool,
        Option(
            "--scale/--no-scale",
            help="Give all columns mean 0 and standard deviation 1.",
            rich_help_panel=COLUMNS,
        ),
    ] = False,
    numeric: Annotated[
        str | None,
        Option(
            metavar="NAME",
            help="craft: how numbers are seen, gaussian, quantile (for heavy tails "
            "and spikes) or yeo-johnson; else gaussian.",
            rich_help_panel=COLUMNS,
        ),
    ] = None,
    feature_fraction: Annotated[
        float | None,
        Option(
            metavar="M",
            help="craft: share of the columns that count in each cluster; else those "
            "that are worth it.",
            rich_help_panel=COLUMNS,
        ),
    ] = None,
    sharing: Annotated[
        float | None,
        Option(
            metavar="S",
            help="craft: from 0, each cluster has columns of its own, to 1, all have "
            "the same; else 0.",
            rich_help_panel=COLUMNS,
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
        int, Option(help="Seed of the random numbers.", rich_help_panel=FITTING)
    ] = 0,
    restarts: Annotated[
        int, Option(help="Fits to take the best of.", rich_help_panel=FITTING)
    ] = 1,
    jobs: Annotated[
        int | None,
        Option(help="Threads; -1 for all.", rich_help_panel=FITTING),
    ] = None,
    max_iter: Annotated[
        int | None, Option(help="Most passes over the data.", rich_help_panel=FITTING)
    ] = None,
    checkpoint: Checkpoint = None,
    memory_limit: MemoryLimit = None,
    scratch: Scratch = None,
    scheduler: Scheduler = None,
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
            memory_limit=memory_limit,
            scratch=scratch,
            scheduler=scheduler,
        )
    )


@app.command()
def resume(
    checkpoint: Annotated[
        Path, Argument(metavar="DIR", help="What kplus fit had as --checkpoint.")
    ],
    memory_limit: MemoryLimit = None,
    scratch: Scratch = None,
    scheduler: Scheduler = None,
) -> None:
    """Go on with a fit that was interrupted; the result is the same, bit for bit."""
    from kplus.cli.fit import fit as run_fit
    from kplus.cli.interrupted import read_command

    options = read_command(checkpoint)
    run_fit(
        replace(
            options,
            memory_limit=memory_limit or options.memory_limit,
            scratch=scratch or options.scratch,
            scheduler=scheduler or options.scheduler,
        )
    )


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
    memory_limit: MemoryLimit = None,
    scratch: Scratch = None,
    scheduler: Scheduler = None,
    json: Json = False,
    quiet: Quiet = False,
    force: Force = False,
) -> None:
    """Give the rows of a table the clusters or features of a model file."""
    from kplus.cli.predict import PredictOptions
    from kplus.cli.predict import predict as run_predict

    allowed = (memory_limit, scratch, scheduler)
    run_predict(
        PredictOptions(model, data, output, index, proba, json, quiet, force, *allowed)
    )


@app.command()
def impute(
    model: ModelFile,
    data: Data,
    output: TableFile = None,
    memory_limit: MemoryLimit = None,
    scratch: Scratch = None,
    scheduler: Scheduler = None,
    json: Json = False,
    quiet: Quiet = False,
    force: Force = False,
) -> None:
    """Fill the gaps of a table with what a model of features expects there."""
    from kplus.cli.impute import ImputeOptions
    from kplus.cli.impute import impute as run_impute

    allowed = (memory_limit, scratch, scheduler)
    run_impute(ImputeOptions(model, data, output, json, quiet, force, *allowed))


@app.command()
def convert(
    data: Data,
    outdir: Annotated[
        Path, Option("-o", "--output", metavar="DIR", help="Folder to write.")
    ],
    index: Index = None,
    columns: Columns = None,
    drop: Drop = None,
    categorical: Categorical = None,
    dtype: Annotated[
        str | None,
        Option(
            metavar="float32|float64",
            help="Type of the numbers; else float32 where all columns are.",
        ),
    ] = None,
    json: Json = False,
    quiet: Quiet = False,
    force: Force = False,
) -> None:
    """Write a table to a folder from which fits read it quickly, part by part."""
    from kplus.cli.convert import ConvertOptions, convert_table
    from kplus.cli.tables import Choice

    choice = Choice(index, _split(columns), tuple(drop or ()), tuple(categorical or ()))
    convert_table(ConvertOptions(data, outdir, choice, dtype, json, quiet, force))


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
        return report_missing(error)
    except (KeyboardInterrupt, typer.Abort):  # newer versions of typer return 130
        return 130
    except Exception as error:
        return report_usage(error)
    return code if isinstance(code, int) else 0
