"""``kplus report``: write a page that explains a model, and that of ``kplus fit``."""

import re
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from kplus.cli.console import CommandError, notes_for_warnings, status
from kplus.cli.console import report as tell
from kplus.cli.options import COMMANDS, OPTIONS, Options
from kplus.cli.predict import read_for
from kplus.cli.resources import allowed
from kplus.cli.tables import Table
from kplus.core.types import IntArray
from kplus.persist.save import load

__all__ = ["command_line", "report", "report_of_fit"]

_PAGE = "report.html"
_ABOUT_OUTPUT = {"quiet", "json", "force"}
_PICKING = ("index", "columns", "drop", "categorical", "weights", "scale")


def report(options: Options) -> None:
    """Run the command."""
    page = options.page or options.model_file.parent / _PAGE
    if page.is_dir():
        raise CommandError(f"{page} is a folder; -o needs the name of a file.")
    if page.exists() and not options.force:
        raise CommandError(f"{page} is there already; --force replaces it.")
    shape = _shape(options.image_shape)
    if options.rows is None and options.stability:
        raise CommandError("--stability needs DATA, the rows to fit to.")
    with allowed(options):
        model, table, X = load(options.model_file), None, None
        if options.rows is not None:
            options.data = options.rows
            table, X = read_for(model, options, options.index)
        with status("Writing", options.quiet), notes_for_warnings(options.quiet):
            _write(
                model, page, X, table, stability=options.stability or None,
                image_shape=shape, title=options.title,
            )  # fmt: skip
    tell(options, {"files": {"report": str(page)}}, [f"Wrote {page}"])


def report_of_fit(options: Options, model: Any, table: Table, sure: Any) -> Path:
    """Write the page of a fit that has just ended beside its other files."""
    page: Path = options.outdir / _PAGE
    plain = not any(getattr(options, name) for name in _PICKING)
    main = "labels" if hasattr(model, "labels_") else "features"
    _write(
        model,
        page,
        table.data,
        table,
        stability=sure,
        command=command_line("fit", options),
        rows=repr(str(options.data)) if plain else None,
        of_fit=True,
        elsewhere=f"They are in {main}.{options.format}, beside it.",
    )
    return page


def _write(model: Any, page: Path, X: Any, table: Table | None, **wanted: Any) -> None:
    from kplus.report.wanted import Wanted
    from kplus.report.write import write

    if table is not None and table.index is not None:
        index = table.index

        def row_names(numbers: IntArray) -> list[str]:
            return _some_names(index(), numbers)

        wanted["row_names"] = row_names
    try:
        write(model, page, X, Wanted(**wanted))
    except ValueError as error:
        raise CommandError(str(error)) from error


def _some_names(parts: Any, numbers: Sequence[int] | IntArray) -> list[str]:
    """The names of some rows, from pieces of all of them."""
    wanted, names, start = np.asarray(numbers), [""] * len(numbers), 0
    for part in parts:
        here = np.flatnonzero((wanted >= start) & (wanted < start + len(part)))
        if len(here):
            found = part.take((wanted[here] - start).tolist()).to_pylist()
            for at, name in zip(here.tolist(), found, strict=True):
                names[at] = "" if name is None else str(name)
        start += len(part)
    return names


def _shape(words: str | None) -> tuple[int, int] | None:
    """Rows and columns of pixels, as in 28x28."""
    if words is None:
        return None
    found = re.fullmatch(r"(\d+)[x×,](\d+)", words)
    if found is None:
        raise CommandError(
            f"--image-shape is rows x columns, as in 28x28, not {words}."
        )
    return int(found[1]), int(found[2])


def command_line(name: str, options: Options) -> str:
    """The words of a command that gives these options."""
    words = ["kplus", name]
    for key in COMMANDS[name].options.split():
        option, value = OPTIONS[key], getattr(options, key, None)
        if key in _ABOUT_OUTPUT or value is None or value == option.default:
            continue
        if option.flags is None:
            words.append(str(value))
            continue
        flags = option.flags or f"--{key.replace('_', '-')}"
        if option.kind is bool:
            yes, _, no = flags.partition("/")
            words.append((yes if value else no).split()[0])
            continue
        for one in value if isinstance(value, list) else [value]:
            words += [flags.split()[0], str(one)]
    return shlex.join(words)
