"""How a normal-Wishart prior is learned from the sums of components.

A step needs the posterior of every component, its Cholesky factor and the precision
that it expects. Each is made once: the evidence of a prior comes with the factors that
the next step begins with, the gamma functions stay as long as ν0 does, and determinants
of the prior follow its square root.
"""

from typing import Any, NamedTuple, Self

import numpy as np
from scipy.special import gammaln

from kplus.core.types import Array
from kplus.dp_mixture.families.learning import rises, search_scale
from kplus.dp_mixture.kernels_gaussian import invert_factors

__all__ = ["RowSums", "WishartSettings", "factor", "learn_wishart", "log_gammas"]

_STEPS = 3  # by which the prior is improved after a pass ...
_COSTLY = 1e8  # ... or 1, where matrices have so many products in all
_LITTLE = 1e-7  # nats per row; steps end when one gains less
_FLOOR = 1e-8  # share of the guess below which no variance of a prior is learned
_CLIP = 3.0  # most by which a step changes the logarithm of a variance


def factor(B: Array) -> tuple[Array, Array]:
    """Lower Cholesky factors of positive matrices, and log determinants.

    A matrix that rounding has made indefinite gets what is missing on its diagonal.
    """
    try:
        L = np.linalg.cholesky(B)
    except np.linalg.LinAlgError:
        values, axes = np.linalg.eigh(B)
        floor = 2.0**-45 * values[..., -1:]
        mended = (axes * np.maximum(values, floor)[..., None, :]) @ np.swapaxes(
            axes, -1, -2
        )
        L = np.linalg.cholesky(0.5 * (mended + np.swapaxes(mended, -1, -2)))
    diagonal = np.diagonal(L, axis1=-2, axis2=-1)
    return L, 2.0 * np.log(diagonal).sum(-1)


class RowSums(NamedTuple):
    """Counts, means and scatter about them of the rows of K components.

    The scatter holds what rounding adds. Where means are known for sure, they are 0.
    For means rows may count otherwise than for N: see `NormalWishartFamily._heft`.
    """

    N: Array  # (K,)
    W: Array  # (K,)
    means: Array  # (K, D)
    scatter: Array  # (K, D, D)


class WishartSettings(NamedTuple):
    """Which parameters of the prior are learned, and about what.

    `guess` has the variances that the hyperprior expects, `likely` the strength.
    """

    learns: tuple[str, ...]
    guess: Array  # (D,)
    likely: float


class _Prior(NamedTuple):
    """Λ ~ Wishart(ν0, (ν0 V)⁻¹), and μ | Λ ~ Normal(m0, (κ0 Λ)⁻¹).

    ``root rootᵀ`` is V, of log determinant `log_det`; no eigenvalue of V is below
    `least`, in units of the least variances allowed.
    """

    mean: Array
    strength: float  # infinite where means are known for sure
    dof: float
    root: Array
    log_det: float
    least: float

    def with_matrix(self, V: Array, floor: Array) -> Self:
        """The same for V, of which no variance may be below the floor.

        Where V is the best of all matrices, this is the best of such: it has the same
        eigenvectors, in units of the floor.
        """
        unit = np.sqrt(floor)
        values, axes = np.linalg.eigh(0.5 * (V + V.T) / (unit[:, None] * unit))
        values = np.maximum(values, 1.0)
        log_det = float(np.log(values * floor).sum())
        root = unit[:, None] * axes * np.sqrt(values)
        return self._replace(root=root, log_det=log_det, least=float(values[0]))


class _Judged(NamedTuple):
    """A prior with the factors of the posteriors, and what the bound has of it."""

    prior: _Prior
    means: Array  # of the posteriors, (K, D)
    factors: Array  # of their scatter, (K, D, D)
    own: Array  # their scatter less that of the prior
    value: float


def learn_wishart(
    sums: RowSums,
    settings: WishartSettings,
    mean: Array,
    strength: float,
    dof: float,
    scatter: Array,
) -> dict[str, Any] | None:
    """What becomes of the parameters that are learned; None if the bound stays.

    Steps of the covariance and the mean, and then the best ν0.
    """
    learner = _Learner(sums, settings, dof)
    root, log_det = factor(scatter / dof)
    start = _Prior(mean, strength, dof, root, float(log_det), 0.0)
    at = before = learner.judged(start)
    K, D = sums.means.shape
    enough = _LITTLE * float(sums.N.sum())
    for _ in range(_STEPS if K * D**3 < _COSTLY else 1):
        last, at = at, learner.step(at)
        if at.value - last.value < enough:
            break
    if at.value < before.value:  # by rounding
        at = before
    prior, value = learner.with_best_dof(at)
    if not rises(value, before.value):
        return None
    changes: dict[str, Any] = {}
    V = scatter / dof if prior.root is root else prior.root @ prior.root.T
    if "covariance" in settings.learns or "dof" in settings.learns:
        changes = {"dof": prior.dof, "scatter": prior.dof * V}
    if "mean" in settings.learns:
        changes["mean"] = prior.mean
    if "mean_strength" in settings.learns:
        changes["mean_strength"] = prior.strength
    return changes


class _Learner:
    """Steps for given sums; gamma functions are those of one ν0."""

    def __init__(self, sums: RowSums, settings: WishartSettings, dof: float) -> None:
        self.sums, self.learns = sums, settings.learns
        self.guess, self.likely = settings.guess, settings.likely
        self.floor = _FLOOR * settings.guess
        self.weight = len(settings.guess) + 2.0  # of the hyperprior of V
        self.log_guess = float(np.log(settings.guess).sum())
        D = len(settings.guess)
        self.gammas = float(log_gammas(dof + sums.N, D).sum())
        self.gammas -= len(sums.N) * float(log_gammas(np.array(dof), D))

    def judged(self, prior: _Prior) -> _Judged:
        """The evidence and the hyperprior, up to what steps do not change."""
        N, W, means, scatter = self.sums
        K, D = means.shape
        dof, ratio = prior.dof, W / prior.strength
        apart = means - prior.mean
        pull = (W / (1.0 + ratio))[:, None] * apart
        own = scatter + pull[:, :, None] * apart[:, None, :]
        factors, log_dets = factor(own + dof * (prior.root @ prior.root.T))
        log_det0 = prior.log_det + D * np.log(dof)
        value = self.gammas + 0.5 * K * dof * log_det0
        value -= 0.5 * (float((dof + N) @ log_dets) + D * float(np.log1p(ratio).sum()))
        centres = prior.mean + apart * (ratio / (1.0 + ratio))[:, None]
        value += self.hyperprior(prior)
        return _Judged(prior, centres, factors, own, float(value))

    def hyperprior(self, prior: _Prior) -> float:
        """See `NormalWishartFamily.log_hyperprior`."""
        out = 0.0
        if "covariance" in self.learns:
            variances = np.einsum("ij,ij->i", prior.root, prior.root)
            far = prior.log_det - self.log_guess - float((variances / self.guess).sum())
            out += 0.5 * self.weight * far
        if "dof" in self.learns:
            out -= 2.0 * float(np.log(prior.dof))
        if "mean" in self.learns:
            out -= 0.5 * float((prior.mean**2 / self.guess).sum())
        if "mean_strength" in self.learns:
            out -= 0.5 * len(self.guess) * prior.strength / self.likely
        return out

    def step(self, at: _Judged) -> _Judged:
        """A prior that suits q(φ) better.

        A natural gradient of the covariance where that raises the bound, else a step of
        expectation maximisation, which always does but is slow where ν0 exceeds N_k.
        """
        prior, N = at.prior, self.sums.N
        whiten = np.empty(at.factors.shape)
        invert_factors(at.factors, np.sqrt(prior.dof + N), whiten)
        # Σ E[Λ_k] = W Wᵀ, with the factors of all components side by side.
        wide = np.ascontiguousarray(whiten.transpose(1, 0, 2)).reshape(
            len(prior.mean), -1
        )
        precisions = wide @ wide.T
        prior = self.best_mean(at, whiten, wide, precisions)
        if "covariance" not in self.learns:
            return self.judged(prior)
        bold = self.judged(self.natural_step(prior, precisions))
        if rises(bold.value, at.value):
            return bold
        return self.judged(self.best_matrix(prior, precisions))

    def best_mean(
        self, at: _Judged, whiten: Array, wide: Array, precisions: Array
    ) -> _Prior:
        """m0 and then κ0 for which E_q[log p(μ_k | Λ_k)] is highest."""
        prior, K, D = at.prior, len(at.means), len(self.guess)
        mean, strength = prior.mean, prior.strength
        if "mean" in self.learns:
            P = strength * precisions
            P[np.diag_indices(D)] += 1.0 / self.guess
            pulls = np.matmul(at.means[:, None, :], whiten).ravel()
            mean = np.linalg.solve(P, strength * (wide @ pulls))
        if "mean_strength" in self.learns:
            apart = np.matmul((at.means - mean)[:, None, :], whiten).ravel()
            far = float(apart @ apart) + D / self.likely
            far += D * float((1.0 / (strength + self.sums.W)).sum())
            strength = K * D / far
        return prior._replace(mean=mean, strength=strength)

    def pull(self, prior: _Prior, precisions: Array) -> Array:
        """ν0 Σ E[Λ_k] + h C⁻¹, with h and C weight and guess of the hyperprior."""
        out: Array = prior.dof * precisions
        out[np.diag_indices(len(self.guess))] += self.weight / self.guess
        return out

    def natural_step(self, prior: _Prior, precisions: Array) -> _Prior:
        """V moved by its gradient over its Fisher information.

        In units of V the gradient is K ν0 + h - ν0 Σ E[Λ_k] - h C⁻¹, and the rows of a
        component are worth 1/(1/ν0 + 1/N_k).
        """
        N, dof, root = self.sums.N, prior.dof, prior.root
        values, axes = np.linalg.eigh(root.T @ self.pull(prior, precisions) @ root)
        worth = self.weight + float((dof * N / (dof + N)).sum())
        logs = (len(N) * dof + self.weight - values) / worth
        logs = np.minimum(np.maximum(logs, -_CLIP), _CLIP)
        new = root @ (axes * np.exp(0.5 * logs))
        least = prior.least * float(np.exp(logs.min()))
        if least < 1.0:  # nothing is known of the least variance
            return prior.with_matrix(new @ new.T, self.floor)
        log_det = prior.log_det + float(logs.sum())
        return prior._replace(root=new, log_det=log_det, least=least)

    def best_matrix(self, prior: _Prior, precisions: Array) -> _Prior:
        """V for which E_q[log p(Λ_1, ..., Λ_K, V)] is highest, given ν0.

        It is (K ν0 + h) (ν0 Σ E[Λ_k] + h C⁻¹)⁻¹.
        """
        pull = self.pull(prior, precisions)
        V = (len(self.sums.N) * prior.dof + self.weight) * np.linalg.inv(pull)
        return prior.with_matrix(V, self.floor)

    def with_best_dof(self, at: _Judged) -> tuple[_Prior, float]:
        """The ν0 with the highest evidence where B0 stays in proportion to it.

        With eigenvalues t of the components' own scatter in units of B0 at scale 1,
        log |B_k| = log |B0| + Σ log (f + t), whatever the scale f is.
        """
        prior, N, D = at.prior, self.sums.N, len(self.guess)
        if "dof" not in self.learns:
            return prior, at.value
        # E[Σ] that is given stays: B0 = (ν0 - D - 1) E[Σ].
        less = 0.0 if "covariance" in self.learns else D + 1.0
        whiten = np.linalg.inv(prior.root) * np.sqrt((prior.dof - less) / prior.dof)
        t = np.maximum(np.linalg.eigvalsh(whiten @ at.own @ whiten.T), 0.0)

        def value(dof: Array) -> Array:
            f = dof - less
            out = log_gammas(dof[:, None] + N, D).sum(axis=1)
            out += len(N) * (0.5 * D * dof * np.log(f) - log_gammas(dof, D))
            logs = np.log(f[:, None, None] + t).sum(axis=-1)
            out -= 0.5 * ((dof[:, None] + N) * logs).sum(axis=1)
            worth: Array = out - 2.0 * np.log(dof)
            return worth

        now = np.array(prior.dof)
        best = search_scale(value, D + 2.0, now)
        dof = float(best)
        change = value(np.array([prior.dof, dof]))
        root = prior.root
        if less and dof != prior.dof:
            root = root * np.sqrt((1.0 - less / dof) / (1.0 - less / prior.dof))
        return (
            prior._replace(dof=dof, root=root),
            at.value + float(change[1] - change[0]),
        )


def log_gammas(dof: Array, D: int) -> Array:
    """log Γ_D(ν/2) without its constant, two factors at a time.

    Γ(x) Γ(x + ½) = 2^(1 - 2x) √π Γ(2x).
    """
    dof = np.asarray(dof, np.float64)
    pairs = dof[..., None] - np.arange(1, D, 2)
    out: Array = gammaln(pairs).sum(-1) - np.log(2.0) * (pairs - 1.0).sum(-1)
    out += (D // 2) * 0.5 * np.log(np.pi)
    if D % 2:
        out += gammaln(0.5 * (dof - (D - 1.0)))
    return out
