"""Files made to harm or mislead."""

import hashlib
import io
import os
import pickle
import struct
import tracemalloc
import zipfile

import numpy as np
import pytest

from kplus.core.errors import ModelFormatError
from kplus.persist import inspect, load, save
from kplus.persist.npy import ArraySpec


class Exploit:
    """Makes a folder when it is unpickled."""

    def __init__(self, folder):
        self.folder = folder

    def __reduce__(self):
        return os.mkdir, (str(self.folder),)


def npy(header, data=b"", version=b"\x01\x00"):
    text = header.encode()
    text += b" " * (-(11 + len(text)) % 64) + b"\n"
    return b"\x93NUMPY" + version + struct.pack("<H", len(text)) + text + data


def replace_array(bench, name, content, **entry):
    """Puts `content` in with a digest that is right."""
    bench.members[f"{name}.npy"] = content
    digest = hashlib.sha256(content).hexdigest()
    bench.manifest["arrays"][name].update(sha256=digest, **entry)


# ------------------------------------------------------------ not a model at all


def test_missing_file(tmp_path):
    for read in (load, inspect):
        with pytest.raises(FileNotFoundError):
            read(tmp_path / "no.npz")


def test_folder(refuse, tmp_path):
    refuse(tmp_path, "this is a folder")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_named_pipe(refuse, tmp_path):
    os.mkfifo(tmp_path / "pipe")
    refuse(tmp_path / "pipe", "not a regular file")


def test_foreign_files(refuse, tmp_path, model):
    path = tmp_path / "f"
    for content, message in [
        (b"", "the file is empty"),
        (b"x", "not a kplus model"),
        (b"name,size\na,1\n", "Give a file that kplus.save wrote"),
        (pickle.dumps(model.labels_), "pickle and joblib files are never read"),
        (npy("{}"), "not a kplus model"),
    ]:
        path.write_bytes(content)
        refuse(path, message)


def test_foreign_zips(refuse, tmp_path):
    path = tmp_path / "f.npz"
    np.savez(path, a=np.zeros(3))
    refuse(path, "no kplus model: it has no manifest.json")
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("manifest.json", '{"name": "a browser extension"}')
    refuse(path, "not that of a kplus model")
    with zipfile.ZipFile(path, "w"):
        pass
    refuse(path, "not a kplus model")


def test_pickle_is_not_run(refuse, tmp_path):
    path, trap = tmp_path / "model.pkl", tmp_path / "trap"
    path.write_bytes(pickle.dumps(Exploit(trap)))
    refuse(path, "never read")
    assert not trap.exists()


# ------------------------------------------------------------ the zip


@pytest.mark.parametrize("compression", [zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2])
def test_compressed_members(refuse, bench, tmp_path, compression):
    path = bench.pack(tmp_path / "f.npz", compression=compression)
    refuse(path, "is compressed")


@pytest.mark.parametrize(
    "name",
    ["/etc/x.npy", "../x.npy", "a/b.npy", "C:x.npy", "x.txt", "x", ".npy", "a\nb.npy"],
)
def test_unexpected_names(refuse, bench, tmp_path, name):
    bench.members[name] = b""
    refuse(bench.pack(tmp_path / "f.npz"), "unexpected member")


def test_member_that_the_manifest_does_not_know(refuse, bench, tmp_path):
    bench.members["more.npy"] = bench.members["labels_.npy"]
    refuse(bench.pack(tmp_path / "f.npz"), "array 'more' is only in the file")


def test_member_that_is_missing(refuse, bench, tmp_path):
    del bench.members["labels_.npy"]
    refuse(bench.pack(tmp_path / "f.npz"), "array 'labels_' is only in the manifest")


@pytest.mark.filterwarnings("ignore:Duplicate name")
@pytest.mark.parametrize("name", ["labels_.npy", "manifest.json"])
def test_duplicate_members(refuse, saved, name):
    with zipfile.ZipFile(saved, "a") as archive:
        content = archive.read(name)
        archive.writestr(zipfile.ZipInfo(name), content)
    refuse(saved, "two members of the same name")


def test_encrypted_flag(refuse, saved):
    content = bytearray(saved.read_bytes())
    entry = content.index(b"PK\x01\x02")
    content[entry + 8] |= 1
    saved.write_bytes(content)
    refuse(saved, "is encrypted")


def test_data_before_between_and_after(refuse, saved):
    content = saved.read_bytes()
    saved.write_bytes(b"#!/bin/sh\n" + content)
    refuse(saved, "not a kplus model")
    saved.write_bytes(content[:4] + b"\0" * 26 + content)
    refuse(saved, "do not add up")
    saved.write_bytes(content + b"more")
    refuse(saved, "has been added to")
    saved.write_bytes(content[:-2] + b"\x04\x00more")
    refuse(saved, "has been added to")
    directory = content.index(b"PK\x01\x02")
    moved = struct.pack("<LH", directory + 4, 0)
    saved.write_bytes(content[:directory] + b"more" + content[directory:-6] + moved)
    refuse(saved, "do not add up")


def test_overlapping_members(refuse, saved):
    content = bytearray(saved.read_bytes())
    first = content.index(b"PK\x01\x02")
    second = content.index(b"PK\x01\x02", first + 4)
    content[second + 42 : second + 46] = content[first + 42 : first + 46]
    saved.write_bytes(content)
    refuse(saved, "do not add up")


def test_directory_of_a_million_members(refuse, tmp_path):
    path = tmp_path / "f.npz"
    entry = struct.pack("<4s6H3L5H2L", b"PK\x01\x02", *[0] * 6, *[0] * 3, *[0] * 7)
    directory = entry * 200_000
    end = struct.pack("<4s4H2LH", b"PK\x05\x06", 0, 0, 0, 0, len(directory), 4, 0)
    path.write_bytes(b"PK\x03\x04" + directory + end)
    assert peak_memory(refuse, path, "its directory claims") < 3 * 2**20


# ------------------------------------------------------------ memory


def peak_memory(refuse, path, message):
    tracemalloc.start()
    try:
        refuse(path, message)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_a_sound_file_takes_its_own_size(model, tmp_path):
    model.labels_ = np.arange(2_000_000)
    save(model, tmp_path / "f.npz")
    size = (tmp_path / "f.npz").stat().st_size
    tracemalloc.start()
    again = load(tmp_path / "f.npz")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    np.testing.assert_array_equal(again.labels_, model.labels_)
    assert peak < 1.5 * size


def test_zip_bomb(refuse, bench, tmp_path):
    bench.members["labels_.npy"] = b"\0" * 30_000_000
    path = bench.pack(tmp_path / "f.npz", compression=zipfile.ZIP_DEFLATED)
    assert peak_memory(refuse, path, "is compressed") < 3 * 2**20


@pytest.mark.parametrize("shape", [[10**9], [10**15], [2**40, 2**40], [2**61, 0]])
def test_huge_shapes(refuse, bench, tmp_path, shape):
    header = f"{{'descr': '<i4', 'fortran_order': False, 'shape': {tuple(shape)}, }}"
    replace_array(bench, "labels_", npy(header), shape=shape)
    path = bench.pack(tmp_path / "f.npz")
    assert peak_memory(refuse, path, "array labels_: (.*do not fit|shape)") < 2**20


def test_huge_item(refuse, bench, tmp_path):
    bench.manifest["arrays"]["labels_"].update(dtype="<U500000000", shape=[1])
    assert peak_memory(refuse, bench.pack(tmp_path / "f.npz"), "do not fit") < 2**20


def test_one_array_under_many_names(refuse, bench, tmp_path):
    reference = bench.manifest["attributes"]["labels_"]
    bench.manifest["attributes"]["more_"] = [reference] * 1000
    found = load(bench.pack(tmp_path / "f.npz"))
    assert all(array is found.labels_ for array in found.more_)
    bench.manifest["attributes"]["more_"] = {"kind": "strings", "name": "labels_"}
    refuse(bench.pack(tmp_path / "f.npz"), "already in use")


def test_array_that_nothing_refers_to(refuse, bench, tmp_path):
    del bench.manifest["attributes"]["labels_"]
    path = bench.pack(tmp_path / "f.npz")
    refuse(path, "array labels_ belongs to nothing")
    with pytest.raises(ModelFormatError, match="belongs to nothing"):
        inspect(path)


# ------------------------------------------------------------ the arrays


def test_numpy_agrees_about_headers(bench):
    for array in [np.zeros(3), np.zeros((2, 3), order="F"), np.array("ab"), np.True_]:
        file = io.BytesIO()
        np.lib.format.write_array(file, np.asarray(array), version=(1, 0))
        file.seek(0)
        np.lib.format.read_magic(file)
        shape, fortran, dtype = np.lib.format.read_array_header_1_0(file)
        ours = ArraySpec(dtype, shape, "F" if fortran else "C").header()
        file = io.BytesIO(ours)
        assert np.lib.format.read_magic(file) == (1, 0)
        assert np.lib.format.read_array_header_1_0(file) == (shape, fortran, dtype)
        assert file.read() == b""
        assert len(ours) % 64 == 0


def test_pickle_in_an_object_array(refuse, bench, tmp_path):
    trap = tmp_path / "trap"
    header = "{'descr': '|O', 'fortran_order': False, 'shape': (1,), }"
    content = npy(header, pickle.dumps([Exploit(trap)]))
    replace_array(bench, "labels_", content, dtype="|O", shape=[1])
    refuse(bench.pack(tmp_path / "f.npz"), r"dtype '\|O' is not allowed")
    replace_array(bench, "labels_", content, dtype="|i1", shape=[len(content) - 128])
    refuse(bench.pack(tmp_path / "f.npz"), "labels_: its header is not|do not fit")
    assert not trap.exists()


DESCR = "{'descr': '<i4', 'fortran_order': False, 'shape': (6,), }"


@pytest.mark.parametrize(
    ("header", "version"),
    [
        (DESCR.replace("<i4", "|O"), b"\1\0"),
        (DESCR.replace("<i4", "<f4"), b"\1\0"),
        (DESCR.replace("(6,)", "(10**9,)"), b"\1\0"),
        (DESCR.replace("(6,)", "(6, 1)"), b"\1\0"),
        (DESCR.replace("False", "True"), b"\1\0"),
        (DESCR.replace("(6,)", "(6L,)"), b"\1\0"),
        ("(" * 60, b"\1\0"),
        ("__import__('os').mkdir('trap')  " + "#" * 30, b"\1\0"),
        (DESCR, b"\2\0"),
        (DESCR, b"\3\0"),
        (DESCR, b"\x09\0"),
    ],
)
def test_headers_that_are_not_the_manifests(refuse, bench, tmp_path, header, version):
    content = npy(header, np.zeros(6, "i4").tobytes(), version)
    replace_array(bench, "labels_", content)
    refuse(bench.pack(tmp_path / "f.npz"), "labels_: its header is not")


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        *[
            ("dtype", value, "dtype .* is not allowed")
            for value in ["|O8", "O", "i4,f8", "<f3", "|V8", "<M8[s]", "int32", "=i4"]
        ],
        *[("dtype", value, "is not allowed") for value in [None, 4, ["<i4"], "<U0"]],
        *[
            ("shape", value, "shape is not a list of lengths")
            for value in [6, None, [6.0], [True], [-6], ["6"], [2**64], [1] * 40]
        ],
        ("order", "K", "memory order"),
        ("order", ["C"], "memory order"),
        ("sha256", "0" * 63, "SHA-256 is invalid"),
        ("sha256", None, "SHA-256 is invalid"),
        ("sha256", "0" * 64, "SHA-256 differs"),
        ("more", 1, "description is incomplete"),
    ],
)
def test_descriptions_of_arrays(refuse, bench, tmp_path, key, value, message):
    bench.manifest["arrays"]["labels_"][key] = value
    refuse(bench.pack(tmp_path / "f.npz"), message)


@pytest.mark.parametrize(("dtype", "item"), [("|b1", b"\2"), ("<U1", b"\0\0\x11\0")])
def test_bytes_that_no_value_has(refuse, bench, tmp_path, dtype, item):
    header = ArraySpec(np.dtype(dtype), (1,), "C").header()
    replace_array(bench, "labels_", header + item, dtype=dtype, shape=[1])
    refuse(bench.pack(tmp_path / "f.npz"), "labels_: its bytes are not valid")
