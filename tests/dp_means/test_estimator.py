"""`DPMeans`: rows after a fit, every algorithm, streams and warm starts."""

import numpy as np
import pytest
from sklearn.base import clone

import reference
from kplus import DPMeans

MODELS = [DPMeans(), DPMeans(n_clusters=2), DPMeans(penalty=1.0)]
every_model = pytest.mark.parametrize("model", MODELS, ids=repr)


@every_model
def test_transform_gives_distances(model, blobs):
    fitted = clone(model).fit(blobs)
    distances = fitted.transform(blobs)
    expected = np.linalg.norm(blobs[:, None] - fitted.cluster_centers_, axis=2)
    np.testing.assert_allclose(distances, expected, rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(distances.argmin(axis=1), fitted.labels_)
    np.testing.assert_array_equal(clone(model).fit_transform(blobs), distances)


@every_model
def test_score_is_minus_the_squared_error(model, blobs):
    fitted = clone(model).set_params(tol=0.0).fit(blobs)
    expected = np.sum(np.min(fitted.transform(blobs) ** 2, axis=1))
    assert fitted.score(blobs) == pytest.approx(-expected, rel=1e-12)
    charge = fitted.penalty_ * (fitted.n_clusters_ - 1)
    assert fitted.objective_ == pytest.approx(expected + charge, rel=1e-10)
    weights = np.linspace(0.0, 2.0, len(blobs))
    expected = np.sum(weights * np.min(fitted.transform(blobs) ** 2, axis=1))
    scored = fitted.score(blobs, sample_weight=weights)
    assert scored == pytest.approx(-expected, rel=1e-12)


@every_model
def test_fit_predict_equals_fit_then_predict(model, blobs):
    weights = np.linspace(0.1, 2.0, len(blobs))
    labels = clone(model).fit_predict(blobs, sample_weight=weights)
    fitted = clone(model).fit(blobs, sample_weight=weights)
    np.testing.assert_array_equal(labels, fitted.labels_)
    np.testing.assert_array_equal(labels, fitted.predict(blobs))


def test_a_tie_goes_to_the_lower_number():
    """In predict as in fit, also after clusters were numbered by size."""
    X = np.array([[0.0], [4.0], [6.0], [6.0], [6.0]])
    for penalty in (4.5, 8.0, 16.0):
        model = DPMeans(penalty, tol=0.0).fit(X)
        np.testing.assert_array_equal(model.predict(X), model.labels_)
    model = DPMeans(n_clusters=2).fit([[-1.0], [-1.0], [1.0]])
    assert model.predict([[0.0]])[0] == 0


@pytest.mark.parametrize("seed", range(20))
def test_predict_equals_labels_among_many_ties(seed):
    """Whole numbers in symmetric places: rows as near to two centres."""
    rng = np.random.default_rng(seed)
    X = rng.integers(-2, 3, (int(rng.integers(4, 60)), 2)).astype(float)
    weights = [None, rng.integers(0, 2, len(X)) + (np.arange(len(X)) == 0)][seed % 2]
    for how in ({"penalty": 1.0}, {"penalty": 2.0}, {"n_clusters": 3}, {}):
        for tol in (0.0, 1e-5, 0.1):
            try:
                model = DPMeans(**how, tol=tol).fit(X, sample_weight=weights)
            except ValueError:
                continue  # fewer distinct rows than clusters
            np.testing.assert_array_equal(model.predict(X), model.labels_)


def test_rows_far_beyond_the_centres():
    """Centres a hair apart and rows astronomically far: float32 would overflow."""
    model = DPMeans(n_clusters=2).fit([[0.0], [1e-6]])
    far = np.array([[-1e30], [1e30], [-1e5], [1e5], [0.4e-6], [0.6e-6]])
    expected = np.abs(far - model.cluster_centers_.T).argmin(axis=1)
    near = [2, 3, 4, 5]  # farther out both distances are the same number
    np.testing.assert_array_equal(model.predict(far)[near], expected[near])
    assert set(model.predict(far)) <= {0, 1}
    assert np.all(np.isfinite(model.transform(far)))


def test_number_of_columns_out_follows_a_stream(blobs):
    model = DPMeans(150.0).partial_fit(blobs[:50])
    before = len(model.get_feature_names_out())
    model.partial_fit(blobs)
    assert len(model.get_feature_names_out()) == model.n_clusters_ > before


def test_fitted_attributes_are_those_of_the_last_fit(blobs):
    model = DPMeans().fit(blobs)
    assert hasattr(model, "path_")
    model.set_params(penalty=150.0).fit(blobs[:, :2])
    assert not hasattr(model, "path_")
    assert model.n_features_in_ == 2
    assert model.cluster_centers_.shape[1] == 2


# ----------------------------------------------------------------- other algorithms


OTHERS = [
    {"algorithm": "serial"},
    {"collapsed": True},
    {"covariance": "full"},
]


def some_rows(seed, n, scale=3.0):
    rng = np.random.default_rng(seed)
    groups = rng.normal(size=(4, 2)) * scale
    return groups[rng.integers(0, 4, n)] + rng.normal(size=(n, 2))


@pytest.mark.parametrize("settings", OTHERS, ids=str)
@pytest.mark.parametrize("max_iter", [1, 2, 300])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_labels_are_what_predict_says(settings, max_iter):
    X = np.round(some_rows(12, n=80))  # whole numbers: many equal distances
    model = DPMeans(5.0, max_iter=max_iter, **settings)
    np.testing.assert_array_equal(model.fit_predict(X), model.predict(X))
    assert model.n_iter_ <= max_iter
    sizes = np.bincount(model.labels_, minlength=model.n_clusters_)
    np.testing.assert_array_equal(model.cluster_sizes_, sizes)
    assert np.all(np.diff(model.objective_history_) <= 1e-9)


@pytest.mark.parametrize("settings", OTHERS, ids=str)
def test_offsets_and_float32(blobs, settings):
    plain = DPMeans(30.0, **settings).fit(blobs)
    shifted = DPMeans(30.0, **settings).fit(blobs + 1e8)
    single = DPMeans(30.0, **settings).fit(blobs.astype(np.float32))
    np.testing.assert_array_equal(plain.labels_, shifted.labels_)
    np.testing.assert_array_equal(plain.labels_, single.labels_)
    np.testing.assert_allclose(plain.objective_, shifted.objective_, rtol=1e-5)


@pytest.mark.parametrize("settings", OTHERS, ids=str)
def test_warm_start_converges_at_once(blobs, settings):
    model = DPMeans(30.0, tol=0, warm_start=True, **settings).fit(blobs)
    labels, objective = model.labels_, model.objective_
    model.fit(blobs)
    np.testing.assert_array_equal(model.labels_, labels)
    np.testing.assert_allclose(model.objective_, objective, rtol=1e-12)
    assert model.n_iter_ <= 8


@pytest.mark.parametrize("settings", OTHERS, ids=str)
def test_more_starts_are_never_worse(settings):
    X = some_rows(13, n=150, scale=2.0)
    one = DPMeans(8.0, random_state=0, **settings).fit(X)
    many = DPMeans(8.0, n_init=4, random_state=0, **settings).fit(X)
    assert many.objective_ <= one.objective_


@pytest.mark.parametrize("settings", OTHERS, ids=str)
def test_streams_and_missing_values_are_refused(blobs, settings):
    model = DPMeans(30.0, **settings)
    with pytest.raises(ValueError, match=r"streams need\s+algorithm='fast'"):
        model.partial_fit(blobs)
    for bad in (np.nan, np.inf):
        X = blobs.copy()
        X[150, 1] = bad
        with pytest.raises(ValueError, match=r"column 1 \(1 row\)"):
            model.fit(X)
    model.fit(blobs)
    with pytest.raises(ValueError, match=r"column 1 \(1 row\)"):
        model.predict(X)


@pytest.mark.parametrize("settings", OTHERS, ids=str)
def test_verbose_counts_every_pass(blobs, settings, capsys):
    model = DPMeans(30.0, verbose=1, **settings).fit(blobs)
    lines = capsys.readouterr().out.splitlines()
    assert all(f"pass {i}:" in line for i, line in enumerate(lines, start=1))
    assert len(lines) == model.n_iter_
    assert (
        f"{model.n_clusters_} clusters, objective {model.objective_:.6g}" in lines[-1]
    )


# ------------------------------------------------------------ streams, warm starts


def streamed(model, batches, weights=None):
    """Feed batches; return the labels that each batch got."""
    weights = [None] * len(batches) if weights is None else weights
    labels = []
    for batch, weight in zip(batches, weights, strict=True):
        model.partial_fit(batch, sample_weight=weight)
        assert len(model.labels_) == len(batch)
        labels.append(model.labels_.copy())
    return np.concatenate(labels)


def check_stream(model, X, labels, weights=None):
    """The objective is that of all rows seen, each in the cluster it was put in."""
    K, C = model.n_clusters_, model.cluster_centers_
    assert np.all(np.isfinite(C))
    assert C.shape == (K, X.shape[1])
    sizes = np.bincount(labels, weights=weights, minlength=K)
    np.testing.assert_allclose(model.cluster_sizes_, sizes, rtol=1e-12)
    assert np.all(sizes > 0.0)
    np.testing.assert_allclose(
        C, reference.means(X, labels, K, weights), rtol=1e-9, atol=1e-9
    )
    objective = reference.objective(X, labels, C, model.penalty_, weights)
    assert model.objective_ == pytest.approx(objective, rel=1e-9)
    assert model.objective_history_[-1] == model.objective_


@pytest.mark.parametrize("how", [{"penalty": 6.0}, {"n_clusters": 5}, {}])
@pytest.mark.parametrize("n_batches", [1, 2, 7])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_objective_of_a_stream_equals_brute_force(how, n_batches, weighted, seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(scale=3.0, size=(140, 2))
    weights = rng.uniform(0.1, 2.0, len(X)) if weighted else None
    batches = np.array_split(X, n_batches)
    parts = np.array_split(weights, n_batches) if weighted else None
    model = DPMeans(**how, tol=0.0)
    labels = streamed(model, batches, parts)
    check_stream(model, X, labels, weights)


@pytest.mark.parametrize("tol", [1e-2, 1e-5])
def test_a_stream_after_a_fit_that_stopped_early(tol):
    """Then the centres are not quite the means of the rows, and still count right."""
    X = np.random.default_rng(0).normal(scale=3.0, size=(400, 2))
    model = DPMeans(4.0, tol=tol).fit(X[:200])
    labels = np.concatenate([model.labels_, model.partial_fit(X[200:]).labels_])
    objective = reference.objective(X, labels, model.cluster_centers_, 4.0)
    assert model.objective_ == pytest.approx(objective, rel=1e-9)


@pytest.mark.parametrize("scale", [1e-9, 1.0, 1e9])
@pytest.mark.parametrize("offset", [0.0, 1e6])
def test_streams_of_any_scale(scale, offset):
    X = np.random.default_rng(0).normal(scale=3.0, size=(120, 2))
    plain, model = DPMeans(9.0, tol=0.0), DPMeans(9.0 * scale**2, tol=0.0)
    expected = streamed(plain, np.array_split(X, 6))
    labels = streamed(model, np.array_split((X + offset) * scale, 6))
    np.testing.assert_array_equal(labels, expected)
    assert model.objective_ == pytest.approx(plain.objective_ * scale**2, rel=1e-6)


def test_clusters_open_when_new_groups_turn_up(blobs):
    model = DPMeans(150.0)
    counts = []
    for group in range(4):
        model.partial_fit(blobs[50 * group : 50 * group + 50])
        counts.append(model.n_clusters_)
    assert counts == [1, 2, 3, 4]
    assert np.unique(model.labels_).tolist() == [3]


@pytest.mark.parametrize("cap", [1, 2, 3])
def test_a_cap_holds_in_a_stream(blobs, cap):
    model = DPMeans(150.0, max_clusters=cap)
    labels = streamed(model, np.array_split(blobs, 8))
    assert model.n_clusters_ <= cap
    check_stream(model, blobs, labels)


def test_one_row_at_a_time():
    X = np.random.default_rng(0).normal(scale=3.0, size=(60, 2))
    model = DPMeans(5.0)
    labels = streamed(model, np.array_split(X, 60))
    check_stream(model, X, labels)
    assert model.n_clusters_ > 1


def test_equal_rows_then_a_far_one():
    """One centre has no spread to take a unit from."""
    model = DPMeans(1.0).partial_fit(np.full((5, 2), 1e-3))
    model.partial_fit([[1e6, 1e6]])
    assert model.n_clusters_ == 2
    np.testing.assert_array_equal(model.cluster_sizes_, [5.0, 1.0])
    np.testing.assert_allclose(model.cluster_centers_, [[1e-3, 1e-3], [1e6, 1e6]])


def test_fit_then_partial_fit_counts_both(blobs):
    model = DPMeans(150.0, tol=0.0).fit(blobs[:120])
    labels = np.concatenate([model.labels_, model.partial_fit(blobs[120:]).labels_])
    check_stream(model, blobs, labels)


def test_zero_weight_batch_changes_nothing_but_labels(blobs):
    """At least one row must count in a call, but it may be one of many."""
    model = DPMeans(150.0).fit(blobs)
    before = model.cluster_centers_.copy()
    weights = np.zeros(50)
    weights[0] = 1e-12
    model.partial_fit(blobs[:50], sample_weight=weights)
    np.testing.assert_allclose(model.cluster_centers_, before, rtol=1e-9)
    np.testing.assert_array_equal(model.labels_, model.predict(blobs[:50]))


@pytest.mark.parametrize("threads", [2, 3])
def test_threads_do_not_matter_in_a_stream(threads):
    X = np.random.default_rng(0).normal(scale=3.0, size=(400, 2))
    one, other = (DPMeans(5.0, batch_size=16, n_jobs=n) for n in (1, threads))
    np.testing.assert_array_equal(
        streamed(one, np.array_split(X, 4)), streamed(other, np.array_split(X, 4))
    )
    np.testing.assert_array_equal(one.cluster_centers_, other.cluster_centers_)
    assert one.objective_ == other.objective_


# --------------------------------------------------------------------- warm_start


@pytest.mark.parametrize("how", [{"penalty": 6.0}, {"n_clusters": 9}])
def test_warm_start_continues_from_the_last_centres(how):
    X = np.random.default_rng(0).normal(scale=3.0, size=(300, 2))
    model = DPMeans(**how, warm_start=True, tol=0.0).fit(X)
    labels, objective = model.labels_.copy(), model.objective_
    model.fit(X)
    np.testing.assert_array_equal(model.labels_, labels)
    assert model.objective_ == pytest.approx(objective, rel=1e-12)
    assert model.n_iter_ <= 4


def test_warm_start_with_another_penalty(blobs):
    model = DPMeans(1e9, warm_start=True, tol=0.0).fit(blobs)
    assert model.n_clusters_ == 1
    assert model.set_params(penalty=150.0).fit(blobs).n_clusters_ == 4
    assert model.set_params(penalty=1e9).fit(blobs).n_clusters_ == 1


def test_warm_start_with_another_number(blobs):
    model = DPMeans(n_clusters=2, warm_start=True).fit(blobs)
    assert model.set_params(n_clusters=4).fit(blobs).n_clusters_ == 4


def test_warm_start_on_a_table_with_other_columns(blobs):
    """Old centres are of no use there; an error must say so, and how to go on."""
    model = DPMeans(150.0, warm_start=True).fit(blobs)
    with pytest.raises(ValueError, match=r"feature|column"):
        model.fit(np.hstack([blobs, blobs]))


def test_warm_start_with_more_centres_than_the_cap(blobs):
    model = DPMeans(150.0, warm_start=True).fit(blobs)
    assert model.n_clusters_ == 4
    assert model.set_params(max_clusters=2).fit(blobs).n_clusters_ <= 2
