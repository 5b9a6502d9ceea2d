"""Whether chains have mixed: R-hat written out, several chains, and the warning."""

import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

import crashes
import kplus
from base.test_progress import Recorder
from kplus import IBPGibbs
from kplus.datasets import make_binary_features
from kplus.ibp.gibbs.mixing import interval, posterior_of_number, split_r_hat


def r_hat_by_loops(draws):
    """Gelman et al., Bayesian Data Analysis, third edition, section 11.4."""
    n = len(draws[0]) // 2
    halves = [half for chain in draws for half in (chain[:n], chain[len(chain) - n :])]
    m = len(halves)
    means = [sum(half) / n for half in halves]
    grand = sum(means) / m
    B = n / (m - 1) * sum((mean - grand) ** 2 for mean in means)
    W = 0.0
    for half, mean in zip(halves, means, strict=True):
        W += sum((x - mean) ** 2 for x in half) / (n - 1) / m
    return ((n - 1) / n + B / n / W) ** 0.5


@pytest.mark.parametrize("n", [4, 5, 50])
@pytest.mark.parametrize("chains", [1, 2, 5])
@pytest.mark.parametrize("shift", [0.0, 1.0, -2e3])
def test_split_r_hat_is_that_of_the_book(n, chains, shift):
    rng = np.random.default_rng(n + chains)
    draws = rng.normal(size=(chains, n)) + shift * np.arange(chains)[:, None]
    expected = r_hat_by_loops(draws.tolist())
    assert split_r_hat(draws) == pytest.approx(expected, rel=1e-10)
    assert split_r_hat(1e-200 * draws) == pytest.approx(expected, rel=1e-10)


def test_r_hat_of_a_drift_of_constants_and_of_too_few():
    assert split_r_hat(np.arange(100.0)[None]) > 2.0
    assert split_r_hat(np.full((3, 10), 7.0)) == 1.0
    assert split_r_hat(np.zeros((2, 10))) == 1.0
    assert split_r_hat(np.repeat([[1.0], [2.0]], 10, axis=1)) == np.inf
    assert np.isnan(split_r_hat(np.zeros((2, 3))))


def test_interval_and_posterior():
    numbers = np.repeat([3, 4, 9], [10, 88, 2])
    np.testing.assert_array_equal(interval(numbers), [3, 4])
    np.testing.assert_array_equal(interval(numbers, 0.5), [4, 4])
    np.testing.assert_array_equal(interval(np.array([6])), [6, 6])
    shares = posterior_of_number(numbers)
    np.testing.assert_allclose(shares, [0, 0, 0, 0.1, 0.88, 0, 0, 0, 0, 0.02])


def test_several_chains():
    X, _, _ = make_binary_features(60, 12, 3, noise=0.5, random_state=0)
    how = {"n_samples": 40, "burn_in": 60, "random_state": 0, "store_samples": True}
    one, three = IBPGibbs(**how).fit(X), IBPGibbs(n_chains=3, **how).fit(X)
    assert one.n_components_samples_.shape == (1, 40)
    assert three.n_components_samples_.shape == (3, 40)
    assert three.log_joint_ >= one.log_joint_  # the first chain is the same
    np.testing.assert_array_equal(
        three.n_components_samples_[0], one.n_components_samples_[0]
    )
    assert len(three.log_joint_history_) == 100
    assert three.n_components_posterior_.sum() == pytest.approx(1.0)
    low, high = three.n_components_interval_
    assert low <= 3 <= high
    assert np.all(three.r_hat_ < 1.2)
    own = np.mean([(Z.sum(axis=1)) for Z in three._unpacked()], axis=0)
    assert len(three._unpacked()) == 120
    np.testing.assert_allclose(np.diag(three.comembership()), own)


@pytest.mark.parametrize("writes", [3, 14, 30])
def test_several_chains_resume_in_any_of_them(tmp_path, monkeypatch, writes):
    X, _, _ = make_binary_features(40, 8, 3, noise=0.5, random_state=0)
    how = {"n_chains": 3, "burn_in": 5, "n_samples": 8, "random_state": 0}
    expected = IBPGibbs(**how).fit(X)
    crashes.crash_after(writes, monkeypatch)
    with pytest.raises(crashes.Crash):
        IBPGibbs(**how).fit(X, checkpoint=tmp_path / "here")
    again = IBPGibbs.resume(tmp_path / "here", X)
    for name, value in vars(expected).items():
        if isinstance(value, np.ndarray):
            np.testing.assert_array_equal(value, getattr(again, name))


def test_thinned_samples_are_those_that_count():
    X, _, _ = make_binary_features(30, 8, 2, noise=0.5, random_state=0)
    how = {"n_samples": 5, "burn_in": 3, "thin": 4, "store_samples": True}
    model = IBPGibbs(random_state=0, **how).fit(X)
    np.testing.assert_array_equal(model.n_components_samples_[0], model._sizes)


def test_chains_that_disagree_are_named():
    """From a draw of the prior, chains stop at poor arrangements of features."""
    X, _, _ = make_binary_features(150, 30, 10, noise=0.3, random_state=1)
    how = {"n_samples": 40, "burn_in": 0, "random_state": 0}
    with pytest.warns(ConvergenceWarning, match="has not mixed.*n_samples"):
        model = IBPGibbs(n_chains=3, **how).fit(X)
    assert model.r_hat_.max() > 1.2
    with pytest.warns(ConvergenceWarning, match="halves of its chain.*n_chains=4"):
        IBPGibbs(**how).fit(X)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        IBPGibbs(n_samples=10, burn_in=0, random_state=0).fit(X)  # too few to tell


@pytest.mark.parametrize("sampler", ["accelerated", "collapsed", "uncollapsed"])
def test_features_without_rows_are_not_reported(sampler):
    rng = np.random.default_rng(0)
    model = IBPGibbs(
        sampler=sampler, n_samples=3, burn_in=2, alpha=20.0, random_state=0
    ).fit(rng.normal(size=(12, 4)))
    assert np.all(model.feature_counts_ > 0)
    assert len(model.components_) == model.n_components_ == model.Z_.shape[1]


def test_callbacks_and_model_files_of_several_chains(tmp_path):
    X, _, _ = make_binary_features(30, 8, 2, noise=0.5, random_state=0)
    model = IBPGibbs(n_samples=5, burn_in=2, n_chains=3, random_state=0)
    recorder = Recorder()
    model.set_callbacks(recorder).fit(X)
    assert recorder.passes == 21
    plain = clone(model).fit(X)
    np.testing.assert_array_equal(plain.r_hat_, model.r_hat_)
    kplus.save(plain, tmp_path / "chains.kplus")
    again = kplus.load(tmp_path / "chains.kplus")
    for name in ("r_hat_", "n_components_samples_", "n_components_interval_"):
        np.testing.assert_array_equal(getattr(again, name), getattr(plain, name))
