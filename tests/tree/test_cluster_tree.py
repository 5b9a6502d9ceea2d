"""Trees from overlaps and histograms that are made up."""

import numpy as np
import pytest

from kplus.tree.borders import N_BINS, Axes, Borders
from kplus.tree.cluster_tree import Bridges, ClusterTree, grow_tree

FLAT, VALLEY = np.full(N_BINS, 20.0), np.full(N_BINS, 20.0)
VALLEY[8:16] = 0.0


def made(sizes, leaks, valleys=(), levels=None, share=0.6):
    """Components with rows that leak from one to another, equally dense by default."""
    K, pairs = len(sizes), np.array(sorted(leaks), int).reshape(-1, 2)
    overlap = np.zeros((K, K))
    for (a, b), leak in leaks.items():
        overlap[a, b] = overlap[b, a] = leak
    np.fill_diagonal(overlap, np.array(sizes, float) - overlap.sum(axis=1))
    n = len(pairs)
    centers = np.tile([0.25, 0.75], (n, 1))
    axes = Axes(pairs, np.zeros(n), np.ones(n), centers, np.full((n, 2), 0.125))
    counts = [VALLEY if tuple(pair) in valleys else FLAT for pair in pairs.tolist()]
    borders = Borders(overlap, np.array(counts).reshape(n, N_BINS))
    far = np.abs(np.subtract.outer(np.arange(K), np.arange(K))).astype(float)
    levels = np.zeros(K) if levels is None else np.array(levels)
    return grow_tree(borders, axes, far, Bridges(levels, 2.0, share))


def test_a_chain_without_valleys_is_one_cluster():
    tree = made([100, 90, 80, 70], {(0, 1): 3.0, (1, 2): 2.0, (2, 3): 1.0})
    assert tree.n_clusters == 1
    assert tree.clearness > 0.95
    np.testing.assert_array_equal(tree.children, [[0, 1], [2, 4], [3, 5]])


def test_a_valley_parts_what_overlaps():
    leaks = {(0, 1): 3.0, (1, 2): 2.0, (2, 3): 1.0}
    tree = made([100, 90, 80, 70], leaks, valleys={(1, 2)})
    assert tree.n_clusters == 2
    np.testing.assert_array_equal(tree.cut(), [0, 0, 1, 1])


def test_groups_go_by_most_of_their_border():
    leaks = {(0, 1): 8.0, (2, 3): 8.0, (0, 2): 5.0, (1, 3): 1.0}
    assert made([100] * 4, leaks, valleys={(0, 2)}).n_clusters == 2
    assert made([100] * 4, leaks, valleys={(1, 3)}).n_clusters == 1


def test_tiny_overlaps_join_the_pieces_of_a_thin_curve():
    leaks = {(k, k + 1): 1e-4 for k in range(9)}
    assert made([50] * 10, leaks).n_clusters == 1
    assert made([50] * 10, leaks, valleys={(4, 5)}).n_clusters == 2


def test_what_is_much_thinner_connects_nobody():
    """A wide component of scattered rows goes to one of the dense ones it touches."""
    leaks = {(0, 2): 4.0, (1, 2): 3.0}
    tree = made([100, 100, 100], leaks, levels=[3.0, 3.0, 0.5])
    assert tree.n_clusters == 2
    np.testing.assert_array_equal(tree.cut(), [0, 1, 0])
    assert made([100, 100, 100], leaks, levels=[3.0, 3.0, 1.5]).n_clusters == 1
    # From a dense one down to thinner ones there is no valley.
    assert made([100, 100, 100], leaks, levels=[6.0, 0.0, 3.0]).n_clusters == 1


def test_one_dense_way_may_be_enough():
    """Two dense components with margins that touch along most of their border."""
    leaks = {(0, 1): 2.0, (0, 2): 9.0, (1, 3): 9.0, (2, 3): 8.0}
    levels = [5.0, 5.0, 1.0, 1.0]
    assert made([100] * 4, leaks, levels=levels, share=0.0).n_clusters == 1
    leaks = {(0, 2): 9.0, (1, 3): 9.0, (2, 3): 8.0}
    assert made([100] * 4, leaks, levels=levels, share=0.0).n_clusters == 2


def test_few_rows_connect_nobody():
    leaks = {(0, 2): 1.5, (1, 2): 1.0}
    assert made([100, 100, 9], leaks).n_clusters == 2
    assert made([100, 100, 40], leaks).n_clusters == 1
    np.testing.assert_array_equal(made([100, 100, 9], leaks).cut(), [0, 1, 0])


def test_what_does_not_overlap_is_apart_and_joined_smallest_and_nearest_first():
    tree = made([100, 60, 5, 80], {})
    assert tree.n_clusters == 4
    assert tree.clearness == 1.0
    np.testing.assert_array_equal(tree.children[0], [1, 2])


def test_cuts_are_met_exactly_nest_and_are_numbered_by_size():
    rng = np.random.default_rng(0)
    sizes = rng.integers(30, 200, 12)
    leaks = {(i, j): rng.uniform(0, 3) for i in range(12) for j in range(i + 1, 12)}
    tree = made(sizes, leaks, valleys={pair for pair in leaks if sum(pair) % 3 == 0})
    assert tree.consistent()
    assert np.all(np.diff(tree.heights) >= 0.0)
    finer = tree.cut(12)
    for n in range(11, 0, -1):
        cut = tree.cut(n)
        np.testing.assert_array_equal(np.unique(cut), np.arange(n))
        assert np.all(np.diff(np.bincount(cut, tree.sizes)) <= 0.0)
        assert len({*zip(finer.tolist(), cut.tolist(), strict=True)}) == n + 1
        finer = cut
    for n in (0, 13):
        with pytest.raises(ValueError, match="from 1 to 12"):
            tree.cut(n)


def test_one_component():
    tree = made([7], {})
    assert (tree.n_leaves, tree.n_clusters) == (1, 1)
    np.testing.assert_array_equal(tree.cut(), [0])


def test_steps_that_make_no_tree_are_noticed():
    sizes = np.ones(3)
    for children in ([[0, 1], [0, 2]], [[0, 4], [1, 2]], [[-1, 1], [2, 3]]):
        assert not ClusterTree(
            np.array(children), np.zeros(2), sizes, 1, 1.0
        ).consistent()
    assert ClusterTree(
        np.array([[0, 1], [2, 3]]), np.zeros(2), sizes, 1, 1.0
    ).consistent()


def test_components_without_rows_are_no_clusters():
    """Their shares lie in the rows of others, or nowhere."""
    overlap = np.diag([100.0, 90.0, 0.0, 0.0])
    overlap[2, 1] = 0.4
    axes = Axes(np.empty((0, 2), int), *np.empty((2, 0)), *np.empty((2, 0, 2)))
    far = np.array([[0, 9, 9, 3], [9, 0, 9, 9], [9, 9, 0, 9], [3, 9, 9, 0.0]])
    borders = Borders(overlap, np.empty((0, N_BINS)))
    tree = grow_tree(borders, axes, far, Bridges(np.zeros(4), 2.0, 0.6))
    assert tree.n_clusters == 2
    np.testing.assert_array_equal(tree.cut(), [0, 1, 1, 0])
