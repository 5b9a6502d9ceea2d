"""Clusters of mixed tables, each with the features that matter for it."""

from numbers import Real
from typing import Any, ClassVar

import numpy as np
from scipy.special import softmax
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from kplus.base.checks import (
    refuse_empty_columns,
    refuse_fewer_rows,
    refuse_other_columns,
)
from kplus.base.description import Trait
from kplus.base.estimator import AT_LEAST_ONE, Clusterer, Table
from kplus.base.imputation import impute
from kplus.base.job import job_of
from kplus.base.progress import PassReporter, Watch
from kplus.base.tables import open_mixed_table
from kplus.core.reading import read_all
from kplus.core.types import Array, PassInfo
from kplus.craft import files, joining, report, search, settings
from kplus.craft.imputation import CraftFiller
from kplus.craft.paper.algorithm import row_costs

__all__ = ["CRAFT"]


class CRAFT(ClassNamePrefixFeaturesOutMixin, TransformerMixin, Clusterer):
    """Clusters of a table of numbers and categories, each with features of its own.

    It takes tables as they are: numbers in any units, categories, missing values. A
    feature counts in a cluster if the cluster describes its values so much better than
    the whole table does that the gain exceeds the cost of its parameters. A cluster is
    opened by the same rule, so that the number of clusters comes from the data.
    What is found so are components, in which columns are independent; those without a
    valley between them, such as the pieces of a long and slanting group, are joined.

    Parameters
    ----------
    feature_fraction : float or None, default=None
        Share of the features that count in each cluster (m): those of the
        largest gain. None: all whose gain exceeds their cost.
    penalty : float or "auto", default="auto"
        λ: cost of a cluster, in nats. "auto" is half the logarithm of the number of
        rows, as in the integrated completed likelihood (ICL).
    n_clusters : int, "auto" or None, default="auto"
        Number of clusters that the components are joined into: where `cluster_tree_`
        says to cut it, or this number. None: every component is a cluster. A number is
        met by a fit with as many components; or, where no valley is between some of
        these, by a cut of the tree of others.
    max_clusters : int or None, default=None
        Largest number of clusters. There are no more components either.
    sharing : float, default=0.0
        How far clusters share features: 0, each has its own, to 1, all have the same.
        In between, a feature counts in a cluster with weight (1 − sharing) if chosen
        there, plus sharing times the share of the clusters in which it is chosen. This
        is the paper's ρ = (1 − sharing) m (1 − m).
    numeric : {"gaussian", "quantile", "yeo-johnson"}, default="gaussian"
        How numbers are modelled: as a Gaussian in each cluster; as categories, cut into
        six parts of about the same size (safe for heavy tails and spikes); or as a
        Gaussian after a transformation.
    categorical_features : "from_dtype", list of names or indices, or mask
        Columns to take as categories. Text, categories and booleans of a data frame
        are, in any case.
    variant : {"likelihood", "paper"}, default="likelihood"
        "paper" follows Algorithms 1 and 2 of the paper, for comparison: rows one by
        one, so that their order matters, with `penalty` or `n_clusters` given.
    smoothing : float, default=1.0
        Weight of the whole table in each cluster, in rows. It keeps frequencies and
        variances above 0.
    variance_floor : float, default=1e-3
        For ``variant="paper"``: least variance of a column in a cluster, relative to
        its variance in the table.
    category_threshold : float or None, default=None
        ε_c: report categories that save more than this share of their code length.
    variance_threshold : float or None, default=None
        ε_v: report numbers whose variance in the cluster is below this.
    handle_unknown : {"error", "missing"}, default="error"
        Categories in `predict` that the fit has not seen: an error, or as missing.
    n_init : int, default=1
        Number of starts; the best is kept.
    max_iter : int, default=300
        Largest number of passes over all rows.
    tol : float, default=1e-6
        Stop when a pass gains less than that. As a share of the objective.
    batch_size : int or None, default=None
        Rows read at a time. By default what suits the processor's cache.
    warm_start : bool, default=False
        Start `fit` from the last fit. From its clusters.
    n_jobs : int or None, default=None
        Threads; -1 uses all cores. The result does not depend on it.
    random_state : int, RandomState instance or None, default=None
        Seed of all random choices.
    verbose : int, default=0
        Print one line per pass.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
        Cluster of each row. Cluster 0 is the largest.
    n_clusters_ : int
        Number of clusters found.
    n_components_ : int
        Number of components found: groups of rows inside of which columns are
        independent. A cluster has one of them, or several without a valley in between.
    component_labels_ : ndarray of shape (n_samples,)
        Component of each row.
    cluster_of_component_ : ndarray of shape (n_components_,)
        Cluster that each component belongs to.
    cluster_tree_ : ClusterTree
        Tree of the pieces that clusters are joined from. As in `DPMixture`, ``cut(n)``
        gives the clusters of the components for any number, ``clearness`` says how
        clear the automatic number is. Not with ``n_clusters=None`` or
        ``variant="paper"``.
    cluster_sizes_ : ndarray of shape (n_clusters_,)
        Summed weights of the rows of each cluster.
    selected_features_ : ndarray of bool, (n_clusters_, n_features_in_)
        The features in which a cluster's rows agree more than others do. By default a
        rule of its own, see the user guide; with `feature_fraction` a fixed number for
        each cluster; by thresholds if any is given.
    feature_scores_ : ndarray of shape (n_clusters_, n_features_in_)
        Nats per row by which a feature distinguishes the cluster from the whole table.
    objective_ : float
        J of the components, lower is better; see the user guide.
    objective_history_ : ndarray of shape (n_iter_,)
        The objective after each pass over all rows. It never rises within a fit. In a
        stream, the latest 10,000 at most.
    categories_ : tuple
        Categories of each column in the order of their codes, None for numbers. Only
        where there are any.
    path_ : structured array
        The lowest J seen with each number of components, fields "n_clusters" and
        "objective", on the rows of the search.
    n_missing_ : ndarray of shape (n_features_in_,)
        Missing values of each column, weighted.
    penalty_ : float
        The penalty used.
    n_iter_ : int
        Passes over all rows. In a stream, those over all batches.
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
    DPMixture : Soft clusters of mixed tables, without feature selection.

    Notes
    -----
    The search works on up to 20,000 rows in memory, then passes over all rows.
    ``variant="paper"`` keeps all rows in memory.

    Columns of text, categories and booleans of a data frame or file are categories;
    NaN, None and null are missing.

    In a stream (`partial_fit`), earlier rows keep their components and count as sums;
    rows of a batch are assigned. Components may be joined to other clusters as rows
    come (with ``n_clusters=None`` merged), but only the first batch finds components;
    it also decides units and categories.

    References
    ----------
    Garg, Rudin & Jaakkola, "CRAFT: ClusteR-specific Assorted Feature selecTion",
    AISTATS 2016.

    Examples
    --------
    >>> import pandas as pd
    >>> from kplus import CRAFT
    >>> frame = pd.DataFrame({
    ...     "age": [21, 23, 22, 24, 25, 22, 61, 64, None, 66] * 3,
    ...     "pet": (["cat", None, "cat", "cat", "cat", "cat"] + ["dog"] * 4) * 3,
    ... })
    >>> craft = CRAFT(random_state=0).fit(frame)
    >>> craft.n_clusters_
    2
    >>> craft.predict(pd.DataFrame({"age": [None, 20.0], "pet": ["dog", None]}))
    array([1, 0], dtype=int32)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **Clusterer._parameter_constraints,
        "feature_fraction": [Interval(Real, 0, 1, closed="right"), None],
        "penalty": [Interval(Real, 0, None, closed="left"), StrOptions({"auto"})],
        "n_clusters": [AT_LEAST_ONE, StrOptions({"auto"}), None],
        "max_clusters": [AT_LEAST_ONE, None],
        "sharing": [Interval(Real, 0, 1, closed="both")],
        "numeric": [StrOptions({"gaussian", "quantile", "yeo-johnson"})],
        "categorical_features": [StrOptions({"from_dtype"}), "array-like"],
        "variant": [StrOptions({"likelihood", "paper"})],
        "smoothing": [Interval(Real, 0, None, closed="neither")],
        "variance_floor": [Interval(Real, 0, None, closed="neither")],
        "category_threshold": [Interval(Real, 0, 1, closed="neither"), None],
        "variance_threshold": [Interval(Real, 0, None, closed="neither"), None],
        "handle_unknown": [StrOptions({"error", "missing"})],
    }
    _result = "_clusters"

    def __init__(
        self,
        feature_fraction=None,
        *,
        penalty="auto",
        n_clusters="auto",
        max_clusters=None,
        sharing=0.0,
        numeric="gaussian",
        categorical_features="from_dtype",
        variant="likelihood",
        smoothing=1.0,
        variance_floor=1e-3,
        category_threshold=None,
        variance_threshold=None,
        handle_unknown="error",
        n_init=1,
        max_iter=300,
        tol=1e-6,
        batch_size=None,
        warm_start=False,
        n_jobs=None,
        random_state=None,
        verbose=0,
    ):
        self.feature_fraction = feature_fraction
        self.penalty = penalty
        self.n_clusters = n_clusters
        self.max_clusters = max_clusters
        self.sharing = sharing
        self.numeric = numeric
        self.categorical_features = categorical_features
        self.variant = variant
        self.smoothing = smoothing
        self.variance_floor = variance_floor
        self.category_threshold = category_threshold
        self.variance_threshold = variance_threshold
        self.handle_unknown = handle_unknown
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
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        return tags

    @property
    def _n_features_out(self) -> int:
        return self.n_clusters_

    # --------------------------------------------------------- steps of a fit

    def _check_settings(self) -> None:
        super()._check_settings()
        settings.check(self)

    def _check_stream(self) -> None:
        if self.variant == "paper":
            raise ValueError(
                "partial_fit does not go with variant='paper', which passes over all "
                "rows many times; use variant='likelihood'."
            )

    @property
    def _continues_last_fit(self) -> bool:
        """With `warm_start`, whether the last fit read the columns in the same way."""
        return (
            self.warm_start
            and hasattr(self, "_model")
            and self._model.layout.numeric == self.numeric
            and np.array_equal(self._categorical, self.categorical_features)
        )

    def _open(self, X: Any, *, reset: bool) -> Table:
        continues = reset and self._continues_last_fit
        source, coding = open_mixed_table(
            self,
            X,
            reset=reset,
            block_rows=self.batch_size,
            categorical=self.categorical_features,
            coding=self._coding if continues or not reset else None,
            unknown=self.handle_unknown,
        )
        if continues:
            refuse_other_columns(source.n_features, len(self._model.layout.levels))
        return Table(X, source, coding)

    def _check_table(self, table: Table, weights: Array | None) -> None:
        if joining.wished(self.n_clusters) is not None:
            refuse_fewer_rows(self, "n_clusters", table.source.n_rows)
        refuse_empty_columns(self, table.source, weights)

    def _find(
        self, table: Table, weights: Array | None, reporter: PassReporter
    ) -> search.CraftFit:
        job = job_of(self, table.source, weights, reporter)
        levels: tuple[int | None, ...] = (None,) * table.source.n_features
        if table.coding is not None:
            levels = table.coding.levels
        if self.variant == "paper":
            paper = settings.paper_spec(self, levels)
            return search.fit_as_published(job, paper, self.n_init)
        spec = settings.search_spec(self, levels)
        if self._continues_last_fit and spec.n_clusters in (None, self._sums.K):
            model = spec.model(self._model.layout)
            again = search.fit_from(job, spec, model, self._sums)
            return joining.with_tree(self.n_clusters, job, again)
        return joining.fit_clusters(self.n_clusters, job, spec)

    def _find_more(
        self, table: Table, weights: Array | None, watch: Watch
    ) -> search.CraftFit:
        spec = settings.search_spec(self, self._model.layout.levels)
        job = job_of(self, table.source, weights, watch)
        keep = hasattr(self, "cluster_tree_")
        return joining.stream(
            job, spec, self._model, self._sums, self._between, keep=keep
        )

    def _store(self, result: search.CraftFit, table: Table) -> None:
        model, components = result.model, result.sums.copy()
        layout = model.layout
        components.begin_pass()
        for name, value in joining.attributes(self.n_clusters, result).items():
            self._set_or_drop(name, value)
        sums = joining.joined(components, self.cluster_of_component_)
        whole, total = sums.sums.sum(axis=0), float(sums.counts.sum())
        if result.paper is None:
            selected = report.selected_features(
                model, sums, self.category_threshold, self.variance_threshold
            )
        else:
            selected = result.paper.chosen[:, layout.columns]
        scores = report.Profile.of(model, sums).gains / sums.counts[:, None]
        self._model, self._clusters, self._sums = model, result.clusters, components
        self._between, self._paper = result.between, result.paper
        self._coding, self._categorical = table.coding, self.categorical_features
        self.cluster_sizes_ = sums.counts
        self.selected_features_ = layout.by_column(selected)
        self.feature_scores_ = layout.by_column(scores)
        self.n_missing_ = layout.missing(whole, total)
        self.penalty_ = float(model.penalties(whole, total).penalty)
        coding = table.coding
        self._set_or_drop("categories_", None if coding is None else coding.categories)
        self.converged_ = result.converged
        if result.path is not None:
            self.path_ = result.path

    def _described(self, info: PassInfo, table: Table) -> dict[str, Any]:
        return {
            "n_clusters_": info.params.K,
            "n_components_": info.params.K,
            "cluster_of_component_": np.arange(info.params.K, dtype=np.int32),
            "_model": info.params.model,
            "_clusters": info.params.clusters,
            "_coding": table.coding,
            "_paper": None,
        }

    def _warn(self, result: search.CraftFit, table: Table) -> None:
        report.warn_of_table(self, result, table.source)
        super()._warn(result, table)

    # -------------------------------------------------------------------- rows

    def predict(self, X: Any) -> Any:
        """Return the cluster of each row: that of its best component.

        Parameters
        ----------
        X : data frame, array-like, sparse matrix or path, (n_samples, n_features)

        Returns
        -------
        labels : ndarray of shape (n_samples,)
        """
        components = np.argmax(self._scores(X), axis=1)
        return np.asarray(self.cluster_of_component_, np.int32)[components]

    def predict_components(self, X: Any) -> Any:
        """Return the component of each row in which its score is highest.

        Parameters
        ----------
        X : data frame, array-like, sparse matrix or path, (n_samples, n_features)

        Returns
        -------
        components : ndarray of shape (n_samples,)
        """
        return np.argmax(self._scores(X), axis=1).astype(np.int32)

    def transform(self, X: Any) -> Any:
        """Return the score of each row in each cluster.

        It is the logarithm of how much likelier the row is there than in the table as
        a whole, by the features that count there, plus that of the share of the rows;
        the highest of the components of the cluster. With ``variant="paper"`` it is
        minus the paper's d_nk.

        Parameters
        ----------
        X : data frame, array-like, sparse matrix or path, (n_samples, n_features)

        Returns
        -------
        scores : ndarray of shape (n_samples, n_clusters_)
        """
        scores = self._scores(X)
        return joining.scores_of(self.cluster_of_component_, scores)

    def _sureness(self, rows: Any, labels: Any) -> Any:
        if self._paper is not None:  # costs are no probabilities
            return np.full(len(labels), np.nan)
        shares = softmax(np.asarray(self.transform(rows)), axis=1)
        return shares[np.arange(len(labels)), labels]

    def _scores(self, X: Any) -> Array:
        """The score of each row in each component."""
        check_is_fitted(self)
        source = self._open(X, reset=False).source
        if self._paper is None:
            scores = search.score(source, self._model, self._clusters)
        else:
            scores = -row_costs(read_all(source), self._paper)
        if not np.all(np.isfinite(scores)):
            raise self._explain(source)
        return scores

    def impute(
        self, X: Any, *, n_draws: int | None = None, random_state: Any = None
    ) -> Any:
        """Fill in missing values by what is observed in the same row.

        Numbers get their mean in the clusters, weighted by how likely the row belongs
        there; categories the likeliest. Where a feature does not count in a cluster,
        that is as in the whole table, and so for rows without any value. Columns of
        whole numbers in a data frame get the nearest whole number.

        Parameters
        ----------
        X : array-like, sparse matrix, data frame or path, (n_samples, n_features)
            NaN, None or null where a value is missing.
        n_draws : int, optional
            Draw so many tables instead, for multiple imputation: in each row
            a cluster first, then all that is missing.
        random_state : int, RandomState instance, Generator or None, default=None
            Seed of the draws. None: as the estimator's.

        Returns
        -------
        X_filled : as X, or a list of `n_draws` such
            Of the same kind and types as X, and X itself where it was observed. A path
            gives an array, or a data frame if there are categories.

        Examples
        --------
        >>> import pandas as pd
        >>> from kplus import CRAFT
        >>> frame = pd.DataFrame({"age": [21, 22, 23, 61, 62, 63] * 20})
        >>> frame["pet"] = (["cat"] * 3 + ["dog"] * 3) * 20
        >>> craft = CRAFT(random_state=0).fit(frame)
        >>> gaps = pd.DataFrame({"age": [None, 60.0], "pet": ["cat", None]})
        >>> craft.impute(gaps).round()
            age  pet
        0  22.0  cat
        1  60.0  dog
        """
        check_is_fitted(self)
        table = self._open(X, reset=False)
        with self._explaining(table.source):
            return impute(self, table, CraftFiller.of(self), n_draws, random_state)

    def score_samples(self, X: Any) -> Any:
        """Return the score of each row in its cluster, see `transform`.

        Parameters
        ----------
        X : data frame, array-like, sparse matrix or path, (n_samples, n_features)

        Returns
        -------
        scores : ndarray of shape (n_samples,)
        """
        return self._scores(X).max(axis=1)

    def score(self, X: Any, y: Any = None) -> float:
        """Return the mean of `score_samples`.

        Parameters
        ----------
        X : data frame, array-like, sparse matrix or path, (n_samples, n_features)
        y : None
            Ignored.

        Returns
        -------
        score : float
        """
        return float(self.score_samples(X).mean())

    def describe(self) -> Any:
        """Return a frame that says what each cluster is like.

        One line for each cluster and each of its selected features, and of the three
        of the highest scores, highest first: mean ± standard deviation of numbers, or
        the leading categories, in the cluster and in the whole table. A cluster without
        any has a line all the same.

        Returns
        -------
        description : DataFrame
            Columns "cluster", "size", "share", "feature", "score", "here" and
            "overall". pandas, or polars or Arrow where there is no pandas.
        """
        return super().describe()

    def _told(self, most: int | None = None) -> list[Trait]:
        return report.describe(self, most)

    # -------------------------------------------------------------------- files

    def _to_state(self) -> dict[str, Any]:
        return files.to_state(self)

    def _from_state(self, kept: dict[str, Any]) -> None:
        files.restore(self, kept)
