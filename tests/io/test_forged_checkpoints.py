"""Checkpoints whose files are whole and whose contents no fit has written."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest

import crashes
from kplus import DPMeans, DPMixture, IBPGibbs
from kplus.core.errors import CheckpointError
from kplus.core.packing import pack, unpack
from kplus.datasets import make_gaussian_blobs
from kplus.io import checkpoint
from kplus.io.archive import open_archive, write_archive
from kplus.io.checkpoint import CheckpointWarning
from kplus.search.journal import Done, Kept

X = make_gaussian_blobs(400, 3, 5, random_state=0)[0]


@pytest.fixture
def crash_after(monkeypatch):
    return partial(crashes.crash_after, patch=monkeypatch)


def forge(path, change):
    """Replace what is in a file; its check sums are right."""
    with open_archive(path, checkpoint.KIND) as archive:
        found = unpack({name: archive.read(name) for name in archive.specs})
    write_archive(path, {}, pack(change(found)), checkpoint.KIND)


@pytest.fixture(params=[DPMeans(penalty=4.0), DPMixture()], ids=["means", "mixture"])
def crashed(request, tmp_path, crash_after):
    """A model and the folder of its checkpoint."""
    model = request.param.set_params(batch_size=64, random_state=0)
    crash_after(2)
    with pytest.raises(crashes.Crash):
        type(model)(**model.get_params()).fit(X, checkpoint=tmp_path / "here")
    return model, tmp_path / "here"


FITS = {
    "no rows": lambda fit: fit | {"rows": {}},
    "rows of another kind": lambda fit: fit | {"rows": {"n_rows": "many"}},
    "no parameters": lambda fit: fit | {"params": {}},
    "unknown parameter": lambda fit: fit | {"params": fit["params"] | {"odd": 1}},
    "no text": lambda fit: fit | {"params": {1: 2}},
    "value of another kind": lambda fit: fit | {"params": fit["params"] | {"tol": "x"}},
    "no number": lambda fit: fit | {"params": fit["params"] | {"batch_size": [1]}},
    "no threads": lambda fit: fit | {"params": fit["params"] | {"n_jobs": 0}},
    "a list": lambda fit: [fit],
    "nothing": lambda fit: None,
    "no class": lambda fit: fit | {"class": None},
}


@pytest.mark.parametrize("change", FITS)
def test_what_fit_it_is(crashed, change):
    model, here = crashed
    forge(here / "fit.kplus", FITS[change])
    with pytest.raises(CheckpointError, match=r"here.*fit anew"):
        type(model).resume(here, X)


def standing(**changes):
    def changed(entries):
        (number, entry), *_ = reversed(entries.items())
        made = {name: make(entry.standing) for name, make in changes.items()}
        return entries | {
            number: replace(entry, standing=replace(entry.standing, **made))
        }

    return changed


def state(**changes):
    return standing(rows=lambda s: replace(s.rows, **changes))


ENTRIES = {
    "a list": lambda entries: [entries],
    "text for a number": lambda entries: {"1": entries[1]},
    "no entry": lambda entries: {1: 5},
    "another record": lambda entries: {1: entries[1].standing},
    "no memories": lambda entries: {1: Kept(entries[1].standing, None)},
    "no history": standing(history=lambda s: 3),
    "history of text": standing(history=lambda s: ["a"]),
    "no state": standing(rows=lambda s: None),
    "no places": state(places=None),
    "places that are not there": state(places=[(9, 0)] * 7),
    "places before the first": state(places=[(-2, 0)] * 7),
    "too few versions": state(versions=[]),
    "versions to come": state(versions=[99] * 7),
    "no renumberings": state(renumberings=[3]),
    "nothing put": state(put=5),
    "a file that is not there": state(put=["/nowhere/x.rows"]),
}


@pytest.mark.parametrize("change", ENTRIES)
def test_entries_of_another_kind_count_as_damaged(crashed, change):
    model, here = crashed
    _, second = sorted(here.glob("part*"))
    forge(second, ENTRIES[change])
    with pytest.warns(CheckpointWarning, match=r"000002.*the one before it is used"):
        found = type(model).resume(here, X)
    np.testing.assert_array_equal(found.labels_, model.fit(X).labels_)


MISFITS = {
    "another standing": lambda entries: {1: Kept(5, entries[1].memories)},
    "too few memories": lambda entries: {1: Kept(entries[1].standing, [])},
    "other memories": lambda entries: {
        1: Kept(entries[1].standing, [3] * len(entries[1].memories))
    },
    "done with other memories": lambda entries: {1: Done(None, [])},
    "no parameters": standing(params=lambda s: None),
    "other parameters": standing(params=lambda s: s.rows),
    "no sums": standing(memo=lambda s: None),
    "sums of text": standing(memo=lambda s: ("a", "b", "c")),
    "memories of no move": standing(memories=lambda s: [*s.memories, 1]),
    "states of another kind": state(put=[["x"] * 7], places=[(0, 0)] * 7),
    "too few blocks": state(places=[], versions=[]),
}


@pytest.mark.parametrize("change", MISFITS)
def test_what_does_not_fit_together(crashed, change):
    model, here = crashed
    for path in here.glob("part*"):
        forge(path, MISFITS[change])
    with pytest.raises(CheckpointError, match=r"go on from .*here.*fit anew") as caught:
        type(model).resume(here, X)
    assert caught.value.__cause__ is not None


def forge_records(folder, crash_after, change):
    """Crash, and let the latest file have other records of moves."""
    crash_after(2)
    with pytest.raises(crashes.Crash):
        DPMixture(batch_size=64, random_state=0).fit(X, checkpoint=folder)

    def changed(entries):
        chance, records = entries[1].memories
        return {1: replace(entries[1], memories=[chance, change(records)])}

    forge(max(folder.glob("part*")), changed)


@pytest.mark.parametrize("change", [lambda records: [3], lambda rs: [*rs, None]])
def test_no_records_of_moves(tmp_path, crash_after, change):
    forge_records(tmp_path, crash_after, change)
    with pytest.raises(CheckpointError, match=r"go on from .*fit anew"):
        DPMixture.resume(tmp_path, X)


@pytest.mark.parametrize(
    ("name", "value"), [("target", 5), ("iteration", [[]]), ("change", "x")]
)
def test_records_of_moves(tmp_path, crash_after, name, value):
    def change(records):
        setattr(records[0], name, value)
        return records

    forge_records(tmp_path, crash_after, change)
    with pytest.warns(CheckpointWarning, match="the one before it is used"):
        DPMixture.resume(tmp_path, X)


@pytest.mark.parametrize("spawned", [2**40, None, "x", -5.5])
def test_random_numbers(crashed, spawned):
    def change(entries):
        chance, *others = entries[1].memories
        memories = [chance | {"spawned": spawned, "state": 3}, *others]
        return {1: Kept(entries[1].standing, memories)}

    model, here = crashed
    for path in here.glob("part*"):
        forge(path, change)
    with pytest.raises(CheckpointError, match="fit anew"):
        type(model).resume(here, X)


def test_chains_go_on(tmp_path, crash_after):
    """They have no threads."""
    crash_after(2)
    model = IBPGibbs(burn_in=3, n_samples=3, random_state=0)
    with pytest.raises(crashes.Crash):
        model.fit(X[:40], checkpoint=tmp_path)
    found = IBPGibbs.resume(tmp_path, X[:40])
    assert found.log_joint_ == IBPGibbs(**model.get_params()).fit(X[:40]).log_joint_


@pytest.mark.parametrize("change", [3, "x", None, []])
def test_chains(tmp_path, crash_after, change):
    rows = X[:40]
    crash_after(2)
    with pytest.raises(crashes.Crash):
        IBPGibbs(burn_in=3, n_samples=3, random_state=0).fit(rows, checkpoint=tmp_path)
    for path in tmp_path.glob("part*"):
        forge(path, lambda entries: {1: Kept(1, [change] * len(entries[1].memories))})
    with pytest.raises(CheckpointError, match=r"go on from .*fit anew"):
        IBPGibbs.resume(tmp_path, rows)


def test_errors_of_callbacks_are_theirs(crashed, monkeypatch):
    from kplus.estimators._progress import PassReporter

    def wrong(self, info):
        raise KeyError("of the user")

    model, here = crashed
    monkeypatch.setattr(PassReporter, "_tell", wrong)
    with pytest.raises(KeyError, match="of the user"):
        type(model).resume(here, X)
