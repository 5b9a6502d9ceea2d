"""Whether the answer of ``kplus fit`` comes back in fits to drawn rows."""

import warnings
from typing import Any

import numpy as np

from kplus.cli.console import CommandError, note, status
from kplus.cli.options import Options
from kplus.cli.results import finite
from kplus.cli.tables import Table

__all__ = ["check_stability", "stability_of", "stability_record"]

_UNASKED = {"dp-means": 10, "craft": 10}  # fits; those of mixtures take longer
_CHEAP = 30_000  # numbers of a table, rows times columns, up to which they are made


def check_stability(options: Options) -> None:
    if options.stability is not None and options.stability < 0:
        raise CommandError(
            f"--stability is a number of fits, 0 for none, not {options.stability}."
        )


def stability_of(options: Options, model: Any, table: Table) -> Any:
    """The stability of a fitted model; None where it was not asked for, or is dear."""
    n = options.stability
    if n is None:
        small = table.source.n_rows * table.source.n_features <= _CHEAP
        n = _UNASKED.get(options.model, 0) if small else 0
    if n == 0:
        return None
    from kplus.validation.stability import stability

    with status("Fitting to drawn rows", options.quiet) as show:
        progress = None
        if show is not None:

            def progress(done: int, total: int) -> None:
                show(f"Fitting to drawn rows: {done} of {total}")

        with warnings.catch_warnings():  # the record has the number of failed fits
            warnings.simplefilter("ignore")
            return _tried(options, stability, model, table, n, progress)


def _tried(
    options: Options, stability: Any, model: Any, table: Table, n: int, progress: Any
) -> Any:
    """An answer that was found is reported even if no fit to drawn rows is possible."""
    try:
        return stability(
            model,
            table.data,
            n_resamples=n,
            sample_weight=table.weights,
            random_state=options.seed,
            n_jobs=options.jobs,
            progress=progress,
        )
    except ValueError as error:
        if options.stability is not None:
            raise CommandError(f"--stability: {error}") from error
        return None
    except KeyboardInterrupt:  # the fit is done, and its files are written
        note("Interrupted: the stability of the answer is left out.")
        return None


def stability_record(sure: Any) -> dict[str, Any] | None:
    """For JSON."""
    if sure is None:
        return None
    return {
        "overall": finite(sure.overall),
        "verdict": sure.verdict,
        "resamples": sure.n_resamples,
        "failed": sure.n_failed,
        "rows": len(sure.rows),
        "numbers": {str(k): n for k, n in sure.number_counts.items()},
        sure.kind: [
            {"stability": finite(value), "jaccard": finite(plain), "dissolved": gone}
            for value, plain, gone in zip(
                sure.group_stability,
                sure.group_jaccard,
                np.round(sure.dissolved, 12).tolist(),
                strict=True,
            )
        ],
    }
