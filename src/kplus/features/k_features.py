"""K-features: a given number of features that rows share, or one more at a time."""

from kplus.features.estimator import LatentFeatures

__all__ = ["KFeatures"]


class KFeatures(LatentFeatures):
    """A given number of latent features, or as many as a stepwise search adds.

    Every row is the sum of the features it has: X ≈ Z A, where Z holds zeros and ones
    and the rows of A are the features. With `n_components` it minimises the squared
    error ‖X − Z A‖² (Eq. 14 of MAD-Bayes). Without it, the stepwise algorithm adds
    one feature at a time until the squared error plus a `penalty` for each of them
    (Eq. 6) rises.

    Parameters
    ----------
    n_components : int or None, default=None
        Number of features to find. Fewer are found only where some would be empty or
        equal.
    penalty : float or "auto", default="auto"
        λ²: what one more feature costs, in squared error summed over rows. With
        `n_components` a number is only charged in `objective_`. Without, "auto"
        chooses it from how the error falls as features are added; see `path_`.
    max_components : int or None, default=None
        Never more features than that. This is Eq. 15 of MAD-Bayes.
    collapsed : bool, default=False
        Judge each change of a row with the best features for it, not with the present
        ones (Eq. 10, Algorithm 3 of MAD-Bayes). Slower, and seldom caught in a poor
        optimum; all rows must fit into memory.
    init : {"auto", "++", "split", "ica", "random"}, default="auto"
        Where to start. "++" is the paper's: the mean of all rows, then rows drawn by
        what is left of them; "split" cuts the rows in two along what is left of them;
        "ica" looks for independent columns; "random" draws Z. "auto" tries all that
        work and keeps the best.
    assignment : {"auto", "flips", "exact"}, default="auto"
        How a row finds its features: "flips" changes one bit at a time until none
        helps, "exact" finds the best of all 2^K, with no more than 25 features. "auto"
        flips during long passes and is exact at the end and in `transform` up to 25
        features, except for rows that very many patterns fit about equally well.
    effort : float, default=1.0
        How long to search for a better optimum: 0 runs the plain algorithm from the
        start, 2 takes about twice the default.
    sparse_output : bool, default=False
        Whether `transform` returns a sparse array (CSR).
    n_init : int, default=1
        Number of starts; the best is kept.
    max_iter : int, default=300
        Largest number of passes over all rows.
    tol : float, default=0.0
        Stop when a pass gains less than that. As a share of the objective; 0 waits
        until no row changes.
    batch_size : int or None, default=None
        Rows read at a time. By default what suits the processor's cache.
    warm_start : bool, default=False
        Start `fit` from the last fit. From its `components_`.
    n_jobs : int or None, default=None
        Threads; -1 uses all cores. The result does not depend on it.
    random_state : int, RandomState instance or None, default=None
        Seed of all random choices.
    verbose : int, default=0
        Print one line per pass.

    Attributes
    ----------
    components_ : ndarray of shape (n_components_, n_features)
        The features A: what a row gains by having each of them.
    n_components_ : int
        Number of features found.
    feature_counts_ : ndarray of shape (n_components_,)
        Summed weights of the rows that have each feature.
    objective_ : float
        Squared error plus ``penalty_ * n_components_``.
    objective_history_ : ndarray of shape (n_iter_,)
        The objective after each pass over all rows. It never rises within a fit. In a
        stream, the latest 10,000 at most.
    reconstruction_err_ : float
        Square root of the squared error ‖X − Z A‖².
    n_iter_ : int
        Passes over all rows. In a stream, those over all batches.
    converged_ : bool
        Whether the fit converged.
    penalty_ : float
        The penalty used. 0 where `n_components` was given and `penalty` was not.
    path_ : structured ndarray
        Without `n_components`: the steps, in the fields "n_components", "error"
        (‖X − Z A‖²) and "objective".
    n_features_in_ : int
        Number of columns.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the columns, if they are all strings.
    reading_ : Reading
        Columns of a table that are left out, such as ids and dates, or not read as
        they seem: see `kplus.read_table`. Only if there are some.

    See Also
    --------
    BPMeans : The number of features comes from a penalty.
    sklearn.decomposition.NMF : Factors with weights of any size.

    Notes
    -----
    Missing values (NaN) are left out: each row is explained, and each column of A
    solved for, on what was observed of it. `transform` gives a row without any value
    no feature.

    References
    ----------
    .. [1] T. Broderick, B. Kulis, M. I. Jordan. "MAD-Bayes: MAP-based asymptotic
       derivations from Bayes." ICML 2013.

    Examples
    --------
    >>> import numpy as np
    >>> from kplus import KFeatures
    >>> X = np.array([[5, 0], [0, 3], [5, 3], [5, 0], [0, 0]])
    >>> model = KFeatures(n_components=2).fit(X)
    >>> model.components_.round(6).tolist()
    [[5.0, 0.0], [0.0, 3.0]]
    >>> model.inverse_transform([[1, 1]]).tolist()
    [[5.0, 3.0]]
    >>> KFeatures(penalty=1).fit(X).path_["n_components"].tolist()
    [0, 1, 2, 3]
    """

    def __init__(
        self,
        n_components=None,
        *,
        penalty="auto",
        max_components=None,
        collapsed=False,
        init="auto",
        assignment="auto",
        effort=1.0,
        sparse_output=False,
        n_init=1,
        max_iter=300,
        tol=0.0,
        batch_size=None,
        warm_start=False,
        n_jobs=None,
        random_state=None,
        verbose=0,
    ):
        self.n_components = n_components
        self.penalty = penalty
        self.max_components = max_components
        self.collapsed = collapsed
        self.init = init
        self.assignment = assignment
        self.effort = effort
        self.sparse_output = sparse_output
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.batch_size = batch_size
        self.warm_start = warm_start
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    @property
    def _stepwise(self) -> bool:
        return self.n_components is None
