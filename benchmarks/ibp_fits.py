"""Fits of all methods behind one face: weights, components and scale of the noise.

Each gets a table in which NaN is missing. Seconds are those of the fit alone, without
what is needed to centre or to score.
"""

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.decomposition import NMF, non_negative_factorization

import kplus
from baselines import bnmf as bayesian_nmf
from ibp_methods import Method
from ibp_truth import log_likelihood
from worker import cpu_seconds

BLOCK = 5_000  # rows that are predicted at a time


@dataclass(frozen=True)
class Outcome:
    """X ≈ weights @ components + offset, and what it took."""

    weights: np.ndarray
    components: np.ndarray
    offset: np.ndarray
    noise_scale: float
    n_iter: int
    cpu_s: float
    wall_s: float
    converged: bool

    def held_out(self, X: np.ndarray, truth: np.ndarray) -> float:
        """Mean log-likelihood of the entries missing in X, which `truth` lists."""
        predicted = np.empty(len(truth))
        done = 0
        for start in range(0, len(X), BLOCK):
            rows = slice(start, start + BLOCK)
            gaps = np.isnan(X[rows])
            new = (self.weights[rows] @ self.components + self.offset)[gaps]
            predicted[done : done + len(new)] = new
            done += len(new)
        return log_likelihood(predicted, truth, self.noise_scale)


def timed(run: Callable[[], Any]) -> tuple[Any, float, float]:
    """What a call returns, its CPU and wall seconds; it may warn of being cut short."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        cpu, wall = cpu_seconds(), time.perf_counter()
        found = run()
        return found, cpu_seconds() - cpu, time.perf_counter() - wall


class TimeBox:
    """A scikit-learn callback that ends a fit after so many CPU seconds.

    Sweeps of samplers take ever longer as features become more, so that the first ones
    do not tell how many there is time for.
    """

    def __init__(self, seconds: float) -> None:
        self.end = cpu_seconds() + seconds
        self.over = False

    def setup(self, estimator: Any, context: Any) -> None:
        pass

    def teardown(self, estimator: Any, context: Any) -> None:
        pass

    def on_fit_task_begin(self, estimator: Any, context: Any) -> None:
        pass

    def on_fit_task_end(self, estimator: Any, context: Any) -> bool:
        self.over = self.over or cpu_seconds() > self.end
        return self.over


def fit(
    method: Method,
    X: np.ndarray,
    seed: int,
    steps: int | None = None,
    box: float = np.inf,
) -> Outcome:
    """Fit a table with at most so many iterations, within so many CPU seconds."""
    steps = method.most if steps is None else min(steps, method.most)
    if method.kind in PEERS:
        return PEERS[method.kind](X, method.settings["n_components"], seed, steps)
    if not method.centred:
        return fit_kplus(method, X, seed, steps, box)
    mean = np.nanmean(X, axis=0, dtype=np.float64)
    found = fit_kplus(method, X - mean.astype(X.dtype), seed, steps, box)
    return replace(found, offset=found.offset + mean)


def fit_kplus(
    method: Method, X: np.ndarray, seed: int, steps: int, box: float
) -> Outcome:
    own = {method.steps: steps, "random_state": seed}
    first_cpu = first_wall = 0.0
    if method.init is not None:
        first = getattr(kplus, method.init.kind)(
            **method.init.settings, random_state=seed
        )
        own["init"], first_cpu, first_wall = timed(lambda: first.fit(X))
    model = getattr(kplus, method.kind)(**method.settings, **own)
    watch = TimeBox(box - first_cpu)
    if np.isfinite(box):
        model.set_callbacks(watch)
    _, cpu, wall = timed(lambda: model.fit(X))
    n_iter = int(model.n_iter_)
    return Outcome(
        np.asarray(model.transform(X)),
        model.components_,
        model.offset_,
        float(model.noise_scale_),
        n_iter,
        first_cpu + cpu,
        first_wall + wall,
        n_iter < steps and not watch.over,
    )


def fit_nmf(X: np.ndarray, n_components: int, seed: int, steps: int) -> Outcome:
    """scikit-learn's NMF, which takes neither missing nor negative values.

    Factors come from the rows that lack nothing, weights of the other rows from the
    columns that they all have. Negative values are set to 0: taking the minimum off
    instead is worse on the paper's synthetic data.
    """
    missing = np.isnan(X)
    complete, columns = ~missing.any(axis=1), ~missing.any(axis=0)
    positive = np.maximum(X, 0.0)
    weights = np.empty((len(X), n_components))

    def run() -> tuple[np.ndarray, int]:
        model = NMF(n_components, init="nndsvda", max_iter=steps, random_state=seed)
        weights[complete] = model.fit_transform(positive[complete])
        factors = model.components_
        weights[~complete] = non_negative_factorization(
            np.ascontiguousarray(positive[~complete][:, columns]),
            H=np.ascontiguousarray(factors[:, columns]),
            init="custom",
            n_components=n_components,
            update_H=False,
            max_iter=steps,
        )[0]
        return factors, model.n_iter_

    return _peer(X, weights, timed(run), steps)


def fit_filled_nmf(X: np.ndarray, n_components: int, seed: int, steps: int) -> Outcome:
    """The same with the mean of its column in place of each missing value."""
    filled = np.where(np.isnan(X), np.nanmean(X, axis=0), X)
    filled = np.maximum(filled, 0.0)
    weights = np.empty((len(X), n_components))

    def run() -> tuple[np.ndarray, int]:
        model = NMF(n_components, init="nndsvda", max_iter=steps, random_state=seed)
        weights[:] = model.fit_transform(filled)
        return model.components_, model.n_iter_

    return _peer(X, weights, timed(run), steps)


def _peer(
    X: np.ndarray,
    weights: np.ndarray,
    measured: tuple[tuple[np.ndarray, int], float, float],
    steps: int,
) -> Outcome:
    """An outcome of NMF; the noise is what it leaves of the observed entries."""
    (components, n_iter), cpu, wall = measured
    offset = np.zeros(X.shape[1])
    error = np.nanmean((X - weights @ components) ** 2)
    noise = float(np.sqrt(error))
    return Outcome(
        weights, components, offset, noise, n_iter, cpu, wall, n_iter < steps
    )


def fit_bnmf(X: np.ndarray, n_components: int, seed: int, steps: int) -> Outcome:
    """Bayesian NMF, which leaves missing entries out."""
    found, cpu, wall = timed(
        lambda: bayesian_nmf(X, n_components, max_iter=steps, random_state=seed)
    )
    return Outcome(
        found.B,
        found.A,
        np.zeros(X.shape[1]),
        float(np.sqrt(found.variance)),
        found.n_iter,
        cpu,
        wall,
        found.converged,
    )


PEERS: dict[str, Callable[[np.ndarray, int, int, int], Outcome]] = {
    "fit_nmf": fit_nmf,
    "fit_filled_nmf": fit_filled_nmf,
    "fit_bnmf": fit_bnmf,
}
