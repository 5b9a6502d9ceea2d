import os
import subprocess
import sys
import tempfile
from collections import OrderedDict
from dataclasses import asdict
from fractions import Fraction
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError

from kplus.persist import ArrayInfo, inspect, load, save
from kplus.persist import archive as archive_module


def same(a, b):
    """Equal in type, dtype, memory order and every bit."""
    if isinstance(a, np.ndarray):
        return (
            a.dtype == b.dtype
            and a.shape == b.shape
            and a.flags.f_contiguous == b.flags.f_contiguous
            and (a.tolist() == b.tolist() if a.dtype == object else bits(a) == bits(b))
        )
    if type(a) is not type(b):
        return False
    if isinstance(a, list | tuple):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict):
        return list(a) == list(b) and all(same(a[k], b[k]) for k in a)
    if hasattr(a, "__dataclass_fields__"):
        return same(vars(a), vars(b))
    if isinstance(a, np.generic):
        return a.tobytes() == b.tobytes()
    return repr(a) == repr(b)


def bits(array):
    return array.tobytes(order="A")


def round_trip(estimator):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.npz"
        save(estimator, path)
        return load(path)


# ------------------------------------------------------------ round trips


def test_everything_comes_back_bit_for_bit(model, saved, data):
    again = load(saved)
    assert type(again) is type(model)
    assert same(vars(again), vars(model))
    assert bits(again.predict(data)) == bits(model.predict(data))


def test_the_npz_can_be_read_by_numpy_alone(model, saved):
    with np.load(saved, allow_pickle=False) as file:
        assert same(file["cluster_centers_"], model.cluster_centers_)
        assert file["feature_names_in_"].tolist() == list(model.feature_names_in_)


def test_equal_models_make_equal_files(model, saved, tmp_path):
    save(model, tmp_path / "other.npz")
    assert (tmp_path / "other.npz").read_bytes() == saved.read_bytes()


def test_loaded_model_is_usable_as_a_new_one(saved, data):
    again = load(saved)
    again.labels_[0] = 1  # arrays are writable
    again.fit(data).predict(data)


def test_private_state_goes_through_the_hooks(stubs, data):
    stream = stubs.StubStream().fit(data)
    assert same(vars(round_trip(stream)), vars(stream))


@pytest.mark.parametrize("n", [0, 3])
def test_structured_arrays_come_back_column_by_column(stubs, data, n):
    fields = [("größe", "<f8"), ("b", ">i4"), ("c", "?"), ("d", "<U5")]
    table = np.arange(n).astype([(name, dtype) for name, dtype in fields])
    again = round_trip(stubs.StubModel(extra=table).fit(data)).extra
    assert again.dtype == table.dtype
    assert bits(again) == bits(table)


def test_sizes_above_the_zip32_limit(model, tmp_path, monkeypatch):
    monkeypatch.setattr("zipfile.ZIP64_LIMIT", 100)
    save(model, tmp_path / "big.npz")
    assert b"PK\x06\x06" in (tmp_path / "big.npz").read_bytes()
    assert same(vars(load(tmp_path / "big.npz")), vars(model))


scalars = (
    st.none()
    | st.booleans()
    | st.integers(-(2**80), 2**80)
    | st.floats()
    | st.text(st.characters(), max_size=5)
    | st.sampled_from([np.int8(-3), np.uint64(2**64 - 1), np.bool_(True)])
    | st.floats(width=32).map(np.float32)
    | st.floats().map(np.float64)
)
array_dtypes = (
    hnp.boolean_dtypes()
    | hnp.integer_dtypes(endianness="?")
    | hnp.unsigned_integer_dtypes()
    | hnp.floating_dtypes(endianness="?")
    | hnp.complex_number_dtypes()
    | hnp.unicode_string_dtypes(endianness="?", min_len=1, max_len=4)
)
arrays = hnp.arrays(
    array_dtypes, hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4)
)
values = st.recursive(
    scalars | arrays | arrays.map(np.asfortranarray),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.lists(inner, max_size=3).map(tuple)
        | st.dictionaries(st.text(max_size=3) | st.integers(), inner, max_size=3)
    ),
    max_leaves=6,
)


@given(parameter=values, attribute=values)
def test_any_value_comes_back(stubs, parameter, attribute):
    model = stubs.StubModel(extra=parameter)
    model.thing_ = attribute
    again = round_trip(model)
    assert same(again.extra, parameter)
    assert same(again.thing_, attribute)


@given(
    hnp.arrays(
        object,
        hnp.array_shapes(max_dims=2),
        elements=st.text(st.characters(), max_size=5),
    )
)
def test_arrays_of_text_objects_stay_objects(stubs, names):
    model = stubs.StubModel()
    model.feature_names_in_ = names
    again = round_trip(model).feature_names_in_
    assert again.dtype == object
    assert again.tolist() == names.tolist()


def test_numpy_text_becomes_plain_text(stubs, data):
    again = round_trip(stubs.StubModel(penalty=np.str_("auto")).fit(data))
    assert type(again.penalty) is str


def test_strided_and_mapped_arrays_are_stored_by_value(stubs, tmp_path):
    np.save(tmp_path / "a.npy", np.arange(12.0).reshape(3, 4))
    model = stubs.StubModel()
    model.strided_ = np.arange(24).reshape(4, 6)[::2, ::-2]
    model.mapped_ = np.load(tmp_path / "a.npy", mmap_mode="r")
    again = round_trip(model)
    np.testing.assert_array_equal(again.strided_, model.strided_)
    np.testing.assert_array_equal(again.mapped_, model.mapped_)
    assert type(again.mapped_) is np.ndarray


LONG = {
    "text": [f"{i:05}" for i in range(40_000)],
    "text of other lengths": ["x" * 10**6, *(str(i) for i in range(40_000))],
    "text that ends in a null character": [f"{i}\0" for i in range(40_000)],
    "odd text": ["", "\ud800", "größe", "\U0010ffff"] * 20,
    "empty text": [""] * 100,
    "booleans": [True, False] * 20_000,
    "integers": list(range(-20_000, 20_000)),
    "large integers": [2**63 + i for i in range(40_000)],
    "floats": [float("nan"), -0.0, 1e-310, float("inf")] * 10_000,
    "a mixture": [1, 1.0, True, "1", None] * 8_000,
    "arrays": [np.arange(i % 5) for i in range(40_000)],
    "lists": [("a", "b"), None, (1,)] * 13_000,
}


@pytest.mark.parametrize("kind", LONG)
def test_long_lists(stubs, kind):
    values = LONG[kind]
    model = stubs.StubModel(extra=values)
    model.tuple_, model.array_ = tuple(values), np.empty(len(values), dtype=object)
    model.array_[:] = values
    model.dict_ = dict(enumerate(values))
    again = round_trip(model)
    assert same(again.extra, values)
    assert same(again.tuple_, tuple(values))
    assert same(again.array_.tolist(), values)
    assert same(again.dict_, model.dict_)


def test_files_are_not_much_longer_than_what_they_hold(stubs, tmp_path):
    path = tmp_path / "model.npz"
    for kind in ("text", "text of other lengths"):
        save(stubs.StubModel(extra=LONG[kind]).fit(np.eye(3)), path)
        assert path.stat().st_size < 6 * sum(map(len, LONG[kind]))


def test_what_is_there_twice_is_stored_once(model, tmp_path):
    model.extra = (LONG["text"], np.arange(9000))
    model.list_, model.array_ = model.extra
    save(model, tmp_path / "model.npz")
    assert (tmp_path / "model.npz").stat().st_size < 900_000
    again = load(tmp_path / "model.npz")
    assert again.extra[0] is again.list_
    assert again.extra[1] is again.array_


class Name(str):
    pass


@pytest.mark.parametrize(
    ("given", "plain"),
    [
        (Fraction(1, 4), 0.25),
        (np.longdouble(2), 2.0),
        (Name("a"), "a"),
        (OrderedDict(a=1), {"a": 1}),
        (pd.Index(["a", "b"]), np.array(["a", "b"], dtype=object)),
        (range(2, 9, 3), range(2, 9, 3)),
        (np.array(["a", None, 1.5]), np.array(["a", None, 1.5])),
    ],
    ids=repr,
)
def test_what_stands_for_a_plain_value_becomes_one(stubs, data, given, plain):
    assert same(round_trip(stubs.StubModel(extra=given).fit(data)).extra, plain)


@pytest.mark.parametrize("bits", ["0000c07f", "0000c0ff", "0100c07f"])
def test_a_nan_keeps_its_sign_and_payload(stubs, data, bits):
    nan = np.frombuffer(bytes.fromhex(bits), np.float32)[0]
    again = round_trip(stubs.StubModel(extra=nan).fit(data)).extra
    assert type(again) is np.float32
    assert again.tobytes().hex() == bits


def test_any_names(stubs, data):
    stream = stubs.StubStream().fit(data)
    state = {"a": [np.zeros(1)], "a.0": np.ones(1), "../a": np.zeros(2), "": np.ones(3)}
    stream._to_state = lambda: state | {"n_seen": 6, "sums": 0}
    found = {}
    stubs.StubStream._from_state, original = (
        lambda self, kept: found.update(kept),
        stubs.StubStream._from_state,
    )
    try:
        round_trip(stream)
    finally:
        stubs.StubStream._from_state = original
    assert same({name: found[name] for name in state}, state)


def test_a_parameter_that_the_file_lacks_takes_its_default(bench, tmp_path):
    del bench.manifest["params"]["penalty"]
    assert load(bench.pack(tmp_path / "older.npz")).penalty == "auto"


# ------------------------------------------------------------ inspect


def test_inspect_lists_parameters_scalars_and_shapes(saved):
    info = inspect(saved)
    assert (info.class_name, info.schema) == ("StubModel", 2)
    assert info.file_size == saved.stat().st_size
    assert info.params["penalty"] == "auto"
    assert info.params["extra"] == ArrayInfo("int64", (4,))
    assert info.attributes["n_clusters_"] == 3
    assert type(info.attributes["objective_"]) is float
    assert info.attributes["cluster_centers_"] == ArrayInfo("float64", (3, 3))
    assert info.attributes["feature_names_in_"] == ArrayInfo("object", (3,))
    assert info.attributes["path_"]["penalties"] == ArrayInfo("float64", (2,))
    assert asdict(info)["attributes"]["labels_"] == {"dtype": "int32", "shape": (6,)}


def test_inspect_reads_no_array(bench, tmp_path):
    damaged = bytearray(bench.members["labels_.npy"])
    damaged[-1] ^= 1
    bench.members["labels_.npy"] = bytes(damaged)
    path = bench.pack(tmp_path / "m.npz")
    assert inspect(path).attributes["labels_"].shape == (6,)
    with pytest.raises(ValueError, match="SHA-256"):
        load(path)


def test_inspect_does_not_import_scikit_learn(saved, tmp_path):
    code = (
        "import sys, kplus.persist; from kplus.core import storable;"
        "storable.ESTIMATORS['StubModel'] = 'nowhere';"
        f"kplus.persist.inspect({str(saved)!r}); assert 'sklearn' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


# ------------------------------------------------------------ what save refuses


def test_unfitted_estimator(stubs, tmp_path):
    with pytest.raises(NotFittedError, match="call fit before saving"):
        save(stubs.StubModel(), tmp_path / "m.npz")
    assert os.listdir(tmp_path) == []


def test_foreign_class_subclass_and_namesake(stubs, tmp_path, data):
    class Other(stubs.StubModel):
        pass

    namesake = type("StubModel", (BaseEstimator,), {})()
    for estimator in (Other().fit(data), namesake, object(), None):
        with pytest.raises(TypeError, match=r"can are BPMeans, CRAFT, .*StubModel"):
            save(estimator, tmp_path / "m.npz")


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (np.random.RandomState(0), "params.extra is a random generator.*set_params"),
        (np.random.default_rng(0), "params.extra is a random generator.*set_params"),
        (len, "params.extra is a builtins.builtin_function"),
        (1j, "complex"),
        (np.complex128(1), "complex128"),
        (np.datetime64("2020-01-01"), "datetime64"),
        (b"bytes", "bytes"),
        ({1, 2}, "set"),
        (np.ma.masked_array([1]), "MaskedArray"),
        (np.array([object()]), r"params.extra\.0 is a builtins.object"),
        (np.array([b"a"]), r"dtype \|S1"),
        (np.zeros((2, 2), "i4,f8"), "dtype"),
        (np.zeros(2, [("a", "i4,f8")]), "dtype"),
        (np.zeros(2, [("a", "f8", (3,))]), "dtype"),
        (np.zeros(2, np.dtype("i1,f8", align=True)), "dtype"),
        (np.array(["2020"], "M8[Y]"), "dtype"),
        ([[object()]], r"params.extra\.0\.0 is a builtins.object"),
    ],
)
def test_values_that_a_file_cannot_hold(stubs, tmp_path, data, value, message):
    model = stubs.StubModel().fit(data).set_params(extra=value)
    with pytest.raises(TypeError, match=message):
        save(model, tmp_path / "m.npz")
    assert os.listdir(tmp_path) == []


def test_endless_nesting(model, tmp_path):
    model.extra = []
    model.extra.append(model.extra)
    with pytest.raises(TypeError, match="nested too deeply"):
        save(model, tmp_path / "m.npz")


def test_a_failed_save_keeps_the_old_file(model, saved, monkeypatch):
    before = saved.read_bytes()

    def fail(array, file):
        file.write(b"some")
        raise OSError("disk full")

    monkeypatch.setattr(archive_module, "write_npy", fail)
    with pytest.raises(OSError, match="disk full"):
        save(model, saved)
    assert saved.read_bytes() == before
    assert os.listdir(saved.parent) == [saved.name]
