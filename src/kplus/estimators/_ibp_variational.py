"""Variational inference for the Indian buffet process."""

import warnings
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from joblib import effective_n_jobs
from sklearn.base import _fit_context
from sklearn.callback import with_callbacks
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import Interval, StrOptions

from kplus.core.types import Array, Blocks, IntArray, PassInfo
from kplus.estimators._ibp import BuffetFeatures
from kplus.estimators._job import job_of
from kplus.estimators._progress import PassReporter
from kplus.models.ibp.buffet_sticks import FiniteBuffet, InfiniteBuffet
from kplus.models.ibp.mean_field import Factors, MeanField
from kplus.search.ibp import variational as search
from kplus.search.ibp.variational import VariationalSpec

__all__ = ["IBPVariational"]

_FEWEST = 0.5  # rows that are expected to have a feature, for it to be reported


class IBPVariational(BuffetFeatures):
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
        Truncation: the most features. They are part of the model, hence the bound
        depends on their number, even of those that no row has. By default, as many as a
        search on up to 5,000 rows finds (``init="auto"``), or one more than directions
        of the rows stand out of noise (``init="random"``).
    process : {"finite", "infinite"}, default="finite"
        "finite": each feature has a probability of its own from Beta(α/K, 1), of which
        the Indian buffet process is the limit. "infinite": probabilities are products
        of Beta(α, 1) variables, the stick-breaking construction of the process, cut off
        after `max_components`; its bound makes use of one more inequality.
    alpha : float or "infer", default="infer"
        Mass of the process: how many features a row is expected to have.
    noise_scale, factor_scale : float or "infer", default="infer"
        Standard deviations of the noise and of the features. What is inferred maximises
        the bound.
    init : {"auto", "random"}, default="auto"
        Where to start: from features that a search finds, as in `BPMeans`, or from
        those of a random Z, as in the paper.
    n_init : int, default=1
        Starts, of which the best is kept; those after the first are random.
    max_iter : int, default=500
        Most passes over the data.
    tol : float, default=1e-7
        Stop when a pass raises the bound by less than this share of it.
    n_jobs : int or None, default=None
        Threads. The result does not depend on it.
    batch_size : int or None, default=None
        Rows in a block; by default what suits the processor's cache. The result does
        not depend on it but for rounding.
    random_state : int, RandomState instance or None, default=None
        Decides the start.
    verbose : int, default=0
        Print a line a pass.

    Attributes
    ----------
    components_ : ndarray of shape (n_components_, n_features)
        Means of the features that at least half a row is expected to have, those of
        most rows first.
    n_components_ : int
        Number of these.
    feature_counts_ : ndarray of shape (n_components_,)
        Expected number of rows that have each.
    feature_probabilities_ : ndarray of shape (n_components_,)
        Expected probability of each.
    alpha_, noise_scale_, factor_scale_ : float
        As given, or inferred.
    lower_bound_ : float
        Lower bound of the log evidence of X, in nats, all of its constants included.
    lower_bound_history_ : ndarray of shape (n_iter_,)
        The bound after each pass; it never falls.
    n_iter_ : int
        Passes over the data.
    offset_ : ndarray of shape (n_features_in_,)
        Zeros: features are of either sign.
    n_features_in_ : int
        Number of columns.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the columns, if they are all strings.

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
        **BuffetFeatures._parameter_constraints,
        "process": [StrOptions({"finite", "infinite"})],
        "init": [StrOptions({"auto", "random"})],
        "n_init": [Interval(Integral, 1, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
        "n_jobs": [Integral, None],
        "batch_size": [Interval(Integral, 1, None, closed="left"), None],
    }
    _parameter_constraints.pop("negative")

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
        n_jobs=None,
        batch_size=None,
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
        self.n_jobs = n_jobs
        self.batch_size = batch_size
        self.random_state = random_state
        self.verbose = verbose

    @property
    def _nonnegative(self) -> bool:
        return False

    @with_callbacks
    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any = None) -> Self:
        """Find the posterior of the features.

        Parameters
        ----------
        X : array-like, sparse matrix, data frame or path, (n_samples, n_features)
            Rows to explain; NaN where a value is missing. A path may name a ``.npy``,
            ``.csv`` or Parquet file.
        y : None
            Ignored.

        Returns
        -------
        self : estimator
        """
        _refuse_bool(self.max_components)
        source, _ = self._open_for_fit(X)
        self._n_rows = source.n_rows
        reporter = PassReporter(
            self, X, self._reconstruct, measure="lower bound", groups="features at most"
        )
        found = search.fit(job_of(self, source, None, reporter), _spec(self))
        fitted = _fitted_attributes(found.params, found.sums.moments.counts)
        for name, value in fitted.items():
            setattr(self, name, value)
        self.lower_bound_history_ = found.history
        self.lower_bound_ = float(found.history[-1])
        self.n_iter_ = len(found.history)
        _warn(self, found.converged)
        reporter.close()
        return self

    def _reconstruct(self, info: PassInfo) -> dict[str, Any]:
        """What a callback's fitted estimator needs; counts are those of the prior."""
        counts = info.params.buffet.probabilities * self._n_rows
        return _fitted_attributes(info.params, counts)

    def _expected_bits(self, source: Blocks) -> Array:
        n_threads = effective_n_jobs(self.n_jobs)
        bits = search.expected_bits(source, self._posterior, n_threads)
        return np.ascontiguousarray(bits[:, self._reported])

    # ------------------------------------------------------------ model files

    def _to_state(self) -> dict[str, Any]:
        """What a model file keeps beside the public attributes."""
        params = self._posterior
        state = {
            "mean": params.factors.mean,
            "covs": params.factors.covs,
            "group": params.factors.group,
            "log_det": params.factors.log_det,
            "tau": params.buffet.tau,
            "noise": params.noise,
            "factor": params.factor,
            "reported": self._reported,
            "n_rows": self._n_rows,
        }
        if isinstance(params.buffet, InfiniteBuffet):
            state["order"] = params.buffet.order
        return state

    def _from_state(self, state: dict[str, Any]) -> None:
        """Take up what `_to_state` kept; refuse parts that do not fit together."""
        K, D = len(state["mean"]), self.n_features_in_
        covs, group, order = state["covs"], state["group"], state.get("order")
        for name, found, expected in (
            ("components_", self.components_.shape, (self.n_components_, D)),
            ("feature_counts_", self.feature_counts_.shape, (self.n_components_,)),
            ("reported", state["reported"].shape, (self.n_components_,)),
            ("mean", state["mean"].shape, (K, D)),
            ("covs", covs.shape[1:], (K, K)),
            ("group", group.shape, (D,)),
            ("tau", state["tau"].shape, (K, 2)),
        ):
            if found != expected:
                raise ValueError(f"{name} has shape {found}, not {expected}.")
        for name, most in (("reported", K), ("group", len(covs))):
            if not set(state[name].tolist()) <= set(range(most)):
                raise ValueError(f"{name} is not of whole numbers below {most}.")
        if order is None:
            buffet: Any = FiniteBuffet(state["tau"], self.alpha_)
        elif sorted(order.tolist()) == list(range(K)):
            buffet = InfiniteBuffet(state["tau"], self.alpha_, order)
        else:
            raise ValueError(f"order is not one of {K} features.")
        factors = Factors(state["mean"], covs, group, float(state["log_det"]))
        noise, factor = float(state["noise"]), float(state["factor"])
        self._posterior = MeanField(factors, buffet, noise, factor)
        self._reported = state["reported"]
        self._n_rows = int(state["n_rows"])


def _fitted_attributes(params: MeanField, counts: Array) -> dict[str, Any]:
    """What users see of a posterior, and the posterior itself."""
    reported: IntArray = np.argsort(-counts, kind="stable")
    reported = reported[counts[reported] >= _FEWEST]
    return {
        "components_": params.factors.mean[reported],
        "n_components_": len(reported),
        "feature_counts_": counts[reported],
        "feature_probabilities_": params.buffet.probabilities[reported],
        "alpha_": float(params.buffet.alpha),
        "noise_scale_": float(np.sqrt(params.noise)),
        "factor_scale_": float(np.sqrt(params.factor)),
        "_posterior": params,
        "_reported": reported,
    }


def _refuse_bool(max_components: Any) -> None:
    if isinstance(max_components, bool):
        raise ValueError("max_components must be an int of at least 1, not a bool.")


def _number(value: Any) -> float | None:
    """A number that is given, or None where it is to be inferred."""
    return None if isinstance(value, str) else float(value)


def _spec(model: IBPVariational) -> VariationalSpec:
    return VariationalSpec(
        infinite=model.process == "infinite",
        max_components=model.max_components,
        alpha=_number(model.alpha),
        noise_scale=_number(model.noise_scale),
        factor_scale=_number(model.factor_scale),
        random_start=model.init == "random",
        n_init=model.n_init,
    )


def _warn(model: IBPVariational, converged: bool) -> None:
    if model.n_components_ == 0:
        warnings.warn(
            "IBPVariational found no feature that rows are expected to have: "
            "n_components_ is 0, and transform returns no columns.",
            UserWarning,
            stacklevel=3,
        )
    if not converged and model.n_iter_ >= model.max_iter:
        warnings.warn(
            f"IBPVariational did not come to rest in max_iter={model.max_iter} passes; "
            f"raise max_iter or tol.",
            ConvergenceWarning,
            stacklevel=3,
        )
