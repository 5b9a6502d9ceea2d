"""Which observations suit a table: what ``observations="auto"`` stands for.

The kinds of columns decide first: categories, columns of 0 and 1, counts, numbers. How
the columns of numbers vary together is a question of rows against columns: a component
with a full covariance has D (D + 3) / 2 numbers. Where columns are few, or rows many
for that, it has one. Otherwise every candidate is fitted to some of the rows, and the
one with the highest lower bound is taken: all of them are densities in the units of the
data, so that bounds compare.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from kplus.base.estimator import Table
from kplus.core.job import Job, Sample
from kplus.core.types import Blocks
from kplus.data.sparse_rows import Rows, SparseRows
from kplus.dp_mixture import search, settings
from kplus.dp_mixture.families import AUTO, NAMES, by_name
from kplus.dp_mixture.families.columns import values
from kplus.dp_mixture.families.family import Columns, Family, Likelihood
from kplus.dp_mixture.families.mixed import Mixed

__all__ = ["Choice", "choose", "resolve"]

_NARROW = 15  # columns for whose full covariances learned priors always do
_PLENTY = 1.0  # rows for each number of a component
_JUDGED_ROWS = 2_000  # that candidates are fitted to ...
_JUDGED_PASSES = 20  # ... and most passes over them ...
_JUDGED_TOL = 1e-2  # ... as long as these gain so many nats per row
_SPARSE_ROWS = 500  # sparse rows that candidates are fitted to, ...
_SPARSE_COMPONENTS = 4  # ... with so many components from seeds, and no moves


class Candidate(NamedTuple):
    """Observations that may suit a table."""

    name: str
    words: str
    widest: float = np.inf  # most columns with which they can be afforded ...
    narrowest: int = 0  # ... and fewest for which they are meant

    def suits(self, D: int, gaps: bool) -> bool:
        """Whether D columns, maybe with missing values, can be fitted."""
        taken = NAMES[self.name].missing or not gaps
        return self.narrowest <= D <= self.widest and taken


# Of equal bounds the first is taken. If none suits, independent columns always do.
NUMBERS = (
    Candidate("gaussian", "full covariances", widest=128),
    Candidate("factor_gaussian", "few factors", narrowest=_NARROW + 1),
    Candidate("diag_gaussian", "independent columns", widest=128),
)
COUNTS = (
    Candidate("multinomial", "shares of a total"),
    Candidate("negative_binomial", "independent counts"),
)
BITS = (Candidate("bernoulli", "0 and 1 only"),)


class Choice(NamedTuple):
    """Observations, and why they are chosen, in a line."""

    likelihood: Likelihood
    why: str


def resolve(dp: Any, job: Job, table: Table) -> tuple[Family, str | None]:
    """The family with its prior; if it was left open, also why it is this one."""
    sample, why = search.prior_sample(job), None
    if dp.observations == AUTO:
        columns = settings.columns_of(table, None)
        likelihood, why = choose(
            job,
            sample,
            columns,
            lambda family: settings.make_spec(dp, family, job.source),
        )
    else:
        likelihood = by_name(dp.observations)
        columns = settings.columns_of(table, likelihood)
    return likelihood.resolve(sample.rows, sample.weights, columns), why


def choose(
    job: Job,
    sample: Sample,
    columns: Columns,
    spec_of: Callable[[Family], search.Spec],
) -> Choice:
    """The observations that suit a table.

    Parameters
    ----------
    sample : Sample
        Rows that the prior will be resolved on.
    spec_of : callable
        What a fit with a family is to do.
    """
    numbers = [j for j, levels in enumerate(columns.levels) if levels is None]
    if not numbers:
        return Choice(by_name("categorical"), "categorical: categories only")
    mixed = len(numbers) < len(columns.levels)
    X = np.take(sample.rows, numbers, axis=1) if mixed else sample.rows
    candidates, why = _candidates(X, job.source, mixed)
    options: list[Any] = [by_name(each.name) for each in candidates]
    if mixed:
        options = [Mixed(numbers=option) for option in options]
    best = 0
    if len(options) > 1:
        sparse = isinstance(sample.rows, SparseRows)
        judged = sample.some(_SPARSE_ROWS if sparse else _JUDGED_ROWS)
        bounds = [_bound(job, judged, columns, each, spec_of) for each in options]
        best = int(np.argmax(bounds))
        why = _words(candidates, bounds, judged.n_rows)
    chosen, kind = candidates[best], "mixed, numbers " if mixed else ""
    return Choice(options[best], f"{kind}{chosen.name}: {chosen.words}{why}")


def _candidates(
    X: Rows, source: Blocks, mixed: bool
) -> tuple[Sequence[Candidate], str]:
    """What columns of numbers may be; if that is one thing only, why.

    Beside categories there is no rule of thumb: what varies together by the categories
    is independent inside a component.
    """
    x = values(X)
    seen = ~np.isnan(x)
    if np.all((x == 0.0) | (x == 1.0) | ~seen):
        return BITS, ""
    listed = COUNTS if isinstance(X, SparseRows) else NUMBERS
    D = X.shape[1]
    likely = [each for each in listed if each.suits(D, not seen.all())] or listed[-1:]
    if D == 1:
        return likely[:1], ", one column"
    if likely[0].name == "gaussian" and not mixed:
        rows_each = source.n_rows / (0.5 * D * (D + 3.0))
        if rows_each >= _PLENTY:
            return likely[:1], f", {rows_each:,.3g} rows for each number of a component"
        if D <= _NARROW:
            return likely[:1], f", {D} columns"
    return likely, f", {D:,} columns"


def _bound(
    job: Job,
    sample: Sample,
    columns: Columns,
    likelihood: Likelihood,
    spec_of: Callable[[Family], search.Spec],
) -> float:
    """The lower bound, in nats per row, of a quick fit to a sample."""
    family = likelihood.resolve(sample.rows, sample.weights, columns)
    # Random numbers of its own: those of the fit are the same as with a family given.
    rng = np.random.default_rng(0)
    quick = replace(job, rng=rng, max_iter=_JUDGED_PASSES, tol=_JUDGED_TOL)
    spec = spec_of(family)
    if isinstance(sample.rows, SparseRows):
        few = min(_SPARSE_COMPONENTS, sample.n_rows)
        spec = replace(spec, kinds=(), n_components=few)
    fit = search.fit_sample(quick, spec, sample)
    return float(fit.history[-1] / sample.weight().sum())


def _words(candidates: Sequence[Candidate], bounds: Sequence[float], n: int) -> str:
    told = zip(candidates, bounds, strict=True)
    listed = ", ".join(f"{one.name} {bound:.4g}" for one, bound in told)
    return f", by the bound of {n:,} rows in nats per row ({listed})"
