"""DP-means: k-means that finds the number of clusters."""

import warnings
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from joblib import effective_n_jobs
from sklearn.base import (
    BaseEstimator,
    ClassNamePrefixFeaturesOutMixin,
    ClusterMixin,
    TransformerMixin,
    _fit_context,
)
from sklearn.callback import CallbackSupportMixin, with_callbacks
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from kplus.core.errors import NotFiniteError
from kplus.core.types import Array, PassInfo
from kplus.estimators._dp_means_ways import (
    cap,
    check_settings,
    check_stream,
    find_clusters,
)
from kplus.estimators._input import check_weights, describe_not_finite, open_table
from kplus.estimators._job import job_of
from kplus.estimators._progress import PassReporter
from kplus.models.dp_means.full_covariance import Ellipsoids
from kplus.models.dp_means.params import Lens
from kplus.search import dp_means as search
from kplus.search import full_covariance
from kplus.search.job import Fitted, Job

__all__ = ["DPMeans"]


class DPMeans(
    CallbackSupportMixin,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
    ClusterMixin,
    BaseEstimator,
):
    """K-means whose number of clusters comes from the data.

    Minimises the squared distances of rows to their cluster's centre plus a
    `penalty` (λ² of the papers) for each cluster after the first. There are three
    ways to say how many clusters you want:

    - ``penalty=number``: a row farther than √penalty from every centre opens a
      cluster (the rule of Kulis & Jordan 2012);
    - ``n_clusters=K``: exactly that many, found by splits and swaps;
    - neither: the number that the widest range of penalties agrees on.

    Parameters
    ----------
    penalty : float or "auto", default="auto"
        λ²: what one more cluster costs, in squared distance.
    n_clusters : int or None, default=None
        Wished number of clusters. A `penalty` given as well opens no clusters then; it
        is only charged in `objective_`.
    max_clusters : int or None, default=None
        Never more clusters than that (Eq. 12 of MAD-Bayes).
    algorithm : {"fast", "serial"}, default="fast"
        "fast" opens clusters at the costliest rows after each pass, whatever their
        order. "serial" is the order-dependent pass of Kulis & Jordan, exactly; it
        needs a number as `penalty`.
    collapsed : bool, default=False
        After the fast fit, move rows one at a time by the exact change of the
        objective (Eq. 9, Algorithm 2 of MAD-Bayes). Slower, never higher; needs
        `penalty` or `n_clusters`.
    covariance : {"spherical", "full"}, default="spherical"
        "full" measures distances by a covariance matrix of each cluster's own (Sup.
        Mat. E of MAD-Bayes); needs a number as `penalty`, which is then compared with
        squared Mahalanobis distances. See Notes.
    min_covariance : float, default=1.0
        With ``covariance="full"``: variance that every cluster has at least in
        every direction, and that a new one starts with.
    n_init : int, default=1
        Starts, of which the best is kept; those after the first begin with rows drawn
        at random (also with ``algorithm="serial"``, which always keeps the order).
    max_iter : int, default=300
        Most passes over the data.
    tol : float, default=1e-5
        Stop when a pass lowers the objective by less than this share of it and no
        cluster is opened or removed.
    batch_size : int or None, default=None
        Rows in a block; by default what suits the processor's cache.
    warm_start : bool, default=False
        Start `fit` from the centres of the last fit.
    n_jobs : int or None, default=None
        Threads. The result does not depend on it.
    random_state : int, RandomState instance or None, default=None
        Decides the sample that a fit on many rows starts with, and random starts.
    verbose : int, default=0
        Print a line a pass.

    Attributes
    ----------
    n_clusters_ : int
        Number of clusters found.
    labels_ : ndarray of shape (n_samples,)
        Cluster of each row.
    cluster_centers_ : ndarray of shape (n_clusters_, n_features)
        Centres.
    cluster_sizes_ : ndarray of shape (n_clusters_,)
        Summed weights of the rows of each cluster.
    objective_ : float
        Squared distances plus ``penalty_ * (n_clusters_ - 1)``; see Notes for
        ``covariance="full"``.
    objective_history_ : ndarray of shape (n_iter_,)
        The objective after each pass over all rows; it never rises.
    n_iter_ : int
        Passes over all rows.
    penalty_ : float
        The penalty used; 0 where `n_clusters` was given and `penalty` was not.
    path_ : PenaltyPath
        With ``penalty="auto"``: what the choice was made from.
    covariances_ : ndarray of shape (n_clusters_, n_features, n_features)
        With ``covariance="full"``.
    n_features_in_ : int
        Number of columns.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the columns, if they are all strings.

    See Also
    --------
    penalty_for : A penalty for a wished number of clusters.
    penalty_path : Which penalties give which number of clusters.

    Notes
    -----
    With ``covariance="full"`` and Σ0 = `min_covariance` · I the objective is the sum of
    squared Mahalanobis distances plus λ² times (K - 1 + Σ_k [log|Σ_k| - log|Σ0| +
    tr(Σ0 Σ_k⁻¹) - D]); without the terms in Σ0 it would have no lower bound. Its best
    matrices are Σ_k = Σ0 + S_k/λ², where S_k is the scatter matrix, a sum over the
    rows of the cluster: large clusters reach far, and from many rows on the lowest
    objective is often a single cluster. A fit therefore begins with the clusters of the
    spherical fit. A new cluster opens at a row farther than √(λ² · `min_covariance`)
    from the others that are still round, and only that product decides about clusters.

    References
    ----------
    .. [1] T. Broderick, B. Kulis, M. I. Jordan. "MAD-Bayes: MAP-based asymptotic
       derivations from Bayes." ICML 2013.
    .. [2] B. Kulis, M. I. Jordan. "Revisiting k-means: new algorithms via Bayesian
       nonparametrics." ICML 2012.

    Examples
    --------
    >>> import numpy as np
    >>> from kplus import DPMeans
    >>> X = np.array([[1, 2], [1, 4], [1, 0], [10, 2], [10, 4], [10, 0]])
    >>> model = DPMeans(penalty=16).fit(X)
    >>> model.n_clusters_
    2
    >>> model.labels_
    array([0, 0, 0, 1, 1, 1], dtype=int32)
    >>> model.cluster_centers_
    array([[ 1.,  2.],
           [10.,  2.]])
    >>> model.objective_
    32.0
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "penalty": [Interval(Real, 0, None, closed="neither"), StrOptions({"auto"})],
        "n_clusters": [Interval(Integral, 1, None, closed="left"), None],
        "max_clusters": [Interval(Integral, 1, None, closed="left"), None],
        "algorithm": [StrOptions({"fast", "serial"})],
        "collapsed": ["boolean"],
        "covariance": [StrOptions({"spherical", "full"})],
        "min_covariance": [Interval(Real, 0, None, closed="neither")],
        "n_init": [Interval(Integral, 1, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
        "batch_size": [Interval(Integral, 1, None, closed="left"), None],
        "warm_start": ["boolean"],
        "n_jobs": [Integral, None],
        "random_state": ["random_state"],
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        penalty="auto",
        *,
        n_clusters=None,
        max_clusters=None,
        algorithm="fast",
        collapsed=False,
        covariance="spherical",
        min_covariance=1.0,
        n_init=1,
        max_iter=300,
        tol=1e-5,
        batch_size=None,
        warm_start=False,
        n_jobs=None,
        random_state=None,
        verbose=0,
    ):
        self.penalty = penalty
        self.n_clusters = n_clusters
        self.max_clusters = max_clusters
        self.algorithm = algorithm
        self.collapsed = collapsed
        self.covariance = covariance
        self.min_covariance = min_covariance
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.batch_size = batch_size
        self.warm_start = warm_start
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    @property
    def _n_features_out(self) -> int:
        return self.n_clusters_

    @with_callbacks
    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Find clusters.

        Parameters
        ----------
        X : array-like, sparse matrix, data frame or path, (n_samples, n_features)
            Rows to cluster. A path may name a ``.npy``, ``.csv`` or Parquet file.
        y : None
            Ignored.
        sample_weight : array-like of shape (n_samples,), optional
            Weights of the rows; 2 is the same as the row twice, 0 as leaving it out.

        Returns
        -------
        self : DPMeans
        """
        check_settings(self)
        source = open_table(self, X, reset=True, block_rows=self.batch_size)
        weights = check_weights(sample_weight, source.n_rows)
        if self.n_clusters is not None and self.n_clusters > source.n_rows:
            raise ValueError(
                f"n_samples={source.n_rows} should be >= n_clusters={self.n_clusters}."
            )
        reporter = PassReporter(self, X, _reconstruct)
        job = job_of(self, source, weights, reporter)
        try:
            fitted, path = find_clusters(self, job)
        except NotFiniteError:
            raise describe_not_finite(self, source) from None
        self._store(fitted, path)
        if not fitted.converged and self.n_iter_ >= self.max_iter:
            warnings.warn(
                f"DPMeans did not come to rest in max_iter={self.max_iter} passes; "
                f"raise max_iter or tol.",
                ConvergenceWarning,
                stacklevel=2,
            )
        reporter.close()
        return self

    def fit_predict(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        """Find clusters and return the cluster of each row.

        Parameters
        ----------
        X, y, sample_weight
            As in `fit`.

        Returns
        -------
        labels : ndarray of shape (n_samples,)
        """
        return self.fit(X, sample_weight=sample_weight).labels_

    def _store(self, fitted: Fitted, path: Any) -> None:
        self.cluster_centers_ = fitted.centers
        self.labels_ = fitted.labels
        self.n_clusters_ = len(fitted.centers)
        self.cluster_sizes_ = fitted.counts
        self.penalty_ = float(fitted.penalty)
        self.objective_history_ = fitted.history
        self.objective_ = fitted.objective
        self.n_iter_ = len(fitted.history)
        self._lens = fitted.lens
        self._keep_sums(fitted.means, fitted.errors)
        if path is not None:
            self.path_ = path
        elif hasattr(self, "path_"):
            del self.path_
        if isinstance(fitted, full_covariance.FullFitted):
            self.covariances_ = fitted.covariances
        elif hasattr(self, "covariances_"):
            del self.covariances_

    @_fit_context(prefer_skip_nested_validation=True)
    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Add a batch of rows to what was seen before.

        Earlier rows stay in their clusters, as weight on the centres; rows of this
        batch find their cluster and, with a number as `penalty`, open new ones. With
        `n_clusters` or ``penalty="auto"`` the first batch decides the number.

        Parameters
        ----------
        X, y, sample_weight
            As in `fit`; `labels_` are those of this batch.

        Returns
        -------
        self : DPMeans
        """
        check_stream(self)
        if not hasattr(self, "cluster_centers_"):
            return self.fit(X, sample_weight=sample_weight)
        check_settings(self)
        source = open_table(self, X, reset=False, block_rows=self.batch_size)
        weights = check_weights(sample_weight, source.n_rows)
        job = Job(
            source,
            weights,
            np.random.default_rng(0),
            effective_n_jobs(self.n_jobs),
            self.max_iter,
            self.tol,
        )
        fixed = self.n_clusters is not None or isinstance(self.penalty, str)
        penalty = np.inf if fixed else self.penalty
        try:
            fitted = search.stream(
                job,
                penalty,
                cap(self),
                self._lens,
                self.cluster_centers_,
                self._cluster_means,
                self.cluster_sizes_,
            )
        except NotFiniteError:
            raise describe_not_finite(self, source) from None
        self._add_batch(fitted)
        return self

    def _to_state(self) -> dict[str, Any]:
        """What a model file keeps beside the public attributes."""
        return {
            "cluster_errors": self._cluster_errors,
            "cluster_means": self._cluster_means,
            "lens_origin": self._lens.origin,
            "lens_inv": self._lens.inv,
        }

    def _from_state(self, state: dict[str, Any]) -> None:
        """Take up what `_to_state` kept; refuse parts that do not fit together."""
        self._cluster_errors = state["cluster_errors"]
        self._cluster_means = state["cluster_means"]
        self._lens = Lens(state["lens_origin"], float(state["lens_inv"]))
        K, D = self.n_clusters_, self.n_features_in_
        for name, found, expected in (
            ("cluster_centers_", self.cluster_centers_.shape, (K, D)),
            ("cluster_sizes_", self.cluster_sizes_.shape, (K,)),
            ("cluster_errors", self._cluster_errors.shape, (K,)),
            ("cluster_means", self._cluster_means.shape, (K, D)),
            ("lens_origin", self._lens.origin.shape, (D,)),
            ("covariances_", getattr(self, "covariances_", np.empty((K, D, D))).shape,
             (K, D, D)),
        ):  # fmt: skip
            if found != expected:
                raise ValueError(f"{name} has shape {found}, not {expected}.")

    def _add_batch(self, fitted: Fitted) -> None:
        old = len(self.cluster_centers_)
        sizes, errors = fitted.counts.copy(), fitted.errors.copy()
        sizes[:old] += self.cluster_sizes_
        errors[:old] += self._cluster_errors
        objective = float(errors.sum()) + self.penalty_ * (len(sizes) - 1)
        self.cluster_centers_ = fitted.centers
        self.labels_ = fitted.labels
        self.n_clusters_ = len(sizes)
        self.cluster_sizes_ = sizes
        self.objective_ = objective
        self.objective_history_ = np.append(self.objective_history_, objective)
        self.n_iter_ += len(fitted.history)
        self._keep_sums(fitted.means, errors)

    def _keep_sums(self, means: Array, errors: Array) -> None:
        """Keep what a stream needs to know of the rows: means, errors about them."""
        shift = np.sum((means - self.cluster_centers_) ** 2, axis=1)
        self._cluster_means = means
        self._cluster_errors = np.maximum(errors - self.cluster_sizes_ * shift, 0.0)

    def predict(self, X: Any) -> Any:
        """Return the nearest cluster of each row.

        Parameters
        ----------
        X : array-like, sparse matrix, data frame or path, (n_samples, n_features)

        Returns
        -------
        labels : ndarray of shape (n_samples,)
        """
        return self._assign(X, None)[0]

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Return minus the sum of squared distances to the nearest centre.

        With ``covariance="full"`` distances are Mahalanobis distances.

        Parameters
        ----------
        X, y, sample_weight
            As in `fit`.

        Returns
        -------
        score : float
        """
        return -self._assign(X, sample_weight)[1]

    def _assign(self, X: Any, sample_weight: Any) -> tuple[Any, float]:
        check_is_fitted(self, "cluster_centers_")
        source = open_table(self, X, reset=False, block_rows=self.batch_size)
        weights = check_weights(sample_weight, source.n_rows)
        threads = effective_n_jobs(self.n_jobs)
        try:
            if hasattr(self, "covariances_"):
                return full_covariance.assign(
                    source, weights, self.cluster_centers_, self.covariances_, threads
                )
            shown = search.assign(
                source, weights, self._lens, self.cluster_centers_, threads
            )
            return shown.labels, shown.objective
        except NotFiniteError:
            raise describe_not_finite(self, source) from None

    def transform(self, X: Any) -> Any:
        """Return the distance of each row to each centre.

        With ``covariance="full"`` distances are Mahalanobis distances.

        Parameters
        ----------
        X : array-like, sparse matrix, data frame or path, (n_samples, n_features)

        Returns
        -------
        distances : ndarray of shape (n_samples, n_clusters_)
        """
        check_is_fitted(self, "cluster_centers_")
        source = open_table(self, X, reset=False, block_rows=self.batch_size)
        if hasattr(self, "covariances_"):
            distances = full_covariance.distances(
                source, self.cluster_centers_, self.covariances_
            )
        else:
            distances = search.distances(source, self.cluster_centers_)
        if not np.all(np.isfinite(distances)):
            raise describe_not_finite(self, source)
        return distances


def _reconstruct(info: PassInfo) -> dict[str, Any]:
    """What a callback's fitted estimator needs."""
    params = info.params
    if isinstance(params, Ellipsoids):
        return {
            "cluster_centers_": params.centers,
            "covariances_": params.covariances,
            "n_clusters_": params.K,
        }
    return {
        "cluster_centers_": params.lens.back(params.centers),
        "n_clusters_": params.K,
        "_lens": params.lens,
    }
