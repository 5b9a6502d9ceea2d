"""MEIBP: features with an Indian buffet process prior, by maximisation."""

from typing import Any, ClassVar

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import StrOptions

from kplus.base.checks import check_shapes, refuse_other_columns
from kplus.base.estimator import Estimator, Table
from kplus.base.job import answering, job_of
from kplus.base.progress import PassReporter
from kplus.core.types import Array, Blocks
from kplus.ibp import meibp_search as search
from kplus.ibp.estimator import IBPEstimator, given
from kplus.ibp.factors import Factors, GaussianFactors, TruncatedFactors
from kplus.ibp.meibp_model import IBPParams
from kplus.ibp.meibp_rows import fit_by_rows
from kplus.ibp.meibp_search import IBPFit, IBPSpec

__all__ = ["MEIBP"]


class MEIBP(IBPEstimator):
    """Latent features with an Indian buffet process prior, by maximisation.

    Every row is the sum of the features it has plus noise: X = ZA + E, where Z holds
    zeros and ones. Features are nonnegative by default, as parts of a whole are. How
    many there are, how large the noise is and how large features are comes from the
    data. Maximises a lower bound on the evidence: over Z, and over distributions of A
    (maximisation-expectation, [1]_).

    Parameters
    ----------
    max_components : int or None, default=None
        Never more features than that. There are never more than columns either.
    alpha : float or "infer", default="infer"
        Concentration of the prior: the expected number of features of a row.
    noise_scale : float or "infer", default="infer"
        Standard deviation of the noise, σ_X.
    factor_scale : float or "infer", default="infer"
        Standard deviation of the factors, σ_A. That before the cut at zero.
    prior : {"nonnegative", "gaussian"}, default="nonnegative"
        Prior of the features: nonnegative, or of either sign. With the latter, rows'
        choices are still searched for, but the guarantee of local search is lost.
    weights : {None, "nonnegative"}, default=None
        Whether a row has a feature or not; or, with "nonnegative", how much of it: an
        amount that is zero or more, as in a nonnegative factorisation. For filling
        gaps where things come in degrees.
    maximizer : {"local_search", "double_greedy"}, default="local_search"
        How rows choose their features: both reach a known share of the best (a third,
        and half in expectation). What they reach in practice is another matter: the
        user guide compares them.
    sweep : {"blocks", "rows"}, default="blocks"
        "rows" goes through rows one by one and refreshes factors in between, as in the
        paper; in memory, and slower.
    negative : {"error", "shift", "noise"}, default="error"
        What to do if X has negative values while features are nonnegative: refuse; take
        off the minimum of each column, kept as `offset_`; or take them as noise.
    init : {"auto", "ica", "nmf", "random"}, default="auto"
        Where to start: "ica" takes projections of the rows that take two values, which
        independent components lead to; "nmf" parts of a nonnegative factorisation;
        "random" random bits. "auto" tries the first, and both where in doubt.
    n_init : int, default=1
        Number of starts; the best is kept.
    max_iter : int, default=300
        Largest number of passes over all rows.
    tol : float, default=1e-6
        Stop when a pass gains less than that. In nats per value of X.
    batch_size : int or None, default=None
        Rows read at a time. By default what suits the processor's cache.
    warm_start : bool, default=False
        Start `fit` from the last fit. From its features.
    n_jobs : int or None, default=None
        Threads; -1 uses all cores. The result does not depend on it.
    random_state : int, RandomState instance or None, default=None
        Seed of all random choices.
    verbose : int, default=0
        Print one line per pass.

    Attributes
    ----------
    components_ : ndarray of shape (n_components_, n_features)
        The features A: what a row gains by having each of them. Their expectation.
    n_components_ : int
        Number of features found.
    feature_counts_ : ndarray of shape (n_components_,)
        Summed weights of the rows that have each feature. Most first.
    lower_bound_ : float
        Lower bound on the log evidence of all rows, in nats. This is Eq. 10.
    lower_bound_history_ : ndarray of shape (n_iter_,)
        The bound after each pass over all rows. It never falls.
    alpha_, noise_scale_, factor_scale_ : float
        As given, or inferred.
    offset_ : ndarray of shape (n_features_in_,)
        Taken off the columns before the fit. Zeros unless ``negative="shift"``.
    n_iter_ : int
        Passes over all rows.
    converged_ : bool
        Whether the fit converged.
    n_features_in_ : int
        Number of columns.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the columns, if they are all strings.
    reading_ : Reading
        Columns of a table that are left out, such as ids and dates, or not read as
        they seem: see `kplus.read_table`. Only if there are some.

    See Also
    --------
    IBPGibbs : Samples from the posterior of the same model.
    IBPVariational : A distribution over Z as well.
    BPMeans : The limit of small noise, with a penalty for each feature.

    Notes
    -----
    Missing values (NaN) are left out of the likelihood, exactly. `impute` fills them
    in, `score` says how well.

    With weights, X = WA + E where w = zv, and v ≥ 0 is half-normal, of a scale that is
    learned for each feature. Their distribution is part of the bound; `transform`
    returns the expectation of W. The search begins with as many features as directions
    of the rows exceed noise, and drops them while that raises the bound.

    `transform` starts the search for the features of each row from none. In `fit`, a
    row keeps its features of the pass before if these are better: a few rows may
    differ.

    Three misprints of the paper matter: Eq. 6 has the scale of the noise; in Eq. 19 a
    row pays for feature k if no other row has it; and it then pays ln N!, too.

    Rows choose all at once, by the tangent of the prior at the last counts. The prior
    is convex in the counts, so that the bound rises by at least the sum of the gains
    that the rows compute.

    References
    ----------
    .. [1] C. Reed, Z. Ghahramani. "Scaling the Indian Buffet Process via Submodular
       Maximization." ICML 2013.

    Examples
    --------
    >>> import numpy as np
    >>> from kplus import MEIBP
    >>> from kplus.datasets import make_nonnegative_features
    >>> X, Z, A = make_nonnegative_features(200, 50, 4, noise=0.5, random_state=0)
    >>> X[5, :10] = np.nan
    >>> model = MEIBP(negative="noise", random_state=0).fit(X)
    >>> model.n_components_
    4
    >>> round(model.noise_scale_, 1)
    0.5
    >>> bool(np.isnan(model.impute(X)).any())
    False
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **Estimator._parameter_constraints,
        **IBPEstimator._parameter_constraints,
        "prior": [StrOptions({"nonnegative", "gaussian"})],
        "weights": [StrOptions({"nonnegative"}), None],
        "maximizer": [StrOptions({"local_search", "double_greedy"})],
        "sweep": [StrOptions({"blocks", "rows"})],
        "init": [StrOptions({"auto", "ica", "nmf", "random"})],
    }
    _none_found = (
        "that is worth having",
        " Give a smaller noise_scale if you know it.",
    )

    def __init__(
        self,
        max_components=None,
        *,
        alpha="infer",
        noise_scale="infer",
        factor_scale="infer",
        prior="nonnegative",
        weights=None,
        maximizer="local_search",
        sweep="blocks",
        negative="error",
        init="auto",
        n_init=1,
        max_iter=300,
        tol=1e-6,
        batch_size=None,
        warm_start=False,
        n_jobs=None,
        random_state=None,
        verbose=0,
    ):
        self.max_components = max_components
        self.alpha = alpha
        self.noise_scale = noise_scale
        self.factor_scale = factor_scale
        self.prior = prior
        self.weights = weights
        self.maximizer = maximizer
        self.sweep = sweep
        self.negative = negative
        self.init = init
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.batch_size = batch_size
        self.warm_start = warm_start
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    @property
    def _nonnegative(self) -> bool:
        return self.prior == "nonnegative"

    # --------------------------------------------------------- steps of a fit

    def _find(
        self, table: Table, weights: Array | None, reporter: PassReporter
    ) -> IBPFit:
        spec = _spec(self)
        job = job_of(self, table.source, weights, reporter)
        fit = search.fit if self.sweep == "blocks" else fit_by_rows
        return fit(job, spec, table.survey, _start(self, spec))

    def _attributes(self, fit: IBPFit) -> dict[str, Any]:
        return {
            **self._attributes_of(fit.params, int(fit.sums.weight)),
            "feature_counts_": fit.sums.counts,
            "converged_": fit.converged,
        }

    def _attributes_of(self, params: IBPParams, n_rows: int) -> dict[str, Any]:
        return {
            "components_": params.factors.mean,
            "n_components_": params.K,
            "alpha_": float(params.alpha),
            "noise_scale_": float(np.sqrt(params.noise)),
            "factor_scale_": float(np.sqrt(params.spread)),
            "_factors": params.factors,
            "_slopes": params.slopes,
            "_slab": params.slab,
        }

    def _ibp_params(self) -> IBPParams:
        """The parameters of the fit."""
        return IBPParams(
            self._factors,
            self.noise_scale_**2,
            self.factor_scale_**2,
            self.alpha_,
            self._slopes,
            slab=self._slab,
        )

    def _drawn(self, Z: Array, rng: np.random.RandomState) -> Array:
        if self._slab is None:
            return Z
        return Z * np.sqrt(self._slab) * np.abs(rng.normal(size=Z.shape))

    def _expected_bits(self, source: Blocks) -> Array:
        return search.choose(answering(self, source), self._ibp_params())

    def _to_state(self) -> dict[str, Any]:
        """What a model file keeps beside the public attributes."""
        factors = self._factors
        kept: dict[str, Any] = {"n_rows": self._n_rows, "slopes": self._slopes}
        if self._slab is not None:
            kept["slab"] = self._slab
        if isinstance(factors, TruncatedFactors):
            kept |= {"mu": factors.mu, "variance": factors.variance}
        elif isinstance(factors, GaussianFactors):
            kept |= {"covariance": factors.covariance, "group": factors.group}
        return kept

    def _from_state(self, state: dict[str, Any]) -> None:
        """Restore what `_to_state` kept; refuse parts that do not fit together."""
        K, D = self.n_components_, self.n_features_in_
        expected = {"mu": (K, D), "variance": (K, D), "group": (D,), "slopes": (K,)}
        expected["slab"] = (K,)
        if "group" in state:
            n_groups = int(state["group"].max(initial=0)) + 1
            expected["covariance"] = (n_groups, K, K)
        check_shapes({n: (state[n], s) for n, s in expected.items() if n in state})
        self._factors: Factors
        if "mu" in state:
            self._factors = TruncatedFactors(state["mu"], state["variance"])
        else:
            self._factors = GaussianFactors(
                self.components_, state["covariance"], state["group"]
            )
        self._n_rows, self._slopes = int(state["n_rows"]), state["slopes"]
        self._slab = state.get("slab")


def _spec(model: MEIBP) -> IBPSpec:
    """The settings of a search, from the parameters."""
    if model.weights is not None:
        _refuse_beside_weights(model)
    noise, spread = given(model.noise_scale), given(model.factor_scale)
    greedy = None
    if model.maximizer == "double_greedy":
        greedy = int(check_random_state(model.random_state).randint(2**31 - 1))
    return IBPSpec(
        most=model.max_components,
        alpha=given(model.alpha),
        noise=None if noise is None else noise**2,
        spread=None if spread is None else spread**2,
        nonnegative=model._nonnegative,
        greedy=greedy,
        init=model.init,
        n_init=model.n_init,
        weights=model.weights is not None,
    )


def _refuse_beside_weights(model: MEIBP) -> None:
    """Weights have a search of their own, for nonnegative features."""
    only = {
        "prior": "nonnegative",
        "maximizer": "local_search",
        "sweep": "blocks",
        "init": "auto",
    }
    for name, value in only.items():
        if getattr(model, name) != value:
            raise ValueError(
                f"{name}={getattr(model, name)!r} does not go with "
                f"weights='nonnegative'; use {name}={value!r}, or weights=None."
            )


def _start(model: MEIBP, spec: IBPSpec) -> IBPParams | None:
    """With `warm_start` after a fit: its features, and scales given since."""
    if not model.warm_start or not getattr(model, "n_components_", 0):
        return None
    A = model.components_
    refuse_other_columns(model.n_features_in_, A.shape[1])
    last = model._ibp_params()
    kind = TruncatedFactors if spec.nonnegative else GaussianFactors
    factors, slopes, slab = last.factors, last.slopes, last.slab
    if spec.weights != (slab is not None):  # a typical amount was or becomes one
        A = A if slab is None else A * np.sqrt(slab)[:, None]
        factors = kind.near(A, last.noise)
        slab = np.ones(len(A)) if spec.weights else None
    if not isinstance(factors, kind) or len(A) > (spec.most or len(A)):
        factors, slopes = kind.near(A[: spec.most], last.noise), slopes[: spec.most]
        slab = None if slab is None else slab[: spec.most]
    return IBPParams(
        factors,
        spec.noise or last.noise,
        spec.spread or last.spread,
        spec.alpha or last.alpha,
        slopes,
        slab=slab,
    )
