"""Births: how many are tried in vain, and by what chances they begin."""

import numpy as np
import pytest

import mixture_reference as mixture
from kplus.data.blocks import ArrayBlocks
from kplus.dp_mixture import birth
from kplus.dp_mixture.birth import BirthSettings, BornComponents, seeded
from kplus.dp_mixture.moves import MergeComponents, MoveRecords
from mixture_reference import DIAG, FLAT, THREE, blobs, labelled, run, stats_of


def births(X, settings, seed=0):
    """A fit from one component; K and the births that were adopted."""
    model, records = DIAG.model(X), MoveRecords()
    rng = np.random.default_rng(seed)
    moves = (
        MergeComponents(records),
        BornComponents(ArrayBlocks(X, 20), None, rng, records, settings),
    )
    start = mixture.components(model, X, np.ones((len(X), 1)))
    result, _ = run(model, X, start, *moves)
    kinds = [(entry.kind, entry.accepted) for entry in records.entries]
    return result.params.K, kinds.count(("birth", True))


@pytest.mark.parametrize("patience", [1, 2, 4])
def test_births_in_vain_end(patience, monkeypatch):
    """Halves of one group, which the next pass merges again: the bound never rises."""

    def halves(model, X, weights, *_):
        return stats_of(model, X, labelled(np.arange(len(X)) % 2), weights)

    monkeypatch.setattr(birth, "create", halves)
    X = blobs(0, [[0.0, 0.0]], n=100)
    settings = BirthSettings(n_rounds=50, patience=patience)
    assert births(X, settings) == (1, patience)


@pytest.mark.parametrize("seed", range(3))
def test_births_that_the_bound_rewards_are_not_counted(seed):
    """The corners of a square, two at a time; each halving gains under a nat a row."""
    X = blobs(seed, [[0.0, 0.0], [8.0, 0.0], [0.0, 8.0], [8.0, 8.0]], n=60)
    K, adopted = births(X, BirthSettings(n_new=2, patience=1), seed)
    assert K == 4
    assert adopted > 1


@pytest.mark.parametrize("seed", range(5))
def test_seeds_of_a_row_twice_are_those_of_weight_2(seed):
    X = blobs(seed, THREE, n=20)
    weights = np.random.default_rng(seed).integers(1, 4, 60)
    model = FLAT.model(X)
    weighted = seeded(model, X, weights.astype(float), 6, np.random.default_rng(seed))
    copies = np.repeat(X, weights, axis=0)
    ones = np.ones(len(copies))
    repeated = seeded(model, copies, ones, 6, np.random.default_rng(seed))
    np.testing.assert_allclose(weighted.N, repeated.N)
    np.testing.assert_allclose(weighted.S, repeated.S, atol=1e-9)


def test_seeds_are_drawn_by_weight():
    """Of two equal groups far off the heavy one comes next, almost always."""
    X = np.array([[0.0, 0.0], [100.0, 0.0], [0.0, 100.0]])
    weights = np.array([1e6, 1.0, 1e-6])
    model = FLAT.model(X)
    for seed in range(5):
        stats = seeded(model, X, weights, 2, np.random.default_rng(seed))
        assert sorted(stats.N) == pytest.approx([1.0, 1e6], rel=1e-5)
