"""The container: a stored (uncompressed) ``.npz`` with a JSON manifest.

Reading trusts nothing. The zip directory must describe plain stored members
that tile the file without gap or overlap, the manifest must account for each
of them, and every size is compared with the real size of the file before
memory is asked for. Only :class:`ModelFormatError` leaves this module for a
file that is there but wrong.
"""

import io
import json
import os
import stat
import struct
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from kplus.core.encoding import MEMBER_NAME
from kplus.core.errors import ModelFormatError
from kplus.persist.atomic import atomic_file
from kplus.persist.npy import ArraySpec, parse_spec, read_npy, spec_of, write_npy

__all__ = ["FORMAT", "SCHEMA", "Archive", "open_archive", "write_archive"]

FORMAT = "kplus-model"
SCHEMA = 2  # 1 had categories and arrays of lists in other places
MANIFEST = "manifest.json"
# zipfile reads the directory of the zip in one call and keeps an object for
# each entry; a call above this size means far more members than a model has.
MAX_READ = 2**20
# A local header may carry the 20 bytes that sizes above 4 GiB need.
_LOCAL_HEADER, _MAX_EXTRA = 30, 20
_END_RECORD = 22
_ADVICE = "Restore it from a copy or save the model again."
_MISFIT = (
    "the sizes and places of its members do not add up to the size of the file; "
    f"it is damaged or was altered. {_ADVICE}"
)


# ---------------------------------------------------------------- writing


def write_archive(
    path: str | os.PathLike[str],
    manifest: Mapping[str, Any],
    arrays: Mapping[str, np.ndarray],
    kind: str = FORMAT,
) -> None:
    """Write `manifest`, completed by format, schema and arrays' table, and `arrays`.

    Parameters
    ----------
    path : str or path-like
        Replaced atomically.
    manifest : mapping
        JSON-able, without non-finite numbers.
    arrays : mapping of str to ndarray
        Booleans, numbers or fixed-length text. Names are ASCII words, joined
        by dots.
    kind : str
        What the file is.
    """
    for name in arrays:
        if not MEMBER_NAME.fullmatch(name):
            raise ValueError(f"{name!r} cannot name an array in a model file.")
    with atomic_file(path) as file, zipfile.ZipFile(file, "w") as archive:
        table = {}
        for name, array in arrays.items():
            spec = spec_of(array)
            size = len(spec.header()) + spec.nbytes
            with archive.open(_member(f"{name}.npy", size), "w") as member:
                table[name] = write_npy(array, member).to_json()
        whole = {"format": kind, "schema": SCHEMA, **manifest, "arrays": table}
        text = json.dumps(whole, allow_nan=False, separators=(",", ":"))
        archive.writestr(_member(MANIFEST, len(text)), text)


def _member(name: str, size: int) -> zipfile.ZipInfo:
    """Entry with a fixed date, so that equal models make equal files."""
    info = zipfile.ZipInfo(name)
    info.file_size = size  # lets zipfile choose 64-bit fields when needed
    return info


# ---------------------------------------------------------------- reading


@dataclass
class Archive:
    """A checked, open model file.

    Attributes
    ----------
    manifest : dict
        The manifest without its table of arrays; its values are unchecked.
    specs : dict of str to ArraySpec
        The arrays, whose sizes agree with the file.
    size : int
        Bytes of the file.
    """

    manifest: dict[str, Any]
    specs: dict[str, ArraySpec]
    size: int
    _zip: zipfile.ZipFile
    _unclaimed: set[str] = field(default_factory=set)

    def claim(self, name: Any) -> ArraySpec:
        """Description of an array, which may be asked for once.

        Were an array to be had twice, a short manifest could fill the memory.
        """
        if not isinstance(name, str) or name not in self._unclaimed:
            raise ModelFormatError(
                f"the manifest refers to array {str(name)[:60]!r}, "
                "which the file does not hold or which is already in use."
            )
        self._unclaimed.remove(name)
        return self.specs[name]

    def read(self, name: Any) -> np.ndarray:
        """Claim an array and read it."""
        spec = self.claim(name)
        with _zip_errors(), self._zip.open(f"{name}.npy") as member:
            return read_npy(name, spec, member)

    def check_all_claimed(self) -> None:
        """Refuse a file with arrays that belong to nothing."""
        if self._unclaimed:
            raise ModelFormatError(f"array {min(self._unclaimed)} belongs to nothing.")


@contextmanager
def open_archive(path: str | os.PathLike[str], kind: str = FORMAT) -> Iterator[Archive]:
    """Open a file of a kind and check everything but the arrays' contents.

    Errors raised in the block, too, come out with the name of the file.
    """
    try:
        with _open_regular(path) as file, _open_zip(file) as archive:
            manifest = _read_manifest(archive, kind)
            members = _check_members(archive)
            specs = _check_arrays(manifest.pop("arrays"), members)
            yield Archive(manifest, specs, file.size, archive, set(specs))
    except ModelFormatError as error:
        # A hostile name in a message must not reach a terminal as it is.
        message = "".join(c if c.isprintable() else "?" for c in str(error))
        raise ModelFormatError(f"{os.fspath(path)}: {message}") from error


class _CappedFile(io.BufferedReader):
    """A file that refuses to hand out more than `MAX_READ` bytes at once."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        super().__init__(io.FileIO(path))
        self.size = os.fstat(self.fileno()).st_size

    def read(self, size: int | None = -1, /) -> bytes:
        rest = max(self.size - self.tell(), 0)
        size = rest if size is None or size < 0 else min(size, rest)
        if size > MAX_READ:
            raise ModelFormatError(
                f"its directory claims {size} bytes, which no kplus model has. "
                "Do not use this file."
            )
        return super().read(size)


def _open_regular(path: str | os.PathLike[str]) -> _CappedFile:
    # Asked before opening, because opening a named pipe would wait for ever.
    mode = os.stat(path).st_mode
    if stat.S_ISDIR(mode):
        raise ModelFormatError(
            "this is a folder; give the path of a model file, as its model.kplus."
        )
    if not stat.S_ISREG(mode):
        raise ModelFormatError("this is not a regular file.")
    return _CappedFile(path)


@contextmanager
def _open_zip(file: _CappedFile) -> Iterator[zipfile.ZipFile]:
    if file.size == 0:
        raise ModelFormatError(f"the file is empty. {_ADVICE}")
    if file.read(4) != b"PK\x03\x04":
        raise ModelFormatError(
            "this is not a kplus model. Give a file that kplus.save wrote; "
            "pickle and joblib files are never read, because they can run code."
        )
    file.seek(max(file.size - _END_RECORD, 0))
    end = file.read()
    # zipfile would also look further up and pass over what follows the record.
    if len(end) < _END_RECORD or end[:4] != b"PK\x05\x06" or end[-2:] != b"\0\0":
        raise ModelFormatError(f"the file is cut short or has been added to. {_ADVICE}")
    with _zip_errors():
        archive = zipfile.ZipFile(file)
    with archive:
        yield archive


@contextmanager
def _zip_errors() -> Iterator[None]:
    """Turn what zipfile raises for a bad file into `ModelFormatError`."""
    try:
        yield
    except ModelFormatError:
        raise
    except (
        zipfile.BadZipFile,
        struct.error,
        EOFError,
        OverflowError,
        RuntimeError,  # encrypted members; includes NotImplementedError
        ValueError,  # bad offsets and names
    ) as error:
        raise ModelFormatError(
            f"the file is damaged, cut short or no kplus model ({error}). {_ADVICE}"
        ) from error


def _read_manifest(archive: zipfile.ZipFile, kind: str) -> dict[str, Any]:
    """The manifest, known to be of a format and schema that this kplus reads."""
    if MANIFEST not in archive.namelist():
        raise ModelFormatError(
            f"this is a zip or .npz file, but no kplus model: it has no {MANIFEST}."
        )
    info = archive.getinfo(MANIFEST)
    _check_member(MANIFEST, info)
    if not 0 <= info.header_offset < archive.start_dir:
        raise ModelFormatError(_MISFIT)
    with _zip_errors(), archive.open(info) as member:
        text = b"".join(iter(lambda: member.read(MAX_READ), b""))
    manifest = _parse_json(text)
    if not isinstance(manifest, dict) or manifest.get("format") != kind:
        words = kind.replace("-", " ")
        raise ModelFormatError(f"its manifest is not that of a {words}.")
    schema = manifest.get("schema")
    if type(schema) is not int or schema < 1:
        raise ModelFormatError("its schema version is not a whole number from 1 on.")
    if schema > SCHEMA:
        raise ModelFormatError(
            f"it was written by a newer kplus (schema {schema}; this kplus reads "
            f"up to {SCHEMA}). Upgrade kplus to read it."
        )
    if not isinstance(manifest.get("arrays"), dict):
        raise ModelFormatError("its manifest has no table of arrays.")
    return manifest


def _parse_json(text: bytes) -> Any:
    try:
        return json.loads(
            text.decode("ascii"),
            object_pairs_hook=_unique_keys,
            parse_constant=_no_constant,
        )
    except (ValueError, RecursionError) as error:
        raise ModelFormatError(f"its manifest is not valid JSON ({error}).") from error


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) < len(pairs):
        raise ValueError("a key occurs twice")
    return result


def _no_constant(text: str) -> Any:
    raise ValueError(f"{text} is not JSON")


def _check_members(archive: zipfile.ZipFile) -> dict[str, zipfile.ZipInfo]:
    """Refuse whatever `write_archive` does not write."""
    entries = archive.infolist()
    members = {info.orig_filename: info for info in entries}
    if len(members) < len(entries):
        raise ModelFormatError("it holds two members of the same name.")
    for name, info in members.items():
        _check_member(name, info)
    _check_tiling(entries, archive)
    return members


def _check_member(name: str, info: zipfile.ZipInfo) -> None:
    plain = name.removesuffix(".npy")
    if name != MANIFEST and (name == plain or not MEMBER_NAME.fullmatch(plain)):
        raise ModelFormatError(f"unexpected member {name[:60]!r}.")
    if info.flag_bits & 1:
        raise ModelFormatError(f"member {name} is encrypted.")
    if info.compress_type != zipfile.ZIP_STORED:
        raise ModelFormatError(
            f"member {name} is compressed; model files are stored without "
            "compression, so repack it that way or save the model again."
        )
    if info.flag_bits or info.compress_size != info.file_size:
        raise ModelFormatError(f"member {name} is not stored plainly.")


def _check_tiling(entries: list[zipfile.ZipInfo], archive: zipfile.ZipFile) -> None:
    """Members must fill the file up to the directory: nothing hidden or shared."""
    entries = sorted(entries, key=lambda info: info.header_offset)
    ends = [info.header_offset for info in entries[1:]] + [archive.start_dir]
    gaps = [entries[0].header_offset]
    for info, end in zip(entries, ends, strict=True):
        header = _LOCAL_HEADER + len(info.orig_filename)
        gap = end - info.header_offset - header - info.file_size
        gaps.append(0 if gap == _MAX_EXTRA else gap)
    if any(gaps):
        raise ModelFormatError(_MISFIT)


def _check_arrays(
    table: dict[str, Any], members: Mapping[str, zipfile.ZipInfo]
) -> dict[str, ArraySpec]:
    """The manifest's arrays are the file's arrays, and have their sizes."""
    stored_names = {name.removesuffix(".npy") for name in members} - {MANIFEST}
    if stored_names != set(table):
        odd = min(stored_names ^ set(table))
        where = "file" if odd in stored_names else "manifest"
        raise ModelFormatError(f"array {odd[:60]!r} is only in the {where}.")
    specs = {name: parse_spec(name, node) for name, node in table.items()}
    for name, spec in specs.items():
        stored = members[f"{name}.npy"].file_size
        if len(spec.header()) + spec.nbytes != stored:
            raise ModelFormatError(
                f"array {name}: dtype {spec.dtype.str} and shape {spec.shape} do not "
                f"fit the {stored} bytes stored."
            )
    return specs
