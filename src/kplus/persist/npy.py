"""One array in a model file: its description and its bytes as a ``.npy`` member.

The header of a member is never parsed. It must be, byte for byte, the header
that the manifest's dtype and shape call for, so that nothing in a file is
evaluated and a header cannot contradict the manifest.
"""

import hashlib
import math
import re
from dataclasses import dataclass, replace
from typing import IO, Any, Literal

import numpy as np

from kplus.core.errors import ModelFormatError

__all__ = ["ArraySpec", "parse_spec", "read_npy", "spec_of", "write_npy"]

CHUNK = 2**20
_DTYPE = re.compile(r"[<>|][biufcU][1-9][0-9]{0,8}")
_DIGEST = re.compile(r"[0-9a-f]{64}")
_KEYS = {"dtype", "shape", "order", "sha256"}
_LAST_CODE_POINT = 0x10FFFF
_MAX_NDIM = 32


@dataclass(frozen=True)
class ArraySpec:
    """What the manifest says about one array, before any of it is read.

    Attributes
    ----------
    dtype : numpy.dtype
        Boolean, number or fixed-length text; never objects.
    shape : tuple of int
    order : {"C", "F"}
        Memory order; kept because sums over another order round differently.
    sha256 : str
        Digest of the whole member, header included.
    """

    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    order: Literal["C", "F"]
    sha256: str = ""

    @property
    def nbytes(self) -> int:
        """Size of the array in memory, in exact integers."""
        return math.prod(self.shape) * self.dtype.itemsize

    def header(self) -> bytes:
        """Header of the ``.npy`` format, version 1.0, padded to 64 bytes."""
        fields = (
            f"{{'descr': {self.dtype.str!r}, 'fortran_order': {self.order == 'F'}, "
            f"'shape': {self.shape!r}, }}"
        ).encode("ascii")
        magic = b"\x93NUMPY\x01\x00"
        padding = -(len(magic) + 2 + len(fields) + 1) % 64
        text = fields + b" " * padding + b"\n"
        return magic + len(text).to_bytes(2, "little") + text

    def to_json(self) -> dict[str, Any]:
        """Entry of the manifest's table of arrays."""
        return {
            "dtype": self.dtype.str,
            "shape": list(self.shape),
            "order": self.order,
            "sha256": self.sha256,
        }


def parse_spec(name: str, node: Any) -> ArraySpec:
    """Check one entry of the manifest's table of arrays."""
    if not isinstance(node, dict) or set(node) != _KEYS:
        raise ModelFormatError(f"array {name}: its description is incomplete.")
    order, sha256 = node["order"], node["sha256"]
    if order not in ("C", "F"):
        raise ModelFormatError(f"array {name}: its memory order is not C or F.")
    if not isinstance(sha256, str) or not _DIGEST.fullmatch(sha256):
        raise ModelFormatError(f"array {name}: its SHA-256 is invalid.")
    dtype, shape = _dtype(name, node["dtype"]), _shape(name, node["shape"])
    return ArraySpec(dtype, shape, order, sha256)


def _dtype(name: str, text: Any) -> np.dtype[Any]:
    if isinstance(text, str) and _DTYPE.fullmatch(text):
        try:
            dtype = np.dtype(text)
        except (TypeError, ValueError):  # such as <f3
            dtype = None
        if dtype is not None and dtype.str == text:
            return dtype
    raise ModelFormatError(
        f"array {name}: dtype {str(text)[:40]!r} is not allowed in a model file "
        "(booleans, numbers and fixed-length text are)."
    )


def _shape(name: str, node: Any) -> tuple[int, ...]:
    if (
        isinstance(node, list)
        and len(node) <= _MAX_NDIM
        and all(type(n) is int and 0 <= n < 2**62 for n in node)
    ):
        return tuple(node)
    raise ModelFormatError(f"array {name}: its shape is not a list of lengths.")


def write_npy(array: np.ndarray, file: IO[bytes]) -> ArraySpec:
    """Write header and data; returns the description with the digest."""
    spec = spec_of(array)
    digest = hashlib.sha256(spec.header())
    file.write(spec.header())
    flat = array.ravel(order=spec.order)
    data = flat.view(np.uint8).data
    for start in range(0, len(data), CHUNK):
        piece = data[start : start + CHUNK]
        digest.update(piece)
        file.write(piece)
    return replace(spec, sha256=digest.hexdigest())


def spec_of(array: np.ndarray) -> ArraySpec:
    """Describe `array`, still without digest; strided arrays become C order."""
    fortran = array.flags.f_contiguous and not array.flags.c_contiguous
    return ArraySpec(array.dtype, array.shape, "F" if fortran else "C")


def read_npy(name: str, spec: ArraySpec, file: IO[bytes]) -> np.ndarray:
    """Read and check one member whose size is known to be that of `spec`."""
    header = spec.header()
    if file.read(len(header)) != header:
        raise ModelFormatError(
            f"array {name}: its header is not that of the dtype and shape "
            "in the manifest."
        )
    digest = hashlib.sha256(header)
    raw = np.empty(spec.nbytes, dtype=np.uint8)
    view = raw.data
    for start in range(0, spec.nbytes, CHUNK):
        piece = file.read(min(CHUNK, spec.nbytes - start))
        digest.update(piece)
        view[start : start + len(piece)] = piece
    if digest.hexdigest() != spec.sha256:
        raise ModelFormatError(
            f"array {name}: its SHA-256 differs from the manifest's; "
            "the file is damaged or was altered."
        )
    _check_bits(name, spec, raw)
    return _shaped(name, spec, raw)


def _check_bits(name: str, spec: ArraySpec, raw: np.ndarray) -> None:
    """Refuse bytes that no boolean and no text have: numpy trusts them blindly."""
    if spec.dtype.kind == "b":
        largest, limit = raw.max(initial=0), 1
    elif spec.dtype.kind == "U":
        codes = raw.view(f"{spec.dtype.byteorder}u4")
        largest, limit = codes.max(initial=0), _LAST_CODE_POINT
    else:
        return
    if largest > limit:
        raise ModelFormatError(f"array {name}: its bytes are not valid {spec.dtype}.")


def _shaped(name: str, spec: ArraySpec, raw: np.ndarray) -> np.ndarray:
    try:
        return np.ndarray(spec.shape, spec.dtype, raw, order=spec.order)
    except (ValueError, OverflowError) as error:  # such as (0, 2**61)
        raise ModelFormatError(f"array {name}: shape {spec.shape}: {error}") from error
