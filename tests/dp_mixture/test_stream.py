"""DPMixture.partial_fit: inference on everything seen so far."""

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

import mixture_reference
from kplus import DPMixture
from kplus.dp_mixture.model import DPMixtureModel
from kplus.observations import Gaussian

CENTERS = np.array([[0.0, 0.0], [12.0, 0.0], [0.0, 12.0]])
SHARES = [0.5, 0.3, 0.2]


def rows_of(rng, n, groups=(0, 1, 2), scale=1.0):
    shares = np.array(SHARES)[list(groups)]
    z = rng.choice(groups, n, p=shares / shares.sum())
    return CENTERS[z] + scale * rng.normal(size=(n, 2)), z


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", ["gaussian", "factor_gaussian", "diag_gaussian"])
def test_the_bound_of_a_stream_is_that_of_all_rows_seen(name, weighted):
    """Earlier rows keep the shares that they had, row by row."""
    rng = np.random.default_rng(0)
    model = DPMixture(
        name, n_components=3, moves=(), n_active=None, concentration=1.0,
        random_state=0,
    )  # fmt: skip
    seen, shares, weights = [], [], []
    for _ in range(4):
        X, _ = rows_of(rng, 60, scale=4.0)
        w = rng.uniform(0.5, 2.0, len(X)) if weighted else np.ones(len(X))
        model.partial_fit(X, sample_weight=w)
        seen.append(X)
        weights.append(w)
        shares.append(model.predict_component_proba(X))
        R, w = np.concatenate(shares), np.concatenate(weights)
        assert np.all(np.diff(w @ R) < 0.0)  # else components were renumbered
        mixture = DPMixtureModel(model.observations_, 1.0)
        stats = mixture_reference.stats_of(mixture, np.concatenate(seen), R, w)
        exact = mixture.bound(model._params, stats)
        assert model.lower_bound_ == pytest.approx(exact, rel=1e-10)
        best = mixture_reference.bound(mixture, np.concatenate(seen), R, w)
        assert model.lower_bound_ <= best + 1e-9 * abs(best)
        assert model.lower_bound_ == pytest.approx(best, rel=1e-4)
        np.testing.assert_allclose(model._total.N, stats.N, rtol=1e-10)


def test_groups_are_born_as_they_appear():
    rng = np.random.default_rng(0)
    model = DPMixture("diag_gaussian", random_state=0)
    for groups, K in (((0,), 1), ((0, 1), 2), ((0, 1, 2), 3), ((2,), 3)):
        X, z = rows_of(rng, 300, groups)
        model.partial_fit(X)
        assert model.n_components_ == K
        assert len(model.labels_) == 300
        assert adjusted_rand_score(z, model.labels_) == 1.0
        np.testing.assert_array_equal(model.predict(X), model.labels_)
    assert model._total.mass == 1200.0
    assert model._total.N.sum() == pytest.approx(1200.0)


@pytest.mark.parametrize("seed", range(6))
def test_no_row_is_ever_lost(seed):
    rng = np.random.default_rng(seed)
    model = DPMixture(random_state=seed, tol=1e-3)
    for batch in range(1, 6):
        model.partial_fit(
            rng.normal(size=(150, 2)) + 3.0 * rng.integers(0, 3, (150, 1))
        )
        assert model._total.N.sum() == pytest.approx(150.0 * batch)
        assert np.all(np.isfinite(model.lower_bound_history_))
        assert model.n_iter_ == len(model.lower_bound_history_)


def test_a_prior_that_is_given_stays_that_of_the_first_batch(blobs):
    model = DPMixture(Gaussian(learn=False), random_state=0).partial_fit(blobs)
    family = model.observations_
    model.partial_fit(blobs[:30] + 1.0)
    assert model.observations_ is family


@pytest.mark.parametrize("name", ["gaussian", "factor_gaussian", "diag_gaussian"])
def test_a_prior_is_learned_on_with_the_batches(blobs, name):
    """From all sums: what the earlier rows said of it is not lost."""
    model = DPMixture(name, random_state=0).partial_fit(blobs)
    family, N, S = model.observations_, model._total.N, model._total.S
    model.partial_fit(blobs[:30] + 1.0)
    now = model.observations_
    assert now is not family
    np.testing.assert_array_equal(now.origin, family.origin)  # the same units of sums
    np.testing.assert_array_equal(now.inv, family.inv)
    N, S = model._total.N, model._total.S
    assert N.sum() == pytest.approx(len(blobs) + 30.0)

    def worth(family):
        return family.evidence(N, S).sum() + family.log_hyperprior

    assert worth(now) > worth(family)
    best = now
    for _ in range(200):
        best = best.learned(N, S)
    assert worth(best) - worth(now) < 0.05 * (worth(best) - worth(family))


def test_one_batch_after_the_other_learns_about_what_a_fit_learns(blobs):
    order = np.random.default_rng(0).permutation(len(blobs))
    whole = DPMixture(random_state=0).fit(blobs).observations_
    model = DPMixture(random_state=0)
    for part in np.array_split(order, 4):
        model.partial_fit(blobs[part])
    part = model.observations_
    covariances = (
        family.scatter / family.dof / np.outer(family.inv, family.inv)
        for family in (whole, part)
    )
    one, other = map(np.linalg.slogdet, covariances)
    assert one[1] == pytest.approx(other[1], abs=1.0)


def test_stochastic_steps_do_not_stream(blobs):
    model = DPMixture(algorithm="stochastic")
    with pytest.raises(ValueError, match="algorithm='memoized'"):
        model.partial_fit(blobs)
