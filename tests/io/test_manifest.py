"""Manifests made to harm or mislead."""

import json
import zipfile

import pytest

from kplus.core.errors import ModelFormatError
from kplus.io import archive as archive_module
from kplus.io import inspect, load, save


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
        (" " * (2**20 + 1), "manifest claims 1048577 bytes"),
    ],
)
def test_bad_json(refuse, bench, tmp_path, text, message):
    refuse(bench.pack(tmp_path / "f.npz", text=text), message)


def test_newer_schema_is_told_before_all_else(refuse, bench, tmp_path):
    bench.manifest = {"format": "kplus-model", "schema": 2}
    bench.members["whatever/it.is"] = b""
    refuse(bench.pack(tmp_path / "f.npz"), r"newer kplus \(schema 2.*Upgrade")


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


@pytest.mark.parametrize(
    ("part", "name", "value", "message"),
    [
        ("attributes", "predict", 1, "cannot be a fitted attribute"),
        ("attributes", "__class__", 1, "cannot be a fitted attribute"),
        ("attributes", "_private_", 1, "cannot be a fitted attribute"),
        ("attributes", "a b_", 1, "cannot be a fitted attribute"),
        ("attributes", "a_", nested(20), "nested too deeply"),
        ("attributes", "a_", {"kind": "pickle"}, "unknown kind 'pickle'"),
        ("attributes", "a_", {"kind": ["array"]}, "unknown kind"),
        ("attributes", "a_", {}, "unknown kind"),
        ("attributes", "a_", {"kind": "array"}, "incomplete value"),
        ("attributes", "a_", {"kind": "array", "name": "no"}, "does not hold"),
        ("attributes", "a_", {"kind": "array", "name": ["no"]}, "does not hold"),
        ("attributes", "a_", {"kind": "float", "value": "1e5"}, "float"),
        ("attributes", "a_", {"kind": "tuple", "items": {}}, "tuple"),
        ("attributes", "a_", {"kind": "dict", "items": []}, "dict"),
        ("params", "no_such", 1, "no parameter 'no_such'"),
        ("params", "extra__deep", 1, "no parameter"),
        ("state", "a", 1, "state that StubModel does not use"),
    ],
)
def test_bad_values(refuse, bench, tmp_path, part, name, value, message):
    bench.manifest[part][name] = value
    refuse(bench.pack(tmp_path / "f.npz"), message)


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


def test_limits_hold_for_what_save_writes(model, tmp_path, monkeypatch):
    """A manifest of the largest size can still be read."""
    model.extra = ""
    save(model, tmp_path / "f.npz")
    with zipfile.ZipFile(tmp_path / "f.npz") as archive:
        room = archive_module.MAX_MANIFEST - len(archive.read("manifest.json"))
    model.extra = "x" * room
    save(model, tmp_path / "f.npz")
    assert load(tmp_path / "f.npz").extra == model.extra
    model.extra += "x"
    with pytest.raises(ValueError, match="more than the"):
        save(model, tmp_path / "f.npz")
