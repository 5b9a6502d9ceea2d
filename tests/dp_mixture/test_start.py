"""Where passes of a mixture begin: fresh parameters, other masses, enough rows."""

from dataclasses import replace

import numpy as np
import pytest

import mixture_reference as mixture
from kplus.data.blocks import ArrayBlocks
from kplus.dp_mixture.params import Collected, MixtureStats, Plan
from kplus.engine import SerialEngine
from mixture_reference import CASES


def setting(n=90, K=4, **settings):
    X = CASES["gaussian"].rows(n)
    model = CASES["gaussian"].model(X, **settings)
    return model, X, mixture.components(model, X, mixture.some_shares(n, K))


@pytest.mark.parametrize("mass", [9.0, 90.0, 9000.0])
def test_components_as_if_seen_in_more_rows(mass):
    """Counts and sums grow with the mass: what components are like does not change."""
    model, _, params = setting()
    other = model.rescaled(params, mass)
    assert other.mass == mass
    assert other.N.sum() == pytest.approx(mass)
    np.testing.assert_allclose(other.N / mass, params.N / params.mass)
    np.testing.assert_allclose(
        other.S / other.N[:, None], params.S / params.N[:, None], rtol=1e-9
    )


def test_a_fresh_posterior_compares_every_row_with_all_components():
    _, _, params = setting()
    plan = params.plan
    assert plan == Plan()
    assert plan.everyone
    assert not plan.frozen
    assert plan.targets is None
    assert params.visits == 0
    np.testing.assert_array_equal(params.tried, 0.0)
    np.testing.assert_array_equal(params.waited, 1)


@pytest.mark.parametrize("seed", range(5))
def test_enough_rows_are_noted_where_there_are_enough(seed):
    """A draw by priorities must not fall short of the number asked for."""
    model, X, _ = setting(2000, n_collect=200)
    params = mixture.components(model, X, np.ones((2000, 1)))
    params = replace(params, plan=Plan(targets=np.array([0]), seed=seed))
    with SerialEngine(ArrayBlocks(X, 300)) as engine:
        total = engine.sweep(model, params, range(engine.n_blocks))
    noted = Collected.joined(total.collected)
    assert len(noted.lowest(200).rows) == 200
    assert len(noted.rows) < 600  # and not by noting all


def test_an_empty_summary_adds_nothing():
    model, X, params = setting()
    with SerialEngine(ArrayBlocks(X, 90)) as engine:
        total = engine.sweep(model, params, range(1))
    again = MixtureStats.zeros(4, model.family.n_stats)
    again += total
    assert total.mass == 90.0
    for name, value in vars(total).items():
        np.testing.assert_array_equal(getattr(again, name), value, err_msg=name)


SPLITMIX64 = {1: 0xE220A8397B1DCDAF, 2: 0x6E789E6AA1B965F4, 3: 0x06C45D188009454F}


@pytest.mark.parametrize(("seed", "expected"), list(SPLITMIX64.items()))
def test_priorities_are_the_published_numbers_of_splitmix64(seed, expected):
    """Its first numbers from state 0: what the seeds 1, 2 and 3 give row 0."""
    model, X, params = setting(n_collect=1000)
    params = replace(params, plan=Plan(targets=np.arange(4), seed=seed))
    with SerialEngine(ArrayBlocks(X, 30)) as engine:
        noted = Collected.joined(engine.sweep(model, params, range(3)).collected)
    mine = noted.priority[noted.rows == 0]
    assert len(mine) > 0
    np.testing.assert_array_equal(mine, (expected >> 11) * 2.0**-53)
