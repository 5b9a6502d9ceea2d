"""How good clusters are, without knowing the truth and without fitting again."""

from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from kplus.core.types import Array, IntArray
from kplus.data.frames import frame_of
from kplus.data.rows import drawn
from kplus.data.selection import FROM_DTYPE
from kplus.validation.density import density_validity
from kplus.validation.indices import centroid_indices
from kplus.validation.mixtures import (
    Sureness,
    completed_bound,
    held_out_scores,
    sureness,
)
from kplus.validation.resampling import is_for_features
from kplus.validation.space import Space

__all__ = ["Validation", "validate"]

_DENSITY_ROWS = 2_000
_CV_ROWS = 10_000
_APART, _WEAK = 0.5, 0.25  # silhouettes, after Kaufman and Rousseeuw


@dataclass(frozen=True, repr=False)
class Validation:
    """How good clusters are by several indices; see `kplus.validate`.

    All are NaN where they are not defined, such as with a single cluster.

    Attributes
    ----------
    n_rows : int
    sizes : ndarray of shape (n_clusters,)
        Rows of each cluster.
    n_noise : int
        Rows in no cluster (label -1).
    silhouette : float
        Mean simplified silhouette of the rows, -1 to 1; high is good. Rows are compared
        with centroids, not with all rows.
    cluster_silhouette : ndarray of shape (n_clusters,)
        Its means by cluster.
    row_silhouette : ndarray of shape (n_rows,)
        That of each row; NaN for noise.
    davies_bouldin : float
        Davies-Bouldin index: spread against distance of the worst neighbour; low is
        good.
    calinski_harabasz : float
        Calinski-Harabasz index, or variance ratio; high is good.
    density : float
        Density-based validity (DBCV) of a sample, -1 to 1; high is good. Clusters may
        have any shape.
    cluster_density : ndarray of shape (n_clusters,)
        The same by cluster.
    n_density_rows : int
        Rows of that sample.
    sureness : Sureness or None
        Of estimators with `predict_proba`: `entropy`, `expected_error`, and `overlap`
        for each pair of clusters.
    lower_bound, icl : float or None
        Of mixtures, on the rows of their fit: the bound on the log evidence, which
        takes the place of the BIC, and the same less the entropy of the components.
    held_out : ndarray of shape (cv,) or None
        With `cv`: mean of `score_samples` over the rows that each fit did not see. Of
        `DPMixture` that is the log density of a row.
    """

    n_rows: int
    sizes: IntArray
    n_noise: int
    silhouette: float
    cluster_silhouette: Array
    row_silhouette: Array
    davies_bouldin: float
    calinski_harabasz: float
    density: float
    cluster_density: Array
    n_density_rows: int
    sureness: Sureness | None = None
    lower_bound: float | None = None
    icl: float | None = None
    held_out: Array | None = None

    @property
    def verdict(self) -> str:
        """One sentence."""
        K = int(np.count_nonzero(self.sizes))
        if K < 2:
            return "One cluster: there is nothing to compare it with."
        best = np.nanmax([self.silhouette, self.density])
        if best >= _APART:
            return f"The {K} clusters are well apart."
        if best >= _WEAK:
            return f"The {K} clusters are there, but they touch or overlap."
        return f"The {K} clusters are hardly apart: they may be one group, cut up."

    def summary(self) -> Any:
        """Return a frame with a line for each cluster.

        Returns
        -------
        frame : DataFrame
            Columns "cluster", "rows", "silhouette", "density" and, of mixtures,
            "nearest", the cluster with the largest share in its rows, and its
            "overlap". pandas, or polars or Arrow where there is no pandas.
        """
        K = len(self.sizes)
        columns: dict[str, Any] = {
            "cluster": list(range(K)),
            "rows": self.sizes.tolist(),
            "silhouette": self.cluster_silhouette.tolist(),
            "density": self.cluster_density.tolist(),
        }
        if (
            self.sureness is not None
            and self.sureness.overlap.shape == (K, K)
            and K > 1
        ):
            others = np.where(np.eye(K, dtype=bool), -1.0, self.sureness.overlap)
            columns["nearest"] = others.argmax(axis=1).tolist()
            columns["overlap"] = others.max(axis=1).tolist()
        return frame_of(columns, "summary()")

    def __str__(self) -> str:
        return self.verdict

    def __repr__(self) -> str:
        named = {
            "silhouette (simplified)": self.silhouette,
            "density-based validity (DBCV)": self.density,
            "Davies-Bouldin": self.davies_bouldin,
            "Calinski-Harabasz": self.calinski_harabasz,
        }
        if self.sureness is not None:
            named["expected share of rows in a wrong cluster"] = (
                self.sureness.expected_error
            )
        if self.held_out is not None:
            named["score per row held out"] = float(self.held_out.mean())
        lines = [f"  {name}: {value:.4g}" for name, value in named.items()]
        return "\n".join([self.verdict, *lines])


def validate(
    estimator: Any,
    X: Any,
    *,
    scale: bool = True,
    cv: int | None = None,
    random_state: Any = None,
) -> Validation:
    """Return how good clusters are by indices that need no true labels.

    Simplified silhouette, Davies-Bouldin and Calinski-Harabasz index compare rows with
    the centroids of clusters, block by block; so they favour round clusters. The
    density-based validity (DBCV) takes clusters of any shape; it is that of a sample of
    2,000 rows. Of mixtures there is also how sure they are of their rows, and the
    overlap of each pair of clusters. With `cv` rows are held out and scored.

    Parameters
    ----------
    estimator : fitted clusterer, or array-like of shape (n_samples,)
        Or the cluster of each row, of any type; -1 is noise.
    X : array-like, sparse matrix, data frame, path or blocks
        The rows. Categories and missing values may be among them.
    scale : bool, default=True
        Divide numbers by their standard deviation, so that the result does not depend
        on units. False: distances as they are, as scikit-learn's indices take them.
    cv : int or None, default=None
        Folds of cross-validation, of up to 10,000 rows, for estimators that have
        `score_samples`. It takes as many fits.
    random_state : int, RandomState instance or None, default=None
        Seed of the samples and of these fits.

    Returns
    -------
    validation : Validation

    See Also
    --------
    stability : Whether clusters come back in fits to other rows.

    References
    ----------
    E. R. Hruschka, L. N. de Castro & R. J. G. B. Campello. "Evolutionary algorithms for
    clustering gene-expression data." ICDM 2004 (simplified silhouette).

    D. Moulavi, P. A. Jaskowiak, R. J. G. B. Campello, A. Zimek & J. Sander.
    "Density-based clustering validation." SDM 2014.

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> from kplus import DPMeans, validate
    >>> X, _ = make_blobs(300, centers=3, random_state=1)
    >>> result = validate(DPMeans(random_state=0).fit(X), X, random_state=0)
    >>> print(result)
    The 3 clusters are well apart.
    >>> round(result.silhouette, 2)
    0.79
    """
    rng = np.random.default_rng(check_random_state(random_state).randint(2**31 - 1))
    model = estimator if hasattr(estimator, "get_params") else None
    _check_cv(cv, model)
    labels = _labels(estimator, X)
    categorical = getattr(model, "categorical_features", FROM_DTYPE)
    space = Space.of(X, scale=scale, categorical=categorical)
    if len(labels) != space.blocks.n_rows:
        raise ValueError(
            f"There are {len(labels)} labels, but {space.blocks.n_rows} rows in X."
        )
    K = int(labels.max(initial=-1)) + 1
    sizes = np.bincount(labels[labels >= 0], minlength=K)
    found = centroid_indices(space, labels, K)
    rows = drawn(len(labels), _DENSITY_ROWS, rng)
    density = density_validity(
        space.between(space.take(rows)), labels[rows], K, space.n_dimensions
    )
    return Validation(
        n_rows=len(labels),
        sizes=sizes,
        n_noise=int(np.count_nonzero(labels < 0)),
        silhouette=_mean(found.silhouette),
        cluster_silhouette=found.by_cluster,
        row_silhouette=found.silhouette,
        davies_bouldin=found.davies_bouldin,
        calinski_harabasz=found.calinski_harabasz,
        density=_weighted(density, sizes, len(labels)),
        cluster_density=density,
        n_density_rows=len(rows),
        **({} if model is None else _of_model(model, X, cv, len(labels), rng)),
    )


def _check_cv(cv: Any, model: Any) -> None:
    if cv is None:
        return
    if not isinstance(cv, Integral) or isinstance(cv, bool) or cv < 2:
        raise ValueError(f"cv must be an int of at least 2, or None, not {cv!r}.")
    if not hasattr(model, "score_samples"):
        raise ValueError("cv needs an estimator that has score_samples.")


def _labels(estimator: Any, X: Any) -> IntArray:
    """The cluster of each row, numbered from 0; -1 for noise."""
    if isinstance(estimator, type) or not hasattr(estimator, "get_params"):
        return _numbered(estimator)
    check_is_fitted(estimator)
    if is_for_features(estimator) and not hasattr(estimator, "predict"):
        raise TypeError(
            f"{type(estimator).__name__} finds features, of which a row may have "
            f"several; validate is about clusters. See stability."
        )
    if hasattr(estimator, "predict"):
        return np.asarray(estimator.predict(X)).astype(np.int64)
    return np.asarray(estimator.labels_).astype(np.int64)


def _numbered(given: Any) -> IntArray:
    labels = np.asarray(given)
    if labels.ndim != 1:
        raise ValueError(
            f"estimator must be a fitted clusterer, or one label for each row; got an "
            f"array of shape {labels.shape}."
        )
    if labels.dtype.kind in "iub":
        whole: IntArray = labels.astype(np.int64)
        if not len(whole) or (whole.min() >= -1 and whole.max() < len(whole)):
            return whole
    if labels.dtype.kind == "f" and np.isnan(labels).any():
        raise ValueError("Labels hold NaN; give -1 to rows that are in no cluster.")
    values, numbers = np.unique(labels, return_inverse=True)
    noise = values == -1 if values.dtype.kind in "if" else np.zeros(len(values), bool)
    return np.where(noise, -1, np.cumsum(~noise) - 1)[numbers]


def _of_model(
    model: BaseEstimator, X: Any, cv: int | None, n_rows: int, rng: np.random.Generator
) -> dict[str, Any]:
    """What estimators know themselves."""
    found: dict[str, Any] = {}
    if hasattr(model, "predict_proba"):
        found["sureness"] = sureness(model, X)
    bound = getattr(model, "lower_bound_", None)
    if bound is not None and len(getattr(model, "labels_", ())) == n_rows:
        found["lower_bound"] = float(bound)
        if hasattr(model, "predict_component_proba"):
            found["icl"] = completed_bound(model, X)
    if cv is not None:
        found["held_out"] = held_out_scores(model, X, int(cv), _CV_ROWS, rng)
    return found


def _mean(values: Array) -> float:
    known = values[~np.isnan(values)]
    return float(known.mean()) if len(known) else float("nan")


def _weighted(by_cluster: Array, sizes: Any, n_rows: int) -> float:
    """Clusters by their share of the rows; noise, and too small ones, count as 0."""
    known = ~np.isnan(by_cluster)
    if not known.any():
        return float("nan")
    return float(by_cluster[known] @ sizes[known] / n_rows)
