"""Dirichlet-process mixtures that grow and shrink themselves."""

from dataclasses import replace
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from kplus.base.checks import refuse_fewer_rows
from kplus.base.estimator import AT_LEAST_ONE, Clusterer, Table, latest
from kplus.base.imputation import impute
from kplus.base.job import answering, job_of
from kplus.base.progress import PassReporter, Watch
from kplus.core.runs import answers
from kplus.core.types import Array, Blocks, PassInfo
from kplus.dp_mixture import auto, files, joining, search, settings
from kplus.dp_mixture.families import AUTO, NAMES
from kplus.dp_mixture.imputation import MixtureFiller
from kplus.dp_mixture.model import DPMixtureModel
from kplus.dp_mixture.params import Plan

__all__ = ["DPMixture"]

_MOVES = ("birth", "merge", "delete")


class DPMixture(Clusterer):
    """A mixture model whose numbers of components and of clusters come from the data.

    Fits a Dirichlet-process mixture by memoized variational inference: components are
    born where rows are ill explained, and merged or deleted where the lower bound of
    the evidence of *all* rows rises by it. The bound is exact at any time. Components
    describe the density of the rows; those without a valley between them are then
    joined into clusters, of which a ring or a heavy tail is one.

    Parameters
    ----------
    observations : str or object of `kplus.observations`, default="auto"
        What the rows of a component look like. "auto" chooses what suits the table, see
        Notes; or "gaussian" (full covariances), "student_t" (the same with heavy
        tails), "zero_mean_gaussian", "factor_gaussian" (many columns), "diag_gaussian",
        "spherical_gaussian", "transformed" (skewed columns), "spiked", "bernoulli",
        "categorical", "poisson", "negative_binomial", "multinomial", or "mixed"
        (numbers, categories and counts of a data frame); an object such as
        ``Gaussian(covariance=0.5)`` sets the prior.
    algorithm : {"memoized", "full", "stochastic"}, default="memoized"
        "memoized" updates the components after each batch, "full" after each pass;
        neither lowers the bound. "stochastic" takes ever smaller steps and uses no
        moves: it keeps to `n_components`.
    moves : tuple of {"birth", "merge", "delete"}, default=("birth", "merge", "delete")
        Ways to change the number of components; ``()`` keeps to `n_components`.
    n_clusters : int, "auto" or None, default="auto"
        Clusters that the components are joined into: where `cluster_tree_` says to cut
        it, or this number exactly. None: every component is a cluster. A number that
        is larger than that of the components found is met by another fit that has so
        many, without moves; and so is a smaller one where there are categories.
    n_components : int, default=1
        Components to start with.
    max_components : int or None, default=None
        No births beyond so many components.
    concentration : float or "infer", default="infer"
        α of the Dirichlet process: the larger, the more components are expected.
        "infer" finds the best, with a Gamma(2, 1) prior.
    noise : bool or float, default=False
        Whether rows may belong nowhere: these have the label -1. True learns their
        share, with a Beta(1, 19) prior; a number between 0 and 1 is their share.
    n_active : int, "auto" or None, default="auto"
        Most components that share in a row. None: all of them, at the cost of time
        where components are many. "auto" is 4.
    memory_limit : float or None, default=None
        Most bytes for the sums of all batches: batches are larger where they would
        exceed it. See Notes.
    learning_delay, learning_decay : float, default=10.0, 0.5
        With ``algorithm="stochastic"``: step t is (t + delay)^-decay.
    birth_rows : int, default=5000
        Most rows of a component that new ones are made from (N′ of the paper). Up to
        2,000 rows, refits take the place of births.
    handle_unknown : {"error", "missing"}, default="error"
        Categories in `predict` that the fit has not seen: an error, or as missing.
    n_init : int or "auto", default="auto"
        Number of starts; the best is kept. "auto" is 3 where the rows times the square
        of one more than the columns are up to 50,000, else 1.
    max_iter : int, default=300
        Largest number of passes over all rows.
    tol : float, default=1e-5
        Stop when a pass gains less than that. In nats per row; and no move must be left
        to try.
    batch_size : int or None, default=None
        Rows read at a time. Components are updated after each such batch; by default
        there are up to 20 of 1000 rows or more.
    warm_start : bool, default=False
        Start `fit` from the last fit. From its components, and with its prior.
    n_jobs : int or None, default=None
        Threads; -1 uses all cores. The result does not depend on it.
    random_state : int, RandomState instance or None, default=None
        Seed of all random choices. They concern where births are tried, starts, and
        what `sample` draws.
    verbose : int, default=0
        Print one line per pass.

    Attributes
    ----------
    n_clusters_ : int
        Number of clusters found. They are numbered by falling size.
    labels_ : ndarray of shape (n_samples,)
        Cluster of each row. That of its likeliest component; -1 for noise.
    n_components_ : int
        Number of components found. They, too, are numbered by falling size.
    component_labels_ : ndarray of shape (n_samples,)
        Component of each row. The likeliest one; -1 for noise.
    cluster_of_component_ : ndarray of shape (n_components_,)
        Cluster that each component belongs to.
    cluster_tree_ : ClusterTree
        Tree of the pieces that clusters are joined from. Its ``cut(n)`` gives the
        clusters of the components for any number, ``clearness`` says how clear the
        automatic number is. Not with ``n_clusters=None``.
    weights_ : ndarray of shape (n_components_,)
        Expected share of each component.
    noise_share_ : float
        Expected share of noise, which with `weights_` makes 1. Only with `noise`.
    means_, covariances_, precisions_cholesky_ : ndarrays
        Of the components, where `observations` have them; other families have others,
        such as ``probabilities_`` and ``rates_``: see `kplus.observations`.
    lower_bound_ : float
        Lower bound on the log evidence of all rows, in nats.
    lower_bound_history_ : ndarray of shape (n_iter_,)
        The bound after each pass over all rows. It may dip after births. In a stream,
        the latest 10,000 at most.
    moves_ : structured ndarray
        Every proposal: ``pass``, ``kind``, ``target`` and ``other`` (components, as
        numbered then; -1 for none, or noise), ``accepted``, ``change`` (of the bound).
        In a stream, the latest 10,000 at most.
    concentration_ : float
        α, given or learned.
    n_iter_ : int
        Passes over all rows. In a stream, those over all batches.
    converged_ : bool
        Whether the fit converged.
    observations_ : object
        The observations with their resolved prior.
    choice_ : str
        What "auto" chose, and why. Only with ``observations="auto"``.
    categories_ : tuple
        Categories of each column in the order of their codes, None for numbers. Only
        where there are any.
    n_features_in_ : int
        Number of columns.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the columns, if they are all strings.
    reading_ : Reading
        Columns of a table that are left out, such as ids and dates, or not read as
        they seem: see `kplus.read_table`. Only if there are some.

    See Also
    --------
    DPMeans : Hard clusters, faster.
    kplus.observations : Families and their priors.

    Notes
    -----
    A fit keeps the sums of each batch: for B batches, K components and M numbers in
    the statistics per row (M = D + D(D+1)/2 for "gaussian" with D columns, 3 D for
    "diag_gaussian") this takes B·K·(M + 4 + (K-1)/2)·8 bytes. `memory_limit` bounds
    it, with K guessed as `max_components`, or 100. Beyond that, a fit takes about
    8 to 20 bytes per row.

    "auto" takes columns of text, categories and booleans as categories, and all others
    as numbers: "categorical", "mixed", "bernoulli" where all numbers are 0 or 1, counts
    where they are whole and the matrix is sparse. Up to 15 columns of numbers get full
    covariances, and so do up to 128 with a row for each number of a component. More
    columns get "factor_gaussian". In between, and beside categories, candidates are
    fitted to up to 2,000 rows, and that with the highest bound is taken. So is
    "student_t", where rows lie farther out than those of "gaussian" would.

    Missing values are NaN, where the observations take them. Categories are columns of
    text or categories in a data frame or file; with "categorical" also codes 0, 1, ...
    in an array.

    A stream (`partial_fit`) is variational inference on everything seen so far: earlier
    rows keep their shares in the components and count in the bound, rows of a batch
    find theirs, and components are born and merged as in `fit`. Only those without
    earlier rows, which could not choose another, are deleted. The prior begins as that
    of the first batch, and is learned on from the sums of all rows. The rows that the
    tree of clusters would be made from are gone then: it is made from rows drawn from
    the mixture.

    Noise is one more component, with a density that is the same all over the box of the
    columns: one over the length of the range that the values of a column seem to be
    drawn from, over the number of its categories, or over its largest count plus one.
    A row is noise where that is likelier than all components together; to all else it
    counts by what noise leaves of it. In many columns the box is so large that hardly
    any row is.

    Two components overlap by the shares that each has in the other's rows. Their rows
    are placed on an axis between them (Fisher's for numbers, the log-odds for others),
    and a likelihood ratio of two modes against one, fitted by isotonic regression,
    says whether there is a valley, at a level that allows for the number of pairs. This
    takes one more pass over the rows.

    References
    ----------
    .. [1] M. C. Hughes, E. B. Sudderth. "Memoized online variational inference for
       Dirichlet process mixture models." NIPS 2013.

    Examples
    --------
    >>> import numpy as np
    >>> from kplus import DPMixture
    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([rng.normal(0, 1, (200, 2)), rng.normal(8, 1, (100, 2))])
    >>> model = DPMixture(random_state=0).fit(X)
    >>> model.n_clusters_
    2
    >>> model.weights_.round(2)
    array([0.67, 0.33])
    >>> model.predict([[0.0, 0.0], [8.0, 8.0]])
    array([0, 1], dtype=int32)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **Clusterer._parameter_constraints,
        "observations": [StrOptions({AUTO, *NAMES}), HasMethods("resolve")],
        "algorithm": [StrOptions({"memoized", "full", "stochastic"})],
        "moves": [tuple, list],
        "n_clusters": [AT_LEAST_ONE, StrOptions({"auto"}), None],
        "n_components": [AT_LEAST_ONE],
        "max_components": [AT_LEAST_ONE, None],
        "concentration": [
            Interval(Real, 0, None, closed="neither"),
            StrOptions({"infer"}),
        ],
        "noise": ["boolean", Interval(Real, 0, 1, closed="neither")],
        "n_active": [AT_LEAST_ONE, StrOptions({"auto"}), None],
        "memory_limit": [Interval(Real, 0, None, closed="neither"), None],
        "learning_delay": [Interval(Real, 0, None, closed="left")],
        "learning_decay": [Interval(Real, 0, 1, closed="right")],
        "birth_rows": [Interval(Integral, 2, None, closed="left")],
        "handle_unknown": [StrOptions({"error", "missing"})],
        "n_init": [AT_LEAST_ONE, StrOptions({"auto"})],
    }
    _measure = "lower bound"
    _result = "_params"
    _given_observations: Any  # the observations of the fit, as they were given

    def __init__(
        self,
        observations="auto",
        *,
        algorithm="memoized",
        moves=("birth", "merge", "delete"),
        n_clusters="auto",
        n_components=1,
        max_components=None,
        concentration="infer",
        noise=False,
        n_active="auto",
        memory_limit=None,
        learning_delay=10.0,
        learning_decay=0.5,
        birth_rows=5000,
        handle_unknown="error",
        n_init="auto",
        max_iter=300,
        tol=1e-5,
        batch_size=None,
        warm_start=False,
        n_jobs=None,
        random_state=None,
        verbose=0,
    ):
        self.observations = observations
        self.algorithm = algorithm
        self.moves = moves
        self.n_clusters = n_clusters
        self.n_components = n_components
        self.max_components = max_components
        self.concentration = concentration
        self.noise = noise
        self.n_active = n_active
        self.memory_limit = memory_limit
        self.learning_delay = learning_delay
        self.learning_decay = learning_decay
        self.birth_rows = birth_rows
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
        if self.observations == AUTO:
            tags.input_tags.allow_nan = tags.input_tags.categorical = True
        for name, about in NAMES.items():
            if (
                name == self.observations
                or about.cls == type(self.observations).__name__
            ):
                tags.input_tags.allow_nan = about.missing
                tags.input_tags.categorical = about.values in ("categories", "mixed")
                tags.input_tags.positive_only = about.coded
        return tags

    # --------------------------------------------------------- steps of a fit

    def _check_settings(self) -> None:
        super()._check_settings()
        for move in self.moves:
            if move not in _MOVES:
                known = ", ".join(map(repr, _MOVES))
                raise ValueError(f"moves holds {move!r}; it may hold {known}.")
        if self.max_components is not None and self.max_components < self.n_components:
            raise ValueError(
                f"max_components={self.max_components} should be >= "
                f"n_components={self.n_components}, the number to start with."
            )
        joining.check_number(self.n_clusters, self.max_components)

    def _check_stream(self) -> None:
        if self.algorithm == "stochastic":
            raise ValueError(
                "partial_fit does not go with algorithm='stochastic', which needs to "
                "know how many rows there are in all; use algorithm='memoized'."
            )

    def _open(self, X: Any, *, reset: bool) -> Table:
        if reset:
            observations, last = self.observations, settings.warm_fit(self)
        else:
            observations = self._given_observations
            last = settings.LastFit.of(self)
        return settings.open_rows(self, X, observations, last, reset=reset)

    def _check_table(self, table: Table, weights: Array | None) -> None:
        refuse_fewer_rows(self, "n_components", table.source.n_rows)
        if isinstance(self.n_clusters, Integral):
            refuse_fewer_rows(self, "n_clusters", table.source.n_rows)

    def _find(
        self, table: Table, weights: Array | None, reporter: PassReporter
    ) -> search.MixtureFit:
        job = job_of(self, table.source, weights, reporter)
        last = settings.warm_fit(self)
        if last is None:
            family, choice = auto.resolve(self, job, table)
        else:
            family, choice = last.family, getattr(self, "choice_", None)
        noise = search.resolve_noise(job, self.noise, family)
        spec = settings.make_spec(self, family, table.source, noise)
        job = replace(job, source=settings.split_blocks(table.source, spec.n_batches))
        start = None if last is None else last.start(spec)
        result = joining.fit_clusters(self, job, spec, start)
        return replace(result, choice=choice)

    def _described(self, info: PassInfo, table: Table) -> dict[str, Any]:
        at: search.PassParams = info.params
        return settings.attributes(
            self.observations, table.coding, at.family, at.components, at.noise
        )

    def _find_more(
        self, table: Table, weights: Array | None, watch: Watch
    ) -> search.MixtureFit:
        spec = settings.make_spec(self, self.observations_, table.source, self._noise)
        source = settings.split_blocks(table.source, spec.n_batches)
        job = job_of(self, source, weights, watch)
        result = search.stream(job, spec, self._params, self._total)
        result = replace(result, choice=getattr(self, "choice_", None))
        return joining.with_tree(self.n_clusters, job, spec.model, result, gone=True)

    def _store(self, result: search.MixtureFit, table: Table) -> None:
        if hasattr(self, "_params"):  # another family has other attributes
            last = self.observations_.attributes(self._params.N, self._params.S)
            for name in ("categories_", "noise_share_", *last):
                self._set_or_drop(name, None)
        values = settings.attributes(
            self.observations, table.coding, result.family, result.params, result.noise
        )
        for name, value in values.items():
            setattr(self, name, value)
        self._total = result.total
        self.component_labels_ = result.labels
        for name, value in joining.attributes(self.n_clusters, result).items():
            self._set_or_drop(name, value)
        self._set_or_drop("choice_", result.choice)
        self.converged_ = result.converged
        self.moves_ = settings.moves_table(result.records)

    def _store_more(self, result: search.MixtureFit, table: Table) -> None:
        given, earlier = self._given_observations, self.moves_
        self._store(result, table)
        self._given_observations, self.moves_ = given, latest(earlier, self.moves_)

    def _warn(self, result: search.MixtureFit, table: Table) -> None:
        super()._warn(result, table)
        settings.warn_of_wide_prior(self)
        joining.warn_of_empty(self)

    def _warn_more(self, result: search.MixtureFit, table: Table) -> None:
        super()._warn_more(result, table)
        joining.warn_of_few(self)

    # -------------------------------------------------------------------- rows

    def _rows_and_model(self, X: Any) -> tuple[Blocks, DPMixtureModel]:
        check_is_fitted(self)
        source = self._open(X, reset=False).source
        spec = settings.make_spec(self, self.observations_, source, self._noise)
        return settings.split_blocks(source, spec.n_batches), spec.model

    def predict(self, X: Any) -> Any:
        """Return the cluster of each row: that of its likeliest component.

        It is -1 for noise: where that is likelier than all components together.

        Parameters
        ----------
        X : array-like, sparse matrix, data frame or path, (n_samples, n_features)

        Returns
        -------
        labels : ndarray of shape (n_samples,)
        """
        components = self.predict_components(X)
        return joining.clusters_of(self.cluster_of_component_, components)

    def predict_components(self, X: Any) -> Any:
        """Return the likeliest component of each row; -1 for noise.

        Parameters
        ----------
        X : array-like, sparse matrix, data frame or path, (n_samples, n_features)

        Returns
        -------
        components : ndarray of shape (n_samples,)
        """
        source, model = self._rows_and_model(X)
        last_pass = replace(self._params, plan=Plan(everyone=True, frozen=True))
        with self._explaining(source):
            job = answering(self, source)
            return np.asarray(answers(job, model, last_pass, keep="labels")[1])

    def predict_proba(self, X: Any) -> Any:
        """Return the share of each cluster in each row: the sum over its components.

        With noise, those of a row sum to what noise leaves of it.

        Parameters
        ----------
        X : array-like, sparse matrix, data frame or path, (n_samples, n_features)

        Returns
        -------
        shares : ndarray of shape (n_samples, n_clusters_)
        """
        source, _ = self._rows_and_model(X)
        member = np.equal.outer(self.cluster_of_component_, range(self.n_clusters_))
        with self._explaining(source):
            logs = search.log_responsibilities(source, self._params, self._noise)
            return np.concatenate([np.exp(part) @ member for part in logs])

    def _sureness(self, rows: Any, labels: Any) -> Any:
        shares = self.predict_proba(rows)
        return shares[np.arange(len(labels)), labels]

    def predict_component_proba(self, X: Any) -> Any:
        """Return the share of each component in each row.

        With noise, those of a row sum to what noise leaves of it.

        Parameters
        ----------
        X : array-like, sparse matrix, data frame or path, (n_samples, n_features)

        Returns
        -------
        responsibilities : ndarray of shape (n_samples, n_components_)
        """
        source, _ = self._rows_and_model(X)
        with self._explaining(source):
            logs = search.log_responsibilities(source, self._params, self._noise)
            return np.concatenate([np.exp(part) for part in logs])

    def impute(
        self, X: Any, *, n_draws: int | None = None, random_state: Any = None
    ) -> Any:
        """Fill in missing values by what is observed in the same row.

        Numbers get their conditional mean under the posterior predictive, exactly; bits
        and categories the likeliest value; counts, and columns of whole numbers in a
        data frame, the nearest whole number. Rows without any value get what the
        mixture expects of any row.

        Parameters
        ----------
        X : array-like, sparse matrix, data frame or path, (n_samples, n_features)
            NaN, None or null where a value is missing.
        n_draws : int, optional
            Draw so many tables instead, for multiple imputation: in each row
            a component first, then all that is missing given what is
            observed.
        random_state : int, RandomState instance, Generator or None, default=None
            Seed of the draws. None: as the estimator's.

        Returns
        -------
        X_filled : as X, or a list of `n_draws` such
            Of the same kind and types as X, and X itself where it was observed. A path
            gives an array, or a data frame if there are categories.

        Examples
        --------
        >>> import numpy as np
        >>> from kplus import DPMixture
        >>> rng = np.random.default_rng(0)
        >>> X = np.concatenate([rng.normal(0, 1, (99, 2)), rng.normal(8, 1, (99, 2))])
        >>> model = DPMixture("diag_gaussian", random_state=0).fit(X)
        >>> model.impute([[0.0, np.nan], [8.0, np.nan]]).round()
        array([[0., 0.],
               [8., 8.]])
        """
        check_is_fitted(self)
        table = settings.with_zeros(self._open(X, reset=False))
        source = settings.split_blocks(table.source, 1)
        with self._explaining(source):
            return impute(
                self,
                replace(table, source=source),
                MixtureFiller.of(self),
                n_draws,
                random_state,
            )

    def score_samples(self, X: Any) -> Any:
        """Return the log density of each row, its parameters integrated out.

        Parameters
        ----------
        X : array-like, sparse matrix, data frame or path, (n_samples, n_features)

        Returns
        -------
        log_density : ndarray of shape (n_samples,)
        """
        check_is_fitted(self)
        source = settings.split_blocks(self._open(X, reset=False).source, 1)
        q, noise = self._params, None
        if self._noise is not None:
            noise = self._noise, self.noise_share_
        with self._explaining(source):
            return search.log_densities(
                source, self.observations_, q.N, q.S, q.concentration, noise
            )

    def score(self, X: Any, y: Any = None) -> float:
        """Return the mean log density of the rows.

        Parameters
        ----------
        X : array-like, sparse matrix, data frame or path, (n_samples, n_features)
        y : None
            Ignored.

        Returns
        -------
        score : float
        """
        return float(self.score_samples(X).mean())

    def sample(self, n_samples: int = 1) -> tuple[Any, Any]:
        """Draw new rows from the fitted mixture.

        Parameters
        ----------
        n_samples : int, default=1
            Number of rows.

        Returns
        -------
        X : ndarray of shape (n_samples, n_features_in_)
            Rows, component by component, noise at the end. Columns of categories hold
            codes, the positions in `categories_`.
        y : ndarray of shape (n_samples,)
            Their clusters; -1 for noise.
        """
        check_is_fitted(self)
        if not isinstance(n_samples, Integral) or n_samples < 1:
            raise ValueError(
                f"n_samples must be an int of at least 1, not {n_samples!r}."
            )
        seed = check_random_state(self.random_state).randint(2**31 - 1)
        rng = np.random.default_rng(seed)
        shares = self.weights_
        if self._noise is not None:
            shares = np.append(shares, self.noise_share_)
        counts = rng.multinomial(n_samples, shares)
        some = counts[: self.n_components_]
        X = self.observations_.draw(self._params.N, self._params.S, some, rng)
        y = np.repeat(self.cluster_of_component_, some)
        if self._noise is not None:
            X = np.concatenate([X, self._noise.draw(counts[-1], rng)])
            y = np.append(y, np.full(counts[-1], -1, y.dtype))
        return X, y

    # -------------------------------------------------------------------- files

    def _to_state(self) -> dict[str, Any]:
        return files.to_state(self)

    def _from_state(self, kept: dict[str, Any]) -> None:
        files.restore(self, kept)
