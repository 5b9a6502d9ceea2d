"""Moves of mixtures with noise: refits and births from noise, by brute force."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import betaln

import mixture_reference as mixture
from jobs import make_job
from kplus import DPMixture
from kplus.core.types import Position
from kplus.data.blocks import ArrayBlocks
from kplus.dp_mixture import refit
from kplus.dp_mixture.birth import BirthSettings, beside
from kplus.dp_mixture.moves import MoveRecords
from kplus.dp_mixture.noise import Noise
from kplus.dp_mixture.noise_births import BornFromNoise, _gain
from kplus.dp_mixture.search import Spec, fit
from mixture_reference import CASES, FLAT, NOISY, labelled, one_pass

PLAIN = [name for name in NOISY if "-" not in name]


def bound(model, X, w, R):
    """Eq. 8, row by row, with the best q of the share of noise."""
    r0 = np.clip(1.0 - R.sum(axis=1), 0.0, 1.0)
    value = mixture.bound(model, X, R, w)
    value += w @ (r0 * model.noise.log_density(X) + mixture.entropy(r0))
    return float(value + betaln(1.0 + w @ r0, 19.0 + w @ (1.0 - r0)))


def stats_of(model, X, w, R):
    """The model's summary of shares, which sum to what noise leaves of a row."""
    r0 = 1.0 - R.sum(axis=1)
    stays = np.maximum(1.0 - r0, 1e-300)
    total = mixture.stats_of(model, X, R, w)
    total.entropy = (w * stays) @ mixture.entropy(R / stays[:, None])
    density = model.noise.log_density(X)
    total.base = model.noise.base(w, model.family.log_base(X), density, r0)
    total.noise = float(w @ r0)
    return total


def noisy(name, X, **settings):
    model = CASES[name].model(X, **settings) if isinstance(name, str) else name
    return replace(model, noise=Noise.resolve(True, model.family, X, None))


def refits(X, kinds=("birth", "merge", "delete"), weights=None):
    return refit.RefitComponents(
        ArrayBlocks(X, 20), weights, np.random.default_rng(0), MoveRecords(),
        BirthSettings(), kinds,
    )  # fmt: skip


@pytest.mark.parametrize("name", PLAIN)
def test_the_gain_of_a_refit_is_that_of_the_bound(name, monkeypatch):
    monkeypatch.setattr(refit, "_SHARE", 0.0)
    X = CASES[name].rows(80)
    model = noisy(name, X)
    w = np.random.default_rng(1).uniform(0.5, 2.0, 80)
    params = mixture.components(model, X, mixture.some_shares(80, 5), w)
    region = refits(X, weights=w)._region(model, params)
    old, others = np.array([3, 1, 4]), np.array([0, 2])
    local = refit._Local(region, old)
    stats, R = local.step(local.model, region.N[old], region.S[old])
    before, after = region.R.copy(), region.R.copy()
    left = 1.0 - before[:, others].sum(axis=1, keepdims=True)
    after[np.ix_(local.rows, old)] = R * left[local.rows]
    rows = local.rows
    inside = before[np.ix_(rows, old)] / left[rows]
    own = stats_of(region.model, X[rows], w[rows] * left[rows, 0], inside)
    fitting, fitted = (local.model.learning(at.N, at.S) for at in (stats, own))
    gain = local.bound(fitting, stats) - local.bound(fitted, own)
    new, last = (
        replace(region.model, family=each.family) for each in (fitting, fitted)
    )
    order = np.argsort(-(w @ before), kind="stable")
    again = np.argsort(-(w @ after), kind="stable")
    brute = bound(new, X, w, after[:, again]) - bound(last, X, w, before[:, order])
    assert gain == pytest.approx(brute, abs=1e-6)


@pytest.mark.parametrize("learns", [False, True])
@pytest.mark.parametrize("name", PLAIN)
def test_the_gain_of_a_birth_is_that_of_the_bound(name, learns):
    """Of 80 rows 30 are noise; two components get some of them."""
    X, w = CASES[name].rows(80), np.random.default_rng(1).uniform(0.5, 2.0, 80)
    model = noisy(name, X, learns=learns)
    before = np.zeros((80, 5))
    before[:50, :3] = 0.9 * mixture.some_shares(50, 3)
    total = stats_of(model, X, w, before[:, :3])
    after = before.copy()
    after[50:, 3:] = mixture.some_shares(30, 3, seed=2)[:, :2]
    born = stats_of(model, X[50:], w[50:], after[50:, 3:])
    mass = float(w[50:].sum())
    near = model.beside_noise(total.noise - mass, total.mass - mass)
    near = beside(near, total.N, total.S)
    gain = _gain(near, total, 1.0, X[50:], w[50:], born)
    learned = replace(model, family=near.learning(born.N, born.S).family)
    order = np.argsort(-(w @ before[:, :3]), kind="stable")
    again = np.argsort(-(w @ after), kind="stable")
    brute = bound(learned, X, w, after[:, again])
    brute -= bound(model, X, w, before[:, order])
    assert gain == pytest.approx(brute, abs=1e-6)


# ----------------------------------------------------------------- births


def hidden_group(n=40):
    """A wide group, a small one that is noise so far, and a few rows elsewhere."""
    rng = np.random.default_rng(0)
    far = rng.uniform(-30.0, 60.0, (12, 2))
    X = np.vstack([rng.normal(0, 1, (200, 2)), rng.normal(30, 1, (n, 2)), far])
    model = noisy(FLAT.model(X), X)
    R = np.zeros((len(X), 1))
    R[:200] = 1.0
    N, S, *_ = mixture.statistics(model.family, X, R)
    return X, model, model.posterior(N, S, float(len(X)), float(len(X) - 200))


def propose(move, model, X, params, converged=True):
    total = one_pass(model, X, params)
    updated = model.update(params, total)
    return total, move.propose(Position(model, params, total, updated, converged))


def births(X, **settings):
    return BornFromNoise(
        ArrayBlocks(X, 20), None, np.random.default_rng(0), MoveRecords(),
        BirthSettings(**settings),
    )  # fmt: skip


def test_a_group_among_noise_is_born():
    X, model, params = hidden_group()
    move = births(X)
    total, proposal = propose(move, model, X, params)
    assert total.noise > 45.0
    assert proposal.trial
    assert proposal.old_to_new.tolist() == [0]
    assert proposal.provisional.N[1] == pytest.approx(40.0, abs=1.5)
    N = proposal.params.N
    assert N[0] == total.N[0]
    assert np.all((N[2:] >= 2.0) & (N[2:] < 6.0))  # a few rows may lie close by chance
    assert proposal.params.noise == pytest.approx(total.noise - N[1:].sum())
    after = one_pass(model, X, proposal.params)
    at = model.at(proposal.params)
    assert at.bound(proposal.params, after) > model.best_bound(total)
    move.on_outcome(proposal.note, -5.0, True)
    assert move.records.entries[0].target == (-1,)
    assert move.records.entries[0].change == 5.0


def test_new_components_are_ordered_by_size():
    X, model, params = hidden_group(n=300)
    _, proposal = propose(births(X), model, X, params)
    assert proposal.old_to_new.tolist() == [1]
    assert np.all(np.diff(proposal.params.N) <= 0.0)


def test_scattered_rows_stay_noise():
    rng = np.random.default_rng(0)
    X = np.vstack([rng.normal(0, 1, (200, 2)), rng.uniform(-30, 60, (40, 2))])
    model = noisy(FLAT.model(X), X)
    params = mixture.components(model, X, labelled(np.repeat([0, 1], [200, 40])))
    params = model.posterior(params.N[:1], params.S[:1], 240.0, 40.0)
    total, proposal = propose(births(X), model, X, params)
    assert total.noise > 35.0
    assert proposal is None


@pytest.mark.parametrize("converged", [False, True])
def test_births_wait_and_are_not_tried_twice(converged):
    X, model, params = hidden_group()
    move = births(X)
    _, first = propose(move, model, X, params, converged)
    assert (first is not None) == converged
    if converged:
        assert propose(move, model, X, params)[1] is None


def test_births_end_after_failures_and_at_the_most():
    X, model, params = hidden_group()
    move = births(X)
    for _ in range(3):
        move.on_outcome(0, 1.0, False)
    assert propose(move, model, X, params)[1] is None
    assert propose(births(X, max_components=1), model, X, params)[1] is None


def test_without_noise_nothing_is_born_of_it():
    X, model, params = hidden_group()
    assert propose(births(X), replace(model, noise=None), X, params)[1] is None


def test_small_groups_among_large_ones_are_found():
    """Without births from noise, two of five are taken for noise and stay it."""
    rng = np.random.default_rng(3)
    large = [rng.normal(c, 3.0, (700, 2)) for c in ((0, 0), (40, 20), (10, 60))]
    small = [rng.normal((300 + 25 * i, 40 * (i % 2)), 3.0, (35, 2)) for i in range(5)]
    model = DPMixture(noise=True, random_state=0).fit(np.vstack(large + small))
    assert model.n_clusters_ == 8
    assert np.sum(model.labels_ < 0) < 10


def test_a_new_group_of_a_stream_is_found():
    rng = np.random.default_rng(0)

    def batch(centers, n_noise):
        groups = [rng.normal(c, 1.0, (150, 2)) for c in centers]
        rows = np.vstack([*groups, rng.uniform(-10.0, 25.0, (n_noise, 2))])
        return rows[rng.permutation(len(rows))]

    model = DPMixture(noise=True, random_state=0)
    model.partial_fit(batch([(0, 0), (12, 12)], 20))
    assert model.n_clusters_ == 2
    model.partial_fit(batch([(0, 0), (0, 14)], 20))
    assert model.n_clusters_ == 3


def test_a_wide_component_gives_way_to_noise():
    """Deletes know that noise could take the rows."""
    rng = np.random.default_rng(0)
    labels = np.repeat([0, 1, 2], [150, 150, 60])
    centers = np.array([[0.0, 0.0], [20.0, 20.0]])
    X = np.vstack(
        [rng.normal(centers[labels[:300]], 1.0), rng.uniform(-20, 40, (60, 2))]
    )
    model = noisy(FLAT.model(X), X)
    N, S, *_ = mixture.statistics(model.family, X, labelled(labels))
    params = model.posterior(N, S, 360.0)
    move = refits(X, ("delete",))
    _, proposal = propose(move, model, X, params)
    assert proposal.K == 2
    assert proposal.params.noise == pytest.approx(60.0, abs=4.0)
    plain = replace(model, noise=None)
    assert propose(refits(X, ("delete",)), plain, X, params)[1] is None


def test_a_fit_on_samples_has_the_same_noise():
    """First samples of 5,000, then all rows, by batches."""
    rng = np.random.default_rng(0)
    X = np.vstack([rng.normal(0, 1, (20_000, 2)), rng.uniform(-30, 60, (1_500, 2))])
    model = noisy(FLAT.model(X), X)
    job = make_job(ArrayBlocks(X, 2000), None, np.random.default_rng(0))
    result = fit(job, Spec(model, n_batches=10))
    assert result.params.K == 1
    assert result.total.noise == pytest.approx(1_500, rel=0.05)
    assert result.total.mass == len(X)
