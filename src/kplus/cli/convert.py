"""``kplus convert``: write a table so that fits read it quickly."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kplus.cli.console import CommandError, count, note, status
from kplus.cli.tables import Choice
from kplus.io.convert import check_target, convert
from kplus.sources.arrow import as_text
from kplus.sources.files import has_columns, open_files
from kplus.sources.paths import unknown_column

__all__ = ["ConvertOptions", "convert_table"]


@dataclass(frozen=True)
class ConvertOptions:
    """What the user asked for; the help of ``kplus convert`` tells what it means."""

    data: Path
    outdir: Path
    choice: Choice
    dtype: str | None
    json: bool
    quiet: bool
    force: bool


def convert_table(options: ConvertOptions) -> None:
    """Run the command."""
    choice = options.choice
    if options.dtype not in (None, "float32", "float64"):
        raise CommandError(f"--dtype is float32 or float64, not {options.dtype!r}.")
    try:
        check_target(options.outdir, options.force)
    except FileExistsError as error:
        raise CommandError(str(error).replace("force=True", "--force")) from error
    with status(f"Converting {options.data}", options.quiet):
        table = _open(options)
        named = bool(choice.categorical)
        manifest = convert(
            table,
            options.outdir,
            columns=choice.columns,
            drop=choice.drop,
            index=choice.index,
            categorical=choice.categorical if named else "from_dtype",
            dtype=options.dtype,
            force=options.force,
        )
    _report(options, manifest)


def _open(options: ConvertOptions) -> Any:
    """The table, with columns that were named as categories as text, as in a fit."""
    choice = options.choice
    named = [] if choice.index is None else [choice.index]
    table = open_files(options.data, text=[*named, *choice.categorical])
    if not has_columns(table):
        return options.data
    for name in choice.categorical:
        if name not in table.schema.names:
            raise CommandError(
                unknown_column(str(options.data), name, table.schema.names)
            )
    return as_text(table, choice.categorical)


def _report(options: ConvertOptions, manifest: dict[str, Any]) -> None:
    if options.json:
        result = {
            "n_rows": manifest["n_rows"],
            "n_features": len(manifest["categories"]),
        }
        files = {"folder": str(options.outdir)}
        print(json.dumps(manifest | result | {"files": files}, indent=2))
    elif not options.quiet:
        coded = [values for values in manifest["categories"] if values is not None]
        words = f", {len(coded)} of them categories" if coded else ""
        note(
            f"{count(manifest['n_rows'], 'row')}, "
            f"{count(len(manifest['categories']), 'column')}{words}, as "
            f"{manifest['dtype']}"
        )
        note(f"Wrote {options.outdir}")
