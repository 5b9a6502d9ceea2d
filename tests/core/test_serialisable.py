"""Openings under optimistic concurrency control are those of a serial program.

Blocks propose rows without knowing of each other, and the driver accepts or refuses
them. That must equal a program which takes the rows one after the other in the order of
cost (falling) and row number, given the parameters of the pass, and opens a cluster, or
a feature, for a row exactly if it costs more than the penalty given all opened before
it. Two limits belong to that program:

- It looks at the costliest few only: 512 for clusters, where rows of equal values and
  equal weight (of those up to 1) count as one, and 32 for features. The others have
  their turn in a later pass, so that in the end no row costs more than the penalty.
- It opens at most an eighth of the clusters there are in a pass, at least one, and
  never more than a cap allows.
"""

from itertools import product

import numpy as np
import pytest

import reference
from kplus.core import loop
from kplus.core.types import Position
from kplus.data.blocks import ArrayBlocks
from kplus.data.files import open_files
from kplus.dp_means import model as fast
from kplus.dp_means.full_covariance import (
    Ellipsoids,
    FullCovarianceModel,
    OpenEllipsoids,
)
from kplus.dp_means.model import DPMeansModel
from kplus.dp_means.moves import DropEmpty, OpenClusters, RemoveCluster
from kplus.dp_means.params import Centers, Scaling
from kplus.engine import SerialEngine, ThreadEngine, make_engine
from kplus.engine.resources import Resources
from kplus.features import model as feature_model
from kplus.features.model import FeatureModel, Features
from kplus.features.moves import OpenFeatures, RemoveFeature, TidyFeatures
from workers import two_workers

CLUSTER_LIST, FEATURE_LIST = 512, 32
ENGINES = {
    "one block": lambda X, w: SerialEngine(ArrayBlocks(X, len(X)), w),
    "two": lambda X, w: SerialEngine(ArrayBlocks(X, len(X) - 1), w),
    "some": lambda X, w: SerialEngine(ArrayBlocks(X, 97), w),
    "many": lambda X, w: SerialEngine(ArrayBlocks(X, 7), w),
    "2 threads": lambda X, w: ThreadEngine(ArrayBlocks(X, 13), w, n_threads=2),
    "5 threads": lambda X, w: ThreadEngine(ArrayBlocks(X, 31), w, n_threads=5),
}
every_engine = pytest.mark.parametrize("engine", ENGINES)


def reals(seed, n=300):
    return np.random.default_rng(seed).normal(scale=3.0, size=(n, 2))


def lattice(seed, n=300, most=6):
    """Whole numbers: many copies, and costs that tie, also with the penalty."""
    return np.random.default_rng(seed).integers(-most, most + 1, (n, 2)).astype(float)


def no_weights(seed, n):
    return None


def any_weights(seed, n):
    return np.random.default_rng(seed).uniform(0.0, 2.5, n)


def few_weights(seed, n):
    """Copies of a row that weigh the same, and such that do not; some weigh nothing."""
    return np.random.default_rng(seed).choice([0.0, 0.25, 0.5, 0.75, 1.0, 3.0], n)


every_table = pytest.mark.parametrize("table", [reals, lattice])
every_weight = pytest.mark.parametrize(
    "weigh", [no_weights, any_weights, few_weights], ids=lambda weigh: weigh.__name__
)


# ----------------------------------------------------------------------- clusters


def serial_openings(X, C, penalty, weights=None, cap=np.inf, shortlist=CLUSTER_LIST):
    """The rows that open clusters, one after the other; see the top of this file."""
    share = np.minimum(reference.weights_or_ones(X, weights), 1.0)
    distance = reference.nearest(X, C)[1]
    most = min(max(1, len(C) // 8), cap - len(C))
    looked_at, opened = set(), []
    for row in np.lexsort((np.arange(len(X)), -share * distance)):
        looked_at.add((share[row], *X[row]))
        if len(looked_at) > shortlist or len(opened) >= most:
            break
        if share[row] * distance[row] > penalty:
            opened.append(row)
            distance = np.minimum(distance, np.sum((X - X[row]) ** 2, axis=1))
    return X[opened]


def some_centres(X, K, seed):
    """Most of them far away, so that many rows are costly and many may open at once."""
    C = np.full((K, 2), 1e4) + np.arange(K)[:, None]
    near = min(K, 3)
    C[:near] = X[np.random.default_rng(seed).choice(len(X), near, replace=False)]
    return C


def openings(engine, C, penalty, cap=np.inf):
    """The new centres that one pass leads to."""
    model, params = (
        DPMeansModel(penalty, cap),
        Centers.start(Scaling(np.zeros(2), 1.0), C),
    )
    with engine:
        total = engine.sweep(model, params, range(engine.n_blocks))
        updated = model.update(params, total)
    proposal = OpenClusters().propose(Position(model, params, total, updated, False))
    return C[:0] if proposal is None else proposal.params.centers[len(C) :]


@every_table
@every_weight
@pytest.mark.parametrize("K", [1, 17, 80])
def test_clusters(K, weigh, table):
    most = 0
    for seed, penalty in enumerate([1.0, 5.0, 18.0, 1e4]):
        X = table(seed)
        weights, C = weigh(seed, len(X)), some_centres(X, K, seed)
        expected = serial_openings(X, C, penalty, weights)
        for name, engine in ENGINES.items():
            found = openings(engine(X, weights), C, penalty)
            np.testing.assert_array_equal(found, expected, name)
        most = max(most, len(expected))
    assert most == max(1, K // 8)  # as many as may be


@every_weight
@pytest.mark.parametrize("n_free", [0, 1, 3, 50])
def test_clusters_with_a_cap(n_free, weigh):
    X = lattice(4)
    weights, C = weigh(4, len(X)), some_centres(X, 80, 4)
    cap = float(80 + n_free)
    expected = serial_openings(X, C, 3.0, weights, cap)
    for name, engine in ENGINES.items():
        found = openings(engine(X, weights), C, 3.0, cap)
        np.testing.assert_array_equal(found, expected, name)
    assert len(expected) == min(n_free, 10)


@every_table
@every_weight
@pytest.mark.parametrize("few", [1, 5, 20])
def test_clusters_where_the_list_is_cut(few, weigh, table, monkeypatch):
    """Copies may be light: alone too light for a cluster, together not."""
    monkeypatch.setattr(fast, "_MOST_CANDIDATES", few)
    was_cut = False
    for seed, penalty in enumerate([1.0, 2.0, 4.0, 9.0]):
        X = table(seed, 120)
        weights, C = weigh(seed, len(X)), some_centres(X, 160, seed)
        expected = serial_openings(X, C, penalty, weights, shortlist=few)
        for name, engine in ENGINES.items():
            found = openings(engine(X, weights), C, penalty)
            np.testing.assert_array_equal(found, expected, name)
        was_cut |= len(expected) < len(serial_openings(X, C, penalty, weights))
    assert was_cut


@pytest.mark.parametrize("engine", ["one block", "some", "2 threads"])
@every_weight
def test_clusters_of_more_rows_than_are_listed(weigh, engine):
    X = lattice(0, 4000, most=40)
    weights, C = weigh(0, len(X)), some_centres(X, 400, 0)
    expected = serial_openings(X, C, 300.0, weights)
    assert len(expected) < len(serial_openings(X, C, 300.0, weights, shortlist=9999))
    found = openings(ENGINES[engine](X, weights), C, 300.0)
    np.testing.assert_array_equal(found, expected)


@every_engine
def test_light_copies_open_no_cluster_that_none_of_them_would(engine, monkeypatch):
    """Next to the first row each of the three saves 0.6 · 4 < 3, as one row 1 · 4.

    Which copies meet before the list is cut depends on the blocks.
    """
    monkeypatch.setattr(fast, "_MOST_CANDIDATES", 3)
    x = np.array([20.0, 18.0, 18.0, 18.0, 10.0])
    X, weights = np.column_stack([x, 0.0 * x]), np.array([1.0, 0.6, 0.6, 0.6, 0.6])
    C = some_centres(np.zeros((3, 2)), 17, 0)
    found = openings(ENGINES[engine](X, weights), C, 3.0)
    np.testing.assert_array_equal(found, [[20.0, 0.0], [10.0, 0.0]])


@every_engine
@pytest.mark.parametrize("few", [0, 10**6], ids=["bounded", "measured"])
def test_clusters_of_the_passes_that_follow(few, engine, monkeypatch):
    """Where bounds say which rows need not be read, none that is costly is missed."""
    monkeypatch.setattr(fast, "_FEW", few)
    X, weights = reals(5), any_weights(5, 300)
    model = DPMeansModel(2.0)
    params = Centers.start(Scaling(np.zeros(2), 1.0), some_centres(X, 17, 5))
    with ENGINES[engine](X, weights) as cut:
        total = cut.sweep(model, params, range(cut.n_blocks))
        for _ in range(6):
            at = Position(model, params, total, params, False)
            proposal = OpenClusters().propose(at)
            expected = serial_openings(X, params.centers, 2.0, weights)
            found = proposal.params.centers[params.K :]
            np.testing.assert_array_equal(found, expected)
            params = proposal.params
            total = total.regroup(proposal.old_to_new, proposal.K)
            cut.regroup(proposal.old_to_new, proposal.K)
            total += cut.sweep(model, params, range(cut.n_blocks))


@pytest.mark.parametrize("engine", ["one block", "many", "2 threads"])
@every_table
@every_weight
def test_no_row_is_left_out(weigh, table, engine, monkeypatch):
    """Whatever the list leaves: once converged no row costs more than a cluster."""
    monkeypatch.setattr(fast, "_MOST_CANDIDATES", 3)
    X, penalty = table(1, 120), 4.0
    weights = weigh(1, len(X))
    with ENGINES[engine](X, weights) as cut:
        result = loop.run(
            DPMeansModel(penalty), cut, Centers.start(Scaling(np.zeros(2), 1.0), X[:1]),
            moves=[DropEmpty(), OpenClusters(), RemoveCluster()],
            max_iter=500, tol=0.0,
        )  # fmt: skip
    assert result.converged
    assert result.params.K > 4
    wants = reference.wants_cluster(X, result.params.centers, penalty, weights)
    assert not wants.any()


@every_weight
def test_clusters_with_covariances_of_their_own(weigh):
    """Distances are Mahalanobis', and a cluster opens as a sphere of the floor."""
    X, floor, penalty = reals(7), 0.5, 6.0
    weights, C = weigh(7, len(X)), some_centres(X, 40, 7)
    B = np.random.default_rng(7).normal(size=(40, 2, 2))
    params = Ellipsoids(C, floor * np.eye(2) + B @ B.transpose(0, 2, 1))
    share = np.minimum(reference.weights_or_ones(X, weights), 1.0)
    diff = X[:, None] - C
    squares = np.einsum(
        "nkd,kde,nke->nk", diff, np.linalg.inv(params.covariances), diff
    )
    distance = squares.min(axis=1)
    opened = []
    for row in np.argsort(-share * distance):
        if len(opened) < 5 and share[row] * distance[row] > penalty:
            opened.append(row)
            sphere = np.sum((X - X[row]) ** 2, axis=1) / floor
            distance = np.minimum(distance, sphere)
    model = FullCovarianceModel(penalty, floor)
    for name, engine in ENGINES.items():
        with engine(X, weights) as cut:
            total = cut.sweep(model, params, range(cut.n_blocks))
        at = Position(model, params, total, params, False)
        found = OpenEllipsoids().propose(at).params.centers[40:]
        np.testing.assert_array_equal(found, X[opened], name)
    assert len(opened) == 5


# ----------------------------------------------------------------------- features


def best_bits(X, A):
    """Of all z the one that leaves least, of rows without gaps."""
    Z = np.array(list(product([0.0, 1.0], repeat=len(A)))).reshape(2 ** len(A), len(A))
    return Z[reference.nearest(X, Z @ A)[0]]


def serial_features(X, A, penalty, weights=None, n_free=10**6, shortlist=FEATURE_LIST):
    """The features that rows get of their own, one after the other.

    A row keeps its z of the pass, takes each feature opened before it that leaves less
    of it, and gets what is left as a feature if that costs more than the penalty.
    """
    R = X - best_bits(X, A) @ A
    w = reference.weights_or_ones(X, weights)
    cost = w * np.sum(R**2, axis=1)
    opened = []
    for row in np.lexsort((np.arange(len(X)), -cost))[:shortlist]:
        left = R[row]
        for feature in opened:
            if np.sum((left - feature) ** 2) < np.sum(left**2):
                left = left - feature
        if w[row] * np.sum(left**2) > penalty and len(opened) < n_free:
            opened.append(left)
    return np.array(opened).reshape(-1, X.shape[1])


def new_features(engine, A, penalty, n_free=10**6):
    """The features that one pass leads to."""
    most = len(A) + n_free
    model, params = FeatureModel(penalty, most), Features(A, exact=True)
    with engine:
        total = engine.sweep(model, params, range(engine.n_blocks))
    at = Position(model, params, total, params, True)
    proposal = OpenFeatures(most).propose(at)
    return A[:0] if proposal is None else proposal.params.A[len(A) :]


def some_features(K):
    """Such that no two sums of them are equally near to whole numbers."""
    return np.array([[8.0, 0.125], [0.25, 9.0], [-20.0, 1.0]])[:K]


@every_table
@every_weight
@pytest.mark.parametrize("K", [0, 1, 3])
def test_features(K, weigh, table):
    most, A = 0, some_features(K)
    for seed, penalty in enumerate([1.0, 5.0, 18.0, 1e4]):
        X = table(seed)
        weights = weigh(seed, len(X))
        expected = serial_features(X, A, penalty, weights)
        for name, engine in ENGINES.items():
            found = new_features(engine(X, weights), A, penalty)
            np.testing.assert_allclose(found, expected, 1e-12, 1e-12, err_msg=name)
        most = max(most, len(expected))
    assert most > 3


@every_weight
@pytest.mark.parametrize("n_free", [0, 1, 3])
def test_features_with_a_cap(n_free, weigh):
    X, A = lattice(4), some_features(1)
    weights = weigh(4, len(X))
    expected = serial_features(X, A, 2.0, weights, n_free)
    for name, engine in ENGINES.items():
        found = new_features(engine(X, weights), A, 2.0, n_free)
        np.testing.assert_allclose(found, expected, 1e-12, 1e-12, err_msg=name)
    assert len(expected) == n_free


@pytest.mark.parametrize("engine", ["one block", "many", "2 threads"])
@every_table
@every_weight
def test_no_row_is_left_without_a_feature(weigh, table, engine, monkeypatch):
    monkeypatch.setattr(feature_model, "MOST_CANDIDATES", 3)
    X, penalty = table(1, 60), 6.0
    weights = weigh(1, len(X))
    with ENGINES[engine](X, weights) as cut:
        result = loop.run(
            FeatureModel(penalty, 25), cut, Features(np.empty((0, 2)), exact=True),
            moves=[TidyFeatures(), RemoveFeature(), OpenFeatures(25)],
            max_iter=500, tol=0.0,
        )  # fmt: skip
    A = result.params.A
    assert result.converged
    assert 2 < len(A) < 25
    cost = np.sum((X - best_bits(X, A) @ A) ** 2, axis=1)
    assert np.all(reference.weights_or_ones(X, weights) * cost <= penalty)


# ------------------------------------------------------------------------ workers


@pytest.fixture(scope="module")
def client():
    with two_workers() as client:
        yield client


def on_workers(client, folder, X, weights, block_rows):
    np.save(folder / "rows.npy", X)
    source = open_files(folder / "rows.npy").cut(block_rows)
    engine = make_engine(source, weights, 1, Resources(client=client))
    assert type(engine).__name__ == "DaskEngine"
    return engine


@pytest.mark.dask
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("block_rows", [7, 150, 299])
@every_table
@every_weight
def test_workers(weigh, table, block_rows, client, tmp_path):
    X = table(2)
    weights, C, A = weigh(2, len(X)), some_centres(X, 80, 2), some_features(2)
    engine = on_workers(client, tmp_path, X, weights, block_rows)
    found = openings(engine, C, 4.0)
    np.testing.assert_array_equal(found, serial_openings(X, C, 4.0, weights))
    assert len(found) == 10
    engine = on_workers(client, tmp_path, X, weights, block_rows)
    found = new_features(engine, A, 5.0)
    expected = serial_features(X, A, 5.0, weights)
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)
    assert len(found) > 3


@pytest.mark.dask
@pytest.mark.filterwarnings("ignore")
def test_workers_with_more_rows_than_are_listed(client, tmp_path):
    X = lattice(0, 4000, most=40)
    weights, C = few_weights(0, len(X)), some_centres(X, 400, 0)
    found = openings(on_workers(client, tmp_path, X, weights, 97), C, 300.0)
    np.testing.assert_array_equal(found, serial_openings(X, C, 300.0, weights))
