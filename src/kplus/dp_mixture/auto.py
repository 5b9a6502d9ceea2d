"""Which observations suit a table: what ``observations="auto"`` stands for.

The kinds of columns decide first: categories, columns of 0 and 1, counts, numbers. How
the columns of numbers vary together is a question of rows against columns: a component
with a full covariance has D (D + 3) / 2 numbers. Where columns are few, or rows many
for that, it has one. Otherwise every candidate is fitted to some of the rows, and the
one with the highest lower bound is taken: all of them are densities in the units of the
data, so that bounds compare, once `families/comparing.py` has averaged over what each
learns.

Full covariances are tried with heavy tails as well, where a quick fit shows such: rows
far from the means of components, or wide components around narrow ones, which is how
Gaussians make do with tails.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from kplus.base.estimator import Table
from kplus.core.job import Job, Sample
from kplus.core.types import Array, Blocks
from kplus.data.sparse_rows import Rows, SparseRows
from kplus.dp_mixture import search, settings
from kplus.dp_mixture.families import AUTO, NAMES, by_name
from kplus.dp_mixture.families.columns import values
from kplus.dp_mixture.families.comparing import averaged
from kplus.dp_mixture.families.family import Columns, Family, Likelihood
from kplus.dp_mixture.families.mixed import Mixed, MixedFamily
from kplus.dp_mixture.families.quadratic import squares

__all__ = ["Choice", "choose", "resolve"]

_NARROW = 15  # columns for whose full covariances learned priors always do
_PLENTY = 1.0  # rows for each number of a component
_JUDGED_ROWS = 2_000  # that candidates are fitted to ...
_JUDGED_PASSES = 20  # ... and most passes over them ...
_JUDGED_TOL = 1e-2  # ... as long as these gain so many nats per row
_SPARSE_ROWS = 500  # sparse rows that candidates are fitted to, ...
_SPARSE_COMPONENTS = 4  # ... with so many components from seeds, and no moves
_TELLING_ROWS = 200  # of fewer no one can tell a tail; and their fits stay quick
_TAILED = 1.05  # kurtosis of distances, that of Gaussians being 1, from which on tails
# may be heavy: 19 tables of all shapes have .75 to 1.01, or above 1.1
_AROUND = 0.05  # share of the rows in components around narrower ones, likewise
_WIDER = 2.0  # times the variances of the narrower ones, at least


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
TAILS = Candidate("student_t", "heavy tails", widest=60)
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
    sparse = isinstance(sample.rows, SparseRows)
    judged = sample.some(_SPARSE_ROWS if sparse else _JUDGED_ROWS)
    judge = _Judge(job, judged, columns, spec_of)
    bounds: list[float] = []
    if len(options) > 1:
        bounds = [judge.bound(each) for each in options]
    best = int(np.argmax(bounds)) if bounds else 0
    full = candidates[0].name == "gaussian" and (mixed or best == 0)
    telling = judged.n_rows >= _TELLING_ROWS
    if full and telling and X.shape[1] <= TAILS.widest:
        bounds = bounds or [judge.bound(options[0])]
        if judge.shows_tails(options[0]):
            heavy = by_name(TAILS.name)
            candidates = [*candidates, TAILS]
            options.append(Mixed(numbers=heavy) if mixed else heavy)
            bounds.append(judge.bound(options[-1]))
            best = int(np.argmax(bounds))
    if len(bounds) > 1:
        why = _words(candidates, bounds, judge.sample.n_rows)
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


class _Judge:
    """Quick fits to a sample."""

    def __init__(
        self,
        job: Job,
        sample: Sample,
        columns: Columns,
        spec_of: Callable[[Family], search.Spec],
    ) -> None:
        self.job, self.sample, self.columns = job, sample, columns
        self.spec_of = spec_of
        self.fits: dict[Likelihood, search.MixtureFit] = {}

    def fit(self, likelihood: Likelihood) -> search.MixtureFit:
        if likelihood not in self.fits:
            sample = self.sample
            family = likelihood.resolve(sample.rows, sample.weights, self.columns)
            # Random numbers of its own: those of the fit are the same as with a family
            # given.
            rng = np.random.default_rng(0)
            quick = replace(self.job, rng=rng, max_iter=_JUDGED_PASSES, tol=_JUDGED_TOL)
            spec = self.spec_of(family)
            if isinstance(sample.rows, SparseRows):
                few = min(_SPARSE_COMPONENTS, sample.n_rows)
                spec = replace(spec, kinds=(), n_components=few)
            fit = search.fit_sample(quick, spec, sample)
            self.fits[likelihood] = fit
        return self.fits[likelihood]

    def bound(self, likelihood: Likelihood) -> float:
        """The lower bound in nats per row, such as compares."""
        fit = self.fit(likelihood)
        more = averaged(fit.family, fit.params.N, fit.params.S)
        return float((fit.history[-1] + more) / self.sample.weight().sum())

    def shows_tails(self, likelihood: Likelihood) -> bool:
        """Whether components with full covariances leave rows far out, or stand around
        each other."""
        fit, X, weights = self.fit(likelihood), self.sample.rows, self.sample.weight()
        family: Any = fit.family
        expected: Any = fit.params.expected
        scores = family.scores(expected, X) + fit.params.log_weights
        if isinstance(family, MixedFamily):  # numbers come first
            X, family = X[:, family.where[0]], family.parts[0]
            expected = expected.parts[0]
        if _share_around(fit.params.N, expected) > _AROUND:
            return True
        covariances = np.linalg.inv(expected.precision)
        found = squares(family.scaling.transform(X), expected.means, covariances)
        labels = np.argmax(scores, axis=1)[:, None]
        far = np.take_along_axis(found.distances, labels, axis=1)[:, 0]
        return _kurtosis(far, found.n_seen[:, 0], weights) > _TAILED


def _kurtosis(far: Array, n_seen: Array, weights: Array) -> float:
    """Mean square of squared distances over that of Gaussians with the same mean."""
    ratio = (weights @ far**2) * (weights @ n_seen) ** 2
    return float(ratio / ((weights @ (n_seen * (n_seen + 2.0))) * (weights @ far) ** 2))


def _share_around(N: Array, expected: Any) -> float:
    """Share of components that have the mean of a narrower one among their rows."""
    D = expected.means.shape[1]
    widths = -2.0 * np.log(np.abs(np.linalg.det(expected.whiten)))
    apart = expected.means[:, None, :] - expected.means  # of the narrower one first
    far = np.square(np.einsum("kjd,jde->kje", apart, expected.whiten)).sum(axis=2)
    inside = (far < D) & (widths[:, None] + D * np.log(_WIDER) < widths)
    return float(N[inside.any(axis=0)].sum() / N.sum())


def _words(candidates: Sequence[Candidate], bounds: Sequence[float], n: int) -> str:
    told = zip(candidates, bounds, strict=True)
    listed = ", ".join(f"{one.name} {bound:.4g}" for one, bound in told)
    return f", by the bound of {n:,} rows (mean log density: {listed})"
