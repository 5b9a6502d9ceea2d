"""Variational inference for the Indian buffet process."""

from typing import Any, ClassVar

import numpy as np
from sklearn.utils._param_validation import StrOptions

from kplus.base.checks import check_shapes
from kplus.base.estimator import Estimator, Table
from kplus.base.job import answering, job_of
from kplus.base.progress import PassReporter
from kplus.core.types import Array, Blocks, IntArray
from kplus.ibp import variational_search as search
from kplus.ibp.estimator import IBPEstimator, given
from kplus.ibp.factors import GaussianFactors
from kplus.ibp.prior import FiniteIBP, InfiniteIBP
from kplus.ibp.variational_model import MeanField
from kplus.ibp.variational_search import VariationalFit, VariationalSpec

__all__ = ["IBPVariational"]

_FEWEST = 0.5  # rows that are expected to have a feature, for it to be reported


class IBPVariational(IBPEstimator):
    """Latent features by variational inference for the Indian buffet process.

    Every row is the sum of the features it has, plus noise: X = Z A + ε, where Z holds
    zeros and ones, and features (rows of A) and noise are Gaussian. The posterior is
    approximated by one in which the bits of Z, the columns of A and the probabilities
    of the features are independent, the one with the highest lower bound of the log
    evidence [1]_. Unlike in the paper, the features of a column of A may depend on each
    other, which makes the bound tighter.

    Parameters
    ----------
    max_components : int or None, default=None
        Never more features than that. They are part of the model, hence the bound
        depends on their number, even of those that no row has. By default, as many as a
        search on up to 5,000 rows finds (``init="auto"``), or one more than directions
        of the rows stand out of noise (``init="random"``).
    process : {"finite", "infinite"}, default="finite"
        "finite": each feature has a probability of its own from Beta(α/K, 1), of which
        the Indian buffet process is the limit. "infinite": probabilities are products
        of Beta(α, 1) variables, the stick-breaking construction of the process, cut off
        after `max_components`; its bound makes use of one more inequality.
    alpha : float or "infer", default="infer"
        Concentration of the prior: the expected number of features of a row.
    noise_scale : float or "infer", default="infer"
        Standard deviation of the noise, σ_X. What is inferred maximises the bound.
    factor_scale : float or "infer", default="infer"
        Standard deviation of the factors, σ_A. What is inferred maximises the bound.
    init : {"auto", "random"}, default="auto"
        Where to start: from features that a search finds, as in `BPMeans`, or from
        those of a random Z, as in the paper.
    n_init : int, default=1
        Number of starts; the best is kept. Those after the first are random.
    max_iter : int, default=500
        Largest number of passes over all rows.
    tol : float, default=1e-7
        Stop when a pass gains less than that. As a share of the bound.
    batch_size : int or None, default=None
        Rows read at a time. By default what suits the processor's cache. The result
        depends on it by rounding only.
    n_jobs : int or None, default=None
        Threads; -1 uses all cores. The result does not depend on it.
    random_state : int, RandomState instance or None, default=None
        Seed of all random choices.
    verbose : int, default=0
        Print one line per pass.

    Attributes
    ----------
    components_ : ndarray of shape (n_components_, n_features)
        The features A: what a row gains by having each of them. Means of those that at
        least half a row is expected to have, those of most rows first.
    n_components_ : int
        Number of features found. Those in `components_`.
    feature_counts_ : ndarray of shape (n_components_,)
        Summed weights of the rows that have each feature. Their expectation.
    feature_probabilities_ : ndarray of shape (n_components_,)
        Expected probability of each.
    alpha_, noise_scale_, factor_scale_ : float
        As given, or inferred.
    lower_bound_ : float
        Lower bound on the log evidence of all rows, in nats. All of its constants
        included.
    lower_bound_history_ : ndarray of shape (n_iter_,)
        The bound after each pass over all rows. It never falls.
    n_iter_ : int
        Passes over all rows.
    converged_ : bool
        Whether the fit converged.
    offset_ : ndarray of shape (n_features_in_,)
        Taken off the columns before the fit. Zeros: features are of either sign.
    n_features_in_ : int
        Number of columns.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the columns, if they are all strings.
    reading_ : Reading
        Columns of a table that are left out, such as ids and dates, or not read as
        they seem: see `kplus.read_table`. Only if there are some.

    See Also
    --------
    MEIBP : One best Z, nonnegative features, fast.
    IBPGibbs : Samples from the posterior.

    Notes
    -----
    Missing values (NaN) are left out of the likelihood, exactly. `transform` returns
    probabilities, found for each row by itself from the features of the fit.

    The bound of the infinite process is that of the model cut off after
    `max_components` features, as in the paper.

    References
    ----------
    .. [1] F. Doshi-Velez, K. T. Miller, J. Van Gael, Y. W. Teh. "Variational inference
       for the Indian buffet process." AISTATS 2009.

    Examples
    --------
    >>> import numpy as np
    >>> from kplus import IBPVariational
    >>> rng = np.random.default_rng(0)
    >>> Z = rng.random((200, 2)) < 0.4
    >>> X = Z @ np.array([[5.0, 0, 2], [0, 3, -3]]) + 0.1 * rng.normal(size=(200, 3))
    >>> model = IBPVariational(4, random_state=0).fit(X)
    >>> model.n_components_
    2
    >>> round(model.noise_scale_, 2)
    0.1
    >>> sorted(model.transform([[5, 3, -1], [0, 0, 0]]).round(3).tolist())
    [[0.0, 0.0], [1.0, 1.0]]
    >>> model.impute([[5, np.nan, 2]]).round(1).tolist()
    [[5.0, 0.0, 2.0]]
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **Estimator._parameter_constraints,
        **IBPEstimator._parameter_constraints,
        "process": [StrOptions({"finite", "infinite"})],
        "init": [StrOptions({"auto", "random"})],
    }
    _parameter_constraints.pop("negative")
    _parameter_constraints.pop("warm_start")
    _groups = "features at most"
    _none_found = ("that rows are expected to have", "")

    def __init__(
        self,
        max_components=None,
        *,
        process="finite",
        alpha="infer",
        noise_scale="infer",
        factor_scale="infer",
        init="auto",
        n_init=1,
        max_iter=500,
        tol=1e-7,
        batch_size=None,
        n_jobs=None,
        random_state=None,
        verbose=0,
    ):
        self.max_components = max_components
        self.process = process
        self.alpha = alpha
        self.noise_scale = noise_scale
        self.factor_scale = factor_scale
        self.init = init
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.batch_size = batch_size
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    @property
    def _nonnegative(self) -> bool:
        return False

    # --------------------------------------------------------- steps of a fit

    def _find(
        self, table: Table, weights: Array | None, reporter: PassReporter
    ) -> VariationalFit:
        return search.fit(job_of(self, table.source, weights, reporter), _spec(self))

    def _attributes(self, fit: VariationalFit) -> dict[str, Any]:
        counts = fit.sums.counts
        return {**_reported(fit.params, counts), "converged_": fit.converged}

    def _attributes_of(self, params: MeanField, n_rows: int) -> dict[str, Any]:
        return _reported(params, params.ibp.probabilities * n_rows)

    def _expected_bits(self, source: Blocks) -> Array:
        bits = search.expected_bits(answering(self, source), self._posterior)
        return np.ascontiguousarray(bits[:, self._reported])

    # ------------------------------------------------------------ model files

    def _to_state(self) -> dict[str, Any]:
        """What a model file keeps beside the public attributes."""
        params = self._posterior
        state = {
            "mean": params.factors.mean,
            "covs": params.factors.covariance,
            "group": params.factors.group,
            "log_det": params.factors.log_det,
            "tau": params.ibp.tau,
            "noise": params.noise,
            "factor": params.factor,
            "reported": self._reported,
            "n_rows": self._n_rows,
        }
        if isinstance(params.ibp, InfiniteIBP):
            state["order"] = params.ibp.order
        return state

    def _from_state(self, state: dict[str, Any]) -> None:
        """Restore what `_to_state` kept; refuse parts that do not fit together."""
        K, D = len(state["mean"]), self.n_features_in_
        covs, group, order = state["covs"], state["group"], state.get("order")
        reported = self.n_components_
        check_shapes(
            {
                "components_": (self.components_, (reported, D)),
                "feature_counts_": (self.feature_counts_, (reported,)),
                "reported": (state["reported"], (reported,)),
                "mean": (state["mean"], (K, D)),
                "covs": (covs, (len(covs), K, K)),
                "group": (group, (D,)),
                "tau": (state["tau"], (K, 2)),
            }
        )
        for name, most in (("reported", K), ("group", len(covs))):
            if not set(state[name].tolist()) <= set(range(most)):
                raise ValueError(f"{name} is not of whole numbers below {most}.")
        if order is None:
            ibp: Any = FiniteIBP(state["tau"], self.alpha_)
        elif sorted(order.tolist()) == list(range(K)):
            ibp = InfiniteIBP(state["tau"], self.alpha_, order)
        else:
            raise ValueError(f"order is not one of {K} features.")
        factors = GaussianFactors(state["mean"], covs, group, float(state["log_det"]))
        noise, factor = float(state["noise"]), float(state["factor"])
        self._posterior = MeanField(factors, ibp, noise, factor)
        self._reported = state["reported"]
        self._n_rows = int(state["n_rows"])


def _reported(params: MeanField, counts: Array) -> dict[str, Any]:
    """What users see of a posterior, and the posterior itself."""
    reported: IntArray = np.argsort(-counts, kind="stable")
    reported = reported[counts[reported] >= _FEWEST]
    return {
        "components_": params.factors.mean[reported],
        "n_components_": len(reported),
        "feature_counts_": counts[reported],
        "feature_probabilities_": params.ibp.probabilities[reported],
        "alpha_": float(params.ibp.alpha),
        "noise_scale_": float(np.sqrt(params.noise)),
        "factor_scale_": float(np.sqrt(params.factor)),
        "_posterior": params,
        "_reported": reported,
    }


def _spec(model: IBPVariational) -> VariationalSpec:
    return VariationalSpec(
        infinite=model.process == "infinite",
        max_components=model.max_components,
        alpha=given(model.alpha),
        noise_scale=given(model.noise_scale),
        factor_scale=given(model.factor_scale),
        random_start=model.init == "random",
        n_init=model.n_init,
    )
