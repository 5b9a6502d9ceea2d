"""Noise: a row by row reference of the bound, passes, moves, fits, files, answers."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats as st
from scipy.special import digamma, logsumexp

import crashes
import mixture_reference as mixture
from kplus import DPMixture, load, save
from kplus.core import loop
from kplus.data.blocks import ArrayBlocks
from kplus.dp_mixture.axes import PairAxes
from kplus.dp_mixture.clusters import BorderModel
from kplus.dp_mixture.families.family import Columns
from kplus.dp_mixture.kernels_responsibilities import Notes, Shares, responsibilities
from kplus.dp_mixture.model import StochasticModel
from kplus.dp_mixture.moves import MergeComponents, MoveRecords
from kplus.dp_mixture.noise import Noise
from kplus.engine import SerialEngine
from kplus.observations import Gaussian, Mixed, Multinomial, Spiked
from mixture_reference import CASES, NOISY, Recording
from reference import divergence_beta

N_ROWS, K = 60, 4
PRIOR = 1.0, 19.0


def noise_of(model, X, share=True):
    return Noise.resolve(share, model.family, X, None)


def setting(name="gaussian", seed=0, share=True, kind=Recording, **settings):
    """A model with noise, rows with some far out, weights, and some parameters."""
    X = CASES[name].rows(N_ROWS, seed)
    model = CASES[name].model(X, kind, **settings)
    model = replace(model, noise=noise_of(model, X, share))
    w = np.random.default_rng(seed).uniform(0.2, 3.0, N_ROWS)
    R, r0 = some_shares(seed)
    N, S, *_ = mixture.statistics(model.family, X, R, w)
    return model, X, w, model.posterior(N, S, float(w.sum()), float(w @ r0))


def some_shares(seed=0):
    """Responsibilities of the components, and of noise."""
    R = mixture.some_shares(N_ROWS, K + 1, seed)
    return R[:, :K], R[:, K]


def log_shares(count, mass, share=True):
    if share is not True:
        return np.log(share), np.log(1.0 - share)
    a, b = PRIOR[0] + count, PRIOR[1] + mass - count
    return digamma(a) - digamma(a + b), digamma(b) - digamma(a + b)


def bound(model, X, w, R, params=None, given=None):
    """Eq. 8 with noise, row by row; `given`: shares that the posterior is from."""
    r0 = 1.0 - R.sum(axis=1)
    value = mixture.bound(model, X, R, w, given=given)
    known = (float(w @ r0), float(w.sum()))
    if params is not None:
        known = params.noise, params.mass
    share = True if model.noise.logs is None else np.exp(model.noise.logs[0])
    chance, rest = log_shares(*known, share)
    density = model.noise.log_density(X)
    for n, r in enumerate(r0):
        value += w[n] * (r * (density[n] + chance) + (1.0 - r) * rest)
        value += w[n] * mixture.entropy(r)
    if share is True:
        a, b = PRIOR[0] + known[0], PRIOR[1] + known[1] - known[0]
        value -= divergence_beta(a, b, *PRIOR)
    return float(value)


# ------------------------------------------------------------------- densities


@pytest.mark.parametrize("name", ["bernoulli", "categorical"])
def test_the_density_sums_to_one_over_all_rows(name):
    X = CASES[name].rows(40)
    model = CASES[name].model(X)
    levels = (2, 2, 2) if name == "bernoulli" else mixture.LEVELS
    every = np.stack(np.meshgrid(*map(range, levels)), axis=-1).reshape(-1, 3) * 1.0
    total = np.exp(noise_of(model, X).log_density(every)).sum()
    assert total == pytest.approx(1.0)


@pytest.mark.parametrize("name", ["poisson", "negative_binomial"])
def test_counts_up_to_the_largest_are_as_likely(name):
    X = CASES[name].rows(40)
    noise = noise_of(CASES[name].model(X), X)
    expected = -np.log(np.nanmax(X, axis=0) + 1.0).sum()
    row = np.array([[0.0, 1.0, 2.0]])
    assert noise.log_density(row)[0] == pytest.approx(expected)


@pytest.mark.parametrize("total", [0, 1, 5])
def test_all_ways_to_share_out_a_total_are_as_likely(total):
    X = CASES["multinomial"].rows(40)
    noise = noise_of(CASES["multinomial"].model(X), X)
    some = range(total + 1)
    rows = [(a, b, total - a - b) for a in some for b in some if a + b <= total]
    density = np.exp(noise.log_density(np.array(rows, dtype=float)))
    np.testing.assert_allclose(density, 1.0 / len(rows))


@pytest.mark.parametrize("name", ["gaussian", "zero_mean_gaussian", "diag_gaussian"])
def test_numbers_are_uniform_over_what_they_seem_to_be_drawn_from(name):
    X = CASES[name].rows(50)
    noise = noise_of(CASES[name].model(X), X)
    counts = np.array([len(np.unique(x[~np.isnan(x)])) for x in X.T])
    ranges = np.nanmax(X, axis=0) - np.nanmin(X, axis=0)
    expected = ranges * (counts + 1) / (counts - 1)
    np.testing.assert_allclose(noise.width, expected)
    middle = np.nanmin(X, axis=0) + 0.5 * ranges
    np.testing.assert_allclose(noise.low + 0.5 * noise.width, middle)
    far = np.full((1, 3), 1e6)
    assert noise.log_density(far)[0] == pytest.approx(-np.log(expected).sum())


def test_the_range_of_a_uniform_column_is_found_without_bias():
    rng = np.random.default_rng(0)
    widths = []
    for _ in range(400):
        X = rng.uniform(3.0, 5.0, (10, 1))
        model = mixture.Case(Gaussian(), None, (None,)).model(X)
        widths.append(noise_of(model, X).width[0])
    assert np.mean(widths) == pytest.approx(2.0, abs=4 * np.std(widths) / 20.0)


def test_a_wild_value_does_not_widen_the_box():
    rng = np.random.default_rng(0)
    X = rng.uniform(0.0, 1.0, (500, 2))
    wild = X.copy()
    wild[7, 0], wild[8, 0], wild[9, 1] = 1e6, -1e3, -50.0
    family = mixture.FLAT.model(X).family
    expected = Noise.resolve(True, family, np.delete(X, [7, 8], axis=0), None)
    found = Noise.resolve(True, family, wild, None)
    assert found.width[0] == pytest.approx(expected.width[0])
    assert found.width[1] == pytest.approx(1.0, rel=0.02)


def test_groups_far_apart_and_few_values_span_the_box():
    rng = np.random.default_rng(0)
    apart = np.append(rng.normal(0, 1, 200), rng.normal(1e6, 1, 200))
    few, ladder = np.arange(400) % 3 * 50.0, 2.0 ** (np.arange(400) % 40)
    X = np.column_stack([apart, few, ladder])
    model = mixture.Case(Gaussian(), None, (None,) * 3).model(X)
    noise = noise_of(model, X)
    assert noise.width[0] == pytest.approx(1e6, rel=0.02)
    assert noise.width[1] == 200.0
    assert noise.width[2] == pytest.approx((2.0**39 - 1.0) * 41 / 39)


def test_missing_values_count_for_nothing():
    X = CASES["diag_gaussian"].rows(40)
    noise = noise_of(CASES["diag_gaussian"].model(X), X)
    rows = np.array([[1.0, np.nan, 2.0], [np.nan, np.nan, np.nan]])
    expected = [-np.log(noise.width[[0, 2]]).sum(), 0.0]
    np.testing.assert_allclose(noise.log_density(rows), expected)


def test_rows_of_weight_zero_span_nothing():
    X = np.array([[0.0], [1.0], [2.0], [50.0]])
    model = mixture.Case(Gaussian(), None, (None,)).model(X)
    weights = np.array([1.0, 2.0, 1.0, 0.0])
    noise = Noise.resolve(True, model.family, X, weights)
    assert noise.width[0] == pytest.approx(4.0)


@pytest.mark.parametrize("value", [0.0, -3.0, 1e100, 1e-100])
def test_constant_columns_have_finite_densities(value):
    X = np.column_stack([np.arange(9.0), np.full(9, value)])
    model = mixture.FLAT.model(X)
    noise = noise_of(model, X)
    assert np.all(np.isfinite(noise.log_density(X)))
    assert np.all(noise.width > 0.0)


def test_columns_without_values():
    X = np.column_stack([np.arange(9.0), np.full(9, np.nan)])
    noise = noise_of(mixture.DIAG.model(X), X)
    np.testing.assert_allclose(noise.log_density(X), -np.log(noise.width[0]))


def test_mixed_columns_are_those_of_their_parts():
    X = CASES["mixed"].rows(40)
    noise = noise_of(CASES["mixed"].model(X), X)
    np.testing.assert_array_equal(noise.whole, [False, True, True] * 2)
    np.testing.assert_allclose(noise.width[[1, 4]], mixture.LEVELS[:2])
    np.testing.assert_allclose(noise.width[[2, 5]], np.nanmax(X[:, [2, 5]], 0) + 1)


def test_totals_among_other_columns():
    X = CASES["mixed-gaussian"].rows(40)
    likelihood = Mixed(Gaussian(), counts=(2, 5), count_family=Multinomial())
    names = tuple(f"column {j}" for j in range(6))
    family = likelihood.resolve(X, None, Columns(names, mixture._MIXED_LEVELS))
    noise = Noise.resolve(True, family, X, None)
    np.testing.assert_array_equal(noise.totals[0], [2, 5])
    parts = -np.log(noise.width[[0, 1, 3, 4]]).sum() - np.log(X[:, [2, 5]].sum(1) + 1)
    np.testing.assert_allclose(noise.log_density(X), parts)


@pytest.mark.parametrize("name", [n for n in NOISY if "-" not in n])
def test_draws_lie_where_the_density_is(name):
    X = CASES[name].rows(N_ROWS)
    model = CASES[name].model(X)
    noise = noise_of(model, X)
    rows = noise.draw(500, np.random.default_rng(0))
    model.family.check(rows)
    alone = [j for j in range(X.shape[1]) if not any(j in t for t in noise.totals)]
    for j in alone:
        place = (rows[:, j] - noise.low[j] + 0.5 * noise.whole[j]) / noise.width[j]
        assert place.min() > 0.0
        assert place.max() < 1.0
        assert place.mean() == pytest.approx(0.5, abs=0.07)


def test_an_unknown_family_is_refused_by_name():
    class Strange:
        pass

    with pytest.raises(ValueError, match="Strange"):
        Noise.resolve(True, Strange(), np.zeros((3, 1)), None)


@pytest.mark.parametrize("share", [True, 0.3])
@pytest.mark.parametrize("likelihood", ["spiked", Mixed(numbers=Spiked())], ids=str)
def test_noise_beside_spikes_is_refused(likelihood, share):
    X = CASES["spiked"].rows(N_ROWS)
    with pytest.raises(ValueError, match="over what SpikedFamily is uniform; leave it"):
        DPMixture(likelihood, noise=share).fit(X)


# ---------------------------------------------------------------------- shares


@pytest.mark.parametrize("count", [0.0, 3.0, 40.0])
def test_the_share_is_that_of_a_beta(count):
    X = CASES["gaussian"].rows(20)
    noise = noise_of(CASES["gaussian"].model(X), X)
    q = st.beta(PRIOR[0] + count, PRIOR[1] + 50.0 - count)
    assert noise.share(count, 50.0) == pytest.approx(q.mean())
    chance, rest = noise.log_shares(count, 50.0)
    assert chance == pytest.approx(q.expect(np.log))
    assert rest == pytest.approx(q.expect(lambda x: np.log1p(-x)))
    prior = st.beta(*PRIOR)
    integral = prior.expect(lambda x: x**count * (1 - x) ** (50.0 - count))
    assert noise.evidence(count, 50.0) == pytest.approx(np.log(integral))


def test_a_share_that_is_given_stays():
    X = CASES["gaussian"].rows(20)
    noise = noise_of(CASES["gaussian"].model(X), X, 0.2)
    assert noise.share(0.0, 50.0) == pytest.approx(0.2)
    assert noise.expected == pytest.approx(0.2)
    expected = 7 * np.log(0.2) + 43 * np.log(0.8)
    assert noise.evidence(7.0, 50.0) == pytest.approx(expected)


@pytest.mark.parametrize("share", [True, 0.2])
def test_the_noise_of_some_rows_beside_others(share):
    """Evidence of all is that of some, times that of the rest given these."""
    X = CASES["gaussian"].rows(20)
    noise = noise_of(CASES["gaussian"].model(X), X, share)
    rest = noise.beside(7.0, 50.0)
    parts = noise.evidence(7.0, 50.0) + rest.evidence(2.0, 9.0)
    assert parts == pytest.approx(noise.evidence(9.0, 59.0))
    assert rest.log_shares(2.0, 9.0) == pytest.approx(noise.log_shares(9.0, 59.0))


# ----------------------------------------------------------------------- bound


def stats_of(model, X, w, R):
    """The model's summary of shares that are given."""
    r0 = 1.0 - R.sum(axis=1)
    total = mixture.stats_of(model, X, R, w)
    total.base = model.noise.base(
        w, model.family.log_base(X), model.noise.log_density(X), r0
    )
    # Entropies of components are those of what noise leaves of a row.
    total.entropy = (w * (1.0 - r0)) @ mixture.entropy(R / (1.0 - r0[:, None]))
    total.noise = float(w @ r0)
    return total


@pytest.mark.parametrize("share", [True, 0.3])
@pytest.mark.parametrize("name", NOISY)
def test_bound_equals_brute_force(name, share):
    model, X, w, params = setting(name, share=share)
    R, _ = some_shares()
    total = stats_of(model, X, w, R)
    expected = bound(model, X, w, R)
    assert model.bound(params, total) == pytest.approx(expected, rel=1e-10)
    assert model.best_bound(total) == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize("share", [True, 0.3])
def test_bound_for_sums_that_are_not_those_of_the_parameters(share):
    model, X, w, params = setting(share=share)
    R, _ = some_shares(seed=5)
    given = w[:, None] * some_shares()[0]
    expected = bound(model, X, w, R, params, given)
    found = model.bound(params, stats_of(model, X, w, R))
    assert found == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize("name", NOISY)
def test_a_pass_is_the_best_for_its_parameters(name):
    """Shares are Eq. 9 with one more component; sums and bound are those of them."""
    model, X, w, params = setting(name)
    total, support, r = model.share_out(params, X, w)
    R = mixture.dense(support, r, K)
    given = w[:, None] * some_shares()[0]
    logs = mixture.scores(model.family, X, given, 1.0)
    chance, rest = log_shares(params.noise, params.mass)
    logs = np.column_stack([logs + rest, model.noise.log_density(X) + chance])
    expected = np.exp(logs - logsumexp(logs, axis=1, keepdims=True))
    np.testing.assert_allclose(R, expected[:, :K], atol=1e-9)
    np.testing.assert_array_equal(support.labels < 0, expected[:, K] > 0.5)
    np.testing.assert_array_equal(support.leading, R.argmax(axis=1))
    assert total.N.sum() + total.noise == pytest.approx(total.mass, rel=1e-12)
    brute = bound(model, X, w, R, params, given)
    assert model.bound(params, total) == pytest.approx(brute, rel=1e-9)
    for other in (some_shares(1)[0], 0.5 * R, R * (1 - 1e-3)):
        worse = bound(model, X, w, other, params, given)
        assert worse <= brute + 1e-9 * abs(brute)


def test_all_sums_are_those_of_rows_of_less_weight():
    model, X, w, params = setting()
    total, support, r = model.share_out(params, X, w)
    R = mixture.dense(support, r, K)
    stays = R.sum(axis=1)
    plain = replace(model, noise=None)
    other = plain.share_out(params, X, w * stays)[0]
    for field in ("N", "S", "entropy", "pairs", "seen"):
        np.testing.assert_allclose(
            getattr(total, field), getattr(other, field), rtol=1e-9, err_msg=field
        )


@pytest.mark.parametrize("seed", range(3))
def test_removal_cost_has_noise_to_go_to(seed):
    rng = np.random.default_rng(seed)
    scores, w = rng.normal(0, 3, (20, 3)), rng.uniform(0.5, 2, 20)
    odds = rng.normal(0, 3, 20)
    support, r = np.empty(60, np.int32), np.empty(60)
    starts, r0, cost = np.empty(21, np.int64), odds.copy(), np.zeros(3)
    responsibilities(
        scores, np.empty((0, 0), np.int32), np.zeros(3), w, 3, -800.0,
        Shares(support, r, starts, r0), Notes(np.zeros(3), np.zeros((3, 3)), cost),
    )  # fmt: skip
    every = np.column_stack([scores, odds])
    expected = np.zeros(3)
    for row, weight in zip(every, w, strict=True):
        lead, whole = int(np.argmax(row[:3])), logsumexp(row)
        for k in range(3):
            rest = np.delete(row, k)
            if k == lead:  # all but the best of the others is left out
                rest = np.array([np.delete(row[:3], k).max(), row[3]])
            expected[k] += weight * (whole - logsumexp(rest))
    np.testing.assert_allclose(cost, expected, rtol=1e-10)
    np.testing.assert_allclose(r0, np.exp(odds - logsumexp(every, axis=1)))


def test_far_rows_are_noise_without_overflow():
    model, X, w, params = setting()
    X = np.vstack([X, np.full((1, 3), 1e90)])
    total, support, _ = model.share_out(params, X, np.append(w, 1.0))
    assert support.labels[-1] == -1
    assert np.isfinite(total.base)
    assert np.all(np.isfinite(total.S))
    assert np.all(np.isfinite(total.removal_cost))


# ---------------------------------------------------------------------- passes


def passes(model, X, w, params, **more):
    with SerialEngine(ArrayBlocks(X, 16), w) as engine:
        groups = [*([index] for index in range(engine.n_blocks)), []]
        return loop.run(
            model, engine, model.ready(params, everyone=True),
            groups=more.pop("groups", groups), max_iter=12, tol=0.0, **more,
        )  # fmt: skip


@pytest.mark.parametrize("share", [True, 0.3])
@pytest.mark.parametrize("name", [n for n in NOISY if "-" not in n])
def test_passes_never_lower_the_bound(name, share):
    model, X, w, params = setting(name, share=share)
    moves = [MergeComponents(MoveRecords())]
    result = passes(model, X, w, params, moves=moves)
    history = -np.array(result.history)
    assert np.all(np.diff(history) >= -1e-10 * np.abs(history[1:]))
    at = model.at(result.params)
    brute = bound(at, X, w, model.R)
    assert at.best_bound(result.total) == pytest.approx(brute, rel=1e-9)


def test_sparse_passes_never_lower_the_bound():
    X = CASES["diag_gaussian"].rows(90)
    model = CASES["diag_gaussian"].model(X, n_active=2)
    model = replace(model, noise=noise_of(model, X))
    start = mixture.components(model, X, mixture.some_shares(90, 12))
    history = -np.array(passes(model, X, None, start).history)
    assert np.all(np.diff(history) >= -1e-10 * np.abs(history[1:]))


def test_stochastic_steps_interpolate_noise():
    model, X, w, params = setting(kind=StochasticModel)
    latest = model.share_out(params, X[:20], w[:20])[0]
    after = model.advance(params, latest, latest)
    rho = model.delay**-model.decay
    expected = (1 - rho) * params.noise
    expected += rho * params.mass / latest.mass * latest.noise
    assert after.noise == pytest.approx(expected)
    assert after.mass == params.mass


def test_rescaled_keeps_the_share():
    model, _, _, params = setting()
    other = model.rescaled(params, 2.0 * params.mass)
    assert other.noise == pytest.approx(2.0 * params.noise)


# ------------------------------------------------------------------------ fits


def table(seed=0, n=300, share=0.1):
    """Three groups in a wide box, and rows all over it; -1 for these."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, n)
    X = 10.0 * np.array(mixture.THREE)[y] / 12.0 + rng.normal(0, 0.5, (n, 2))
    m = int(share * n)
    X = np.vstack([X, rng.uniform(-8.0, 18.0, (m, 2))])
    return X, np.append(y, np.full(m, -1))


X, Y = table()


@pytest.fixture(scope="module")
def fitted():
    return DPMixture(noise=True, random_state=0).fit(X)


def test_rows_that_belong_nowhere_are_noise(fitted):
    assert fitted.n_clusters_ == 3
    found = fitted.labels_ < 0
    assert np.mean(Y[found] < 0) > 0.85
    centers = 10.0 * np.array(mixture.THREE) / 12.0
    apart = np.linalg.norm(X[:, None] - centers, axis=2).min(axis=1) > 4.5 * 0.5
    assert np.all(found[apart & (Y < 0)])
    assert fitted.noise_share_ == pytest.approx(30 / 330, abs=0.03)
    assert fitted.weights_.sum() + fitted.noise_share_ == pytest.approx(1.0)
    np.testing.assert_array_equal(fitted.component_labels_ < 0, found)


def test_clean_rows_have_hardly_any_noise():
    clean = X[Y >= 0]
    model = DPMixture(noise=True, random_state=0).fit(clean)
    assert model.n_clusters_ == 3
    assert np.mean(model.labels_ < 0) < 0.01
    assert model.noise_share_ < 0.02


def test_the_bound_of_a_fit_is_that_of_its_rows(fitted):
    model = DPMixture(noise=True, random_state=0, n_active=None).fit(X)
    R = model.predict_component_proba(X)
    at = replace(
        mixture.FLAT.model(X), family=model.observations_, noise=model._noise,
        concentration=None,
    )  # fmt: skip
    r0 = 1.0 - R.sum(axis=1)
    q = model._params
    value = mixture.bound(at, X, R, concentration=q.concentration)
    chance, rest = log_shares(q.noise, q.mass)
    value += r0 @ (at.noise.log_density(X) + chance) + (1 - r0).sum() * rest
    value += mixture.entropy(r0).sum()
    a, b = PRIOR[0] + q.noise, PRIOR[1] + q.mass - q.noise
    value -= divergence_beta(a, b, *PRIOR)
    assert model.lower_bound_ == pytest.approx(value, rel=1e-6)


def test_predictions_are_those_of_the_fit(fitted):
    np.testing.assert_array_equal(fitted.predict(X), fitted.labels_)
    found = fitted.predict_components(X)
    np.testing.assert_array_equal(found, fitted.component_labels_)
    shares = fitted.predict_proba(X)
    assert shares.shape == (len(X), fitted.n_clusters_)
    left = shares.sum(axis=1)
    np.testing.assert_array_equal(left < 0.5, fitted.labels_ < 0)
    np.testing.assert_allclose(left, fitted.predict_component_proba(X).sum(axis=1))
    far = fitted.predict([[1e6, -1e6], [0.0, 0.0]])
    assert far[0] == -1
    assert far[1] >= 0


def test_densities_include_that_of_noise(fitted):
    far = fitted.score_samples([[1e6, -1e6]])[0]
    expected = np.log(fitted.noise_share_) - np.log(fitted._noise.width).sum()
    assert far == pytest.approx(expected)
    # A grid over more than the box: the density is that of a probability inside it.
    noise = fitted._noise
    inside = noise.low + noise.width * np.random.default_rng(0).random((200_000, 2))
    volume = noise.width.prod() * np.exp(fitted.score_samples(inside)).mean()
    assert volume == pytest.approx(1.0, abs=0.02)


def test_draws_have_noise_at_the_end(fitted):
    rows, labels = fitted.sample(2000)
    assert rows.shape == (2000, 2)
    assert np.mean(labels < 0) == pytest.approx(fitted.noise_share_, abs=0.03)
    assert np.all(labels[np.argmax(labels < 0) :] == -1)


def test_components_and_clusters_have_the_same_noise():
    model = DPMixture(noise=True, n_clusters=2, random_state=0).fit(X)
    assert model.n_clusters_ == 2
    assert set(np.unique(model.labels_)) == {-1, 0, 1}


def test_a_number_of_clusters_beyond_the_components_with_noise():
    """Noise does not count among the clusters that have rows."""
    model = DPMixture(noise=True, n_clusters=6, random_state=0).fit(X)
    assert model.n_clusters_ == 6
    np.testing.assert_array_equal(np.unique(model.labels_), np.arange(-1, 6))


def test_a_share_that_is_given_is_used():
    little = DPMixture(noise=1e-12, random_state=0).fit(X)
    much = DPMixture(noise=0.4, random_state=0).fit(X)
    assert much.noise_share_ == pytest.approx(0.4)
    assert np.sum(much.labels_ < 0) > np.sum(little.labels_ < 0)


@pytest.mark.parametrize("value", [0.0, 1.0, -0.1, "yes", 2])
def test_other_values_are_refused(value):
    with pytest.raises(ValueError, match="noise"):
        DPMixture(noise=value).fit(X)


def same(one, other, exact=True):
    assert one.n_clusters_ == other.n_clusters_
    np.testing.assert_array_equal(one.labels_, other.labels_)
    compare = np.testing.assert_array_equal if exact else np.testing.assert_allclose
    for name in ("weights_", "means_", "noise_share_", "lower_bound_history_"):
        compare(getattr(one, name), getattr(other, name))


def test_threads_do_not_matter():
    rows, _ = table(n=6000)
    one = DPMixture(noise=True, random_state=0).fit(rows)
    same(one, DPMixture(noise=True, random_state=0, n_jobs=2).fit(rows))


@pytest.mark.parametrize("algorithm", ["memoized", "full", "stochastic"])
def test_every_algorithm_has_noise(algorithm):
    model = DPMixture(
        noise=True, algorithm=algorithm, n_components=3, batch_size=60, random_state=0
    ).fit(X)
    assert np.mean(model.labels_[Y < 0] < 0) > 0.5


@pytest.mark.parametrize("algorithm", ["memoized", "full"])
def test_fits_without_moves_never_lower_the_bound(algorithm):
    model = DPMixture(noise=True, algorithm=algorithm, n_components=3, moves=())
    model.set_params(random_state=0, batch_size=60).fit(X)
    history = model.lower_bound_history_
    assert np.all(np.diff(history) >= -1e-9 * np.abs(history[1:]))


def test_a_row_of_weight_two_is_as_twice_the_row():
    rng = np.random.default_rng(0)
    weights = rng.integers(1, 3, len(X))
    one = DPMixture(noise=True, random_state=0, algorithm="full")
    one.fit(X, sample_weight=weights)
    twice = DPMixture(noise=True, random_state=0, algorithm="full")
    twice.fit(np.repeat(X, weights, axis=0))
    assert one.lower_bound_ == pytest.approx(twice.lower_bound_, rel=1e-6)
    assert one.noise_share_ == pytest.approx(twice.noise_share_, rel=1e-3)
    np.testing.assert_array_equal(np.repeat(one.labels_, weights), twice.labels_)


def test_model_files_keep_it(fitted, tmp_path):
    save(fitted, tmp_path / "model.kplus")
    again = load(tmp_path / "model.kplus")
    same(fitted, again)
    np.testing.assert_array_equal(again.predict_proba(X), fitted.predict_proba(X))
    np.testing.assert_array_equal(again.score_samples(X), fitted.score_samples(X))
    more = DPMixture(noise=True, random_state=0).fit(X).partial_fit(X[:50])
    same(more, again.partial_fit(X[:50]))


def test_noise_of_other_columns_in_a_file_is_refused(fitted):
    with pytest.raises(ValueError, match="columns"):
        fitted._noise.check(3)
    with pytest.raises(ValueError, match="columns"):
        replace(fitted._noise, width=np.zeros(2)).check(2)


def test_streams_have_noise():
    model = DPMixture(noise=True, random_state=0)
    order = np.random.default_rng(0).permutation(len(X))
    for part in np.array_split(order, 3):
        model.partial_fit(X[part])
    assert model._total.mass == len(X)
    assert model._total.N.sum() + model._total.noise == pytest.approx(len(X))
    assert model.n_clusters_ == 3
    assert np.mean(model.predict(X[Y < 0]) < 0) > 0.7


def test_a_later_fit_without_noise_forgets_it(fitted):
    model = DPMixture(noise=True, random_state=0).fit(X)
    model.set_params(noise=False).fit(X)
    assert not hasattr(model, "noise_share_")
    assert model.labels_.min() == 0
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1.0)


def test_a_warm_start_keeps_the_share(fitted):
    model = DPMixture(noise=True, random_state=0, warm_start=True).fit(X)
    share = model.noise_share_
    model.fit(X)
    assert model.noise_share_ == pytest.approx(share, abs=0.02)
    assert model.n_clusters_ == 3


@pytest.mark.parametrize("writes", [2, 6])
def test_an_interrupted_fit_resumes(tmp_path, monkeypatch, writes):
    model = DPMixture(noise=True, batch_size=64, random_state=0)
    expected = DPMixture(**model.get_params()).fit(X)
    with monkeypatch.context() as patch:
        crashes.crash_after(writes, patch)
        with pytest.raises(crashes.Crash):
            model.fit(X, checkpoint=tmp_path)
    same(expected, DPMixture.resume(tmp_path, X))


def test_borders_are_those_of_rows_of_less_weight():
    """What lies between components is summed without the noise."""
    model, X, w, params = setting("diag_gaussian")
    along = PairAxes.of(params, np.array([[0, 1], [1, 2]]))
    _, support, r = model.share_out(params, X, w)
    found = BorderModel(model, along).sums(params, X, w, support, r)
    plain = replace(model, noise=None)
    less = w * mixture.dense(support, r, K).sum(axis=1)
    _, support, r = plain.share_out(params, X, less)
    expected = BorderModel(plain, along).sums(params, X, less, support, r)
    np.testing.assert_allclose(found.overlap, expected.overlap, rtol=1e-9)
    np.testing.assert_allclose(found.counts, expected.counts, rtol=1e-9)
