"""Arguments and options that several commands share."""

from pathlib import Path
from typing import Annotated

from typer import Argument, Option

__all__ = [
    "COLUMNS",
    "FITTING",
    "Categorical",
    "Checkpoint",
    "Columns",
    "Data",
    "Drop",
    "Force",
    "Index",
    "Json",
    "MemoryLimit",
    "ModelFile",
    "Quiet",
    "Scheduler",
    "Scratch",
    "TableFile",
]

COLUMNS, FITTING, RESOURCES = "Columns", "Fitting", "Memory and workers"
"""Headings in the help."""

Data = Annotated[
    Path,
    Argument(
        metavar="DATA",
        help="Table: a file (.csv, .csv.gz, .npy, .parquet, .arrow, .feather), a "
        "folder of such files, a pattern in quotes ('data/*.parquet'), a Zarr "
        "array, or a folder of kplus convert.",
    ),
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
Columns = Annotated[
    str | None,
    Option(
        metavar="A,B,...", help="Columns to use; else all.", rich_help_panel=COLUMNS
    ),
]
Drop = Annotated[
    list[str] | None,
    Option(
        metavar="COL",
        help="Column to leave out; may be repeated.",
        rich_help_panel=COLUMNS,
    ),
]
Categorical = Annotated[
    list[str] | None,
    Option(
        metavar="COL",
        help="Column of categories, whatever it looks like; may be repeated.",
        rich_help_panel=COLUMNS,
    ),
]
MemoryLimit = Annotated[
    str | None,
    Option(
        metavar="SIZE",
        help="How much memory to take, as in 2GB; what is remembered of each row goes "
        "to files when it would take more.",
        rich_help_panel=RESOURCES,
    ),
]
Scratch = Annotated[
    Path | None,
    Option(
        metavar="DIR",
        help="Folder for such files; with workers on several machines one that all of "
        "them reach.",
        rich_help_panel=RESOURCES,
    ),
]
Scheduler = Annotated[
    str | None,
    Option(
        metavar="tcp://HOST:PORT",
        help="Dask scheduler whose workers to use.",
        rich_help_panel=RESOURCES,
    ),
]
Checkpoint = Annotated[
    Path | None,
    Option(
        metavar="DIR",
        help="Note now and then how far the fit has got; kplus resume DIR goes on.",
        rich_help_panel=FITTING,
    ),
]
Json = Annotated[bool, Option("--json", help="Print one JSON object.")]
Quiet = Annotated[bool, Option("--quiet", "-q", help="Print errors only.")]
Force = Annotated[bool, Option("--force", help="Replace what is there.")]
