"""``kplus convert``: write a table so that fits read it quickly."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from kplus.cli.console import CommandError, count, note, status
from kplus.cli.tables import Choice, is_category
from kplus.io.convert import check_target, convert
from kplus.sources.arrow import Columns
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
        raise CommandError(str(error).replace("; force", "; --force")) from error
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
    return _AsText(table, choice.categorical)


class _AsText(Columns):
    """Columns of which some are turned into text."""

    def __init__(self, files: Columns, names: Sequence[str]) -> None:
        self._files = files
        self.paths: Sequence[Path] = getattr(files, "paths", ())
        schema = files.schema
        for name in names:
            place = schema.get_field_index(name)
            if not is_category(schema.field(place).type):
                schema = schema.set(place, pa.field(name, pa.string()))
        super().__init__(schema, files.counts)
        self.stamps = files.stamps

    def __str__(self) -> str:
        return str(self._files)

    def column(self, piece: int, name: str, *, as_dictionary: bool = False) -> Any:
        wanted = self.schema.field(name).type
        if wanted == self._files.schema.field(name).type:
            return self._files.column(piece, name, as_dictionary=as_dictionary)
        column = self._files.column(piece, name).cast(wanted)
        return column.dictionary_encode() if as_dictionary else column


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
