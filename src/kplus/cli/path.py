"""``kplus path``: the best number of clusters for every penalty of DP-means."""

from typing import Any

import numpy as np
import pyarrow as pa

from kplus.cli.console import CommandError, count, note, report, status
from kplus.cli.options import Options, column_options
from kplus.cli.output import check_folder, staged_folder, write_table
from kplus.cli.resources import allowed
from kplus.cli.results import finite, print_table
from kplus.cli.scaling import profile_columns
from kplus.cli.tables import Choice, from_stdin, read_table, reading_options
from kplus.cli.told import told

__all__ = ["path"]

_OUTPUTS = {"path.csv", "path.png"}
_MOST_PRINTED = 12  # numbers of clusters, those of the longest plateaus


def path(options: Options) -> None:
    """Run the command."""
    if options.max_clusters is not None and options.max_clusters < 1:
        raise CommandError(
            f"--max-clusters must be at least 1, not {options.max_clusters}."
        )
    if options.plot and options.folder is None:
        raise CommandError("--plot writes a picture; name a folder for it with -o.")
    if options.folder is not None:
        check_folder(options.folder, _OUTPUTS, options.force)
    if options.plot:
        from kplus.plots.display import require_matplotlib

        require_matplotlib()  # better now than after the fit
    from kplus import DPMeans, penalty_path

    choice = Choice(**column_options(options), **reading_options(options))
    with allowed(options), from_stdin(options):
        with status(f"Reading {options.data}", options.quiet):
            table = read_table(options.data, choice)
            profile_columns(table, DPMeans())  # refuses gaps
        for words in [] if options.quiet else told(table, options):
            note(words)
        with status("Following the penalty", options.quiet):
            found = penalty_path(
                DPMeans(scale=options.scale, random_state=options.seed),
                table.data,
                max_clusters=options.max_clusters,
            )
    _report(options, table, found, _write(options, found))


def _records(found: Any) -> list[dict[str, Any]]:
    """A record for each number of clusters that some penalty prefers."""
    return [
        {
            "clusters": int(K),
            "penalty_from": finite(low),
            "penalty_to": finite(high),
            "sse": finite(sse),
            "chosen": i == found.chosen,
        }
        for i, (K, low, high, sse) in enumerate(
            zip(
                found.n_clusters,
                found.penalty_low,
                found.penalty_high,
                found.sse,
                strict=True,
            )
        )
    ]


def _write(options: Options, found: Any) -> dict[str, str]:
    """Write the path as a table, and as a picture."""
    if options.folder is None:
        return {}
    names = {"path": "path.csv"}
    with staged_folder(options.folder, _OUTPUTS) as folder:
        with open(folder / "path.csv", "xb") as file:
            write_table(pa.Table.from_pylist(_records(found)), file, "csv")
        if options.plot:
            from matplotlib.figure import Figure

            from kplus.plots import PenaltyPathDisplay

            names["plot"] = "path.png"
            figure = Figure(figsize=(7.2, 4.8), layout="constrained")
            PenaltyPathDisplay.from_path(found, ax=figure.subplots())
            figure.savefig(folder / "path.png", dpi=150)
    return {kind: str(options.folder / name) for kind, name in names.items()}


def _report(options: Options, table: Any, found: Any, files: dict[str, str]) -> None:
    K = int(found.n_clusters[found.chosen])
    others = [other for other in found.runners_up.tolist() if other != K]
    result: dict[str, Any] = {}
    if options.json:
        result = {
            "n_rows": table.source.n_rows,
            "n_clusters": K,
            "penalty": found.penalty,
            "is_clear": bool(found.is_clear),
            "runners_up": others,
            "path": _records(found),
            "files": files,
        }
    elif not options.quiet:
        named = ", ".join(map(str, others))
        doubt = f"not clear-cut{f', perhaps {named}' if named else ''}"
        title = f"{count(K, 'cluster')}, {'clear' if found.is_clear else doubt}"
        headings = ("clusters", "penalty from", "to", "sum of squares", "")
        caption = "kplus fit --penalty takes any number from such a range"
        print_table(headings, _lines(found), title, caption)
    report(options, result, [f"Wrote {name}" for name in files.values()], indent=2)


def _lines(found: Any) -> list[tuple[str, ...]]:
    """The longest plateaus, by falling penalty, and the one that is chosen."""
    length = np.nan_to_num(found.log_length, posinf=np.inf)
    shown = {*np.argsort(-length, kind="stable")[:_MOST_PRINTED].tolist(), found.chosen}
    return [
        (
            f"{found.n_clusters[i]}",
            f"{found.penalty_low[i]:.4g}",
            "-" if np.isinf(found.penalty_high[i]) else f"{found.penalty_high[i]:.4g}",
            f"{found.sse[i]:.4g}",
            "chosen" if i == found.chosen else "",
        )
        for i in sorted(shown)
    ]
