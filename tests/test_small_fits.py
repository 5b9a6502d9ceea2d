"""Every estimator with every way to fit, on tables so small that kernels may be Python.

`make coverage` runs this file with kernels that are not compiled, so that their lines
count as well. Each fit must say of its own rows what it says of them as new rows.
"""

import numpy as np
import pytest

from kplus import (
    CRAFT,
    MEIBP,
    BPMeans,
    DPMeans,
    DPMixture,
    IBPGibbs,
    IBPVariational,
    KFeatures,
    observations,
)
from kplus.dp_means import model as fast

RNG = np.random.default_rng(0)
GROUP = np.arange(36) % 3
NUMBERS = np.column_stack([6.0 * (k == GROUP) for k in range(3)])
NUMBERS = NUMBERS + RNG.normal(scale=0.5, size=NUMBERS.shape)
BITS = RNG.integers(0, 2, (36, 3))
SUMS = BITS @ np.array([[4.0, 0, 0, 4], [0, 5, 0, 5], [0, 0, 6, 6]])
SUMS = SUMS + RNG.uniform(0.0, 0.2, size=SUMS.shape)
MIXED = np.column_stack([NUMBERS[:, :2], GROUP, RNG.integers(0, 2, 36)])
GAPS = np.where(RNG.random(SUMS.shape) < 0.1, np.nan, SUMS)
NOISE = RNG.normal(size=(36, 3))
CODES = np.column_stack([GROUP, GROUP, GROUP == 1, RNG.integers(0, 2, 36)])
WIDE = np.column_stack([NUMBERS] * 12)
SIX = RNG.integers(0, 2, (36, 6)) @ RNG.normal(scale=5.0, size=(6, 8))
SIX = SIX + RNG.normal(scale=0.1, size=SIX.shape)
SIX_GAPS = np.where(RNG.random(SIX.shape) < 0.1, np.nan, SIX)
MIXED_GAPS = np.where(RNG.random(MIXED.shape) < 0.1, np.nan, MIXED)

CLUSTERS = {
    "penalty": (DPMeans(20.0), NUMBERS),
    "auto": (DPMeans(), NUMBERS),
    "number": (DPMeans(n_clusters=3), NUMBERS),
    "serial": (DPMeans(20.0, algorithm="serial"), NUMBERS),
    "serial_wide": (DPMeans(200.0, algorithm="serial"), WIDE),
    "collapsed": (DPMeans(20.0, collapsed=True), NUMBERS),
    "collapsed_wide": (DPMeans(200.0, collapsed=True), WIDE),
    "collapsed_number": (DPMeans(n_clusters=3, collapsed=True), NUMBERS),
    "collapsed_noise": (DPMeans(3.0, collapsed=True), NOISE),
    "full": (DPMeans(20.0, covariance="full"), NUMBERS),
    "gaussian": (DPMixture(), NUMBERS),
    "full_data": (DPMixture(algorithm="full", n_components=3), NUMBERS),
    "stochastic": (DPMixture(algorithm="stochastic", n_components=3), NUMBERS),
    "sparse": (DPMixture(n_components=12, n_active=2, moves=()), NUMBERS),
    "diagonal": (DPMixture(observations.DiagGaussian()), NUMBERS),
    "bernoulli": (DPMixture(observations.Bernoulli()), BITS.astype(float)),
    "poisson": (DPMixture(observations.Poisson()), np.round(SUMS)),
    "craft": (CRAFT(categorical_features=[2, 3]), MIXED),
    "craft_gaps": (CRAFT(categorical_features=[2, 3]), MIXED_GAPS),
    "craft_shared": (CRAFT(0.5, sharing=0.3, categorical_features=[2, 3]), MIXED),
    "craft_quantile": (CRAFT(numeric="quantile", categorical_features=[2, 3]), MIXED),
    "craft_yeo": (CRAFT(numeric="yeo-johnson", categorical_features=[2, 3]), MIXED),
    "craft_number": (CRAFT(n_clusters=3, categorical_features=[2, 3]), MIXED),
    "craft_categories": (CRAFT(categorical_features=[0, 1, 2, 3]), CODES),
    "paper": (CRAFT(variant="paper", penalty=9.0, categorical_features=[2]), MIXED),
    "paper_shared": (CRAFT(variant="paper", penalty=9.0, sharing=0.3), NUMBERS),
    "paper_gaps": (
        CRAFT(variant="paper", penalty=3.0, categorical_features=[2, 3]),
        MIXED_GAPS,
    ),
    "paper_thresholds": (
        CRAFT(
            variant="paper",
            penalty=3.0,
            categorical_features=[2, 3],
            category_threshold=0.5,
            variance_threshold=0.1,
        ),
        MIXED,
    ),
}

FEATURES = {
    "penalty": (BPMeans(5.0), SUMS),
    "auto": (BPMeans(), SUMS),
    "collapsed": (BPMeans(5.0, collapsed=True), SUMS),
    "flips": (KFeatures(3, assignment="flips"), SUMS),
    "exact": (KFeatures(3, assignment="exact"), SUMS),
    "features_gaps": (KFeatures(3), GAPS),
    "flips_of_six": (KFeatures(6, assignment="flips"), SIX),
    "six": (KFeatures(6), SIX),
    "six_gaps": (KFeatures(6), SIX_GAPS),
    "ica": (KFeatures(3, init="ica"), SUMS),
    "split": (KFeatures(3, init="split"), SUMS),
    "meibp": (MEIBP(), SUMS),
    "meibp_gaps": (MEIBP(), GAPS),
    "meibp_gaussian": (MEIBP(prior="gaussian"), SUMS),
    "meibp_rows": (MEIBP(sweep="rows", max_components=4), SUMS),
    "meibp_rows_gaussian": (MEIBP(sweep="rows", prior="gaussian"), SUMS),
    "meibp_rows_random": (MEIBP(3, sweep="rows", init="random"), SUMS),
    "meibp_rows_greedy": (MEIBP(sweep="rows", maximizer="double_greedy"), SUMS),
    "meibp_greedy": (MEIBP(maximizer="double_greedy"), SUMS),
    "finite": (IBPVariational(4), SUMS),
    "infinite": (IBPVariational(4, process="infinite"), SUMS),
    "variational_gaps": (IBPVariational(4), GAPS),
}

CHAINS = {
    "accelerated": IBPGibbs(),
    "collapsed": IBPGibbs(sampler="collapsed"),
    "collapsed_metropolis": IBPGibbs(sampler="collapsed", new_features="metropolis"),
    "uncollapsed": IBPGibbs(sampler="uncollapsed"),
    "metropolis": IBPGibbs(sampler="uncollapsed", new_features="metropolis"),
    "nonnegative": IBPGibbs(sampler="uncollapsed", prior="nonnegative"),
    "nonnegative_metropolis": IBPGibbs(
        sampler="uncollapsed", prior="nonnegative", new_features="metropolis"
    ),
}


@pytest.mark.parametrize("name", CLUSTERS)
def test_clusters_of_own_rows_are_those_of_new_rows(name):
    model, X = CLUSTERS[name]
    model = model.set_params(random_state=0)
    labels = model.fit_predict(X)
    assert labels.shape == (36,)
    assert labels.min() == 0
    np.testing.assert_array_equal(model.predict(X), labels)


@pytest.mark.parametrize("name", FEATURES)
def test_features_of_own_rows_are_those_of_new_rows(name):
    model, X = FEATURES[name]
    model = model.set_params(random_state=0)
    Z = model.fit_transform(X)
    assert len(Z) == 36
    assert Z.shape[1] == len(model.components_)
    np.testing.assert_allclose(model.transform(X), Z, atol=1e-3)


@pytest.mark.parametrize("X", [SUMS, GAPS], ids=["whole", "gaps"])
@pytest.mark.parametrize("name", CHAINS)
def test_chains_end_with_features_that_explain_the_rows(name, X):
    model = CHAINS[name].set_params(n_samples=4, burn_in=4, random_state=0)
    restored = model.fit(X).inverse_transform(model.transform(X))
    assert np.mean((restored - SUMS) ** 2) < np.mean((SUMS - SUMS.mean(axis=0)) ** 2)


@pytest.mark.parametrize("sampler", ["collapsed", "accelerated"])
def test_chains_keep_features_that_one_row_tells_apart(sampler):
    """Without any of these rows, features of the others cannot be told apart."""
    Z = np.array([[1, 1, 0], [0, 1, 1], [1, 0, 1]])
    X = Z @ np.array([[4.0, 0, 0, 4], [0, 5, 0, 5], [0, 0, 6, 6]])
    model = IBPGibbs(
        sampler=sampler, noise_scale=1e-3, factor_scale=5.0, alpha=0.1, init=Z,
        n_samples=3, burn_in=3, random_state=0,
    ).fit(X)  # fmt: skip
    np.testing.assert_allclose(model.inverse_transform(model.transform(X)), X, atol=0.1)


@pytest.mark.parametrize("X", [NUMBERS, NOISE], ids=["groups", "noise"])
def test_rows_without_weight_move_none_that_have_weight(X):
    weights = np.where(np.arange(36) % 5 == 0, 0.0, 1.0)
    model = DPMeans(3.0, collapsed=True, random_state=0)
    weighed = model.fit(X, sample_weight=weights)
    labels, centers = weighed.labels_[weights > 0.0], weighed.cluster_centers_
    model.fit(X[weights > 0.0])
    np.testing.assert_array_equal(labels, model.labels_)
    np.testing.assert_allclose(centers, model.cluster_centers_)


@pytest.mark.parametrize(
    "X", [NUMBERS, NOISE, np.round(NOISE)], ids=["groups", "noise", "ties"]
)
def test_bounds_find_the_clusters_that_distances_find(X, monkeypatch):
    """Larger tables than these are bounded first and measured where that fails."""
    for settings in ({"penalty": 3.0}, {"n_clusters": 5}):
        measured = DPMeans(**settings, random_state=0).fit_predict(X)
        with monkeypatch.context() as patch:
            patch.setattr(fast, "_FEW", 0)
            model = DPMeans(**settings, random_state=0)
            np.testing.assert_array_equal(model.fit_predict(X), measured)
            np.testing.assert_array_equal(model.predict(X), measured)
