"""Accelerated variational Dirichlet process mixtures of Gaussians.

Kurihara, Welling & Vlassis (NIPS 2006). The rows of a node of a kd-tree share their
responsibilities, so that a pass visits the outer nodes only, by sums that each node
keeps. Beyond the first T components the posterior is the prior, with responsibilities
of their own. From one component on, that component is split along its principal axis
which gains the most; the nodes that are mostly its own are opened before. The search
ends with the first split that does not raise the bound.
"""

from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from scipy.special import betaln, digamma, entr, logsumexp

from baselines.normal_wishart import Gaussians, Nodes, NormalWishart, Sums

ROUNDS = 10  # of a candidate's two halves


class Tree:
    """A node of the kd-tree, which is cut in half where its rows are the widest."""

    def __init__(self, X: np.ndarray, rows: np.ndarray):
        self.X, self.rows = X, rows
        mine = X[rows]
        self.mean = mine.mean(axis=0)
        self.covariance = mine.T @ mine / len(rows) - np.outer(self.mean, self.mean)

    @cached_property
    def children(self) -> "list[Tree]":
        """Its two halves, or itself where its rows are all the same."""
        values = self.X[self.rows, int(np.argmax(np.diag(self.covariance)))]
        low = values <= np.median(values)
        if low.all():
            low = values < values.max()
        if len(self.rows) == 1 or not low.any():
            return [self]
        return [Tree(self.X, self.rows[low]), Tree(self.X, self.rows[~low])]


def nodes_of(trees: list[Tree]) -> Nodes:
    return Nodes(
        np.array([float(len(tree.rows)) for tree in trees]),
        np.stack([tree.mean for tree in trees]),
        np.stack([tree.covariance for tree in trees]),
    )


@dataclass(frozen=True)
class Posterior:
    """q of all parameters: the first T components, and beyond them the prior."""

    prior: NormalWishart
    sums: Sums
    tail: float  # responsibility of all components beyond T

    @cached_property
    def gaussians(self) -> Gaussians:
        return self.prior.posterior(self.sums)

    @cached_property
    def sticks(self) -> tuple[np.ndarray, np.ndarray]:
        """Both parameters of the Beta q(v)."""
        N = self.sums.N
        later = N.sum() - np.cumsum(N) + self.tail
        return 1.0 + N, self.prior.concentration + later

    def log_shares(self, nodes: Nodes) -> np.ndarray:
        """S of each component for a row of each node; the last column is the tail."""
        a, b = self.sticks
        taken, left = digamma(a) - digamma(a + b), digamma(b) - digamma(a + b)
        before = np.cumsum(left) - left
        alpha = self.prior.concentration
        first = digamma(1.0) - digamma(1.0 + alpha)
        # Σ of a geometric series, as E[log(1 - v)] is -1/α under the prior.
        beyond = left.sum() + first - np.log(-np.expm1(-1.0 / alpha))
        unseen = self.prior.unseen.scores(nodes)
        known = self.gaussians.scores(nodes) + before + taken
        return np.hstack([known, unseen + beyond])

    @cached_property
    def divergence(self) -> float:
        """Of q from the prior, of all first T components together."""
        a, b = self.sticks
        alpha, both = self.prior.concentration, digamma(a + b)
        sticks = (a - 1.0) * (digamma(a) - both) + (b - alpha) * (digamma(b) - both)
        sticks += betaln(1.0, alpha) - betaln(a, b)
        own = self.gaussians.expected(self.sums) - self.prior.evidence(self.sums)
        return float(sticks.sum() + own.sum())

    def visit(self, nodes: Nodes) -> tuple[np.ndarray, float]:
        """Responsibilities, the tail's last, and the bound on the log evidence."""
        logs = self.log_shares(nodes)
        total = logsumexp(logs, axis=1)
        bound = float(nodes.n @ total) - self.divergence
        return np.exp(logs - total[:, None]), bound

    def updated(self, nodes: Nodes, shares: np.ndarray) -> "Posterior":
        """The best q for these responsibilities, largest components first."""
        sums, tail = nodes.sums(shares[:, :-1]), float(nodes.n @ shares[:, -1])
        order = np.argsort(-sums.N, kind="stable")
        return replace(self, sums=sums.of(order), tail=tail)


@dataclass
class Found:
    """What a search ends with; the bound is that of all rows one by one."""

    posterior: Posterior
    bound: float
    labels: np.ndarray
    n_nodes: int
    history: list[tuple[int, float]] = field(default_factory=list)  # T and bound

    @property
    def n_components(self) -> int:
        return len(self.posterior.sums.N)


def kd_mixture(
    X: np.ndarray,
    prior: NormalWishart,
    *,
    depth: int | None = 4,
    tol: float = 1e-3,
    max_iter: int = 50,
    max_components: int | None = None,
) -> Found:
    """Split until the bound does not rise by `tol` nats a row.

    The tree is `depth` levels deep at first; with None every row is a node. At last all
    rows are visited one by one, `max_iter` times at most, as elsewhere between splits.
    """
    rows = Nodes.rows(X)
    trees = None if depth is None else grown(X, depth)
    nodes = rows if trees is None else nodes_of(trees)
    one = np.column_stack([np.ones(len(nodes.n)), np.zeros(len(nodes.n))])
    start = Posterior(prior, Sums.none(1, X.shape[1]), 0.0).updated(nodes, one)
    q, bound = settled(start, nodes, tol, max_iter)
    history = [(1, bound)]
    while max_components is None or len(q.sums.N) < max_components:
        step = best_split(q, nodes, trees)
        if step is None:
            break
        new, opened, opened_trees = step
        new, raised = settled(new, opened, tol, max_iter)
        if raised < bound + tol * len(X):
            break
        q, bound, nodes, trees = new, raised, opened, opened_trees
        history.append((len(q.sums.N), bound))
    q, bound = settled(q, rows, tol, max_iter)
    labels = np.argmax(q.log_shares(rows)[:, :-1], axis=1)
    return Found(q, bound, labels, len(nodes.n), history)


def grown(X: np.ndarray, depth: int) -> list[Tree]:
    trees = [Tree(X, np.arange(len(X)))]
    for _ in range(depth):
        trees = [child for tree in trees for child in tree.children]
    return trees


def settled(
    q: Posterior, nodes: Nodes, tol: float, max_iter: int
) -> tuple[Posterior, float]:
    """Visit and update until a visit gains less than `tol` nats a row."""
    shares, bound = q.visit(nodes)
    for _ in range(max_iter):
        new = q.updated(nodes, shares)
        shares, raised = new.visit(nodes)
        if raised < bound:  # where the order of components costs more than it gains
            break
        q, gain, bound = new, raised - bound, raised
        if gain < tol * nodes.n.sum():
            break
    return q, bound


@dataclass(frozen=True)
class Split:
    """A component in two: what the bound gains, and the sums of the halves.

    `own` are the outer nodes that are mostly the component's: they are opened.
    """

    component: int
    gain: float
    own: np.ndarray
    halves: Sums


def best_split(
    q: Posterior, nodes: Nodes, trees: list[Tree] | None
) -> tuple[Posterior, Nodes, list[Tree] | None] | None:
    """The start of T + 1 components, with the nodes opened for it."""
    shares, _ = q.visit(nodes)
    likeliest = np.argmax(shares, axis=1)
    splits = [
        split
        for k in range(len(q.sums.N))
        if (split := split_of(q, k, nodes, trees, shares[:, k], likeliest == k))
    ]
    if not splits:
        return None
    best = max(splits, key=lambda split: split.gain)
    others = np.arange(len(q.sums.N)) != best.component
    sums = q.sums.of(others).followed_by(best.halves)
    new = replace(q, sums=sums.of(np.argsort(-sums.N, kind="stable")))
    if trees is None:
        return new, nodes, None
    trees = opened(trees, ~best.own) + opened(trees, best.own, children=True)
    return new, nodes_of(trees), trees


def opened(trees: list[Tree], chosen: np.ndarray, children: bool = False) -> list[Tree]:
    """The chosen nodes, or their children."""
    mine = [tree for tree, taken in zip(trees, chosen, strict=True) if taken]
    return [child for tree in mine for child in tree.children] if children else mine


def split_of(
    q: Posterior,
    k: int,
    nodes: Nodes,
    trees: list[Tree] | None,
    shares: np.ndarray,
    own: np.ndarray,
) -> Split | None:
    """Cut component k by the bisector of its principal axis and fit the halves.

    All other responsibilities stay; what other nodes have of the component goes to the
    halves by their sizes. The gain is that of the bound at the best q, with the weights
    of components as if they were shares.
    """
    if not own.any():
        return None
    mine, held = nodes.of(own), shares[own]
    rest = nodes.sums(np.where(own, 0.0, shares)[:, None])
    if trees is not None:
        sizes = [len(tree.children) for tree in opened(trees, own)]
        held = np.repeat(held, sizes)
        mine = nodes_of(opened(trees, own, children=True))
    factor = q.gaussians.factors[k]
    axis = np.linalg.eigh(factor @ factor.T)[1][:, -1]
    side = (mine.means - q.gaussians.means[k]) @ axis > 0
    part = np.column_stack([side, ~side]).astype(float)
    for _ in range(ROUNDS):
        halves = mine.sums(part * held[:, None])
        if halves.N.min() < 1.0:
            return None
        scores = q.prior.posterior(halves).scores(mine) + np.log(halves.N)
        part = np.exp(scores - logsumexp(scores, axis=1)[:, None])
    halves = mine.sums(part * held[:, None])
    if halves.N.min() < 1.0:
        return None
    halves = halves.with_more(rest)
    whole = halves.together()
    gain = q.prior.evidence(halves).sum() - q.prior.evidence(whole)[0]
    gain += np.sum(mine.n * held * entr(part).sum(axis=1))
    gain += np.sum(halves.N * np.log(halves.N / whole.N))
    return Split(k, float(gain), own, halves)
