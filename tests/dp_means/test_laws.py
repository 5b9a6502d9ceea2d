"""The laws for DP-means, with a penalty, a cap and a fixed number of clusters."""

from dataclasses import replace

import numpy as np
import pytest

import reference
from core.test_laws import Laws
from kplus.dp_means import model as fast
from kplus.dp_means.model import DPMeansModel
from kplus.dp_means.moves import (
    DropEmpty,
    EndOverrelaxation,
    OpenClusters,
    RefillClusters,
    RemoveCluster,
)
from kplus.dp_means.params import Centers, Scaling


def scaling_of(table):
    return Scaling.fit(table.X[table.weight() > 0.0])


class DPMeansLaws(Laws):
    """What the ways to use the model have in common."""

    cap = np.inf

    def start(self, model, table):
        scaling, one = scaling_of(table), np.zeros(table.n, dtype=int)
        mean = reference.means(table.X, one, 1, table.weights)
        return Centers.start(scaling, scaling.transform(mean))

    def seen(self, params, table):
        return params.scaling.transform(table.X.astype(np.float64))

    def statistics(self, total):
        return [total.counts, total.sums, total.squares]

    def labels(self, local):
        return local.labels

    def brute_statistics(self, params, table, labels):
        kept = labels >= 0
        Y, w = self.seen(params, table)[kept], table.weight()[kept]
        return reference.statistics(Y, labels[kept], params.K, w, params.refs)

    def brute_objective(self, model, params, table, labels):
        penalty = model.penalty if np.isfinite(model.penalty) else 0.0
        Y, w = self.seen(params, table), table.weight()
        return reference.objective(Y, labels, params.centers, penalty, w)

    def renumbered(self, params, old_to_new):
        return params.regroup(old_to_new)

    def scale(self, params, table):
        return float(np.sum(table.weight() @ self.seen(params, table) ** 2))

    def unit(self, params):
        return params.scaling.inv**-2


class TestPenalty(DPMeansLaws):
    """A row opens a cluster when it costs more than the penalty."""

    def model(self, table):
        seen = scaling_of(table).transform(table.X.astype(np.float64))
        mean = np.average(seen, axis=0, weights=table.weights)
        spread = np.sum((seen - mean) ** 2, axis=1)
        spread = float(np.average(spread, weights=table.weights))
        return DPMeansModel(0.3 * spread if spread > 1e-20 else 1.0, self.cap)

    def moves(self):
        return [DropEmpty(), OpenClusters(), RemoveCluster()]


class ByBounds:
    """Few rows are sooner measured than bounded; here bounds are used all the same."""

    @pytest.fixture(autouse=True, scope="class")
    @classmethod
    def no_rows_are_few(cls):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(fast, "_FEW", 0)
            yield


class TestPenaltyByBounds(ByBounds, TestPenalty):
    pass


class TestOvershooting(ByBounds, TestPenalty):
    """Updates that go beyond the means, as the search has them."""

    def start(self, model, table):
        return replace(super().start(model, table), relax=1.6)

    def moves(self):
        return [DropEmpty(), OpenClusters(), EndOverrelaxation(), RemoveCluster()]


class TestCapped(TestPenalty):
    """The same with at most three clusters (Eq. 12)."""

    cap = 3.0


class TestFixedNumber(DPMeansLaws):
    """A number of clusters, from rows as centres; empty ones are refilled."""

    def model(self, table):
        return DPMeansModel(np.inf)

    def start(self, model, table):
        """The extreme rows along the first axis, and one far from all others."""
        scaling = scaling_of(table)
        seen = scaling.transform(table.X.astype(np.float64))[table.weight() > 0.0]
        ends = seen[[np.argmin(seen[:, 0]), np.argmax(seen[:, 0])]]
        return Centers.start(scaling, np.vstack([ends, ends[:1] + 100.0]))

    def moves(self):
        return [RefillClusters()]


class TestFixedNumberByBounds(ByBounds, TestFixedNumber):
    pass
