"""What the paper on memoized mixtures claims; the names carry the claims' ids."""

import numpy as np
import pytest
from scipy import stats
from sklearn.metrics import adjusted_rand_score

import mixture_reference as mixture
from jobs import make_job
from kplus.core import loop
from kplus.core.memo import Memo
from kplus.core.types import Position
from kplus.data.blocks import ArrayBlocks
from kplus.datasets import make_edge_patches
from kplus.dp_mixture import birth, fresh, refit
from kplus.dp_mixture.families.family import Columns
from kplus.dp_mixture.model import DPMixtureModel
from kplus.dp_mixture.moves import MergeComponents, MoveRecords
from kplus.dp_mixture.search import Spec, fit
from kplus.engine import SerialEngine
from kplus.observations import ZeroMeanGaussian
from mixture_reference import CASES, Recording, run


def job_of(X, seed=0, block_rows=25, **more):
    blocks = ArrayBlocks(X, block_rows)
    return make_job(blocks, None, np.random.default_rng(seed), **more)


def mixture_setting(name="gaussian", n=120, K=4, seed=0, **settings):
    """A model that records responsibilities, rows, and a start that is no optimum."""
    X = CASES[name].rows(n, seed)
    model = CASES[name].model(X, Recording, **settings)
    return model, X, mixture.components(model, X, mixture.some_shares(n, K, seed))


@pytest.mark.parametrize("name", CASES)
def test_MO_1_an_empty_last_component_changes_nothing(name):
    model, X, params = mixture_setting(name)
    R = mixture.some_shares(len(X), 4)
    total = mixture.stats_of(model, X, R)
    more = total.regroup(np.arange(4), 5)
    bound = model.best_bound(total)
    assert model.best_bound(more) == pytest.approx(bound, rel=1e-13)
    padded = model.posterior(more.N, more.S, more.mass)
    assert model.bound(padded, more) == pytest.approx(bound, rel=1e-13)
    np.testing.assert_allclose(padded.log_weights[:4], params.log_weights, rtol=1e-13)
    brute = mixture.bound(model, X, np.column_stack([R, np.zeros(len(X))]))
    assert brute == pytest.approx(bound, rel=1e-10)


@pytest.mark.parametrize("learns", [False, True], ids=["fixed", "learned"])
@pytest.mark.parametrize("name", CASES)
def test_MO_2_the_bound_is_exact_and_a_fit_ends_at_an_optimum(name, learns):
    """Full-data passes to convergence; then no factor can be changed for the better.

    With the prior fixed, as in the paper, and with a learned one, of which the
    hyperprior is part of the bound.
    """
    model, X, start = mixture_setting(name, K=3, learns=learns)
    fitted = run(model, X, start, block_rows=120, max_iter=2000, step=1e-9)[0]
    assert fitted.converged
    assert learns or fitted.params.family is model.family
    model = model.at(fitted.params)
    bound, R = model.bound(fitted.params, fitted.total), model.R
    assert bound == pytest.approx(mixture.bound(model, X, R), rel=1e-10)
    assert bound == -fitted.history[-1]
    rng = np.random.default_rng(0)
    for amount in (0.01, 0.3):
        other = R ** np.exp(amount * rng.normal(size=(len(X), 1)))
        other = 0.99 * other / other.sum(axis=1, keepdims=True) + 0.01 / R.shape[1]
        assert model.bound(fitted.params, mixture.stats_of(model, X, other)) < bound
        elsewhere = mixture.components(
            model, X, R * np.exp(amount * rng.normal(size=3))
        )
        assert model.bound(elsewhere, fitted.total) < bound


class AfterEveryBatch(Recording):
    """Compares the memo's total with sums over all rows visited so far."""

    def advance(self, params, total, latest):
        seen = self.R
        if len(seen) == len(self.rows[0]):
            brute = mixture.stats_of(self, self.rows[0], seen)
            for field in ("N", "S", "entropy", "pairs"):
                np.testing.assert_allclose(
                    getattr(total, field), getattr(brute, field), atol=1e-9
                )
            exact = mixture.bound(self, self.rows[0], seen)
            assert self.best_bound(total) == pytest.approx(exact, rel=1e-10)
            self.checked.append(len(seen))
        return super().advance(params, total, latest)


@pytest.mark.parametrize("n_active", [None, 2])
@pytest.mark.parametrize("name", ["gaussian", "zero_mean_gaussian", "categorical"])
def test_MO_3_sums_are_exact_after_every_batch(name, n_active):
    X = CASES[name].rows(120)
    model = CASES[name].model(X, AfterEveryBatch, n_active=n_active)
    object.__setattr__(model, "rows", [X])
    object.__setattr__(model, "checked", [])
    start = mixture.components(model, X, mixture.some_shares(120, 10))
    run(model, X, start, block_rows=24, max_iter=5, step=0.0)
    assert len(model.checked) == 4 * 5 + 1


@pytest.mark.parametrize("name", ["gaussian", "mixed"])
def test_MO_3_one_batch_is_full_data_inference(name):
    """Bit for bit: the same sums after the same number of passes."""
    model, X, start = mixture_setting(name)
    with SerialEngine(ArrayBlocks(X, 120)) as engine:
        whole = model.ready(start, everyone=True)
        whole = loop.run(model, engine, whole, max_iter=7, tol=0.0)
    found = whole, run(model, X, start, block_rows=120, max_iter=7)[0]
    for field in ("N", "S", "entropy", "pairs"):
        one, other = (getattr(result.total, field) for result in found)
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("n_active", [None, 2, 4])
@pytest.mark.parametrize("kinds", [(), ("merge",), ("merge", "delete")])
@pytest.mark.parametrize("seed", range(3))
def test_MO_4_without_births_the_bound_never_falls(n_active, kinds, seed):
    X = CASES["gaussian"].rows(300, seed)
    model = CASES["gaussian"].model(X, n_active=n_active)
    spec = Spec(model, n_components=15, kinds=kinds, n_batches=12)
    fitted = fit(job_of(X, seed, max_iter=40, tol=1e-9), spec)
    assert np.all(np.isfinite(fitted.history))
    slack = 1e-10 * np.abs(fitted.history[1:])
    assert np.all(np.diff(fitted.history) >= -slack)


def three_blobs(seed=0, n=80):
    rng = np.random.default_rng(seed)
    centers = np.repeat([[0.0, 0, 0], [9.0, 0, 0], [0, 9.0, 0]], n, axis=0)
    return centers + rng.normal(size=centers.shape)


@pytest.mark.parametrize("n_batches", [1, 6])
def test_MO_6_rows_are_counted_twice_for_one_pass_only(n_batches):
    """And what was there before a birth stays as it was until its rows are seen."""
    X, masses = three_blobs(), []
    model = CASES["gaussian"].model(X)

    def callback(info):
        masses.append((info.params.K, float(info.params.components.N.sum())))

    job = job_of(X, callback=callback)
    fitted = fit(job, Spec(model, n_batches=n_batches))
    assert max(K for K, _ in masses) > 1
    np.testing.assert_allclose([mass for _, mass in masses], 240.0, rtol=1e-12)
    assert fitted.total.N.sum() == pytest.approx(240.0, rel=1e-12)
    assert fitted.params.K == 3


def test_MO_6_what_no_batch_has_yet_is_lost_if_rows_count_once(monkeypatch):
    """The first batches hold one of the blobs: the others' components are forgotten."""
    X = three_blobs()
    model = CASES["gaussian"].model(X)
    monkeypatch.setattr(refit, "_FEW_ROWS", 10)  # few rows are split by refits
    usual = fit(job_of(X), Spec(model, n_batches=6))
    monkeypatch.setattr(Memo, "add_provisional", lambda memo, sums: None)
    once = fit(job_of(X), Spec(model, n_batches=6))
    assert usual.params.K == 3
    assert once.params.K == 2
    assert once.history[-1] < usual.history[-1] - 100.0
    assert any(entry.kind == "birth" for entry in once.records)


def test_MO_9_merges_undo_useless_births(monkeypatch):
    """At an optimum each component is made to bear four, all of them needless."""
    X = three_blobs()
    model = CASES["gaussian"].model(X)
    before = fit(job_of(X), Spec(model, n_components=9, kinds=("merge",), n_batches=6))
    assert before.params.K == 3
    born = []

    def needless(model, X, weights, rows_each, *_):
        rng = np.random.default_rng(len(born))
        born.append(fresh.seeded(model, X, weights * rows_each, 4, rng))
        return born[-1]

    monkeypatch.setattr(birth, "create", needless)
    monkeypatch.setattr(refit, "_FEW_ROWS", 10)  # few rows are split by refits
    after = fit(job_of(X, 1), Spec(model, n_batches=6), before.params)
    assert len(born) >= 3
    assert after.params.K == 3
    bound = before.history[-1]
    assert after.history[-1] >= bound - 1e-6 * abs(bound)
    kinds = [entry.kind for entry in after.records if entry.accepted]
    assert kinds.count("birth") >= 3
    assert kinds.count("merge") + kinds.count("delete") >= 12


@pytest.mark.parametrize("seed", range(3))
def test_MO_10_sixteen_components_merge_as_predicted(seed):
    """Predicted = from cached sums = brute force; and only gains are accepted."""
    X, _ = make_edge_patches(300, size=3, random_state=seed)
    columns = Columns(tuple("abcdefghi"), (None,) * 9)
    model = DPMixtureModel(ZeroMeanGaussian(0.1).resolve(X, None, columns))
    R = mixture.some_shares(300, 16, seed)
    total, records = mixture.stats_of(model, X, R), MoveRecords()
    params = model.posterior(total.N, total.S, total.mass)
    proposal = MergeComponents(records).propose(
        Position(model, params, total, params, True)
    )
    assert proposal.K <= 10
    merged = total.regroup(proposal.old_to_new, proposal.K)
    brute = [
        mixture.bound(model, X, part)
        for part in (R, mixture.regrouped(R, proposal.old_to_new, proposal.K))
    ]
    assert model.best_bound(total) == pytest.approx(brute[0], rel=1e-10)
    assert model.best_bound(merged) == pytest.approx(brute[1], rel=1e-10)
    assert brute[1] > brute[0]
    assert all(entry.change > 0.0 for entry in records.entries)


def edge_patch_fit(n, n_batches, seed):
    """Fitted from one component; K, and the adjusted Rand index with the oracle's."""
    X, y, covariances = make_edge_patches(n, random_state=seed, return_covariances=True)
    densities = [
        stats.multivariate_normal(cov=covariance).logpdf(X)
        for covariance in covariances
    ]
    oracle = adjusted_rand_score(y, np.argmax(densities, axis=0))
    job = job_of(X, seed, block_rows=n // n_batches)
    columns = Columns(tuple(map(str, range(25))), (None,) * 25)
    model = DPMixtureModel(ZeroMeanGaussian(0.1).resolve(X, None, columns))
    fitted = fit(job, Spec(model, n_batches=n_batches))
    return fitted, adjusted_rand_score(y, fitted.labels), oracle


def test_MO_11_edge_patches_few_rows():
    fitted, found, oracle = edge_patch_fit(10_000, 10, 0)
    assert fitted.converged
    assert fitted.params.K == 8
    assert found > oracle - 0.02


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_MO_11_edge_patches(seed):
    fitted, found, oracle = edge_patch_fit(100_000, 100, seed)
    assert fitted.converged
    assert fitted.params.K == 8
    assert found >= oracle - 0.002
