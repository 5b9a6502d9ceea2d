"""Filled tables of mixtures: exact conditional means, likeliest categories, draws."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from scipy.special import logsumexp

from kplus import DPMixture, load, save, write_answers
from kplus.dp_mixture.imputation import MixtureFiller
from kplus.dp_mixture.noise import Noise
from kplus.observations import Mixed


@pytest.fixture(scope="module")
def X():
    """Two groups of numbers, one value in ten missing."""
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(0, 1, (80, 3)), rng.normal(7, 2, (60, 3))])
    return np.where(rng.random(X.shape) < 0.1, np.nan, X)


@pytest.fixture(scope="module")
def numbers(X):
    return DPMixture("diag_gaussian", random_state=0).fit(X)


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng(1)
    n = 200
    z = rng.integers(0, 2, n)
    other = (z + (rng.random(n) < 0.1)) % 2
    frame = pd.DataFrame(
        {
            "size": rng.normal(z * 6, 1),
            "pet": np.array(["cat", "dog"], dtype=object)[other],
            "visits": rng.poisson(1 + 9 * z).astype(float),
        }
    )
    for name in frame:
        frame.loc[rng.random(n) < 0.15, name] = None
    frame.loc[3] = [None, None, None]
    return frame


@pytest.fixture(scope="module")
def mixed(frame):
    return DPMixture(Mixed(counts=["visits"]), random_state=0).fit(frame)


def brute_force(model, row, d, values):
    """p(x_d = v | observed) for values v, from densities of whole rows."""
    X = np.repeat(row[None], len(values), axis=0)
    X[:, d] = values
    logs = model.score_samples(X)
    return np.exp(logs - model.score_samples(row[None]))


def test_conditional_means_by_integration(numbers, X):
    filled = numbers.impute(X)
    seen = ~np.isnan(X)
    assert np.array_equal(filled[seen], X[seen])
    grid = np.linspace(-60, 80, 40_001)
    for i, d in np.argwhere(~seen)[::7]:
        p = brute_force(numbers, X[i], d, grid)
        mean = np.trapezoid(grid * p, grid)
        assert np.trapezoid(p, grid) == pytest.approx(1.0, abs=1e-4)
        assert filled[i, d] == pytest.approx(mean, abs=5e-3)


def test_full_covariances_by_integration():
    """Two groups with slopes of their own: a line through both would be wrong."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(300, 1))
    X = np.hstack([x, x]) + rng.normal(0, 0.2, (300, 2))
    X[150:] = X[150:] * [1, -1] + [8, 0]
    X[::10, 1] = np.nan
    model = DPMixture(random_state=0).fit(X)
    grid = np.linspace(-30, 30, 20_001)
    for row in ([1.5, np.nan], [9.5, np.nan], [4.0, np.nan]):
        p = brute_force(model, np.array(row), 1, grid)
        mean = np.trapezoid(grid * p, grid)
        filled = model.impute([row])
        assert filled[0, 1] == pytest.approx(mean, abs=1e-3)
        drawn = np.stack(model.impute([row], n_draws=3000, random_state=0))[:, 0, 1]
        spread = np.sqrt(np.trapezoid(grid**2 * p, grid) - mean**2)
        assert abs(drawn.mean() - mean) < 5 * spread / np.sqrt(3000)
        assert drawn.std() == pytest.approx(spread, rel=0.2)
    assert model.impute([[1.5, np.nan]])[0, 1] > 1.0
    assert model.impute([[9.5, np.nan]])[0, 1] < -1.0


def test_conditional_means_with_noise():
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(0, 1, (150, 2)), rng.uniform(-20, 20, (25, 2))])
    model = DPMixture("diag_gaussian", noise=0.1, random_state=0).fit(X)
    noise = model._noise
    ends = noise.low[1], noise.low[1] + noise.width[1]
    grid = np.linspace(*ends, 40_001)
    for x in (0.0, 15.0):
        row = np.array([x, np.nan])
        p = brute_force(model, row, 1, grid)
        mean = np.trapezoid(grid * p, grid)
        # Outside of the box noise counts in `score_samples` as well.
        assert np.trapezoid(p, grid) == pytest.approx(1.0, abs=5e-3)
        assert model.impute(row[None])[0, 1] == pytest.approx(mean, abs=0.05)
    drawn = np.stack(model.impute([[15.0, np.nan]], n_draws=4000, random_state=1))
    far = (drawn[:, 0, 1] < -3) | (drawn[:, 0, 1] > 3)
    assert far.mean() > 0.4


def test_noise_that_is_sure():
    """A row that no component explains at all gets the middle of the box."""
    model = DPMixture("diag_gaussian", noise=0.01, random_state=0)
    model.fit(np.random.default_rng(0).normal(size=(200, 2)))
    filler = MixtureFiller.of(model)
    noise = Noise(
        filler.noise[0].low, np.array([1e-300, 4.0]), filler.noise[0].whole,
    )  # fmt: skip
    sure = MixtureFiller(
        filler.family, filler.N, filler.S, filler.log_weights, (noise, 0.5)
    )
    out = sure.expected(np.array([[1e90, np.nan]]))
    assert out[0, 1] == pytest.approx(noise.low[1] + 2.0)


def test_mixed_tables(mixed, frame):
    filled = mixed.impute(frame)
    assert filled.dtypes.equals(frame.dtypes)
    assert not filled.isna().any().any()
    seen = frame.notna()
    assert filled.where(seen).equals(frame.where(seen))
    codes = frame.assign(pet=frame["pet"].map({"cat": 0.0, "dog": 1.0}))
    rows = codes.to_numpy(dtype=float)
    family, q = mixed.observations_, mixed._params
    log_weights = np.log(mixed.weights_)

    def score(rows):
        return logsumexp(family.log_predictive(q.N, q.S, rows) + log_weights, axis=1)

    for i in np.flatnonzero(frame["pet"].isna())[:10]:
        pets = np.repeat(rows[[i]], 2, axis=0)
        pets[:, 1] = 0, 1
        assert filled["pet"][i] == ["cat", "dog"][int(np.argmax(score(pets)))]
    support = np.arange(400.0)
    for i in np.flatnonzero(frame["visits"].isna())[:10]:
        visits = np.repeat(rows[[i]], len(support), axis=0)
        visits[:, 2] = support
        p = np.exp(score(visits) - score(rows[[i]]))
        assert filled["visits"][i] == np.rint(p @ support)


def test_a_filled_table_is_taken_again(mixed, frame):
    for filled in (mixed.impute(frame), *mixed.impute(frame, n_draws=2)):
        assert mixed.predict(filled).shape == (200,)
    bits = (np.random.default_rng(0).random((60, 3)) < 0.3).astype(float)
    bits[::4, 1] = np.nan
    model = DPMixture("bernoulli", random_state=0).fit(bits)
    assert set(np.unique(model.impute(bits))) == {0.0, 1.0}
    model.predict(model.impute(bits))


@pytest.mark.parametrize("row", [[None, "dog", None], [None, None, None]])
def test_draws_converge_to_the_conditional_mean(mixed, frame, row):
    one = pd.DataFrame([row], columns=frame.columns).astype(
        {"size": float, "visits": float}
    )
    n = 3000
    many = pd.concat([one] * n, ignore_index=True)
    drawn = mixed.impute(many, n_draws=1, random_state=0)[0]
    size = drawn["size"].to_numpy()
    mean = mixed.impute(one)["size"][0]
    assert abs(size.mean() - mean) < 5 * size.std() / np.sqrt(n)
    # A large animal comes often: the values of a row belong together.
    assert np.corrcoef(size, drawn["visits"])[0, 1] > (0.3 if row[1] is None else 0.0)


def test_draws_are_reproducible_and_differ(numbers, X):
    one, two = numbers.impute(X, n_draws=2, random_state=3)
    gaps = np.isnan(X)
    assert np.all(one[gaps] != two[gaps])
    again = numbers.impute(X, n_draws=2, random_state=3)
    assert np.array_equal(one, again[0])
    assert np.array_equal(two, again[1])
    rng = np.random.default_rng(3)
    first, second = (numbers.impute(X, n_draws=1, random_state=rng) for _ in range(2))
    assert not np.array_equal(first[0], second[0])


def test_rows_without_any_value(numbers):
    filled = numbers.impute(np.full((2, 3), np.nan))
    means = numbers.weights_ @ numbers.means_
    np.testing.assert_allclose(filled, [means, means])


def test_forms_of_tables(numbers, X, tmp_path):
    filled = numbers.impute(X)
    single = numbers.impute(X.astype(np.float32))
    assert single.dtype == np.float32
    np.testing.assert_allclose(single, filled, rtol=1e-4, atol=1e-4)
    fixed = X.copy(order="F")
    fixed.flags.writeable = False
    assert np.array_equal(numbers.impute(fixed), filled)
    assert np.array_equal(numbers.impute(X.tolist()), filled)
    sparse = numbers.impute(sp.csr_array(X))
    assert np.array_equal(sparse.toarray(), filled)
    np.save(tmp_path / "x.npy", X)
    assert np.array_equal(numbers.impute(tmp_path / "x.npy"), filled)
    names = pl.DataFrame(X, schema=["a", "b", "c"], nan_to_null=True)
    model = DPMixture("diag_gaussian", random_state=0).fit(names)
    out = model.impute(names)
    assert isinstance(out, pl.DataFrame)
    assert np.array_equal(out.to_numpy(), filled)
    save(model, tmp_path / "model.kplus")
    assert load(tmp_path / "model.kplus").impute(names).equals(out)


def test_nothing_missing(numbers, X):
    whole = np.where(np.isnan(X), 0.5, X)
    out = numbers.impute(whole)
    assert out is not whole
    assert out.tobytes() == whole.tobytes()
    assert len(numbers.impute(whole, n_draws=3)) == 3


def test_large_offsets_cost_no_digits(X, numbers):
    shifted = DPMixture("diag_gaussian", random_state=0).fit(X + 2.0**30)
    difference = shifted.impute(X + 2.0**30) - 2.0**30 - numbers.impute(X)
    assert np.abs(difference).max() < 1e-4


def test_written_part_by_part(frame, mixed, tmp_path, monkeypatch):
    monkeypatch.setattr("kplus.base.answers.PART_ROWS", 64)
    frame.to_parquet(tmp_path / "x.parquet")
    write_answers(mixed.impute, tmp_path / "x.parquet", tmp_path / "out.parquet")
    out = pd.read_parquet(tmp_path / "out.parquet")
    pd.testing.assert_frame_equal(out, mixed.impute(frame), check_dtype=False)
    with pytest.raises(ValueError, match=r"categories.*\.parquet"):
        write_answers(mixed.impute, tmp_path / "x.parquet", tmp_path / "out.npy")


def test_numbers_written_part_by_part(X, numbers, tmp_path, monkeypatch):
    monkeypatch.setattr("kplus.base.answers.PART_ROWS", 64)
    np.save(tmp_path / "x.npy", X)
    write_answers(numbers.impute, tmp_path / "x.npy", tmp_path / "out.npy")
    assert np.array_equal(np.load(tmp_path / "out.npy"), numbers.impute(X))
    named = pd.DataFrame(X, columns=["a", "b", "c"])
    model = DPMixture("diag_gaussian", random_state=0).fit(named)
    named.to_parquet(tmp_path / "x.parquet")
    write_answers(model.impute, tmp_path / "x.parquet", tmp_path / "out.parquet")
    pd.testing.assert_frame_equal(
        pd.read_parquet(tmp_path / "out.parquet"), model.impute(named)
    )


@pytest.mark.parametrize("n_draws", [0, -1, 1.5, True, "2"])
def test_mistakes_about_draws(numbers, X, n_draws):
    with pytest.raises(ValueError, match="n_draws must be an int of at least 1"):
        numbers.impute(X, n_draws=n_draws)


def test_factors_fill_gaps_and_keep_what_is_there():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 1)) * [1.0, 2.0, -1.0, 3.0]
    X += 0.1 * rng.normal(size=X.shape)
    wide = DPMixture("factor_gaussian", random_state=0).fit(X)
    np.testing.assert_array_equal(wide.impute(X[:5]), X[:5])
    found = wide.impute([[1.0, 2.0, np.nan, 3.0]])
    np.testing.assert_allclose(found, [[1.0, 2.0, -1.0, 3.0]], atol=0.2)


def test_mistakes(numbers, mixed, frame):
    with pytest.raises(ValueError, match="inf"):
        numbers.impute([[0.0, np.inf, 0.0]])
    with pytest.raises(ValueError, match="features"):
        numbers.impute([[0.0, np.nan]])
    with pytest.raises(ValueError, match="should match"):
        mixed.impute(frame[["pet", "size", "visits"]])
    with pytest.raises(ValueError, match="'bird'"):
        mixed.impute(frame.assign(pet="bird"))
    counts = DPMixture("multinomial", random_state=0).fit(np.ones((9, 2)))
    assert counts.impute(np.ones((2, 2))).tolist() == np.ones((2, 2)).tolist()
    with pytest.raises(ValueError, match=r"missing count.*'multinomial'"):
        counts.impute([[1.0, np.nan]])
