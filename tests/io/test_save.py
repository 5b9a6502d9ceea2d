import os
import subprocess
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError

from kplus.io import ArrayInfo, inspect, load, save
from kplus.io import archive as archive_module
from kplus.io import values as values_module


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
        | st.dictionaries(st.text(max_size=3), inner, max_size=3)
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
        elements=st.text(st.characters(exclude_characters="\0"), max_size=5),
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


def test_a_parameter_that_the_file_lacks_takes_its_default(bench, tmp_path):
    del bench.manifest["params"]["penalty"]
    assert load(bench.pack(tmp_path / "older.npz")).penalty == "auto"


# ------------------------------------------------------------ inspect


def test_inspect_tells_parameters_scalars_and_shapes(saved):
    info = inspect(saved)
    assert (info.class_name, info.schema) == ("StubModel", 1)
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
        "import sys, kplus.io; from kplus.io import registry;"
        "registry.ESTIMATORS['StubModel'] = 'nowhere';"
        f"kplus.io.inspect({str(saved)!r}); assert 'sklearn' not in sys.modules"
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
        ({1: 2}, "keys that are not text"),
        (np.ma.masked_array([1]), "MaskedArray"),
        (np.array(["a", None]), "objects that are not all text"),
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


def test_text_that_numpy_would_shorten(model, tmp_path):
    model.feature_names_in_ = np.array(["a\0"], dtype=object)
    with pytest.raises(ValueError, match="null character"):
        save(model, tmp_path / "m.npz")


def test_long_lists_are_asked_for_as_arrays(model, tmp_path):
    model.extra = list(range(300_000))
    with pytest.raises(ValueError, match="numpy arrays"):
        save(model, tmp_path / "m.npz")
    assert os.listdir(tmp_path) == []


def test_too_many_names(model, saved, tmp_path, monkeypatch):
    monkeypatch.setattr(values_module, "MAX_STRINGS", 2)
    with pytest.raises(ValueError, match=r"feature_names_in_.*at most 2 names"):
        save(model, tmp_path / "m.npz")


def test_names_that_collide_or_do_not_fit(stubs, data, tmp_path):
    stream = stubs.StubStream().fit(data)
    stream._sums = [np.zeros(1)]
    stream._to_state = lambda: {"a": [np.zeros(1)], "a.0": np.ones(1)}
    with pytest.raises(ValueError, match=r"under the name state\.a\.0"):
        save(stream, tmp_path / "m.npz")
    stream._to_state = lambda: {"../a": np.zeros(1)}
    with pytest.raises(ValueError, match="cannot name an array"):
        save(stream, tmp_path / "m.npz")
    assert os.listdir(tmp_path) == []


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
