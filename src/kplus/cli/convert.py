"""``kplus convert``: write a table so that fits read it quickly."""

from typing import Any

from kplus.cli.console import CommandError, count, report, status
from kplus.cli.options import Options, column_options
from kplus.data.arrow import as_text
from kplus.data.convert import convert as write
from kplus.data.files import open_files
from kplus.data.open import has_columns
from kplus.data.selection import unknown_column

__all__ = ["convert"]


def convert(options: Options) -> None:
    """Run the command."""
    if options.dtype not in (None, "float32", "float64"):
        raise CommandError(f"--dtype is float32 or float64, not {options.dtype!r}.")
    with status(f"Converting {options.data}", options.quiet):
        try:
            manifest = write(
                _open(options),
                options.outdir,
                **column_options(options),
                categorical=options.categorical or "from_dtype",
                dtype=options.dtype,
                force=options.force,
            )
        except FileExistsError as error:
            raise CommandError(str(error).replace("force=True", "--force")) from error
    n_rows, n_features = manifest["n_rows"], len(manifest["categories"])
    result = {"n_rows": n_rows, "n_features": n_features}
    files = {"folder": str(options.outdir)}
    coded = sum(values is not None for values in manifest["categories"])
    words = f", {coded} of them categories" if coded else ""
    lines = [
        f"{count(n_rows, 'row')}, {count(n_features, 'column')}{words}, as "
        f"{manifest['dtype']}",
        f"Wrote {options.outdir}",
    ]
    report(options, manifest | result | {"files": files}, lines, indent=2)


def _open(options: Options) -> Any:
    """The table, with columns that were named as categories as text, as in a fit."""
    categorical = options.categorical or []
    named = [] if options.index is None else [options.index]
    table = open_files(options.data, text=[*named, *categorical])
    if not has_columns(table):
        return options.data
    for name in categorical:
        if name not in table.schema.names:
            raise unknown_column(str(options.data), name, table.schema.names)
    return as_text(table, categorical)
