"""IBPGibbs: samples from the posterior of features with an IBP prior."""

from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from kplus.base.checks import check_shapes
from kplus.base.estimator import AT_LEAST_ONE, Table, warn
from kplus.base.progress import PassReporter
from kplus.core.types import Array, Blocks
from kplus.ibp.estimator import IBPEstimator, as_array
from kplus.ibp.gibbs.chain import Bits, GibbsFit, Settings, pooled, run_chain
from kplus.ibp.gibbs.conditionals import expected_bits, observe
from kplus.ibp.gibbs.mixing import (
    MIXED,
    TOO_FEW,
    interval,
    posterior_of_number,
    split_r_hat,
)
from kplus.ibp.gibbs.samplers import make_chain
from kplus.ibp.gibbs.scales import Scales
from kplus.ibp.gibbs.start import hyperprior, start_of

__all__ = ["IBPGibbs"]

_TRACED = {
    "history": "the log joint",
    "numbers": "the number of features",
    "alphas": "alpha",
    "noises": "the scale of the noise",
    "factors": "the scale of the factors",
}


class IBPGibbs(IBPEstimator):
    """Samples of latent features with an Indian buffet process prior.

    Every row is the sum of the features it has plus noise: X = ZA + E, where Z holds
    zeros and ones. A Markov chain visits Z, the scales and the number of features as
    often as they are probable given X, so that it shows how sure they are. Slower than
    `MEIBP`, from which it may start.

    Parameters
    ----------
    max_components : int or None, default=None
        Never more features than that. The prior is the Indian buffet
        process given that it does not exceed them.
    sampler : {"accelerated", "collapsed", "uncollapsed"}, default="accelerated"
        "collapsed" integrates the factors A out [1]_. "accelerated" draws from the same
        distribution and is faster: it keeps what all other rows say of A while a row is
        drawn [2]_. "uncollapsed" draws A as well; it forgets its start most slowly.
    prior : {"gaussian", "nonnegative"}, default="gaussian"
        Prior of the features: of either sign, or nonnegative. The latter goes with
        ``sampler="uncollapsed"`` only.
    n_samples : int, default=100
        Samples to draw.
    burn_in : int, default=100
        Sweeps before the first of them.
    thin : int, default=1
        Sweeps for each sample.
    n_chains : int, default=1
        Chains, run one after the other, each with a burn-in and samples of its own.
        Several tell whether they agree: see `r_hat_`.
    new_features : {"poisson", "metropolis"}, default="poisson"
        How rows get features of their own, or lose them. "metropolis" proposes to
        replace them by as many as the prior draws. "poisson" draws their number from
        its distribution given the row; with the nonnegative prior, one more or one less
        at a time, with factors that fit the row.
    alpha : float or "infer", default="infer"
        Concentration of the prior: the expected number of features of a row. Inferred
        under a Gamma(1, 1) prior.
    noise_scale : float or "infer", default="infer"
        Standard deviation of the noise, σ_X. Inferred under a weak prior: the variance
        is inverse Gamma(1, s²/100), with s² that of X about its column means. At least
        1e-4 of `factor_scale`.
    factor_scale : float or "infer", default="infer"
        Standard deviation of the factors, σ_A. That before the cut at zero, where there
        is one. Inferred under a weak prior: its square is inverse Gamma(1, s²).
    init : fitted estimator, array-like of shape (n_samples, n_features) or None
        Where to start: from the features that `transform` of a fitted `MEIBP`,
        `BPMeans`, `KFeatures` or `IBPVariational` finds in X (and from its scales, if
        it has them), from a Z of zeros and ones, or from a draw of the prior.
    store_samples : bool, default=False
        Keep Z of every sample, eight rows per byte, for `comembership`.
    negative : {"error", "shift", "noise"}, default="error"
        What to do if X has negative values while features are nonnegative: refuse; take
        off the minimum of each column, kept as `offset_`; or take them as noise.
    random_state : int, RandomState instance or None, default=None
        Seed of all random choices.
    verbose : int, default=0
        Print one line per pass. With the time left.

    Attributes
    ----------
    components_ : ndarray of shape (n_components_, n_features)
        The features A: what a row gains by having each of them. Their mean given the Z
        of the best sample, which has the highest log-joint.
    n_components_ : int
        Number of features found. That of the best sample.
    feature_counts_ : ndarray of shape (n_components_,)
        Summed weights of the rows that have each feature. In the best sample, most
        first.
    Z_ : ndarray of shape (n_samples, n_components_), uint8
        Which features each row has in the best sample.
    alpha_, noise_scale_, factor_scale_ : float
        As given, or inferred. Those of the best sample.
    log_joint_ : float
        Log-density of the best sample: of X, Z and what is inferred of α, σ_X² and
        σ_A², with A integrated out; of A, too, if the sampler is "uncollapsed".
    log_joint_history_ : ndarray of shape (n_iter_,)
        The same after each sweep, the burn-in included. Histories are those of the
        chain with the best sample.
    n_components_history_ : ndarray of shape (n_iter_,)
        Number of features after each sweep.
    alpha_history_, noise_scale_history_, factor_scale_history_ : ndarray, (n_iter_,)
        Hyperparameters after each sweep.
    n_components_samples_ : ndarray of shape (n_chains, n_samples)
        Number of features of every sample of every chain.
    n_components_posterior_ : ndarray of shape (most + 1,)
        Share of the samples with 0, 1, 2, ... features, over all chains.
    n_components_interval_ : ndarray of shape (2,)
        The central interval of these numbers that holds 95 % of the samples.
    r_hat_ : ndarray of shape (5,)
        Split R-hat of the log-joint, the number of features, alpha, and the scales of
        noise and factors: the spread over the halves of all chains by that within
        them, after the burn-in. Near 1 if the chains have mixed; above 1.2 there is a
        warning. NaN with fewer than 4 samples a chain.
    offset_ : ndarray of shape (n_features_in_,)
        Taken off the columns before the fit. Zeros unless ``negative="shift"``.
    n_iter_ : int
        Passes over all rows. They are sweeps.
    n_features_in_ : int
        Number of columns.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the columns, if they are all strings.
    reading_ : Reading
        Columns of a table that are left out, such as ids and dates, or not read as
        they seem: see `kplus.read_table`. Only if there are some.

    See Also
    --------
    MEIBP : Finds one good answer fast.
    IBPVariational : A distribution over Z that factorises.

    Notes
    -----
    Missing values (NaN) are dealt with exactly. The uncollapsed sampler leaves them
    out. The others integrate those of a row out while its features are drawn, and then
    draw them, as part of the chain; `log_joint_` is that of what was observed.

    All rows are kept in memory. If there are many more columns than rows and no gaps,
    the collapsed and accelerated samplers need inner products of rows only, and their
    cost does not grow with the columns.

    `transform` gives the probabilities of the features of a row given `components_`:
    summed over all combinations up to 12 features, by mean field beyond.

    The bits of a row are drawn in random order. In that of the columns the chain would
    be off in small tables: new features stand at the end, so that the order tells
    something of the bits.

    References
    ----------
    .. [1] T. Griffiths, Z. Ghahramani. "Infinite latent feature models and the Indian
       buffet process." NIPS 2005.
    .. [2] F. Doshi-Velez, Z. Ghahramani. "Accelerated sampling for the Indian buffet
       process." ICML 2009.

    Examples
    --------
    >>> from kplus import IBPGibbs
    >>> from kplus.datasets import make_binary_features
    >>> X, Z, A = make_binary_features(100, 20, 3, noise=0.5, random_state=0)
    >>> model = IBPGibbs(random_state=0).fit(X)
    >>> model.n_components_
    3
    >>> round(model.noise_scale_, 1)
    0.5
    >>> kept = model.n_components_history_[model.burn_in :]
    >>> bool((kept == 3).mean() > 0.5)
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **IBPEstimator._parameter_constraints,
        "sampler": [StrOptions({"accelerated", "collapsed", "uncollapsed"})],
        "prior": [StrOptions({"gaussian", "nonnegative"})],
        "n_samples": [AT_LEAST_ONE],
        "burn_in": [Interval(Integral, 0, None, closed="left")],
        "thin": [AT_LEAST_ONE],
        "n_chains": [AT_LEAST_ONE],
        "new_features": [StrOptions({"poisson", "metropolis"})],
        "init": [HasMethods("transform"), "array-like", None],
        "store_samples": ["boolean"],
    }
    _measure = "log joint"
    _none_found = (
        "in its best sample",
        " Draw more samples, or start from other features (init).",
    )

    def __init__(
        self,
        max_components=None,
        *,
        sampler="accelerated",
        prior="gaussian",
        n_samples=100,
        burn_in=100,
        thin=1,
        n_chains=1,
        new_features="poisson",
        alpha="infer",
        noise_scale="infer",
        factor_scale="infer",
        init=None,
        store_samples=False,
        negative="error",
        random_state=None,
        verbose=0,
    ):
        self.max_components = max_components
        self.sampler = sampler
        self.prior = prior
        self.n_samples = n_samples
        self.burn_in = burn_in
        self.thin = thin
        self.n_chains = n_chains
        self.new_features = new_features
        self.alpha = alpha
        self.noise_scale = noise_scale
        self.factor_scale = factor_scale
        self.init = init
        self.store_samples = store_samples
        self.negative = negative
        self.random_state = random_state
        self.verbose = verbose

    @property
    def _nonnegative(self) -> bool:
        return self.prior == "nonnegative"

    @property
    def _sweeps(self) -> int:
        """Of each chain."""
        return int(self.burn_in + self.n_samples * self.thin)

    @property
    def _n_passes(self) -> int:
        return int(self.n_chains) * self._sweeps

    # --------------------------------------------------------- steps of a fit

    def _check_settings(self) -> None:
        super()._check_settings()
        if self._nonnegative and self.sampler != "uncollapsed":
            raise ValueError(
                f"prior='nonnegative' needs sampler='uncollapsed': the {self.sampler} "
                f"sampler integrates the factors out, which only Gaussian ones allow."
            )

    def _find(
        self, table: Table, weights: Array | None, reporter: PassReporter
    ) -> GibbsFit:
        seed = check_random_state(self.random_state).randint(2**31 - 1)
        deviation = table.survey.deviation
        rows = observe(as_array(table.source))
        settings = _settings(self, deviation)
        chains: list[GibbsFit] = []
        for number in range(self.n_chains):
            rng = np.random.default_rng([seed, number] if number else seed)
            start = start_of(self, table.X, table.source.n_rows, deviation, rng)
            chains.append(
                run_chain(
                    make_chain(rows, settings, start, rng), self.n_samples,
                    self.burn_in, self.thin, self.store_samples, reporter,
                    reporter.journal,
                )
            )  # fmt: skip
            if len(chains[-1].history) < self._sweeps:
                break  # a callback has ended the run
        return pooled(chains)

    def _attributes(self, fit: GibbsFit) -> dict[str, Any]:
        return {
            **_of_sample(fit.Z, fit.components, fit.scales),
            "log_joint_": fit.log_joint,
            "n_components_history_": fit.numbers,
            "alpha_history_": fit.alphas,
            "noise_scale_history_": fit.noises,
            "factor_scale_history_": fit.factors,
            **self._of_chains(fit),
            "_samples": fit.samples,
            "_sizes": fit.sizes,
        }

    def _attributes_of(self, params: Any, n_rows: int) -> dict[str, Any]:
        kept = params.keep()
        return _of_sample(kept[0], params.mean_factors(kept), kept[1])

    def _of_chains(self, fit: GibbsFit) -> dict[str, Any]:
        """What the draws of all chains say; of a run that was ended, the last sweep."""
        sampled = slice(self.burn_in + self.thin - 1, None, self.thin)
        ended = len(fit.chains[-1].history) < self._sweeps
        chains = fit.chains[:-1] if ended and len(fit.chains) > 1 else fit.chains
        if not len(chains[0].numbers[sampled]):
            sampled = slice(-1, None)
        numbers = np.stack([chain.numbers[sampled] for chain in chains])
        draws = [[getattr(c, name)[sampled] for c in chains] for name in _TRACED]
        return {
            "n_components_samples_": numbers,
            "n_components_posterior_": posterior_of_number(numbers.ravel()),
            "n_components_interval_": interval(numbers.ravel()),
            "r_hat_": np.array([split_r_hat(np.stack(each)) for each in draws]),
        }

    def _warn_more(self, fit: GibbsFit, table: Table) -> None:
        """A chain does not converge to one state, but chains come to agree."""
        if self.n_components_samples_.shape[1] < TOO_FEW:
            return
        k = int(np.argmax(self.r_hat_))
        if self.r_hat_[k] <= MIXED:
            return
        halves = "halves of its chain" if self.n_chains == 1 else "its chains"
        warn(
            f"IBPGibbs has not mixed: {halves} disagree about "
            f"{list(_TRACED.values())[k]} (split R-hat {self.r_hat_[k]:.2f}, should be "
            f"below {MIXED}), so that its samples do not tell how sure the answer is. "
            f"Raise burn_in and n_samples, or start from a fitted MEIBP (init)"
            + (", and compare n_chains=4." if self.n_chains == 1 else "."),
            ConvergenceWarning,
        )

    def _expected_bits(self, source: Blocks) -> Array:
        shares = self.feature_counts_ / (self._n_rows + 1.0)
        return expected_bits(source, self.components_, shares, self.noise_scale_**2)

    def comembership(self, kind: str = "number") -> Array:
        """Return how much two rows of the fit have in common, over all samples.

        Parameters
        ----------
        kind : {"number", "probability"}, default="number"
            The expected number of features that two rows share, or the probability
            that they share any.

        Returns
        -------
        shared : ndarray of shape (n_samples, n_samples)
            On the diagonal, the same for one row: its features.
        """
        if kind not in ("number", "probability"):
            raise ValueError(f"kind must be 'number' or 'probability', not {kind!r}.")
        samples = self._unpacked()
        N = self._n_rows
        total = np.zeros((N, N))
        for Z in samples:
            shared = Z @ Z.T
            total += shared if kind == "number" else shared > 0.0
        return total / len(samples)

    def _unpacked(self) -> list[Array]:
        """Z of every sample kept."""
        check_is_fitted(self)
        if self._samples is None:
            raise ValueError("No samples were kept: set store_samples=True before fit.")
        bits = np.unpackbits(self._samples, axis=0, count=self._n_rows)
        return np.split(bits.astype(np.float64), np.cumsum(self._sizes)[:-1], axis=1)

    # ------------------------------------------------------------ model files

    def _to_state(self) -> dict[str, Any]:
        """What a model file keeps beside the public attributes."""
        kept: dict[str, Any] = {"n_rows": self._n_rows, "sizes": self._sizes}
        if self._samples is not None:
            kept["samples"] = self._samples
        return kept

    def _from_state(self, state: dict[str, Any]) -> None:
        """Restore what `_to_state` kept; refuse parts that do not fit together."""
        N, K = int(state["n_rows"]), self.n_components_
        sizes, samples = state["sizes"], state.get("samples")
        shapes = {
            "components_": (self.components_, (K, self.n_features_in_)),
            "feature_counts_": (self.feature_counts_, (K,)),
            "Z_": (self.Z_, (N, K)),
        }
        if samples is not None:
            shapes["samples"] = (samples, (-(-N // 8), int(sizes.sum())))
        check_shapes(shapes)
        self._n_rows, self._sizes, self._samples = N, sizes, samples


def _settings(model: IBPGibbs, deviation: float) -> Settings:
    return Settings(
        sampler=model.sampler,
        nonnegative=model._nonnegative,
        enumerate_new=model.new_features == "poisson",
        most=model.max_components,
        hyper=hyperprior(model, deviation),
    )


def _of_sample(Z: Bits, factors: Array, scales: Scales) -> dict[str, Any]:
    """What users see of a sample; features that many rows have come first."""
    counts = Z.sum(axis=0, dtype=np.int64)
    order = np.argsort(-counts, kind="stable")
    order = order[counts[order] > 0]  # a draw may hold features that no row has
    return {
        "components_": factors[order],
        "n_components_": len(order),
        "feature_counts_": counts[order].astype(np.float64),
        "Z_": np.ascontiguousarray(Z[:, order]),
        "alpha_": scales.alpha,
        "noise_scale_": float(np.sqrt(scales.noise)),
        "factor_scale_": float(np.sqrt(scales.factor)),
    }
