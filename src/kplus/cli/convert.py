"""``kplus convert``: write a table so that fits read it quickly."""

import warnings
from warnings import catch_warnings

from kplus.cli.console import CommandError, count, report, status
from kplus.cli.options import Options, column_options
from kplus.cli.tables import open_with_categories, reading_options
from kplus.cli.told import reading_lines
from kplus.data.convert import convert as write
from kplus.data.open import has_columns
from kplus.data.reading import ColumnsWarning, Reading

__all__ = ["convert"]


def convert(options: Options) -> None:
    """Run the command."""
    if options.outdir is None:
        raise CommandError("Say where to write the folder: -o DIR.")
    if options.dtype not in (None, "float32", "float64"):
        raise CommandError(f"--dtype is float32 or float64, not {options.dtype!r}.")
    with status(f"Converting {options.data}", options.quiet), catch_warnings():
        how = reading_options(options)
        table = open_with_categories(
            options.data, options.index, options.categorical or (), how.pop("skip")
        )
        try:
            warnings.simplefilter("ignore", ColumnsWarning)  # said below
            manifest = write(
                table if has_columns(table) else options.data,
                options.outdir,
                **column_options(options),
                **how,
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
    ]
    if "reading" in manifest:
        lines += reading_lines(Reading.from_json(manifest["reading"]))
    lines.append(f"Wrote {options.outdir}")
    report(options, manifest | result | {"files": files}, lines, indent=2)
