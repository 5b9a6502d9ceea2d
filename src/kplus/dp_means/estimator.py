"""DP-means: k-means that finds the number of clusters."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from kplus.base.checks import (
    check_shapes,
    check_weights,
    refuse_fewer_rows,
    refuse_other_columns,
)
from kplus.base.estimator import AT_LEAST_ONE, Clusterer, Table
from kplus.base.job import answering, job_of
from kplus.base.progress import PassReporter, Watch
from kplus.core.job import Job, best_of
from kplus.core.types import Array, Blocks, IntArray, PassInfo
from kplus.dp_means import cells, objective_search, search
from kplus.dp_means import full_covariance_search as full_covariance
from kplus.dp_means import sequential_search as sequential
from kplus.dp_means.full_covariance import Ellipsoids
from kplus.dp_means.params import Scaling
from kplus.dp_means.resolutions import choose
from kplus.dp_means.search import Fitted
from kplus.dp_means.standard import Standard
from kplus.tree.cluster_tree import check_clusters

__all__ = ["DPMeans"]

# What a fit with cells has, and where `search.JoinedCells` keeps it.
_CELLS = {
    "cell_centers_": "centers",
    "cell_labels_": "labels",
    "cluster_of_cell_": "cluster",
    "cluster_tree_": "tree",
}


class DPMeans(ClassNamePrefixFeaturesOutMixin, TransformerMixin, Clusterer):
    """K-means whose number of clusters comes from the data; clusters of any shape.

    Minimises the squared distances of rows to their cluster's centre plus a
    `penalty` (λ² of the papers) for each cluster after the first. There are three
    ways to say how many clusters you want:

    - ``penalty=number``: as many as lower the objective, wherever they pay;
    - ``n_clusters=K``: exactly that many, found by splits and swaps;
    - neither: the number that most resolutions, and most penalties, agree on.

    With neither, clusters need not be round where the rows say otherwise: these are cut
    into many small cells, which are joined where rows lead from one to the next without
    a valley between. ``path_.is_clear`` says whether the answer stands out, and
    ``path_.runners_up`` what else it might have been.

    Parameters
    ----------
    penalty : float or "auto", default="auto"
        λ²: what one more cluster costs, in squared distance. In total, so that more
        rows bear more clusters at the same penalty.
    n_clusters : int or None, default=None
        Number of clusters to find. A `penalty` given as well opens no clusters then; it
        is only charged in `objective_`.
    max_clusters : int or None, default=None
        Largest number of clusters. This is Eq. 12 of MAD-Bayes.
    cells : int, "auto", "if_needed" or None, default="if_needed"
        Cells that clusters of any shape are made of: about so many, or one for each 40
        rows, up to 500. `n_clusters` says then where the tree of the cells is cut; if
        it is None, the rows do. "if_needed": only where neither `penalty` nor
        `n_clusters` is given, and clusters turn out not to be round. None: every
        cluster is round.
    scale : bool, default=False
        Put the columns on one scale first: mean 0, standard deviation 1. `penalty`,
        distances and `objective_` are then in these units; centres are reported in
        those of the data. In a stream the first batch decides the scale.
    half_life : float or None, default=None
        In a stream: after so many further rows, earlier ones count half. See Notes.
        None: they count for ever.
    algorithm : {"fast", "rows", "serial"}, default="fast"
        What a number as `penalty` means. "fast" minimises the objective, by splits,
        merges and swaps. The others only follow the row rule of Kulis & Jordan: a row
        farther than √penalty from every centre opens a cluster. "serial" is their
        pass, row after row, exactly; "rows" opens clusters at the costliest rows after
        each pass, whatever their order.
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
        Number of starts; the best is kept. Those after the first begin with rows drawn
        at random (also with ``algorithm="serial"``, which always keeps the order).
    max_iter : int, default=300
        Largest number of passes over all rows.
    tol : float, default=1e-5
        Stop when a pass gains less than that. As a share of the objective; and the
        pass opens or removes no cluster.
    batch_size : int or None, default=None
        Rows read at a time. The default suits the processor's cache.
    warm_start : bool, default=False
        Start `fit` from the last fit. From its centres.
    n_jobs : int or None, default=None
        Threads; -1 uses all cores. The result does not depend on it.
    random_state : int, RandomState instance or None, default=None
        Seed of all random choices. They concern the sample that a fit on many rows
        starts with, and random starts.
    verbose : int, default=0
        Print one line per pass.

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
        The objective after each pass over all rows. It never rises within a fit. In a
        stream, the latest 10,000 at most.
    n_iter_ : int
        Passes over all rows. In a stream, those over all batches.
    converged_ : bool
        Whether the fit converged.
    penalty_ : float
        The penalty used. 0 where `n_clusters` was given and `penalty` was not, and
        where clusters are joined from cells.
    cell_centers_ : ndarray of shape (n_cells, n_features)
        With `cells`: their centres. `objective_` is the sum of squared distances to
        these then, and `cluster_centers_` are means of clusters.
    cell_labels_ : ndarray of shape (n_samples,)
        With `cells`: the cell of each row.
    cluster_of_cell_ : ndarray of shape (n_cells,)
        With `cells`: the cluster that each belongs to.
    cluster_tree_ : ClusterTree
        Tree of the pieces that clusters are joined from. Only with `cells`: its
        ``cut(n)`` gives the clusters of the cells for any number, ``clearness`` says
        how clear the automatic number is.
    path_ : PenaltyPath
        With ``penalty="auto"``: what the choice was made from, whether it is clear,
        and what else it might have been.
    covariances_ : ndarray of shape (n_clusters_, n_features, n_features)
        With ``covariance="full"``.
    mean_, scale_ : ndarrays of shape (n_features,)
        With `scale`: means and standard deviations of the columns.
    n_features_in_ : int
        Number of columns.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the columns, if they are all strings.
    reading_ : Reading
        Columns of a table that are left out, such as ids and dates, or not read as
        they seem: see `kplus.read_table`. Only if there are some.

    See Also
    --------
    penalty_for : A penalty for a given number of clusters.
    penalty_path : Which penalties give which number of clusters.

    Notes
    -----
    With ``covariance="full"`` and Σ0 = `min_covariance` · I the objective is the sum of
    squared Mahalanobis distances plus λ² times (K - 1 + Σ_k [log|Σ_k| - log|Σ0| +
    tr(Σ0 Σ_k⁻¹) - D]); without the terms in Σ0 it would have no lower bound. Its best
    matrices are Σ_k = Σ0 + S_k/λ², where S_k is the scatter matrix, a sum over the
    rows of the cluster: large clusters reach far, and with many rows the lowest
    objective is often a single cluster. A fit therefore begins with the clusters of the
    spherical fit. A new cluster opens at a row farther than √(λ² · `min_covariance`)
    from the others that are still round, and only that product decides about clusters.

    In a stream (`partial_fit`), earlier rows stay in their clusters, as weight on the
    centres; rows of a batch find their cluster and, with a number as `penalty`, open
    new ones by the row rule, for splits need rows that are gone. With `n_clusters` or
    ``penalty="auto"`` the first batch decides the number, and clusters are round.
    With `half_life`, a batch of n rows (summed weights) first multiplies the sizes of
    the clusters by ``2 ** (-n / half_life)``, so that centres follow data that drift;
    with a number as `penalty`, a cluster of which less than one row is left, and that
    has none in the batch, is dropped.

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
        **Clusterer._parameter_constraints,
        "penalty": [Interval(Real, 0, None, closed="neither"), StrOptions({"auto"})],
        "n_clusters": [AT_LEAST_ONE, None],
        "max_clusters": [AT_LEAST_ONE, None],
        "cells": [AT_LEAST_ONE, StrOptions({"auto", "if_needed"}), None],
        "scale": ["boolean"],
        "half_life": [Interval(Real, 0, None, closed="neither"), None],
        "algorithm": [StrOptions({"fast", "rows", "serial"})],
        "collapsed": ["boolean"],
        "covariance": [StrOptions({"spherical", "full"})],
        "min_covariance": [Interval(Real, 0, None, closed="neither")],
    }
    _result = "cluster_centers_"

    def __init__(
        self,
        penalty="auto",
        *,
        n_clusters=None,
        max_clusters=None,
        cells="if_needed",
        scale=False,
        half_life=None,
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
        self.cells = cells
        self.scale = scale
        self.half_life = half_life
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

    @property
    def _n_features_out(self) -> int:
        return self.n_clusters_

    # --------------------------------------------------------- steps of a fit

    @property
    def _max_clusters(self) -> float:
        return np.inf if self.max_clusters is None else self.max_clusters

    @property
    def _penalty_opens_clusters(self) -> bool:
        """Whether rows open clusters by the penalty; otherwise the number is fixed."""
        return self.n_clusters is None and not isinstance(self.penalty, str)

    @property
    def _made_of_cells(self) -> bool:
        """Whether clusters are joined from cells in any case."""
        return self.cells not in (None, "if_needed")

    @property
    def _other_algorithms(self) -> list[str]:
        """The settings that choose another algorithm than the fast one."""
        settings = {
            f"algorithm='{self.algorithm}'": self.algorithm != "fast",
            "covariance='full'": self.covariance == "full",
            "collapsed=True": self.collapsed,
        }
        return [setting for setting, is_set in settings.items() if is_set]

    def _check_settings(self) -> None:
        super()._check_settings()
        if self.n_clusters is not None and self.max_clusters is not None:
            raise ValueError(
                "max_clusters goes with penalty; with n_clusters the number is fixed."
            )
        self._check_cells()
        if self.scale and self.covariance == "full":
            raise ValueError(
                "scale=True does not go with covariance='full', whose clusters have "
                "scales of their own; give min_covariance in the units of the data."
            )
        for setting in [] if self._penalty_opens_clusters else self._other_algorithms:
            if setting != "collapsed=True":
                raise ValueError(
                    f"{setting} needs a number as penalty, and n_clusters=None."
                )
            if self.n_clusters is None:
                raise ValueError(f"{setting} needs a number as penalty, or n_clusters.")
        if len(self._other_algorithms) > 1:
            raise ValueError(
                f"{' and '.join(self._other_algorithms)} are different algorithms; "
                f"choose one."
            )

    def _check_cells(self) -> None:
        """Refuse settings that have no meaning for clusters that are joined cells."""
        if not self._made_of_cells:
            return
        others = {
            "a number as penalty": not isinstance(self.penalty, str),
            "max_clusters": self.max_clusters is not None,
        } | dict.fromkeys(self._other_algorithms, True)
        for setting, is_set in others.items():
            if is_set:
                raise ValueError(
                    f"cells does not go with {setting}: cells are joined where no "
                    f"valley is between, or into n_clusters."
                )
        most = np.inf if self.cells == "auto" else self.cells
        if self.n_clusters is not None and self.n_clusters > most:
            raise ValueError(
                f"n_clusters={self.n_clusters} is more than cells={self.cells}, which "
                f"they are made of."
            )

    def _check_stream(self) -> None:
        """Streams need statistics that only the fast algorithm keeps."""
        refused = [
            other for other in self._other_algorithms if other != "algorithm='rows'"
        ]
        if self._made_of_cells or hasattr(self, "cell_centers_"):
            raise ValueError(
                "partial_fit does not go with cells: the rows that say which of them "
                "to join would be gone. Begin the stream with partial_fit, or give "
                "cells=None to fit, for round clusters."
            )
        if hasattr(self, "covariances_"):
            refused = [*refused, "a fit with covariances_"]
        if refused:
            raise ValueError(
                f"partial_fit does not go with {refused[0]}: streams need "
                f"algorithm='fast' or 'rows', collapsed=False and "
                f"covariance='spherical'."
            )

    def _check_table(self, table: Table, weights: Array | None) -> None:
        refuse_fewer_rows(self, "n_clusters", table.source.n_rows)

    def _find(
        self, table: Table, weights: Array | None, reporter: PassReporter
    ) -> Fitted:
        """The search, on columns of one scale if that is asked for."""
        if not self.scale:
            return self._search(job_of(self, table.source, weights, reporter), None)
        standard = Standard.of(table.source, weights)
        self._under_way = standard  # for callbacks
        try:
            blocks = standard.blocks(table.source)
            found = self._search(job_of(self, blocks, weights, reporter), standard)
        finally:
            del self._under_way
        return replace(found, standard=standard)

    def _search(self, job: Job, standard: Standard | None) -> Fitted:
        """Search by the penalty, or for a number of clusters: given, or of the path."""
        start = self._warm_centers()
        if start is not None and standard is not None:
            start = standard.transform(start)
        if self._made_of_cells:
            return self._join_cells(job, self.cells, start)
        if self._penalty_opens_clusters:
            return best_of(self.n_init, job, self._search_by_penalty(start))
        path, K, penalty = None, self.n_clusters, self.penalty
        if K is None:
            choice = choose(job, self._max_clusters, self._may_join)
            path, K, penalty = choice.path, choice.n_clusters, choice.path.penalty
            if choice.cells is not None:
                fitted = self._join_cells(job, len(choice.cells), choice.cells)
                return replace(fitted, path=path.met_by(len(fitted.centers)))
            if start is None and self.n_init == 1:
                start = choice.centers
        if start is not None and len(start) != K:
            start = None
        by_number = sequential.collapsed_number if self.collapsed else search.by_number
        fitted = best_of(
            self.n_init, job, partial(by_number, n_clusters=K, start=start)
        )
        if not isinstance(penalty, str):
            fitted = fitted.at_penalty(penalty)
        return replace(fitted, path=path)

    @property
    def _may_join(self) -> bool:
        """Whether clusters may be joined from cells; those of a stream may not."""
        others = self.max_clusters is not None or self._streaming
        return self.cells == "if_needed" and not others

    def _join_cells(self, job: Job, number: Any, start: Array | None) -> Fitted:
        fit_cells = partial(
            cells.fit_cells, cells=number, n_clusters=self.n_clusters, start=start
        )
        return best_of(self.n_init, job, fit_cells)

    def _search_by_penalty(self, start: Array | None) -> Callable[[Job, bool], Fitted]:
        """The search of the chosen algorithm."""
        settings = {"penalty": self.penalty, "max_clusters": self._max_clusters}
        if self.covariance == "full":
            return partial(
                full_covariance.by_penalty,
                **settings,
                floor=self.min_covariance,
                start=None if start is None else self._warm_ellipsoids(start),
            )
        by_penalty = {
            "fast": objective_search.by_objective,
            "rows": search.by_rows,
            "serial": sequential.serial,
        }[self.algorithm]
        if self.collapsed:
            by_penalty = sequential.collapsed
        return partial(by_penalty, **settings, start=start)

    def _warm_centers(self) -> Array | None:
        """With `warm_start` after a fit: its centres, at most `max_clusters`."""
        if not self.warm_start or not hasattr(self, "cluster_centers_"):
            return None
        centers: Array = self.cluster_centers_
        if self._made_of_cells:
            centers = getattr(self, "cell_centers_", centers)
        refuse_other_columns(self.n_features_in_, centers.shape[1])
        return centers[: int(min(len(centers), self._max_clusters))]

    def _warm_ellipsoids(self, centers: Array) -> Ellipsoids:
        """The last fit's matrices; spheres after a spherical fit."""
        if hasattr(self, "covariances_"):
            return Ellipsoids(centers, self.covariances_[: len(centers)])
        return Ellipsoids.spheres(centers, self.min_covariance)

    def _find_more(self, table: Table, weights: Array | None, watch: Watch) -> Fitted:
        """The clusters of this batch and of all rows seen earlier."""
        counts, errors = self._earlier(table.source.n_rows, weights)
        fitted = search.stream(
            job_of(self, self._on_scale(table.source), weights, watch),
            self.penalty if self._penalty_opens_clusters else np.inf,
            self._max_clusters,
            self._scaling,
            self._inner_centers,
            self._cluster_means,
            counts,
        )
        seen = fitted.counts
        if not self._penalty_opens_clusters:
            fitted = fitted.at_penalty(self.penalty_)
        fitted = fitted.with_earlier(counts, errors)
        if self.half_life is not None and self._penalty_opens_clusters:
            fitted = fitted.without_faded(seen)
        path = getattr(self, "path_", None)
        return replace(fitted, path=path, standard=self._standard)

    def _earlier(self, n_rows: int, weights: Array | None) -> tuple[Array, Array]:
        """Sizes and errors of the clusters seen so far, faded by a batch of rows."""
        if self.half_life is None:
            return self.cluster_sizes_, self._cluster_errors
        n = float(n_rows if weights is None else weights.sum())
        left = 2.0 ** (-n / self.half_life)
        return self.cluster_sizes_ * left, self._cluster_errors * left

    @property
    def _standard(self) -> Standard | None:
        """What put the columns on one scale."""
        if not hasattr(self, "scale_"):
            return None
        return Standard(self.mean_, self.scale_)

    def _on_scale(self, source: Blocks) -> Blocks:
        """Rows as the fit saw them."""
        standard = self._standard
        return source if standard is None else standard.blocks(source)

    def _store(self, fitted: Fitted, table: Table) -> None:
        standard = fitted.standard
        self._inner_centers = fitted.centers
        self._set_or_drop("mean_", None if standard is None else standard.mean)
        self._set_or_drop("scale_", None if standard is None else standard.scale)
        self.cluster_centers_ = self._in_data_units(fitted.centers)
        self.labels_ = fitted.labels
        self.n_clusters_ = len(fitted.centers)
        self.cluster_sizes_ = fitted.counts
        self.penalty_ = float(fitted.penalty)
        self.converged_ = fitted.converged
        self._set_or_drop("path_", fitted.path)
        self._set_or_drop("covariances_", fitted.covariances)
        joined = fitted.cells
        for name, part in _CELLS.items():
            self._set_or_drop(name, None if joined is None else getattr(joined, part))
        if joined is not None:
            self._inner_centers = joined.centers
            self.cell_centers_ = self._in_data_units(joined.centers)
        self._scaling = fitted.scaling
        # What a stream needs to know of the rows: means, and errors about them.
        shift = np.sum((fitted.means - fitted.centers) ** 2, axis=1)
        self._cluster_means = fitted.means
        self._cluster_errors = np.maximum(fitted.errors - fitted.counts * shift, 0.0)

    def _in_data_units(self, centers: Array) -> Array:
        standard = self._standard
        return centers if standard is None else standard.inverse_transform(centers)

    def _described(self, info: PassInfo, table: Table) -> dict[str, Any]:
        params = info.params
        if isinstance(params, Ellipsoids):
            return {
                "cluster_centers_": params.centers,
                "covariances_": params.covariances,
                "n_clusters_": params.K,
            }
        centers = params.scaling.inverse_transform(params.centers)
        standard = getattr(self, "_under_way", None)
        described = {
            "cluster_centers_": centers,
            "_inner_centers": centers,
            "n_clusters_": params.K,
            "_scaling": params.scaling,
        }
        if standard is not None:
            described |= {
                "cluster_centers_": standard.inverse_transform(centers),
                "mean_": standard.mean,
                "scale_": standard.scale,
            }
        return described

    # -------------------------------------------------------------------- rows

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
        check_is_fitted(self)
        source = self._open(X, reset=False).source
        weights = check_weights(sample_weight, source.n_rows)
        job = answering(self, self._on_scale(source), weights)
        with self._explaining(source):
            if hasattr(self, "covariances_"):
                return full_covariance.assign(
                    job, self.cluster_centers_, self.covariances_
                )
            centers, cluster = self._nearest_of
            assigned = search.assign(job, self._scaling, centers)
            return cluster[assigned.labels], assigned.objective

    @property
    def _nearest_of(self) -> tuple[Array, IntArray]:
        """Centres, the nearest of which says what cluster a row is in; and which."""
        if hasattr(self, "cell_centers_"):
            return self._inner_centers, self.cluster_of_cell_
        return self._inner_centers, np.arange(self.n_clusters_, dtype=np.int32)

    def transform(self, X: Any) -> Any:
        """Return the distance of each row to each centre.

        With ``covariance="full"`` distances are Mahalanobis distances; with `cells`
        those to the nearest cell of each cluster.

        Parameters
        ----------
        X : array-like, sparse matrix, data frame or path, (n_samples, n_features)

        Returns
        -------
        distances : ndarray of shape (n_samples, n_clusters_)
        """
        check_is_fitted(self)
        source = self._open(X, reset=False).source
        if hasattr(self, "covariances_"):
            distances = full_covariance.distances(
                source, self.cluster_centers_, self.covariances_
            )
        else:
            rows = self._on_scale(source)
            distances = search.distances(rows, *self._nearest_of)
        if not np.all(np.isfinite(distances)):
            raise self._explain(source)
        return distances

    def _sureness(self, rows: Any, labels: Any) -> Any:
        distances = np.array(self.transform(rows))  # a copy, which may be written
        here = np.arange(len(labels)), labels
        own = distances[here].copy()
        if distances.shape[1] == 1:
            return np.ones(len(own))
        distances[here] = np.inf
        nearest = distances.min(axis=1)
        # Equal rows may have centres of their own: they belong as much to either.
        return np.where(nearest > 0.0, 1.0 - own / np.where(nearest > 0, nearest, 1), 0)

    # -------------------------------------------------------------------- files

    def _to_state(self) -> dict[str, Any]:
        """What a model file keeps beside the public attributes."""
        return {
            "inner_centers": self._inner_centers,
            "cluster_errors": self._cluster_errors,
            "cluster_means": self._cluster_means,
            "lens_origin": self._scaling.origin,
            "lens_inv": self._scaling.inv,
        }

    def _from_state(self, state: dict[str, Any]) -> None:
        """Restore what `_to_state` returned; refuse parts that do not fit together."""
        n_nearest = len(getattr(self, "cell_centers_", self.cluster_centers_))
        self._inner_centers = state["inner_centers"]
        self._cluster_errors = state["cluster_errors"]
        self._cluster_means = state["cluster_means"]
        self._scaling = Scaling(state["lens_origin"], float(state["lens_inv"]))
        K, D = self.n_clusters_, self.n_features_in_
        shapes = {
            "cluster_centers_": (self.cluster_centers_, (K, D)),
            "cluster_sizes_": (self.cluster_sizes_, (K,)),
            "cluster_errors": (self._cluster_errors, (K,)),
            "cluster_means": (self._cluster_means, (K, D)),
            "inner_centers": (self._inner_centers, (n_nearest, D)),
            "lens_origin": (self._scaling.origin, (D,)),
        }
        if hasattr(self, "scale_"):
            shapes |= {"mean_": (self.mean_, (D,)), "scale_": (self.scale_, (D,))}
        if hasattr(self, "covariances_"):
            shapes["covariances_"] = (self.covariances_, (K, D, D))
        if hasattr(self, "cell_centers_"):
            n_cells = len(self.cell_centers_)
            shapes["cell_centers_"] = (self.cell_centers_, (n_cells, D))
            shapes["cluster_of_cell_"] = (self.cluster_of_cell_, (n_cells,))
        check_shapes(shapes)
        if hasattr(self, "cell_centers_"):
            tree = getattr(self, "cluster_tree_", None)
            check_clusters(
                "cluster_of_cell_", self.cluster_of_cell_, self.n_clusters_, tree
            )
