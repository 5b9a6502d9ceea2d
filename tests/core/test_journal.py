"""Searches resumed after a crash, from any pass, end at the same bits."""

import copy
import json
from dataclasses import is_dataclass, replace
from functools import partial

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from kplus import DPMixture, IBPGibbs
from kplus.base import job as _job
from kplus.core.decoding import decode
from kplus.core.encoding import Encoder
from kplus.core.journal import RngState
from kplus.core.storable import RECORDS_AND_STATES
from kplus.craft import estimator as _craft
from kplus.craft import search as craft_driver
from kplus.dp_means import estimator as _dp_means
from kplus.dp_mixture import estimator as _dp_mixture
from kplus.dp_mixture.families import NAMES
from kplus.features import estimator as _features
from kplus.features import search as features_driver
from kplus.ibp import meibp as _meibp
from kplus.ibp import meibp_search as ibp_driver
from kplus.ibp import variational as _ibp_variational
from kplus.ibp import variational_search as variational
from kplus.ibp.gibbs import estimator as gibbs
from loop_fits import FITS, features

_MODULES = _craft, _dp_means, _dp_mixture, _features, _ibp_variational, _meibp


class Crash(Exception):
    pass


def stored(value):
    """It as it comes back from a file."""
    encoder = Encoder("a file", RECORDS_AND_STATES)
    outline = json.loads(json.dumps(encoder.encode(value, "value")))
    return decode(outline, encoder.arrays, RECORDS_AND_STATES)


class MemoryJournal:
    """A journal in memory that is written after every pass, and then may crash."""

    rows = None

    def __init__(self, entries=None, crash=np.inf):
        self.entries = {} if entries is None else entries
        self.crash, self.n_kept, self.begun = crash, 0, 0

    def next(self):
        self.begun += 1
        return self.begun

    def find(self, number):
        return self.entries.get(number)

    def save_result(self, number, entry):
        self.entries[number] = stored(entry)

    def save(self, number, entry):
        self.entries[number] = stored(entry())
        self.n_kept += 1
        if self.n_kept >= self.crash:
            raise Crash


def fitted(make, X, journal, monkeypatch):
    def with_journal(*arguments):
        return replace(_job.job_of(*arguments), journal=journal)

    for module in (features_driver, craft_driver, variational):
        monkeypatch.setattr(module, "_SAMPLE_ROWS", 60)  # much is left to the passes
    monkeypatch.setattr(ibp_driver, "_FIRST_ROWS", 60)
    monkeypatch.setattr(ibp_driver, "_MORE_ROWS", 60)
    model = make().set_params(random_state=0)
    for module in _MODULES:
        monkeypatch.setattr(module, "job_of", with_journal)
    return model.fit(X)


def same(one, other):
    if is_dataclass(one):
        return same(vars(one), vars(other))
    if isinstance(one, dict):
        return all(same(value, other[key]) for key, value in one.items())
    if isinstance(one, np.ndarray):
        return np.array_equal(one, other, equal_nan=one.dtype.kind == "f")
    return one == other


def with_gaps():
    X = features()[:80]
    X[np.random.default_rng(0).random(X.shape) < 0.1] = np.nan
    return X


CHAINS = {
    "accelerated": IBPGibbs(burn_in=4, n_samples=4),
    "collapsed": IBPGibbs(sampler="collapsed", burn_in=3, n_samples=3),
    "uncollapsed": IBPGibbs(sampler="uncollapsed", thin=2, burn_in=3, n_samples=3),
    "nonnegative": IBPGibbs(
        sampler="uncollapsed", prior="nonnegative", negative="shift", burn_in=2,
        n_samples=4, store_samples=True,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CHAINS)
@pytest.mark.parametrize("data", [features, with_gaps])
def test_chains_resume_to_the_same_bits(name, data, monkeypatch):
    X, plain = data()[:80], gibbs.run_chain
    model = CHAINS[name].set_params(random_state=0)

    def fitted(journal):
        monkeypatch.setattr(
            gibbs, "run_chain", lambda *given: plain(*given[:-1], journal)
        )
        return vars(clone(model).fit(X))

    whole = MemoryJournal()
    expected = fitted(whole)
    for crash in range(1, whole.n_kept + 1):
        journal = MemoryJournal(crash=crash)
        with pytest.raises(Crash):
            fitted(journal)
        again = MemoryJournal(copy.deepcopy(journal.entries))
        found = fitted(again)
        assert again.n_kept == whole.n_kept - crash
        for key, value in expected.items():
            if key == "fit_report_":
                continue
            if key.endswith("_") or key in ("_samples", "_sizes"):
                assert same(value, found[key]), key


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", FITS)
def test_from_every_pass_a_fit_resumes_to_the_same_bits(name, monkeypatch):
    make, data = FITS[name]
    X = data()
    whole = MemoryJournal()
    expected = vars(fitted(make, X, whole, monkeypatch))
    assert whole.n_kept > 1
    for crash in range(1, whole.n_kept + 1):
        journal = MemoryJournal(crash=crash)
        with pytest.raises(Crash):
            fitted(make, X, journal, monkeypatch)
        again = MemoryJournal(copy.deepcopy(journal.entries))
        found = vars(fitted(make, X, again, monkeypatch))
        assert again.n_kept == whole.n_kept - crash
        for key, value in expected.items():
            if key.endswith("_") and key != "fit_report_":
                assert same(value, found[key]), key


COUNTS = np.random.default_rng(0).poisson([[1.0, 6.0, 2.0]], (300, 3)).astype(float)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", NAMES)
def test_every_family_resumes(name, monkeypatch):
    """What a checkpoint holds of it is what the classes declare."""
    X = np.minimum(COUNTS, 1.0) if name == "bernoulli" else COUNTS
    if name == "mixed":
        X = pd.DataFrame({"a": COUNTS[:, 0] + 0.5, "b": COUNTS[:, 1].astype(str)})
    make = partial(DPMixture, name, n_components=3, n_init=1, batch_size=64)
    journal = MemoryJournal(crash=2)
    with pytest.raises(Crash):
        fitted(make, X, journal, monkeypatch)
    found = fitted(make, X, MemoryJournal(copy.deepcopy(journal.entries)), monkeypatch)
    expected = fitted(make, X, MemoryJournal(), monkeypatch)
    np.testing.assert_array_equal(found.labels_, expected.labels_)


def test_an_rng_state_is_set_with_all_that_was_spawned():
    rng = np.random.default_rng(3)
    rng.random(5)
    rng.spawn(2)
    state = RngState(rng).state
    expected = rng.random(3), [child.random() for child in rng.spawn(2)]
    other = np.random.default_rng(3)
    RngState(other).state = state
    found = other.random(3), [child.random() for child in other.spawn(2)]
    np.testing.assert_array_equal(found[0], expected[0])
    assert found[1] == expected[1]
