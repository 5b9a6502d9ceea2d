"""The obvious way for mixtures: Eq. 8 row by row, and small tables to try it on.

Equation numbers are those of Memoized Online Variational Inference (Hughes & Sudderth
2013).
"""

import threading
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from scipy.special import digamma, logsumexp

from family_reference import expectations, log_hyperprior
from kplus.core import loop
from kplus.data.blocks import ArrayBlocks
from kplus.dp_mixture.families.family import Columns
from kplus.dp_mixture.model import DPMixtureModel
from kplus.dp_mixture.params import MixtureStats
from kplus.engine import SerialEngine
from kplus.observations import (
    Bernoulli,
    Categorical,
    DiagGaussian,
    FactorGaussian,
    Gaussian,
    Mixed,
    Multinomial,
    NegativeBinomial,
    Poisson,
    SphericalGaussian,
    Spiked,
    Transformed,
    ZeroMeanGaussian,
)
from reference import divergence_beta

# --------------------------------------------------------------------- sticks


def sticks(N, concentration):
    """E[log w_k] and the divergence of each q(v_k) from its prior (Eq. 10, 16)."""
    log_weights, divergences, passed = [], [], 0.0
    for k in range(len(N)):
        a, b = 1.0 + N[k], concentration + sum(N[k + 1 :])
        log_weights.append(digamma(a) - digamma(a + b) + passed)
        passed += digamma(b) - digamma(a + b)
        divergences.append(divergence_beta(a, b, 1.0, concentration))
    return np.array(log_weights), np.array(divergences)


# ---------------------------------------------------------------------- bound


def responsibilities(logs, n_active=None):
    """Eq. 9 from E[log p] + E[log w]; only the best `n_active` of each row."""
    logs = logs.copy()
    if n_active is not None:
        for row in logs:
            row[np.argsort(-row, kind="stable")[n_active:]] = -np.inf
    return np.exp(logs - logsumexp(logs, axis=1, keepdims=True))


def entropy(r):
    """-r log r, 0 where r is 0."""
    return -r * np.log(np.where(r > 0.0, r, 1.0))


def scores(family, X, given, concentration):
    """E[log p] + E[log w] of each row, with posteriors given shares."""
    logs, _ = expectations(family, X, given)
    return logs + sticks(given.sum(axis=0), concentration)[0]


def bound(model, X, R, weights=None, given=None, concentration=None):
    """Eq. 8, row by row, for responsibilities R, and the hyperprior of a learned prior.

    q(v) and q(φ) are the posteriors given the shares `given` (n, K), by default those
    of R itself; `concentration` is needed where the model learns it.
    """
    w = np.ones(len(X)) if weights is None else weights
    given = w[:, None] * R if given is None else given
    alpha = concentration if model.concentration is None else model.concentration
    logs, divergences = expectations(model.family, X, given)
    log_weights, stick_divergences = sticks(given.sum(axis=0), alpha)
    value = -np.sum(divergences) - np.sum(stick_divergences)
    for n, row in enumerate(R):
        for k, r in enumerate(row):
            value += w[n] * (r * (logs[n, k] + log_weights[k]) + entropy(r))
    if model.concentration is None:  # Gamma(2, 1)
        value += np.log(alpha) - alpha
    return float(value + log_hyperprior(model.family))


def pair_entropy(R, a, b, weights=None):
    """The entropy that a merge of two components loses."""
    w = np.ones(len(R)) if weights is None else weights
    lost = entropy(R[:, a]) + entropy(R[:, b]) - entropy(R[:, a] + R[:, b])
    return float(w @ lost)


def statistics(family, X, R, weights=None):
    """N, S, entropies and packed pair entropies."""
    K = R.shape[1]
    w = np.ones(len(X)) if weights is None else weights
    S = np.zeros((K, family.n_stats))
    for n, t in enumerate(family.features(X)):
        S += w[n] * np.outer(R[n], t)
    pairs = [pair_entropy(R, a, b, w) for a in range(K) for b in range(a + 1, K)]
    return w @ R, S, w @ entropy(R), np.array(pairs)


def regrouped(R, old_to_new, K):
    """Responsibilities after components were renumbered, joined or dropped (-1)."""
    out = np.zeros((len(R), K))
    for k, target in enumerate(old_to_new):
        if target >= 0:
            out[:, target] += R[:, k]
    return out


def dense(support, r, K):
    """Responsibilities (n, K) from what a model keeps of a block."""
    out = np.zeros((len(support.starts) - 1, K))
    for n in range(len(out)):
        inside = slice(support.starts[n], support.starts[n + 1])
        np.add.at(out[n], support.components[inside], r[inside])
    return out


# ---------------------------------------------------------------------- cases

LEVELS = (2, 4, 3)


def _group(rng, n):
    return rng.integers(0, 3, n)


def _numbers(rng, n):
    centers = np.array([[0.0, -20.0, 1.0], [3.0, -20.0, 0.0], [0.0, -14.0, 2.0]])
    mix = np.array([[1.0, 0.4, 0.0], [0.0, 0.7, 0.3], [0.2, 0.0, 1.3]])
    return centers[_group(rng, n)] + rng.normal(size=(n, 3)) @ mix


def _skewed(rng, n):
    """Positive numbers, numbers of either sign, and shares."""
    X = _numbers(rng, n)
    X[:, 0], X[:, 2] = np.exp(0.5 * X[:, 0]), 1.0 / (1.0 + np.exp(-X[:, 2]))
    return X


def _spiked_numbers(rng, n):
    X = _numbers(rng, n)
    X[rng.random(n) < 0.4, 0] = 1.0
    return X


def _bits(rng, n):
    chances = np.array([[0.1, 0.5, 0.9], [0.8, 0.2, 0.9], [0.5, 0.9, 0.2]])
    return (rng.random((n, 3)) < chances[_group(rng, n)]).astype(float)


def _coded(rng, n):
    codes = rng.integers(0, LEVELS, size=(n, 3))
    shift = _group(rng, n)
    return np.where(rng.random((n, 3)) < 0.5, codes, shift[:, None] % LEVELS) * 1.0


def _counts(rng, n):
    rates = np.array([[0.3, 4.0, 30.0], [3.0, 1.0, 10.0], [1.0, 9.0, 3.0]])
    return rng.poisson(rates[_group(rng, n)]).astype(float)


def _mixture(rng, n):
    """Numbers in columns 0 and 3, categories in 1 and 4, counts in 2 and 5."""
    parts = _numbers(rng, n), _coded(rng, n), _counts(rng, n)
    return np.stack([part[:, j] for j in (0, 1) for part in parts], axis=1)


@dataclass(frozen=True)
class Case:
    """Observations, and rows that suit them; NaN among these where they may be."""

    likelihood: Any
    make: Any
    levels: tuple = (None, None, None)
    missing: bool = True
    learned: bool = False  # the prior is that learned from some components

    def rows(self, n, seed=0):
        rng = np.random.default_rng(seed)
        X = self.make(rng, n)
        if self.missing:
            X[rng.random(X.shape) < 0.1] = np.nan
        return X

    def model(self, X, kind=DPMixtureModel, **settings):
        names = tuple(f"column {j}" for j in range(X.shape[1]))
        family = self.likelihood.resolve(X, None, Columns(names, self.levels))
        if self.learned:
            N, S, *_ = statistics(family, X, some_shares(len(X), 5, seed=1))
            for _ in range(5):
                family = family.learned(N, S)
        return kind(family, **settings)


_MIXED_LEVELS = (None, LEVELS[0], None, None, LEVELS[1], None)
CASES = {
    "gaussian": Case(Gaussian(), _numbers, missing=False),
    "gaussian-set": Case(
        Gaussian(0.5, mean=[1, -18, 3.0], mean_strength=0.4, dof=6),
        _numbers,
        missing=False,
    ),
    "zero_mean_gaussian": Case(ZeroMeanGaussian(), _numbers, missing=False),
    "factor_gaussian": Case(FactorGaussian(), _numbers, missing=False),
    "factor_gaussian-one": Case(FactorGaussian(1), _numbers, missing=False),
    "diag_gaussian": Case(DiagGaussian(), _numbers),
    "diag_gaussian-set": Case(
        DiagGaussian([1, -18, 3.0], 0.7, 4.5, [1, 2, 0.3]), _numbers
    ),
    "spherical_gaussian": Case(SphericalGaussian(), _numbers),
    "spherical_gaussian-set": Case(SphericalGaussian(-5.0, 0.7, 2.5, 3.0), _numbers),
    "transformed": Case(Transformed(DiagGaussian(), {0: "log", 2: "logit"}), _skewed),
    "transformed-gaussian": Case(
        Transformed(Gaussian(), {0: "log", 2: "logit"}), _skewed, missing=False
    ),
    "spiked": Case(Spiked(DiagGaussian(), {0: 1.0}), _spiked_numbers),
    "bernoulli": Case(Bernoulli(), _bits),
    "categorical": Case(Categorical(), _coded, LEVELS),
    "poisson": Case(Poisson(), _counts),
    "negative_binomial": Case(NegativeBinomial(), _counts),
    "multinomial": Case(Multinomial(), _counts, missing=False),
    "multinomial-set": Case(Multinomial([0.4, 2.0, 7.0]), _counts, missing=False),
    "mixed": Case(Mixed(counts=(2, 5)), _mixture, _MIXED_LEVELS),
    "mixed-gaussian": Case(
        Mixed(Gaussian(), counts=(2, 5)), _mixture, _MIXED_LEVELS, missing=False
    ),
}
FIXED = {  # priors that stay what they are at the beginning of a fit
    "gaussian-fixed": Case(Gaussian(learn=False), _numbers, missing=False),
    "zero_mean_gaussian-fixed": Case(
        ZeroMeanGaussian(learn=False), _numbers, missing=False
    ),
    "factor_gaussian-fixed": Case(
        FactorGaussian(2, learn=False), _numbers, missing=False
    ),
    "diag_gaussian-fixed": Case(DiagGaussian(learn=False), _numbers),
    "spherical_gaussian-fixed": Case(SphericalGaussian(learn=False), _numbers),
}
LEARNED = {
    f"{name}-learned": replace(CASES[name], learned=True)
    for name in CASES
    if not name.endswith("-set")
}
CASES.update(FIXED, **LEARNED)
# Noise is uniform, and has no mass at a spike: it is refused beside spikes.
NOISY = [name for name in CASES if not name.startswith("spiked")]


def some_shares(n, K, seed=0):
    """Responsibilities of which few are near 0 and 1."""
    rng = np.random.default_rng(seed)
    return rng.dirichlet(np.full(K, 0.7), size=n)


def labelled(labels, K=None):
    """Responsibilities of rows that belong to one component each."""
    return np.eye(int(labels.max()) + 1 if K is None else K)[labels]


def blobs(seed, centers, n=60):
    """Round groups of n rows each, one after the other."""
    rng = np.random.default_rng(seed)
    centers = np.repeat(np.array(centers, dtype=float), n, axis=0)
    return centers + rng.normal(size=centers.shape)


THREE = [[0.0, 0.0], [12.0, 0.0], [0.0, 12.0]]
FLAT = Case(Gaussian(), None, (None, None))  # two columns
DIAG = Case(DiagGaussian(), None, (None, None))


@dataclass(frozen=True)
class Recording(DPMixtureModel):
    """A model that notes the responsibilities of each block's last visit."""

    seen: dict = field(default_factory=dict)
    latest: Any = field(
        default_factory=threading.local
    )  # blocks are visited by threads

    def share_out(self, params, *rest):
        stats, support, r = super().share_out(params, *rest)
        self.latest.shares = support, r.copy(), params.K
        return stats, support, r

    def summarize(self, params, block, local):
        out = super().summarize(params, block, local)
        self.seen[block.start] = self.latest.shares
        return out

    @property
    def R(self):
        """Of the rows visited, in order."""
        return np.vstack([dense(*self.seen[start]) for start in sorted(self.seen)])


def stats_of(model, X, R, weights=None):
    """The model's summary of given responsibilities, of rows visited just now."""
    w = np.ones(len(X)) if weights is None else weights
    N, S, entropies, pairs = statistics(model.family, X, R, w)
    base = float(w @ model.family.log_base(X))
    return MixtureStats(
        N, S, entropies, pairs, base, float(w.sum()), N.copy(), np.zeros(len(N))
    )


def components(model, X, R, weights=None):
    """The posterior given responsibilities, ready for a pass over all components."""
    w = np.ones(len(X)) if weights is None else weights
    N, S, *_ = statistics(model.family, X, R, w)
    return model.posterior(N, S, float(w.sum()))


def one_pass(model, X, params, weights=None):
    """The sums of all rows under the same parameters."""
    with SerialEngine(ArrayBlocks(X, 20), weights) as engine:
        return engine.sweep(model, params, range(engine.n_blocks))


def run(model, X, start, *moves, block_rows=20, max_iter=60, step=1e-7, **more):
    """Memoized passes; the result and labels."""
    with SerialEngine(ArrayBlocks(X, block_rows)) as engine:
        groups = [*([index] for index in range(engine.n_blocks)), []]
        result = loop.run(
            model, engine, model.ready(start, everyone=True),
            moves=moves, groups=groups, max_iter=max_iter, tol=0.0, step=step, **more,
        )  # fmt: skip
        return result, np.concatenate([local.labels for local in engine.locals()])
