"""Files hurt at random: errors with names, no hang, no crash, no memory to speak of.

Files are read in a process of its own, as readers written in C++ could take it down.
"""

import importlib.util
import json
import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fuzz.kinds import KINDS
from kplus.core.decoding import decode
from kplus.core.encoding import Encoder
from kplus.core.errors import ModelFormatError
from kplus.core.storable import RECORDS_AND_STATES

pytest.importorskip("pyarrow")
CHILD = Path(__file__).parent / "child.py"
QUICK, SLOW = 2_000, 100_000
MEMORY = 32 * 2**20  # beyond twice the size of the file
SECONDS = 5.0
linux = pytest.mark.skipif(
    not Path("/proc/self/clear_refs").exists(), reason="memory is read from /proc"
)
NAMES = [
    name
    for name in KINDS
    if name != "zarr" or importlib.util.find_spec("zarr") is not None
]


def fuzz(names, count, seed, folder):
    """Hurt so many files of all kinds; return what the process reports."""
    path = os.pathsep.join([str(Path(__file__).parents[1]), *sys.path])
    done = subprocess.run(
        [sys.executable, CHILD, str(count), str(seed), *names],
        env=os.environ | {"PYTHONPATH": path, "FUZZ_FOLDER": str(folder)},
        capture_output=True,
        text=True,
        timeout=3600,
    )
    if done.returncode < 0:
        (last,) = folder.rglob("last")
        name = signal.Signals(-done.returncode).name
        pytest.fail(f"{name} at {last.read_text()}; the file is in {last.parent}")
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout)


def check(report):
    for name, found in report.items():
        assert not found["wrong"], f"{name}:\n" + "\n\n".join(found["wrong"])
        assert found["counts"].get("read", 0) > 0, name  # some are still whole
        assert sum(found["counts"].values()) > found["counts"]["read"]
        assert found["memory"] <= 2 * found["size"] + MEMORY, name
        assert found["seconds"] < SECONDS, name


@linux
def test_hurt_files(tmp_path):
    check(fuzz(NAMES, QUICK, 0, tmp_path))


@linux
@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_many_hurt_files(name, tmp_path):
    report = fuzz([name], SLOW, 1, tmp_path)
    print(json.dumps({name: report[name] | {"wrong": len(report[name]["wrong"])}}))
    check(report)


# ------------------------------------------------ outlines that hypothesis makes

LEAVES = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=10)
    | st.sampled_from(["f8", "i4", "C", "F", "list", "tuple", "float64", "nan"])
    | st.sampled_from(["State", "Coding", "MoveRecord", "Block", "os:system"])
    | st.tuples(st.sampled_from(["f8", "i4"]), st.integers(0, 3)).map(
        lambda part: {"kind": "part", "at": [*part, [2], "C"]}
    )
)


def decoded(outline):
    arrays = {"f8": np.arange(9.0), "i4": np.arange(4, dtype="i4")}
    return decode(json.loads(json.dumps(outline)), arrays, RECORDS_AND_STATES)


def part(*at):
    return {"kind": "part", "at": list(at)}


@given(
    st.sampled_from(["f8", "i4", "u1", "O", "<f8"]),
    st.integers(-(2**70), 2**70) | st.integers(-3, 12),
    st.lists(st.integers(-(2**40), 2**70) | st.integers(-1, 4), max_size=4),
    st.sampled_from("CFK") | st.none(),
)
def test_outlines_of_arrays(kind, start, shape, order):
    try:
        found = decoded(part(kind, start, shape, order))
    except ModelFormatError:
        return
    assert found.shape == tuple(shape)
    assert found.nbytes <= 72


def test_arrays_are_not_multiplied():
    """A short outline must not fill the memory with copies of one array."""
    found = decoded([part("f8", 0, [9], "C")] * 1000)
    assert all(array is found[0] for array in found)
    with pytest.raises(ModelFormatError, match="numbers that are not there"):
        decoded([part("f8", 0, [8], "C"), part("f8", 1, [8], "C")])


def test_classes_that_are_not_listed():
    for name in (
        "kplus.core.loop:Standing",
        "kplus.core.loop.Standing",
        "Block",
        "x.State",
        "",
    ):
        with pytest.raises(ModelFormatError, match="unknown"):
            decoded({"kind": "record", "class": name, "fields": {}})


KEYS = ("items", "columns", "name", "class", "fields", "dtype", "value", "bits", "at")
WHOLE = {
    "record": ("class", "fields"),
    "scalar": ("dtype", "value"),
    "dict": ("items",),
    "map": ("keys", "values"),
    "values": ("type", "array"),
    "objects": ("shape", "items"),
    "range": ("items",),
    "part": ("at",),
    "table": ("columns",),
}


def manifests(inner):
    """Lists, values of some kind with any keys, and values with the keys of a kind."""
    kinds = st.sampled_from([*WHOLE, "tuple", "array", "nan", "float", "x"])
    return st.one_of(
        st.lists(inner, max_size=4),
        st.fixed_dictionaries({"kind": kinds}, optional=dict.fromkeys(KEYS, inner)),
        *(
            st.fixed_dictionaries({"kind": st.just(kind)} | dict.fromkeys(keys, inner))
            for kind, keys in WHOLE.items()
        ),
    )


MANIFEST = st.recursive(LEAVES, manifests, max_leaves=12)


@given(MANIFEST)
@settings(max_examples=500)
def test_outlines(node):
    with suppress(ModelFormatError):
        decoded(node)


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False),
        lambda inner: st.lists(inner, max_size=4) | st.tuples(inner, inner),
        max_leaves=20,
    )
)
def test_whatever_is_encoded_comes_back(value):
    encoder = Encoder("a file", RECORDS_AND_STATES)
    outline = json.loads(json.dumps(encoder.encode(value, "value")))
    assert decode(outline, encoder.arrays, RECORDS_AND_STATES) == value
