"""Laws that every observation family keeps."""

import dataclasses

import numpy as np
import pytest

from kplus.dp_mixture.families.family import Columns

# By all components:
SHARED = "factors_", "residual_variances_", "spike_values_", "column_powers_"


def responsibilities(n, K, seed=3):
    """Some rows spread over components, some zeros, one component empty."""
    R = np.random.default_rng(seed).dirichlet(np.ones(K), size=n)
    R[R < 0.2] = 0.0
    R[:, -1] = 0.0
    return R


def exact(family):
    """The same where values count as they are, not as intervals."""
    if hasattr(family, "parts"):
        return dataclasses.replace(family, parts=tuple(map(exact, family.parts)))
    if hasattr(family, "inner"):
        return dataclasses.replace(family, inner=exact(family.inner))
    if hasattr(family, "resolution"):
        return dataclasses.replace(family, resolution=0.0)
    return family


def test_evidence_is_the_product_of_predictives(case, stats):
    """Of a prior that stays, and without rounding; see the next test."""
    family, X = exact(case.family()), case.rows(9)
    rows = np.repeat(X, [1, 3, 1, 2, 0, 1, 1, 2, 1], axis=0)
    chain = 0.0
    for i in range(len(rows)):
        N, S = stats(family, rows[:i])
        chain += family.log_predictive(N, S, rows[i : i + 1])[0, 0]
    N, S = stats(family, rows)
    evidence = family.evidence(N, S)[0] + family.log_base(rows).sum()
    assert evidence == pytest.approx(chain, rel=1e-9, abs=1e-9)


def test_values_that_were_rounded_do_not_raise_the_evidence(case, stats):
    """It is a bound of the probability of the cells that the values stand for."""
    family, X = case.family(), case.rows(9)
    N, S = stats(family, X, responsibilities(9, 3))
    rounded, plain = family.evidence(N, S), exact(family).evidence(N, S)
    assert np.all(rounded <= plain)
    np.testing.assert_allclose(rounded, plain, rtol=1e-3)  # of numbers with all digits


def test_weights_count_rows(case, stats):
    family, X = case.family(), case.rows(9)
    weights = np.array([1, 3, 1, 2, 0, 1, 1, 2, 1])
    weighted = stats(family, X, weights[:, None].astype(float))
    repeated = stats(family, np.repeat(X, weights, axis=0))
    np.testing.assert_allclose(weighted[1], repeated[1], rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(
        family.evidence(*weighted), family.evidence(*repeated), rtol=1e-11
    )


def test_weights_of_the_sample_count_rows(case):
    X = case.rows(9)
    weights = np.array([1, 3, 1, 2, 1, 1, 1, 2, 1])
    one = case.likelihood.resolve(X, weights.astype(float), case.columns)
    two = case.likelihood.resolve(np.repeat(X, weights, axis=0), None, case.columns)
    N, S = np.zeros(1), np.zeros((1, one.n_stats))
    np.testing.assert_allclose(
        one.log_predictive(N, S, X), two.log_predictive(N, S, X), rtol=1e-9
    )


def test_an_empty_component_has_no_evidence(case):
    family = case.family()
    N, S = np.zeros(2), np.zeros((2, family.n_stats))
    np.testing.assert_array_equal(family.evidence(N, S), [0.0, 0.0])


def test_sizes(case):
    family, X = case.family(), case.rows(5)
    assert family.n_columns == X.shape[1]
    features = family.features(X)
    assert features.shape == (5, family.n_stats)
    assert features.dtype == np.float64
    assert np.isfinite(features).all()
    assert family.log_base(X).shape == (5,)
    family.check(X)


def test_perturbing_the_posterior_lowers_the_bound(case, stats):
    """The bound with q from other statistics, whose divergence from the prior is
    `total - evidence`, is below the evidence, which it reaches at q itself."""
    family, X = case.family(), case.rows(12)
    N, S = stats(family, X)
    best = family.evidence(N, S)[0]
    rng = np.random.default_rng(2)
    for _ in range(10):
        N2, S2 = stats(family, X, rng.gamma(1.0, size=(len(X), 1)))
        q = family.expect(N2, S2)
        divergence = q.total(N2, S2) - family.evidence(N2, S2)
        assert divergence[0] > 0
        assert q.total(N, S)[0] - divergence[0] < best
    q = family.expect(N, S)
    assert (q.total(N, S) - family.evidence(N, S))[0] > 0


def test_scores_are_expected_log_likelihoods(case, stats):
    family, X = case.family(), case.rows(12)
    expected = family.expect(*stats(family, X, responsibilities(12, 4)))
    scores = family.scores(expected, X)
    by_hand = family.features(X) @ expected.eta.T + expected.bias
    np.testing.assert_allclose(scores, by_hand, rtol=1e-9, atol=1e-9)
    assert np.isfinite(scores).all()


def test_scores_of_candidates(case, stats):
    family, X = case.family(), case.rows(12)
    expected = family.expect(*stats(family, X, responsibilities(12, 4)))
    candidates = np.random.default_rng(0).integers(-1, 4, size=(12, 3), dtype=np.int32)
    scores = family.scores(expected, X, candidates)
    dense = np.take_along_axis(family.scores(expected, X), candidates, axis=1)
    dense[candidates < 0] = -np.inf
    assert (candidates < 0).any()
    np.testing.assert_allclose(scores, dense, rtol=1e-8, atol=1e-8)


def test_sums(case, gathered):
    family, X = case.family(), case.rows(30)
    R = responsibilities(30, 4)
    sums = family.sums(X, gathered(R))
    np.testing.assert_allclose(sums, R.T @ family.features(X), rtol=1e-10, atol=1e-10)
    assert not sums[-1].any()


def test_expected_total_adds_up_scores(case, stats):
    family, X = case.family(), case.rows(12)
    R = responsibilities(12, 4)
    N, S = stats(family, X, R)
    expected = family.expect(N, S)
    by_rows = (R * family.scores(expected, X)).sum(axis=0)
    np.testing.assert_allclose(expected.total(N, S), by_rows, rtol=1e-8, atol=1e-8)


def test_dissimilarity(case, stats):
    family, X = case.family(), case.rows(30)
    N, S = stats(family, X)
    for i in range(5):
        d = family.dissimilarity(X, X[i], N, S)
        assert d.shape == (30,)
        assert np.isfinite(d).all()
        assert (d >= 0).all()
        assert d[i] == pytest.approx(0.0, abs=1e-12)
        assert d.max() > 0


def test_draws_follow_the_predictive(case, stats):
    """Densities of one component over another's average to 1 over the other's draws.

    This holds only if both densities integrate to 1 and the draws are right.
    """
    family, X = case.family(), case.rows(40, missing=False)
    N, S = stats(family, X)
    N, S = np.concatenate([N / 8, N]), np.concatenate([S / 8, S])
    rng = np.random.default_rng(5)
    draws = family.draw(N, S, np.array([20_000, 0]), rng)
    family.check(draws)
    logs = family.log_predictive(N, S, draws)
    ratio = np.exp(logs[:, 1] - logs[:, 0])
    error = ratio.std() / np.sqrt(len(ratio))
    assert error < 0.05
    assert abs(ratio.mean() - 1.0) < 5 * error


def test_draws_come_in_order_of_components(case, stats):
    family, X = case.family(), case.rows(40, missing=False)
    N, S = stats(family, X, responsibilities(40, 3))
    rng = np.random.default_rng(0)
    assert family.draw(N, S, np.array([2, 0, 3]), rng).shape == (5, X.shape[1])
    np.testing.assert_array_equal(
        family.draw(N, S, np.array([2, 0, 3]), np.random.default_rng(1)),
        family.draw(N, S, np.array([2, 0, 3]), np.random.default_rng(1)),
    )


def test_attributes_are_finite_and_by_component(case, stats):
    family, X = case.family(), case.rows(40)
    N, S = stats(family, X, responsibilities(40, 3))
    for name, value in family.attributes(N, S).items():
        assert name.endswith("_")
        for part in value if isinstance(value, tuple) else (value,):
            assert np.isfinite(part).all()
            shared = name.endswith("columns_") or name in SHARED
            assert shared or len(part) == 3


def test_float32_and_read_only_rows(case, stats):
    family = case.family()
    narrow = case.rows(12).astype(np.float32)
    narrow.flags.writeable = False
    wide = narrow.astype(np.float64)
    family.check(narrow)
    R = responsibilities(12, 3)
    N, S = stats(family, narrow, R)
    np.testing.assert_array_equal(family.features(narrow), family.features(wide))
    np.testing.assert_allclose(
        family.log_predictive(N, S, narrow), family.log_predictive(N, S, wide), 1e-12
    )
    np.testing.assert_allclose(family.log_base(narrow), family.log_base(wide), 1e-12)
    np.testing.assert_allclose(
        family.dissimilarity(narrow, narrow[0], N[:1], S[:1]),
        family.dissimilarity(wide, wide[0], N[:1], S[:1]),
        rtol=1e-5, atol=1e-5,
    )  # fmt: skip
    resolved = case.likelihood.resolve(narrow, None, case.columns)
    assert np.isfinite(resolved.log_predictive(N, S, narrow)).all()


def test_one_row_is_a_sample(case):
    row = case.rows(1, missing=False)
    family = case.likelihood.resolve(row, None, case.columns)
    N, S = np.ones(1), family.features(row)
    assert np.isfinite(family.log_predictive(N, S, row)).all()
    assert np.isfinite(family.evidence(N, S)).all()
    assert np.isfinite(family.expect(N, S).eta).all()


def test_rounding_below_zero_does_no_harm(case):
    """Statistics that others were subtracted from may end a little below 0."""
    family, X = case.family(), case.rows(3)
    N, S = np.full(1, -1e-13), np.full((1, family.n_stats), -1e-13)
    assert np.isfinite(family.evidence(N, S)).all()
    assert np.isfinite(family.log_predictive(N, S, X)).all()
    assert np.isfinite(family.expect(N, S).eta).all()


def test_families_are_records_of_plain_values(case):
    def plain(value):
        if isinstance(value, tuple):
            return all(map(plain, value))
        if dataclasses.is_dataclass(value):
            fields = dataclasses.fields(value)
            return all(f.init and plain(getattr(value, f.name)) for f in fields)
        return value is None or isinstance(value, np.ndarray | float | int | str)

    assert plain(case.family())


# ------------------------------------------------------------------ missing values


def test_a_row_with_everything_missing_says_nothing(missing_case, stats):
    family, X = missing_case.family(), missing_case.rows(12)
    N, S = stats(family, X, responsibilities(12, 3))
    nothing = np.full((2, X.shape[1]), np.nan)
    assert not family.features(nothing).any()
    np.testing.assert_array_equal(family.log_predictive(N, S, nothing), 0.0)
    np.testing.assert_array_equal(family.scores(family.expect(N, S), nothing), 0.0)
    np.testing.assert_array_equal(
        family.dissimilarity(nothing, X[0], N[:1], S[:1]), 0.0
    )


@pytest.mark.parametrize("gone", [0, 2])
def test_a_missing_column_is_as_if_it_were_not_there(columnwise_case, gone, stats):
    X = columnwise_case.rows(20)
    X[:, gone] = np.nan
    rest = np.delete(np.arange(3), gone)
    columns = columnwise_case.columns
    fewer = Columns(*(tuple(part[j] for j in rest) for part in columns))
    whole = columnwise_case.likelihood.resolve(X, None, columns)
    part = columnwise_case.likelihood.resolve(X[:, rest], None, fewer)
    R = responsibilities(20, 3)
    ours, theirs = stats(whole, X, R), stats(part, X[:, rest], R)
    np.testing.assert_allclose(whole.evidence(*ours), part.evidence(*theirs), 1e-12)
    np.testing.assert_allclose(
        whole.log_predictive(*ours, X), part.log_predictive(*theirs, X[:, rest]), 1e-12
    )
    np.testing.assert_allclose(
        whole.scores(whole.expect(*ours), X),
        part.scores(part.expect(*theirs), X[:, rest]),
        rtol=1e-12, atol=1e-12,
    )  # fmt: skip
