"""Spikes: point masses by component beside densities, against both by hand."""

import numpy as np
import pandas as pd
import pytest
from scipy.special import gammaln
from sklearn.metrics import adjusted_rand_score

import kplus
from kplus import DPMixture
from kplus.core.errors import DataError
from kplus.dp_mixture.families.family import Columns
from kplus.dp_mixture.families.spiked import spikes_of
from kplus.observations import DiagGaussian, Gaussian, Mixed, Spiked, Transformed


def rows(n=300, seed=0):
    """Two groups; a column at 0 in 80 % of the one and 10 % of the other."""
    rng = np.random.default_rng(seed)
    z = np.arange(n) % 2
    at_zero = rng.random(n) < np.where(z == 0, 0.8, 0.1)
    spent = np.where(at_zero, 0.0, np.exp(rng.normal(3.0 + z, 0.4)))
    return np.column_stack([spent, rng.normal(3.0 * z, 1.0), rng.normal(size=n)]), z


def resolved(likelihood, X):
    names = tuple("abc"[: X.shape[1]])
    return likelihood.resolve(X, None, Columns(names, (None,) * len(names)))


def test_the_evidence_is_that_of_bits_and_of_numbers_elsewhere():
    x = np.array([[0.0], [0.0], [2.0], [3.5], [0.0], [np.nan]])
    family = resolved(Spiked(DiagGaussian(learn=False), {0: 0}), x)
    N, S = np.array([6.0]), family.features(x).sum(axis=0)[None]
    numbers, bits = family.inner.parts
    one, zero = float(bits.ones[0]), float(bits.zeros[0])

    def log_beta(a, b):
        return gammaln(a) + gammaln(b) - gammaln(a + b)

    away = x[[2, 3]]
    own = numbers.evidence(np.array([2.0]), numbers.features(away).sum(axis=0)[None])
    expected = log_beta(one + 3.0, zero + 2.0) - log_beta(one, zero) + own[0]
    np.testing.assert_allclose(family.evidence(N, S), expected)
    np.testing.assert_allclose(
        family.log_base(x).sum(), numbers.log_base(away).sum(), rtol=1e-12
    )


def test_masses_and_densities_make_one():
    X, _ = rows()
    family = resolved(Spiked(Gaussian(learn=False), {"a": 0}), X[:, :1])
    N = np.array([300.0])
    S = family.sums(X[:, :1], _all(300))
    at = np.linspace(-400.0, 600.0, 200_001)[:, None]
    logs = family.log_predictive(N, S, at[np.abs(at[:, 0]) > 1e-9][:, :1])
    mass = np.exp(family.log_predictive(N, S, np.zeros((1, 1))))[0, 0]
    whole = np.exp(logs).sum() * (at[1, 0] - at[0, 0]) + mass
    assert whole == pytest.approx(1.0, abs=2e-3)
    assert mass == pytest.approx(np.mean(X[:, 0] == 0.0), abs=0.02)


def _all(n):
    from kplus.dp_mixture.families.family import ByComponent

    return ByComponent(np.array([0, n]), np.arange(n), np.ones(n))


def test_which_columns_have_spikes():
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(400, 7))
    X = np.column_stack(
        [
            np.where(Z[:, 0] < 0.0, 0.0, Z[:, 0]),  # at its least value
            np.where(rng.random(400) < 0.3, 0.0, Z[:, 1]),  # in the middle
            np.minimum(Z[:, 2], 0.5),  # at its largest
            Z[:, 3],  # nowhere
            Z[:, 4].round(),  # everywhere
            (Z[:, 5] > 0.0).astype(float),  # nothing else
            np.where(rng.random(400) < 0.5, 0.7, Z[:, 6]),  # nowhere in particular
        ]
    )
    nan = np.nan
    np.testing.assert_array_equal(spikes_of(X), [0.0, 0.0, 0.5, nan, nan, nan, nan])
    assert np.isnan(spikes_of(np.full((30, 1), nan))).all()
    assert np.isnan(spikes_of(np.zeros((1, 1)))).all()


def test_groups_are_told_by_their_spikes(tmp_path):
    X, z = rows()
    table = pd.DataFrame(X, columns=["spent", "b", "c"])
    table.loc[::7, "spent"] = np.nan
    model = DPMixture(
        Spiked(Transformed(transforms={"spent": "log"})), random_state=0
    ).fit(table)
    assert model.n_clusters_ == 2
    assert adjusted_rand_score(z, model.labels_) > 0.6
    np.testing.assert_array_equal(model.spike_columns_, [0])
    np.testing.assert_array_equal(model.spike_values_, [0.0])
    chances = np.sort(model.spike_probabilities_[:, 0])
    np.testing.assert_allclose(chances, [0.1, 0.8], atol=0.12)
    np.testing.assert_array_equal(model.log_columns_, [0])
    bounds = np.asarray(model.lower_bound_history_)
    assert (np.diff(bounds) >= -1e-9 * abs(bounds[-1])).all()
    kplus.save(model, tmp_path / "model.kplus")
    again = kplus.load(tmp_path / "model.kplus")
    np.testing.assert_array_equal(again.predict(table), model.labels_)
    np.testing.assert_array_equal(
        again.score_samples(table), model.score_samples(table)
    )
    drawn, _ = model.sample(400)
    assert 0.3 < np.mean(np.asarray(drawn)[:, 0] == 0.0) < 0.6


def test_gaps_are_filled_by_spikes_and_numbers():
    X, z = rows()
    model = DPMixture(Spiked(Gaussian(), {0: 0}), random_state=0).fit(X)
    gaps = X.copy()
    gaps[:100, 0] = np.nan
    filled = model.impute(gaps)
    np.testing.assert_array_equal(filled[100:], X[100:])
    assert filled[:100, 0].mean() == pytest.approx(X[:100, 0].mean(), rel=0.2)
    family = resolved(Spiked(DiagGaussian(), {0: 0}), X)
    N, S = np.array([300.0]), family.features(X).sum(axis=0)[None]
    numbers, bits = family.inner.parts
    away = X[X[:, 0] != 0.0, 0]
    chance = (np.sum(X[:, 0] == 0.0) + bits.ones[0]) / (300.0 + bits.ones + bits.zeros)
    expected = (1.0 - chance[0]) * (away.sum() / (len(away) + numbers.mean_strength))
    expected += (1.0 - chance[0]) * numbers.origin[0] * 0.01 / (len(away) + 0.01)
    found = family.fill(N, S, np.full((1, 3), np.nan), np.ones((1, 1)))
    assert found[0, 0] == pytest.approx(expected, rel=1e-9)
    drawn = model.impute(gaps, n_draws=1, random_state=0)[0]
    shares = [np.mean(drawn[:100][z[:100] == k, 0] == 0.0) for k in range(2)]
    assert shares[0] > 0.55
    assert shares[1] < 0.35


def test_streams_and_batches():
    X, z = rows(300)
    model = DPMixture(Spiked(Gaussian(), {0: 0}), random_state=0)
    for part in np.split(X.astype(np.float32), 3):
        model.partial_fit(part)
    assert adjusted_rand_score(z, model.predict(X.astype(np.float32))) > 0.6
    batches = {"n_init": 1, "random_state": 0, "batch_size": 100}
    one = DPMixture(Spiked(), **batches).fit(X)
    two = DPMixture(Spiked(), n_jobs=2, **batches).fit(X)
    np.testing.assert_array_equal(one.labels_, two.labels_)


def test_without_spikes_it_is_the_family_of_numbers():
    X = np.random.default_rng(0).normal(size=(80, 3))
    spiked = DPMixture("spiked", random_state=0).fit(X)
    plain = DPMixture("gaussian", random_state=0).fit(X)
    assert spiked.lower_bound_ == pytest.approx(plain.lower_bound_)
    assert spiked.spike_probabilities_.shape == (spiked.n_components_, 0)


def test_beside_categories():
    X, z = rows()
    table = pd.DataFrame(X, columns=list("abc")).assign(word=["red", "green"] * 150)
    model = DPMixture(Mixed(numbers=Spiked(DiagGaussian())), random_state=0).fit(table)
    np.testing.assert_array_equal(model.spike_columns_, [0])
    assert adjusted_rand_score(z, model.labels_) > 0.9


BAD = {
    "text": ("zero", "spikes must be 'auto' or a dict"),
    "value": ({"a": np.inf}, "spikes gives 'a' inf, which is no number"),
    "column": ({"z": 0}, "names the column 'z'"),
    "position": ({7: 0}, "names the column 7"),
}


@pytest.mark.parametrize(("spikes", "words"), BAD.values(), ids=BAD)
def test_mistakes(spikes, words):
    with pytest.raises(ValueError, match=words):
        resolved(Spiked(spikes=spikes), rows()[0])


def test_columns_that_cannot_be():
    with pytest.raises(DataError, match="'mixed'"):
        Spiked().resolve(rows()[0], None, Columns(("a", "b", "c"), (None, 2, None)))
    X = rows()[0]
    X[:, 1] = 4.0
    with pytest.raises(DataError, match="Column 'b' has no value"):
        resolved(Spiked(spikes={"b": 4}), X)
    with pytest.raises(ValueError, match="SpikedFamily"):
        DPMixture(Spiked(spikes={0: 0}), noise=True).fit(rows()[0])
