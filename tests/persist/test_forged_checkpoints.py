"""Checkpoints whose files are whole and whose contents no fit has written."""

from dataclasses import fields, replace
from functools import partial

import numpy as np
import pytest

import crashes
from kplus import DPMeans, DPMixture, IBPGibbs
from kplus.core.errors import CheckpointError
from kplus.core.journal import EndedLoop, RunningLoop
from kplus.datasets import make_gaussian_blobs
from kplus.dp_means.model import DPMeansModel
from kplus.dp_mixture.model import DPMixtureModel
from kplus.persist import checkpoint
from kplus.persist.checkpoint import CheckpointWarning

X = make_gaussian_blobs(400, 3, 5, random_state=0)[0]


@pytest.fixture
def crash_after(monkeypatch):
    return partial(crashes.crash_after, patch=monkeypatch)


def forge(path, change):
    """Replace what is in a file; its check sums are right."""
    checkpoint.write_contents(path, change(checkpoint.read_contents(path)))


@pytest.fixture(
    params=[DPMeans(penalty=4.0), DPMixture(n_init=1)], ids=["means", "mixture"]
)
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


def loop_state(**changes):
    def changed(entries):
        (number, entry), *_ = reversed(entries.items())
        made = {name: make(entry.state) for name, make in changes.items()}
        return entries | {number: replace(entry, state=replace(entry.state, **made))}

    return changed


def state(**changes):
    return loop_state(rows=lambda s: replace(s.rows, **changes))


ENTRIES = {
    "a list": lambda entries: [entries],
    "text for a number": lambda entries: {"1": entries[1]},
    "no entry": lambda entries: {1: 5},
    "another record": lambda entries: {1: entries[1].state},
    "files that are not there": loop_state(
        rows=lambda s: replace(
            s.rows, handles=["/nowhere/x.rows"] * len(s.rows.handles)
        )
    ),
}


@pytest.mark.parametrize("change", ENTRIES)
def test_entries_of_another_kind_count_as_damaged(crashed, change):
    model, here = crashed
    _, second = sorted(here.glob("part*"))
    forge(second, ENTRIES[change])
    with pytest.warns(CheckpointWarning, match=r"000002.*the one before it is used"):
        found = type(model).resume(here, X)
    np.testing.assert_array_equal(found.labels_, model.fit(X).labels_)


def groups_of(params):
    """The arrays of parameters that have a line per group."""
    names = [f.name for f in fields(params) if f.init]
    arrays = {name: getattr(params, name) for name in names}
    return {
        name: array
        for name, array in arrays.items()
        if isinstance(array, np.ndarray) and len(array) == params.K
    }


def with_more_groups(s):
    more = {
        name: np.concatenate([array, array])
        for name, array in groups_of(s.params).items()
    }
    return replace(s.params, **more)


def flattened(s):
    return replace(
        s.params, **{n: a.ravel()[:1] for n, a in groups_of(s.params).items()}
    )


def with_other_sums(s):
    groups, base, total = s.memo
    wider = total.regroup(np.arange(total.K), total.K + 3)
    return [None if g is None else wider for g in groups], base, wider


def with_states(s, change):
    handles = [[change(state) for state in states] for states in s.rows.handles]
    return replace(s.rows, handles=handles)


def shortened(state):
    name = "labels" if hasattr(state, "upper") else "components"
    return replace(state, **{name: getattr(state, name)[:-1]})


def beyond(state):
    name = "labels" if hasattr(state, "upper") else "components"
    return replace(state, **{name: getattr(state, name) + 1000})


def renumbered_beyond(s):
    return replace(s.rows, renumberings=[(np.array([7]), 2)])


MISFITS = {
    "no states": lambda entries: {1: RunningLoop(entries[1].state, None)},
    "no history": loop_state(history=lambda s: 3),
    "history of text": loop_state(history=lambda s: ["a"]),
    "no state": loop_state(rows=lambda s: None),
    "no places": state(places=None),
    "places that are not there": state(places=[(9, 0)] * 7),
    "places before the first": state(places=[(-2, 0)] * 7),
    "too few versions": state(versions=[]),
    "versions to come": state(versions=[99] * 7),
    "no renumberings": state(renumberings=[3]),
    "no handles": state(handles=5),
    "another state": lambda entries: {1: RunningLoop(5, entries[1].others)},
    "too few states": lambda entries: {1: RunningLoop(entries[1].state, [])},
    "other states": lambda entries: {
        1: RunningLoop(entries[1].state, [3] * len(entries[1].others))
    },
    "done with other states": lambda entries: {1: EndedLoop(None, [])},
    "no parameters": loop_state(params=lambda s: None),
    "other parameters": loop_state(params=lambda s: s.rows),
    "no sums": loop_state(memo=lambda s: None),
    "sums of text": loop_state(memo=lambda s: ("a", "b", "c")),
    "state of no move": loop_state(states=lambda s: [*s.states, 1]),
    "states of another kind": state(handles=[["x"] * 7], places=[(0, 0)] * 7),
    "too few blocks": state(places=[], versions=[]),
    "another number of groups": loop_state(params=with_more_groups),
    "parameters without an axis": loop_state(params=flattened),
    "fewer batches": loop_state(memo=lambda s: ([None], *s.memo[1:])),
    "sums of other groups": loop_state(memo=with_other_sums),
    "sums of earlier rows": loop_state(
        memo=lambda s: (s.memo[0], s.memo[2], s.memo[2])
    ),
    "no summary": loop_state(memo=lambda s: (["x"], *s.memo[1:])),
    "too few rows": loop_state(rows=partial(with_states, change=shortened)),
    "groups that are not there": loop_state(rows=partial(with_states, change=beyond)),
    "renumbered beyond": loop_state(rows=renumbered_beyond),
}


@pytest.mark.parametrize("change", MISFITS)
def test_what_does_not_fit_together(crashed, change):
    model, here = crashed
    for path in here.glob("part*"):
        forge(path, MISFITS[change])
    with pytest.raises(
        CheckpointError, match=r"resume from .*here.*fit anew"
    ) as caught:
        type(model).resume(here, X)
    assert caught.value.__cause__ is not None


def first_only(value):
    """Of an array, its first entry along each axis; of names, the first."""
    if isinstance(value, tuple):
        return value[:1]
    return value[(slice(0, 1),) * value.ndim].copy()


BITS = (X[:, :3] > np.median(X[:, :3], axis=0)).astype(float)
PRIORS = [
    ("gaussian", "inv"), ("gaussian", "origin"), ("gaussian", "scatter"),
    ("zero_mean_gaussian", "inv"), ("zero_mean_gaussian", "scatter"),
    ("factor_gaussian", "origin"), ("factor_gaussian", "basis"),
    ("factor_gaussian", "names"),
    ("diag_gaussian", "inv"), ("diag_gaussian", "origin"), ("diag_gaussian", "mean"),
    ("diag_gaussian", "names"), ("spherical_gaussian", "inv"),
    ("spherical_gaussian", "names"), ("bernoulli", "ones"), ("bernoulli", "names"),
    ("bernoulli", "guess"), ("poisson", "rate"), ("poisson", "names"),
    ("negative_binomial", "dispersions"), ("negative_binomial", "counts"),
    ("multinomial", "pseudo_counts"), ("multinomial", "names"),
    ("categorical", "levels"), ("categorical", "pseudo_counts"),
    ("mixed", "where"), ("mixed", "groups"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "field"), PRIORS)
def test_a_prior_of_other_columns(tmp_path, crash_after, name, field):
    """It is learned, so that a checkpoint holds it; kernels read its arrays."""
    rows = X if "gaussian" in name or name == "mixed" else BITS
    crash_after(2)
    with pytest.raises(crashes.Crash):
        DPMixture(name, n_components=2, n_init=1, batch_size=64, random_state=0).fit(
            rows, checkpoint=tmp_path
        )

    def other(s):
        family = s.params.family
        if field == "where":
            changed = tuple(np.zeros_like(j) for j in family.where)
        else:
            changed = first_only(getattr(family, field))
        if field == "groups":  # a part of one column in place of all
            part = replace(family.parts[0], names=family.parts[0].names[:1])
            return replace(s.params, family=replace(family, parts=(part,)))
        return replace(s.params, family=replace(family, **{field: changed}))

    for path in tmp_path.glob("part*"):
        forge(path, loop_state(params=other))
    with pytest.raises(CheckpointError, match=r"resume from .*fit anew"):
        DPMixture.resume(tmp_path, rows)


def forge_records(folder, crash_after, change):
    """Crash, and let the latest file have other records of moves."""
    crash_after(2)
    with pytest.raises(crashes.Crash):
        DPMixture(batch_size=64, random_state=0).fit(X, checkpoint=folder)

    def changed(entries):
        rng, records = entries[1].others
        return {1: replace(entries[1], others=[rng, change(records)])}

    forge(max(folder.glob("part*")), changed)


@pytest.mark.parametrize("change", [lambda records: [3], lambda rs: [*rs, None]])
def test_no_records_of_moves(tmp_path, crash_after, change):
    forge_records(tmp_path, crash_after, change)
    with pytest.raises(CheckpointError, match=r"resume from .*fit anew"):
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
        rng, *others = entries[1].others
        states = [rng | {"spawned": spawned, "state": 3}, *others]
        return {1: RunningLoop(entries[1].state, states)}

    model, here = crashed
    for path in here.glob("part*"):
        forge(path, change)
    with pytest.raises(CheckpointError, match="fit anew"):
        type(model).resume(here, X)


def test_chains_resume(tmp_path, crash_after):
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
        forge(
            path, lambda entries: {1: RunningLoop(1, [change] * len(entries[1].others))}
        )
    with pytest.raises(CheckpointError, match=r"resume from .*fit anew"):
        IBPGibbs.resume(tmp_path, rows)


@pytest.mark.parametrize(
    ("module", "name"),
    [("kplus.base.progress.PassReporter", "_tell"), ("models", "objective")],
    ids=["callback", "model"],
)
@pytest.mark.parametrize("kind", [AttributeError, TypeError, AssertionError, KeyError])
def test_bugs_are_not_blamed_on_the_checkpoint(
    crashed, monkeypatch, module, name, kind
):
    def wrong(*given):
        raise kind("a bug")

    model, here = crashed
    if module == "models":
        owner = DPMeansModel if isinstance(model, DPMeans) else DPMixtureModel
        monkeypatch.setattr(owner, name, wrong)
    else:
        monkeypatch.setattr(f"{module}.{name}", wrong)
    with pytest.raises(kind, match="a bug"):
        type(model).resume(here, X)
