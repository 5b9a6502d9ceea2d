"""Manifests made to harm or mislead."""

import json
import zipfile
from contextlib import suppress

import numpy as np
import pytest

from kplus.core.errors import ModelFormatError
from kplus.persist import inspect, load, save


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "not valid JSON"),
        ("[" * 500_000, "not valid JSON"),
        ('{"a":' * 100_000, "not valid JSON"),
        ('{"format": NaN}', "NaN is not JSON"),
        ('{"format": -Infinity}', "not JSON"),
        ('{"format": 1, "format": 2}', "a key occurs twice"),
        ('{"schema": ' + "9" * 5000 + "}", "not valid JSON"),
        ("\xff\xfe{}", "not valid JSON"),
        (b"\xff\xfe{\0}\0", "not valid JSON"),
        ("[]", "not that of a kplus model"),
        ("null", "not that of a kplus model"),
        ("{}", "not that of a kplus model"),
        ('{"format": ["kplus-model"]}', "not that of a kplus model"),
        ('{"format": "kplus-model"}', "schema version"),
        ('{"format": "kplus-model", "schema": true}', "schema version"),
        ('{"format": "kplus-model", "schema": 1}', "no table of arrays"),
        (" " * (2**20 + 1), "not valid JSON"),
    ],
)
def test_bad_json(refuse, bench, tmp_path, text, message):
    refuse(bench.pack(tmp_path / "f.npz", text=text), message)


def test_newer_schema_is_reported_before_all_else(refuse, bench, tmp_path):
    bench.manifest = {"format": "kplus-model", "schema": 3}
    bench.members["whatever/it.is"] = b""
    refuse(bench.pack(tmp_path / "f.npz"), r"newer kplus \(schema 3.*Upgrade")


@pytest.mark.parametrize(
    "name", ["os.system", "system", "object", "", None, ["StubModel"], "sklearn.KMeans"]
)
def test_unknown_class(refuse, bench, tmp_path, name):
    bench.manifest["class"] = name
    path = bench.pack(tmp_path / "f.npz")
    refuse(path, r"does not know \(it knows BPMeans, CRAFT, DPMeans")
    with pytest.raises(ModelFormatError, match="does not know"):
        inspect(path)


def nested(depth):
    return [nested(depth - 1)] if depth else []


def part(name, start, shape, order="C"):
    return {"kind": "part", "at": [name, start, shape, order]}


def values(cls, array):
    return {"kind": "values", "type": cls, "array": array}


def objects(shape, items):
    return {"kind": "objects", "shape": shape, "items": items}


@pytest.mark.parametrize(
    ("part", "name", "value", "message"),
    [
        ("attributes", "predict", 1, "cannot be a fitted attribute"),
        ("attributes", "__class__", 1, "cannot be a fitted attribute"),
        ("attributes", "_private_", 1, "cannot be a fitted attribute"),
        ("attributes", "a b_", 1, "cannot be a fitted attribute"),
        ("attributes", "a_", nested(40), "nested too deeply"),
        ("attributes", "a_", {"kind": "pickle"}, "unknown kind 'pickle'"),
        ("attributes", "a_", {"kind": ["array"]}, "unknown kind"),
        ("attributes", "a_", {}, "unknown kind"),
        ("attributes", "a_", {"kind": "array"}, "incomplete value"),
        ("attributes", "a_", {"kind": "array", "name": "no"}, "does not hold"),
        ("attributes", "a_", {"kind": "array", "name": ["no"]}, "does not hold"),
        ("attributes", "a_", {"kind": "float", "value": "1e5"}, "float"),
        ("attributes", "a_", {"kind": "tuple", "items": {}}, "tuple"),
        ("attributes", "a_", {"kind": "dict", "items": []}, "dict"),
        ("attributes", "a_", {"kind": "map", "keys": [[]], "values": [1]}, "dict"),
        ("attributes", "a_", {"kind": "map", "keys": [1], "values": []}, "dict"),
        ("attributes", "a_", {"kind": "range", "items": [1, 2, 0]}, "range"),
        ("attributes", "a_", {"kind": "range", "items": [1, 2.0, 1]}, "range"),
        ("attributes", "a_", {"kind": "part", "at": []}, "part of no array"),
        ("attributes", "a_", part("no", 0, [1]), "does not hold"),
        ("attributes", "a_", part(["labels_"], 0, [1]), "does not hold"),
        ("attributes", "a_", values("list", 7), "no arrays"),
        ("attributes", "a_", objects([2], [1]), "incomplete"),
        ("attributes", "a_", objects([2**70], [1]), "incomplete"),
        ("attributes", "a_", objects([0, 2**70], []), "shape"),
        ("attributes", "a_", objects(2, [1, 2]), "shape"),
        ("attributes", "a_", objects([1], 1), "invalid list"),
        ("params", "no_such", 1, "no parameter 'no_such'"),
        ("params", "extra__deep", 1, "no parameter"),
        ("state", "a", 1, "state that StubModel does not use"),
    ],
)
def test_bad_values(refuse, bench, tmp_path, part, name, value, message):
    bench.manifest[part][name] = value
    path = bench.pack(tmp_path / "f.npz")
    refuse(path, message)
    with suppress(ModelFormatError):
        inspect(path)


@pytest.mark.parametrize(
    ("dtype", "value"),
    [
        ("int8", 300),
        ("int8", 1.0),
        ("bool", 1),
        ("float64", 1),
        ("float32", 1e300),
        ("float32", 0.1),
        ("float64", {"kind": "tuple", "items": []}),
        ("object", 1),
        (["int8"], 1),
    ],
)
def test_bad_scalars(refuse, bench, tmp_path, dtype, value):
    scalar = {"kind": "scalar", "dtype": dtype, "value": value}
    bench.manifest["attributes"]["a_"] = scalar
    refuse(bench.pack(tmp_path / "f.npz"), "bad scalar")


@pytest.mark.parametrize(
    ("dtype", "bits"),
    [
        ("float32", "0000c07"),
        ("float32", "0000c07g"),
        ("float32", "0000803f"),  # 1
        ("float64", "0000c07f"),
        ("float64", 3),
        ("int32", "0000c07f"),
    ],
)
def test_bad_nans(refuse, bench, tmp_path, dtype, bits):
    bench.manifest["attributes"]["a_"] = {"kind": "nan", "dtype": dtype, "bits": bits}
    refuse(bench.pack(tmp_path / "f.npz"), "bad nan")


@pytest.mark.parametrize(
    ("name", "fields", "message"),
    [
        ("os.system", {"command": "true"}, "unknown 'os.system'"),
        (None, {}, "unknown"),
        ("StubPath", {"command": "true"}, "do not make a StubPath"),
        ("StubPath", [], "dict"),
    ],
)
def test_bad_records(refuse, bench, tmp_path, name, fields, message):
    record = {"kind": "record", "class": name, "fields": fields}
    bench.manifest["attributes"]["a_"] = record
    refuse(bench.pack(tmp_path / "f.npz"), message)


def test_messages_are_safe_to_print(bench, tmp_path):
    fields = {"\x1b[2J\ud800": 1}
    record = {"kind": "record", "class": "StubPath", "fields": fields}
    bench.manifest["attributes"]["a_"] = record
    with pytest.raises(ModelFormatError) as caught:
        load(bench.pack(tmp_path / "f.npz"))
    assert str(caught.value).isprintable()


def test_text_objects_that_are_numbers(refuse, bench, tmp_path):
    bench.manifest["attributes"]["labels_"]["kind"] = "strings"
    refuse(bench.pack(tmp_path / "f.npz"), "it is not text")


@pytest.mark.parametrize("part", ["params", "attributes", "state"])
def test_parts_of_another_type(refuse, bench, tmp_path, part):
    bench.manifest[part] = []
    refuse(bench.pack(tmp_path / "f.npz"), f"{part} are not named values")


def test_missing_and_unknown_entries(refuse, bench, tmp_path):
    bench.manifest["more"] = 1
    refuse(bench.pack(tmp_path / "f.npz"), "lacks entries or has unknown ones")
    del bench.manifest["more"], bench.manifest["kplus"]
    refuse(bench.pack(tmp_path / "g.npz"), "lacks entries or has unknown ones")


def test_parts_that_do_not_fit_together(refuse, stubs, data, tmp_path, saved):
    path = tmp_path / "stream.npz"
    save(stubs.StubStream().fit(data), path)
    content = path.read_bytes()
    with zipfile.ZipFile(path) as archive:
        members = {n: archive.read(n) for n in archive.namelist()}
    manifest = json.loads(members["manifest.json"])
    manifest["state"]["n_seen"] = 7
    members["manifest.json"] = json.dumps(manifest).encode()
    with zipfile.ZipFile(path, "w") as archive:
        for name, member in members.items():
            archive.writestr(name, member)
    assert content != path.read_bytes()
    refuse(path, "do not make a StubStream: labels and n_seen disagree")


STRING = np.arange(9.0)


@pytest.fixture
def strung(model, tmp_path, take_apart):
    """A file with a string of 9 numbers, all of which are in use."""
    model.extra = [STRING]
    save(model, tmp_path / "f.npz")
    return take_apart(tmp_path / "f.npz")


@pytest.mark.parametrize(
    ("node", "message"),
    [
        (part("f8", 0, [10]), "not there"),
        (part("f8", -1, [1]), "not there"),
        (part("f8", True, [1]), "not there"),
        (part("f8", 2**70, [1]), "not there"),
        (part("f8", 0, [-1]), "shape"),
        (part("f8", 0, [True]), "shape"),
        (part("f8", 0, [2**70]), "not there"),
        (part("f8", 0, [2**70, 0]), "shape"),
        (part("f8", 0, 9), "shape"),
        (part("f8", 0, [9], "K"), "part of no array"),
        (part("cluster_centers_", 0, [9]), "already in use|no string"),
        ([part("f8", 0, [8]), part("f8", 1, [8])], "not there"),
        ([part("f8", 0, [9]), {"kind": "array", "name": "f8"}], "already in use"),
        ([part("f8", 0, [9]), part("f8", 0, [9], "F")], "not there"),
        ([part("f8", 0, [9]), values("list", part("f8", 0, [9]))], "not there"),
        (values("set", part("f8", 0, [9])), "no list"),
        (values("list", part("f8", 0, [3, 3])), "no plain values"),
        (objects([10], values("list", part("f8", 0, [9]))), "incomplete"),
    ],
)
def test_bad_parts(refuse, strung, tmp_path, node, message):
    strung.manifest["params"]["extra"] = node
    path = strung.pack(tmp_path / "f.npz")
    refuse(path, message)
    with suppress(ModelFormatError):
        inspect(path)


@pytest.mark.parametrize(
    "make",
    [
        lambda shape: part("f8", 0, shape),
        lambda shape: values("tuple", part("f8", 0, [9])),
        lambda shape: objects(shape, values("list", part("f8", 0, [9]))),
        lambda shape: {"kind": "table", "columns": {"a": part("f8", 0, [9])}},
    ],
)
def test_nothing_is_multiplied(strung, tmp_path, make):
    """A short manifest must not fill the memory with copies of one array."""
    strung.manifest["params"]["extra"] = [make([9])] * 1000
    found = load(strung.pack(tmp_path / "f.npz")).extra
    assert all(one is found[0] for one in found)
    assert np.array_equal(np.ravel(found[0]).astype(float), STRING)


@pytest.mark.parametrize("other", ["objects", "table"])
def test_nothing_is_multiplied_in_other_shapes(refuse, strung, tmp_path, other):
    node = part("f8", 0, [9])
    if other == "objects":
        nodes = [
            objects([9], values("list", node)),
            objects([3, 3], values("list", node)),
        ]
    else:
        nodes = [{"kind": "table", "columns": {name: node}} for name in "ab"]
    strung.manifest["params"]["extra"] = nodes
    refuse(strung.pack(tmp_path / "f.npz"), "not there")


def test_files_of_the_first_schema(model, tmp_path, take_apart):
    """They held all lists in the manifest, and every array under a name."""
    model.extra = (list(range(100)), None)
    save(model, tmp_path / "f.npz")
    bench = take_apart(tmp_path / "f.npz")
    bench.manifest["schema"] = 1
    bench.members["params.extra.0.npy"] = bench.members.pop("i8.npy")
    bench.manifest["arrays"]["params.extra.0"] = bench.manifest["arrays"].pop("i8")
    first = [{"kind": "array", "name": "params.extra.0"}, list(range(100))]
    bench.manifest["params"]["extra"] = {"kind": "tuple", "items": first}
    found = load(bench.pack(tmp_path / "f.npz")).extra
    assert found[0].tolist() == found[1] == model.extra[0]
