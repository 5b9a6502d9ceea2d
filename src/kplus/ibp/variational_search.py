"""From a table to a variational posterior: a start from a sample, then passes."""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from kplus.core.job import Job, best_of, draw
from kplus.core.runs import answers, negated, run_job
from kplus.core.types import Array, FitResult
from kplus.data.blocks import ArrayBlocks
from kplus.engine.blas import SINGLE_THREAD
from kplus.features import number
from kplus.features.rows import Rows
from kplus.ibp.factors import GaussianFactors
from kplus.ibp.prior import FiniteIBP, InfiniteIBP, harmonic
from kplus.ibp.table import fill_with_noise
from kplus.ibp.variational_model import BernoulliSums, MeanField, VariationalModel
from kplus.linear.pursuit import noise_rank

__all__ = ["VariationalFit", "VariationalSpec", "expected_bits", "fit"]

_SAMPLE_ROWS = 5_000
_SAMPLE_PASSES = 50
_FLOOR = 1e-8  # least variance, as a share of that of the columns
_EFFORT = 0.25  # of the search for features to start from
_ALL_BUT = 10  # noise in less than a tenth of the directions: hardly any is left to it
_CLEAR = 1.5  # times the next eigenvalue
_WIDE = 20  # columns: of fewer, eigenvalues lie so far apart by chance
_PATIENT = VariationalModel(most_sweeps=1_000, tol=1e-10)


@dataclass(frozen=True)
class VariationalSpec:
    """Settings of a search; None where a value is to be inferred or chosen.

    `noise_scale` and `factor_scale` are standard deviations.
    """

    infinite: bool
    max_components: int | None
    alpha: float | None
    noise_scale: float | None
    factor_scale: float | None
    random_start: bool
    n_init: int

    @property
    def needs_rows(self) -> bool:
        """Whether a start depends on the values of the rows."""
        return not self.random_start or self.max_components is None


@dataclass(frozen=True)
class VariationalFit:
    """The posterior, the sums over all rows, and the bound after each pass."""

    params: MeanField
    sums: BernoulliSums
    history: Array
    converged: bool


def fit(job: Job, spec: VariationalSpec) -> VariationalFit:
    """Start from features of a sample; with several starts, keep the best of them."""
    with SINGLE_THREAD:
        drawn = draw(job.source, None, _SAMPLE_ROWS, job.rng)
        sample = np.ascontiguousarray(drawn.rows, dtype=np.float64)
        table = _table(sample, job.rng) if spec.needs_rows else None
        starts = _Starts(spec, _model(spec, sample), sample, table)
        whole = drawn.share == 1.0
        if not whole:
            passes = min(_SAMPLE_PASSES, job.max_iter)
            few = job.on_sample(ArrayBlocks(sample), max_iter=passes)
            start = _best_of(few, starts).params
            return _converge(job, starts.model, start)
        return _best_of(job, starts)


def _best_of(job: Job, starts: "_Starts") -> VariationalFit:
    """The fit with the highest bound; all starts but the first are random."""
    spec = starts.spec

    def one(part: Job, again: bool) -> VariationalFit:
        start = starts.draw(part.rng.spawn(1)[0], spec.random_start or again)
        return _converge(part, starts.model, start)

    return best_of(spec.n_init, job, one, lambda end: -float(end.history[-1]))


def _model(spec: VariationalSpec, sample: Array) -> VariationalModel:
    return VariationalModel(
        infer_alpha=spec.alpha is None,
        infer_noise=spec.noise_scale is None,
        infer_factor=spec.factor_scale is None,
        floor=_FLOOR * _square(sample),
    )


def _square(X: Array) -> float:
    """The variance of columns; of constant ones the mean square, of zeros 1."""
    spread = float(np.nanmean((X - np.nanmean(X, axis=0)) ** 2))
    return spread or float(np.nanmean(X**2)) or 1.0


# ------------------------------------------------------------------- the starts


@dataclass(frozen=True)
class _Starts:
    """What starts are made from: rows of a sample, and the same with gaps filled in.

    The latter is None where all starts are random, with a number of features given.
    """

    spec: VariationalSpec
    model: VariationalModel
    X: Array
    table: Rows | None

    def draw(self, rng: np.random.Generator, at_random: bool) -> MeanField:
        """The posterior given an allocation of features to the rows.

        Features beyond those allocated are inactive: no row has them.
        """
        spec, model, X = self.spec, self.model, self.X
        Z = self._random_bits(rng) if at_random else self._searched(rng)
        K, active = spec.max_components or max(Z.shape[1], 1), Z.shape[1]
        nu = np.zeros((len(X), K))
        nu[:, :active] = Z
        params = _before(spec, X, nu)
        sums = model.sums(params, X, nu)
        params = model.with_scales(model.with_factors(params, sums), sums)
        if model.infer_factor and active:
            # Inactive features would hold on to the variance they began with.
            variance = float(np.mean(params.factors.mean[:active] ** 2))
            params = replace(params, factor=max(variance, model.floor))
        return model.update(params, sums)

    def _searched(self, rng: np.random.Generator) -> NDArray[np.uint8]:
        """Bits of features that explain more than noise would, as in BP-means."""
        rows = self.table
        assert rows is not None
        floor = number.noise_floor(rows)
        if floor == 0.0:
            return rows.empty().Z
        N, D = rows.X.shape
        most = self.spec.max_components or min(N, D)
        rank, _ = noise_rank(rows.strengths, N, D)
        if _ALL_BUT * (D - rank) < D and (common := _common_directions(rows.X)):
            # Noise of different sizes in different columns makes them all stand out.
            rank, floor = common, max(floor, float(rows.strengths[common]))
        if 2 * (rank + 1) <= D:
            # In so many columns features and a base are hardly ever dependent.
            most = min(most, rank + 1)
        features = number.by_penalty(rows, floor, most, _EFFORT, rng)
        if features.base:  # it has what most rows have: others may be complemented
            features.Z[:, 1:] ^= features.Z[:, 1:].mean(axis=0) > 0.5
        return features.Z

    def _random_bits(self, rng: np.random.Generator) -> NDArray[np.uint8]:
        """Bits drawn evenly; by default one feature more than directions are strong."""
        K = self.spec.max_components
        if K is None:
            assert self.table is not None
            K = noise_rank(self.table.strengths, *self.X.shape)[0] + 1
        return rng.integers(0, 2, (len(self.X), K), dtype=np.uint8)


def _common_directions(X: Array) -> int:
    """How many directions columns of any scale have in common; 0 where it is unclear.

    By their correlations: of columns that have nothing in common no eigenvalue exceeds
    (1 + √(D/N))². It is clear where the next one is far smaller.
    """
    N, D = X.shape
    if D < _WIDE:
        return 0
    centred = X - X.mean(axis=0)
    sizes = np.sqrt(np.mean(centred**2, axis=0))
    centred = centred[:, sizes > 0.0] / sizes[sizes > 0.0]
    values = np.linalg.eigvalsh(centred.T @ centred / N)[::-1]
    rank = int(np.count_nonzero(values > (1.0 + np.sqrt(D / N)) ** 2))
    clear = 0 < 2 * (rank + 1) <= D and values[rank - 1] > _CLEAR * values[rank]
    return rank if clear else 0


def _before(spec: VariationalSpec, X: Array, nu: Array) -> MeanField:
    """Scales as given or about those of the rows, and features of no value yet."""
    square, active = _square(X), max(int(nu.any(axis=0).sum()), 1)
    alpha = active / harmonic(len(X)) if spec.alpha is None else spec.alpha
    kind = InfiniteIBP if spec.infinite else FiniteIBP
    return MeanField(
        GaussianFactors.uncoupled(np.zeros((nu.shape[1], X.shape[1])), square),
        kind.fitted(nu.sum(axis=0), len(X), alpha),
        square if spec.noise_scale is None else spec.noise_scale**2,
        square if spec.factor_scale is None else spec.factor_scale**2,
    )


def _table(sample: Array, rng: np.random.Generator) -> Rows:
    """The sample without gaps, for the search."""
    gaps = np.isnan(sample)
    return _as_rows(fill_with_noise(sample, gaps, rng) if gaps.any() else sample)


def _as_rows(X: Array) -> Rows:
    largest = float(np.max(np.abs(X)))
    scale = 2.0 ** np.round(np.log2(largest)) if largest > 0.0 else 1.0
    return Rows(np.ascontiguousarray(X) / scale, np.ones(len(X)))


# ------------------------------------------------------------------- the passes


def _converge(job: Job, model: VariationalModel, start: MeanField) -> VariationalFit:
    """Pass until the bound converges; then let rows also start from nothing.

    So their probabilities are those that the same rows would get in another table,
    except where these are worse.
    """

    def fresh(result: FitResult) -> MeanField | None:
        if not result.converged or result.n_iter >= job.max_iter:
            return None
        params: MeanField = result.params
        return replace(params, fresh=True)

    result, _ = run_job(
        job, model, replace(start, fresh=False), reported=negated, then=fresh
    )
    history = -np.array(result.history)
    return VariationalFit(result.params, result.total, history, result.converged)


def expected_bits(job: Job, params: MeanField) -> Array:
    """The probability of each row to have each feature, given all else."""
    return np.asarray(answers(job, _PATIENT, params)[1])
