"""Factors: the same as explicit covariances of all columns, and which are found."""

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from kplus import DPMixture
from kplus.dp_mixture.families.family import Columns
from kplus.dp_mixture.model import DPMixtureModel
from kplus.observations import FactorGaussian


def resolved(likelihood, X, weights=None):
    names = tuple(f"column {j}" for j in range(X.shape[1]))
    return likelihood.resolve(X, weights, Columns(names, (None,) * X.shape[1]))


def wide_groups(seed=0, n=200, D=60, K=3, q=4, apart=6.0):
    """Groups that differ along q factors, in columns of very different units."""
    rng = np.random.default_rng(seed)
    z = rng.integers(0, K, n)
    u = rng.normal(size=(n, q)) + apart * rng.normal(size=(K, q))[z]
    X = u @ rng.normal(size=(q, D)) + rng.normal(size=(n, D))
    return X * 10.0 ** rng.integers(-3, 4, D) + 1e5, z


def explicit(family):
    """m, A and the covariance of what is left, of all columns."""
    D, q = family.n_columns, family.inner.n_columns
    B, others = family.basis, np.append(np.zeros(q), family.others)
    left = np.eye(D) - B @ B.T + (B * others) @ B.T
    A = B[:, :q] / family.inv[:, None]
    return family.origin, A, left / np.outer(family.inv, family.inv)


@pytest.mark.parametrize("n_factors", [1, 2, 4, 5])
def test_a_component_is_a_gaussian_of_all_columns(n_factors):
    """Of many rows: its parameters are known for sure."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(60, 5)) @ rng.normal(size=(5, 5)) + [0, 10, -5, 1e3, 0]
    family = resolved(FactorGaussian(n_factors, learn=False), X)
    N, S = np.array([60.0]), family.features(X).sum(axis=0)[None]
    N, S = 1e9 * N, 1e9 * S
    origin, A, left = explicit(family)
    scores = family.factor_scores(X)
    omega = np.cov(scores.T, bias=True).reshape(n_factors, n_factors)
    mean = origin + A @ scores.mean(axis=0)
    expected = multivariate_normal(mean, A @ omega @ A.T + left).logpdf(X)
    np.testing.assert_allclose(family.log_predictive(N, S, X)[:, 0], expected, 1e-5)
    scored = family.scores(family.expect(N, S), X)[:, 0] + family.log_base(X)
    np.testing.assert_allclose(scored, expected, 1e-5)
    described = family.attributes(N, S)
    np.testing.assert_allclose(described["means_"][0], mean)
    np.testing.assert_allclose(described["factors_"], A.T)
    np.testing.assert_allclose(described["factor_covariances_"][0], omega, 1e-4, 1e-4)
    np.testing.assert_allclose(
        described["residual_variances_"], np.diag(left), atol=1e-15
    )


def test_common_factors_with_noise_are_of_this_form():
    """The scores of A Ω Aᵀ + Ψ have the covariance that generalised least squares
    gives them, Ω + (AᵀΨ⁻¹A)⁻¹, in the basis of the factors."""
    rng = np.random.default_rng(2)
    A, psi = rng.normal(size=(6, 2)), rng.gamma(2.0, size=6)
    W = rng.normal(size=(2, 2))
    omega = W @ W.T
    B, R = np.linalg.qr(A / np.sqrt(psi)[:, None])
    total = A @ omega @ A.T + np.diag(psi)
    whitened = total / np.sqrt(np.outer(psi, psi))
    inner = R @ (omega + np.linalg.inv(A.T @ (A / psi[:, None]))) @ R.T
    np.testing.assert_allclose(B.T @ whitened @ B, inner)
    apart = np.eye(6) - B @ B.T
    np.testing.assert_allclose(whitened, B @ inner @ B.T + apart)


def test_draws_have_the_covariance_of_the_rows():
    X, _ = wide_groups(n=400, D=12, K=1)
    family = resolved(FactorGaussian(4), X)
    N, S = np.array([400.0]), family.features(X).sum(axis=0)[None]
    rows = family.draw(1e6 * N, 1e6 * S, np.array([40_000]), np.random.default_rng(0))
    scale = X.std(axis=0)
    np.testing.assert_allclose(rows.mean(axis=0) / scale, X.mean(axis=0) / scale, 0.05)
    found, expected = (np.cov(((A - X.mean(0)) / scale).T) for A in (rows, X))
    # Noise is in proportion to the columns' spread: not quite what it was here.
    np.testing.assert_allclose(found, expected, atol=0.15)


def test_rows_as_scores_are_the_same_rows():
    X, _ = wide_groups()
    family = resolved(FactorGaussian(3), X)
    few = family.reduced(X)
    assert few.shape == (200, 4)
    assert family.reduced(few) is few
    N, S = np.array([200.0]), family.features(X).sum(axis=0)[None]
    q = family.expect(N, S)
    for whole, short in (
        (family.log_base(X), family.log_base(few)),
        (family.features(X), family.features(few)),
        (family.scores(q, X), family.scores(q, few)),
        (family.log_predictive(N, S, X), family.log_predictive(N, S, few)),
        (family.dissimilarity(X, X[3], N, S), family.dissimilarity(few, few[3], N, S)),
    ):
        np.testing.assert_allclose(whole, short, rtol=1e-9, atol=1e-8)
        assert type(short) is np.ndarray


# ----------------------------------------------------------------------- factors


@pytest.mark.parametrize("seed", range(3))
def test_groups_along_factors_are_found(seed):
    X, z = wide_groups(seed)
    model = DPMixture("factor_gaussian", random_state=0).fit(X)
    assert model.n_clusters_ == 3
    assert all(len(set(z[model.labels_ == k])) == 1 for k in range(3))
    assert 2 <= len(model.factors_) <= 5
    assert model.means_.shape == (model.n_components_, 60)
    assert model.factor_covariances_.shape == (3, *(len(model.factors_),) * 2)


def test_axes_that_tell_nothing_apart_are_no_factors():
    """Rows spread more along them than the noise, but all components alike."""
    rng = np.random.default_rng(0)
    u = rng.normal(size=(500, 12)) * np.linspace(5.0, 3.0, 12)
    u[:, 0] += 40.0 * (np.arange(500) % 2)
    A = np.linalg.qr(rng.normal(size=(40, 12)))[0]
    X = u @ A.T + 0.3 * rng.normal(size=(500, 40))
    family = resolved(FactorGaussian(), X)
    assert family.inner.n_columns <= 3
    assert len(family.others) >= 9


def test_units_do_not_matter():
    X, _ = wide_groups(n=150)
    units = 10.0 ** np.linspace(-3, 3, X.shape[1])
    one, two = resolved(FactorGaussian(), X), resolved(FactorGaussian(), X * units)
    assert one.inner.n_columns == two.inner.n_columns
    np.testing.assert_allclose(
        one.factor_scores(X), two.factor_scores(X * units), rtol=1e-6, atol=1e-6
    )
    np.testing.assert_allclose(
        one.log_base(X) - np.log(units).sum(), two.log_base(X * units), rtol=1e-7
    )


def test_more_columns_than_rows_are_as_fewer():
    """By products of rows or of columns: the same axes."""
    X, _ = wide_groups(n=70, D=69)
    tall, wide = resolved(FactorGaussian(4), X), resolved(FactorGaussian(4), X[:68])
    assert wide.basis.shape[0] == tall.basis.shape[0] == 69
    some = resolved(FactorGaussian(4), np.repeat(X[:68], 2, axis=0))  # no longer wide
    np.testing.assert_allclose(
        wide.factor_scores(X), some.factor_scores(X), rtol=1e-6, atol=1e-6
    )
    for family in (tall, wide, some):
        p = family.basis.shape[1]
        np.testing.assert_allclose(family.basis.T @ family.basis, np.eye(p), atol=1e-10)


def test_a_column_that_hardly_varies_does_not_count_most():
    """As at the edge of images: one rare value among constants."""
    X, _ = wide_groups(n=300)
    X = X / X.std(axis=0)
    rare = np.zeros((300, 5))
    rare[7] = 1.0
    family = resolved(FactorGaussian(), np.hstack([X, rare]))
    assert np.all(np.abs(family.basis[60:, :2]) < 0.05)


RNG = np.random.default_rng(0)
WIDE = RNG.normal(size=(12, 40))
TABLES = {
    "one row": WIDE[:1],
    "two rows": WIDE[:2],
    "wide": WIDE,
    "zeros": np.zeros((12, 40)),
    "one constant": np.where(np.arange(40) == 3, 7.0, WIDE),
    "equal rows": np.repeat(WIDE[:3], 5, axis=0),
    "equal columns": np.repeat(WIDE[:, :1], 40, axis=1),
    "bits": (WIDE > 0.5).astype(float),
    "far": WIDE + 1e9,
    "scales": WIDE * 10.0 ** np.linspace(-100, 100, 40),
    "outlier": WIDE + 1e8 * (np.arange(12)[:, None] == 5),
    "single": WIDE.astype(np.float32),
    "one column": WIDE[:, :1],
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize("n_factors", ["auto", 1])
def test_unusual_tables(table, n_factors):
    X = TABLES[table]
    model = DPMixture(FactorGaussian(n_factors), random_state=0).fit(X)
    assert np.isfinite(model.lower_bound_)
    assert np.isfinite(model.score_samples(X)).all()
    assert np.isfinite(model.means_).all()
    assert np.isfinite(model.sample(5)[0]).all()
    assert (model.residual_variances_ >= 0.0).all()


def test_the_bound_is_of_all_columns():
    """That of a fit is what its own densities add up to, in the data's units."""
    X, _ = wide_groups(n=120, D=20)
    model = DPMixture("factor_gaussian", random_state=0).fit(X)
    twice = DPMixture("factor_gaussian", random_state=0).fit(2.0 * X)
    shift = X.size * np.log(2.0)
    assert model.lower_bound_ - shift == pytest.approx(twice.lower_bound_, rel=1e-6)
    assert model.lower_bound_ < model.score_samples(X).sum()


def test_noise_beside_factors():
    X, _ = wide_groups(n=300)
    X[:10] = X.mean(axis=0) + 5.0 * X.std(axis=0) * RNG.normal(size=(10, 60))
    model = DPMixture("factor_gaussian", noise=True, random_state=0).fit(X)
    assert np.isfinite(model.lower_bound_)
    assert model.n_clusters_ >= 2


def test_wide_rows_that_come_one_batch_after_the_other():
    X, z = wide_groups(n=600)
    model = DPMixture("factor_gaussian", random_state=0)
    for part in np.split(X, 3):
        model.partial_fit(part)
    labels = model.predict(X)
    assert model.n_clusters_ == 3
    assert all(len(set(z[labels == k])) == 1 for k in range(3))


@pytest.mark.parametrize("how", [{"n_jobs": 2}, {"batch_size": 100}])
def test_threads_and_files_find_the_same(how, tmp_path):
    X, _ = wide_groups(n=2_400)
    np.save(tmp_path / "wide.npy", X)
    one = DPMixture("factor_gaussian", random_state=0, **(how | {"n_jobs": 1})).fit(X)
    model = DPMixture("factor_gaussian", random_state=0, **how)
    two = model.fit(tmp_path / "wide.npy")
    np.testing.assert_array_equal(one.labels_, two.labels_)
    np.testing.assert_array_equal(one.means_, two.means_)
    assert one.lower_bound_ == two.lower_bound_


def test_few_reductions_in_a_pass(monkeypatch):
    """Rows of thousands of columns are read once, not by every method."""
    X, _ = wide_groups()
    family = resolved(FactorGaussian(3), X)
    model = DPMixtureModel(family)
    calls = []
    once = type(family).reduced

    def counted(self, rows):
        calls.append(rows.shape[1])
        return once(self, rows)

    monkeypatch.setattr(type(family), "reduced", counted)
    N = np.array([100.0, 60.0, 40.0])
    S = np.stack([family.features(X[i::3]).sum(axis=0) for i in range(3)])
    calls.clear()
    params = model.posterior(N, S, 200.0)
    model.share_out(params, X, np.ones(200))
    assert calls.count(60) == 1


@pytest.mark.parametrize("n_factors", [0, -1, 2.5, "many", True, None])
def test_numbers_of_factors_that_are_none(n_factors):
    with pytest.raises(ValueError, match="n_factors must be"):
        resolved(FactorGaussian(n_factors), WIDE)


def test_more_factors_than_columns():
    with pytest.raises(ValueError, match="n_factors=41 is more than the 40 columns"):
        resolved(FactorGaussian(41), WIDE)
