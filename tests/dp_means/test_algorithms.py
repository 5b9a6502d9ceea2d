"""What `DPMeans` promises whichever algorithm is asked for."""

import numpy as np
import pytest

from kplus import DPMeans

ALGORITHMS = [
    {},
    {"algorithm": "serial"},
    {"collapsed": True},
    {"covariance": "full"},
]
OTHERS = ALGORITHMS[1:]


def some_rows(seed, n, scale=3.0):
    rng = np.random.default_rng(seed)
    groups = rng.normal(size=(4, 2)) * scale
    return groups[rng.integers(0, 4, n)] + rng.normal(size=(n, 2))


@pytest.mark.parametrize("settings", ALGORITHMS, ids=str)
def test_MB_7_a_cap_above_the_free_number_changes_nothing(blobs, settings):
    free = DPMeans(30.0, **settings).fit(blobs)
    capped = DPMeans(30.0, max_clusters=free.n_clusters_ + 1, **settings).fit(blobs)
    np.testing.assert_array_equal(free.labels_, capped.labels_)
    np.testing.assert_array_equal(free.objective_history_, capped.objective_history_)
    tight = DPMeans(30.0, max_clusters=2, **settings).fit(blobs)
    assert tight.n_clusters_ == 2


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
