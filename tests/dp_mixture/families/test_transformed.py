"""Columns in other units: one-to-one everywhere, and densities stay densities."""

import numpy as np
import pandas as pd
import pytest
from scipy.integrate import quad
from sklearn.metrics import adjusted_rand_score

import kplus
from kplus import DPMixture
from kplus.core.errors import DataError
from kplus.dp_mixture.families.family import Columns
from kplus.dp_mixture.families.units import KINDS, POWER, Units, recognised
from kplus.observations import DiagGaussian, Gaussian, Mixed, Transformed

COLUMNS = Columns(("a", "b", "c"), (None, None, None))
GIVEN = {"a": "log", 2: "logit"}


def rows(n=200, seed=0):
    Z = np.random.default_rng(seed).normal(size=(n, 3))
    return np.column_stack([np.exp(Z[:, 0]), Z[:, 1], 1.0 / (1.0 + np.exp(-Z[:, 2]))])


def units():
    return Units.of(rows(), np.array([1, 0, 2]))


def test_units_are_one_to_one_on_all_numbers():
    """Also beyond what was seen: below 0, above 1, and at both."""
    x = np.concatenate([np.linspace(-3.0, 3.0, 601), [0.0, 1.0, 1e6, -1e6]])
    X = np.unique(x)[:, None].repeat(3, axis=1)
    Y = units().transform(X)
    assert np.all(np.diff(Y, axis=0) > 0)
    np.testing.assert_allclose(units().inverse_transform(Y), X, rtol=1e-6, atol=1e-9)
    np.testing.assert_array_equal(Y[:, 1], X[:, 1])
    gap = np.full((1, 3), np.nan)
    assert np.isnan(units().transform(gap)).all()
    assert units().log_slopes(gap)[0] == 0.0


def test_slopes_are_those_of_the_curve():
    X, step = rows(50), 1e-7
    up, down = (units().transform(X + s) for s in (step, -step))
    expected = np.log((up - down) / (2.0 * step)).sum(axis=1)
    np.testing.assert_allclose(units().log_slopes(X), expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("kind", ["log", "logit"])
def test_a_density_integrates_to_one(kind):
    x = rows()[:, [0 if kind == "log" else 2]]
    columns = Columns(("x",), (None,))
    family = Transformed(Gaussian(learn=False), {0: kind}).resolve(x, None, columns)
    N, S = np.array([len(x) * 1.0]), family.features(x).sum(axis=0)[None]

    def density(at):
        return float(np.exp(family.log_predictive(N, S, np.array([[at]]))[0, 0]))

    cuts = [-50.0, 0.0, 1e-3, *np.quantile(x, [0.01, 0.5, 0.99]), 1.0, 5.0, 100.0, 5e3]
    pieces = zip(sorted(cuts)[:-1], sorted(cuts)[1:], strict=True)
    assert sum(quad(density, *piece)[0] for piece in pieces) == pytest.approx(
        1, abs=2e-3
    )


def test_what_columns_look_like():
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(500, 6))
    X = np.column_stack(
        [
            np.exp(Z[:, 0]),  # skewed
            Z[:, 1] + 10.0,  # positive, not skewed
            np.exp(Z[:, 2]) - 0.5,  # skewed, not positive
            1.0 / (1.0 + np.exp(2.0 - Z[:, 3])),  # skewed shares
            np.exp(Z[:, 4]).round() + 1.0,  # few values
            np.where(Z[:, 5] > -9.0, np.nan, 1.0),  # none
        ]
    )
    assert [KINDS[k] for k in recognised(X)] == [
        "log", "none", "none", "logit", "none", "none",
    ]  # fmt: skip


def test_rounding_counts_by_the_slope():
    """Whole numbers do not look infinitely dense in logarithms."""
    x = np.floor(np.exp(np.random.default_rng(0).normal(2.0, 1.0, (400, 1)))) + 1.0
    family = Transformed(transforms={0: "log"}).resolve(x, None, Columns("x", (None,)))
    expected = np.mean(x**-2.0) / 12.0
    np.testing.assert_allclose(family.inner.resolution / family.inner.inv**2, expected)


def test_skewed_groups_are_found_and_told_in_units_of_the_data(tmp_path):
    rng = np.random.default_rng(1)
    z = rng.integers(0, 2, 300)
    table = pd.DataFrame(
        {
            "income": np.exp(rng.normal(2.0 + 2.0 * z, 0.5)),
            "debt": np.exp(rng.normal(3.0 - 1.5 * z, 0.5)),
            "age": rng.normal(40.0, 5.0, 300),
        }
    )
    table.loc[::9, "debt"] = np.nan
    model = DPMixture("transformed", random_state=0).fit(table)
    assert adjusted_rand_score(z, model.labels_) > 0.9
    treated = np.concatenate([model.log_columns_, model.power_columns_])
    np.testing.assert_array_equal(np.sort(treated), [0, 1])
    assert len(model.logit_columns_) == 0
    assert np.all(np.abs(np.log(model.means_[:, 0]).round() % 2.0) == 0.0)
    drawn, _ = model.sample(200)
    assert np.mean(drawn[:, :2] > 0.0) > 0.99
    kplus.save(model, tmp_path / "model.kplus")
    again = kplus.load(tmp_path / "model.kplus")
    np.testing.assert_array_equal(again.predict(table), model.labels_)
    np.testing.assert_array_equal(
        again.score_samples(table), model.score_samples(table)
    )
    plain = DPMixture("gaussian", random_state=0).fit(table)
    assert model.lower_bound_ > plain.lower_bound_
    noisy = DPMixture("transformed", noise=True, random_state=0).fit(table)
    assert noisy.noise_share_ < 0.1


def test_gaps_are_filled_in_the_new_units():
    X = rows()
    family = Transformed(Gaussian(), GIVEN).resolve(X, None, COLUMNS)
    N, S = np.array([len(X) * 1.0]), family.features(X).sum(axis=0)[None]
    gaps = X[:20].copy()
    gaps[::2, 0] = gaps[1::2, 2] = np.nan
    there = ~np.isnan(gaps)
    Y = family.inner.fill(N, S, family.units.transform(gaps), np.ones((20, 1)))
    filled = family.fill(N, S, gaps, np.ones((20, 1)))
    np.testing.assert_allclose(filled, family.units.inverse_transform(Y), rtol=1e-12)
    rng, owners = np.random.default_rng(0), np.zeros(20, np.int64)
    drawn = family.draw_missing(N, S, gaps, owners, rng)
    for table in (filled, drawn):
        np.testing.assert_array_equal(table[there], gaps[there])
        assert np.all(np.isfinite(table))
        assert np.all((table[:, 2] > 0.0) & (table[:, 2] < 1.0))


def test_beside_categories():
    X = rows()
    table = pd.DataFrame(X, columns=list("abc")).assign(word=["red", "green"] * 100)
    likelihood = Mixed(numbers=Transformed(DiagGaussian(), {"c": "logit"}))
    model = DPMixture(likelihood, random_state=0).fit(table)
    np.testing.assert_array_equal(model.logit_columns_, [2])
    assert np.all((model.means_[:, 2] > 0.0) & (model.means_[:, 2] < 1.0))


BAD = {
    "text": ("log", "transforms must be 'auto' or a dict"),
    "kind": ({"a": "sqrt"}, "'a' 'sqrt'; it may be one of"),
    "column": ({"z": "log"}, "names the column 'z'"),
    "position": ({7: "log"}, "names the column 7"),
    "sign": ({"b": "log"}, "Column 'b' holds values that are not above 0"),
    "shares": ({"a": "logit"}, "Column 'a' holds values that are not between 0 and 1"),
}


@pytest.mark.parametrize(("transforms", "words"), BAD.values(), ids=BAD.keys())
def test_mistakes(transforms, words):
    with pytest.raises(ValueError, match=words):
        Transformed(transforms=transforms).resolve(rows(), None, COLUMNS)


def test_categories_are_refused():
    with pytest.raises(DataError, match="'mixed'"):
        Transformed().resolve(rows(), None, Columns(("a", "b", "c"), (None, 2, None)))


# -------------------------------------------------------------- powers, and which


@pytest.mark.parametrize("power", [0.0, 1.0 / 3.0, 1.0, 5.0 / 3.0, 2.0])
def test_powers_are_one_to_one_with_their_slopes(power):
    units = Units(*(np.array([v]) for v in (POWER, 2.0, 0.5, power)))
    X = np.unique(np.concatenate([np.linspace(-9, 9, 301), [2.0, 1e4, -1e4]]))[:, None]
    Y = units.transform(X)
    assert np.all(np.diff(Y, axis=0) > 0)
    np.testing.assert_allclose(units.inverse_transform(Y), X, rtol=1e-9, atol=1e-9)
    step = 1e-6 * (1.0 + np.abs(X))
    slopes = (units.transform(X + step) - units.transform(X - step)) / (2.0 * step)
    np.testing.assert_allclose(units.log_slopes(X), np.log(slopes[:, 0]), atol=1e-4)


def skewed_groups(seed=0, n=300):
    """To the right, to the left, positive, and not at all."""
    rng = np.random.default_rng(seed)
    z = np.arange(n) % 2
    e = rng.gamma(1.5, 1.0, size=(n, 2))
    columns = [e[:, 0] + 4.0 * z - 3.0, -e[:, 1] + 5.0 * z, rng.normal(size=n)]
    return np.column_stack([*columns, np.exp(rng.normal(1.0 + 2.0 * z, 0.5))]), z


def test_tails_on_either_side_are_taken_off():
    X, z = skewed_groups()
    model = DPMixture("transformed", random_state=0).fit(X)
    plain = DPMixture("gaussian", random_state=0).fit(X)
    assert adjusted_rand_score(z, model.labels_) > 0.95
    assert model.n_components_ < plain.n_components_
    assert model.lower_bound_ > plain.lower_bound_
    treated = {*model.log_columns_, *model.power_columns_}
    assert 2 not in treated
    assert 3 in treated
    powers = model.column_powers_
    assert powers.shape == (4,)
    assert powers[2] == 1.0


def test_two_groups_of_unlike_size_are_not_skewed():
    """The pooled column looks skewed; inside its components it is not."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 2)) + 20.0
    X[:60] += 12.0
    assert recognised(X).all()
    family = Transformed().resolve(X, None, Columns(("a", "b"), (None, None)))
    assert not family.kinds.any()


def test_a_power_that_is_asked_for_and_columns_that_are_spared():
    X, _ = skewed_groups()
    columns = Columns(tuple("abcd"), (None,) * 4)
    spared = Transformed(transforms={"a": "auto", 2: "auto"}).resolve(X, None, columns)
    np.testing.assert_array_equal(spared.kinds, [POWER, 0, 0, 0])
    family = Transformed(transforms={"b": "power"}).resolve(X, None, columns)
    np.testing.assert_array_equal(family.kinds, [0, POWER, 0, 0])
    assert family.powers[1] > 1.0  # a tail to the left
    flat = np.column_stack([np.zeros(30), np.arange(30.0)])
    given = Transformed(transforms={0: "power"})
    family = given.resolve(flat, None, Columns(("a", "b"), (None, None)))
    assert not family.kinds.any()


def test_a_density_in_powers_integrates_to_one():
    x = skewed_groups()[0][:, :1]
    family = Transformed(Gaussian(learn=False), {0: "power"}).resolve(
        x, None, Columns(("x",), (None,))
    )
    assert family.kinds[0] == POWER
    N, S = np.array([300.0]), family.features(x).sum(axis=0)[None]
    at = np.linspace(-60.0, 400.0, 400_001)[:, None]
    whole = np.exp(family.log_predictive(N, S, at)).sum() * (at[1, 0] - at[0, 0])
    assert whole == pytest.approx(1.0, abs=2e-3)
