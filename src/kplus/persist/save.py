"""Save, load and inspect fitted estimators.

An estimator is stored as its constructor parameters and its fitted
attributes: whatever ``vars(estimator)`` holds under a name that ends in ``_``
and does not begin with one. An estimator with more to keep has two methods:

``_to_state()``
    returns a dict of further values by name;
``_from_state(state)``
    is called last when the estimator is loaded, gets that dict back (an empty
    one if there is no ``_to_state``) and checks that the parts fit together.
    A ``ValueError`` from it is reported as a bad file.
"""

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from kplus import __version__
from kplus.core.decoding import Decoder, size_of
from kplus.core.encoding import Encoder
from kplus.core.errors import ModelFormatError
from kplus.core.storable import ESTIMATORS, RECORDS, find_class, name_of
from kplus.persist.archive import Archive, open_archive, write_archive
from kplus.persist.npy import ArraySpec

__all__ = ["ArrayInfo", "ModelInfo", "inspect", "load", "save"]

_KEYS = {"format", "schema", "kplus", "class", "params", "attributes", "state"}


# ---------------------------------------------------------------- save


def save(estimator: Any, path: str | os.PathLike[str]) -> None:
    """Save a fitted estimator to one file.

    The file is an uncompressed ``.npz`` with a JSON manifest: it holds numbers
    and text, no code, and a SHA-256 digest of every array. It appears at
    `path` complete or not at all.

    Parameters
    ----------
    estimator : estimator of kplus
        Must be fitted. The configuration of ``set_output`` is not kept.
    path : str or path-like
        Name of the file; one that is there is replaced.

    Raises
    ------
    TypeError
        The class is not one of kplus, or a parameter is an object that the file
        cannot hold: observations of your own, another estimator, or a random
        generator as ``random_state``. Set it to a whole number or ``None`` before
        saving.
    sklearn.exceptions.NotFittedError
        The estimator is not fitted.

    See Also
    --------
    load : Get the estimator back.
    inspect : Look into a file without loading it.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> import kplus
    >>> X = [[0.0, 0.0], [0.0, 1.0], [9.0, 9.0], [9.0, 8.0]]
    >>> model = kplus.DPMeans(penalty=10.0).fit(X)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "model.npz"
    ...     kplus.save(model, path)
    ...     again = kplus.load(path)
    >>> bool((again.predict(X) == model.predict(X)).all())
    True
    """
    cls = type(estimator)
    if name_of(cls, ESTIMATORS) is None:
        raise TypeError(
            f"{cls.__module__}.{cls.__qualname__} cannot be saved; the classes that "
            f"can are {', '.join(sorted(ESTIMATORS))}."
        )
    _require_fitted(estimator)
    encoder = Encoder("a model file", RECORDS)
    manifest = {
        "kplus": __version__,
        "class": cls.__name__,
        "params": _encode_all(encoder, estimator.get_params(deep=False), "params."),
        "attributes": _encode_all(encoder, _fitted_attributes(estimator), ""),
        "state": _encode_all(encoder, _extra_state(estimator), "state."),
    }
    write_archive(path, manifest, encoder.arrays)


def _require_fitted(estimator: Any) -> None:
    # Imported here so that inspecting a file does not load scikit-learn.
    from sklearn.utils.validation import check_is_fitted

    check_is_fitted(
        estimator,
        msg="This %(name)s is not fitted yet; call fit before saving it.",
    )


def _fitted_attributes(estimator: Any) -> dict[str, Any]:
    return {k: v for k, v in vars(estimator).items() if _is_fitted_name(k)}


def _is_fitted_name(name: str) -> bool:
    return name.isidentifier() and name.endswith("_") and not name.startswith("_")


def _extra_state(estimator: Any) -> dict[str, Any]:
    state: dict[str, Any] = (
        estimator._to_state() if hasattr(estimator, "_to_state") else {}
    )
    return state


def _encode_all(encoder: Encoder, values: dict[str, Any], prefix: str) -> Any:
    return {k: encoder.encode(v, f"{prefix}{k}", own=True) for k, v in values.items()}


# ---------------------------------------------------------------- load


def load(path: str | os.PathLike[str]) -> Any:
    """Load an estimator that :func:`save` wrote.

    Nothing in the file is run, and the memory that is used is in proportion to the
    file's own size, whoever made it. The digests show damage, not forgery: the
    numbers of a stranger's model are whatever the stranger chose.

    Parameters
    ----------
    path : str or path-like

    Returns
    -------
    estimator : estimator of kplus
        Predicts, bit for bit, what the saved one did.

    Raises
    ------
    ModelFormatError
        The file is damaged, foreign, too new or not what it claims to be.
    FileNotFoundError
        There is no such file.

    See Also
    --------
    save : Write such a file; has an example.
    """
    with open_archive(path) as archive:
        manifest = _check_manifest(archive.manifest)
        contents = Decoder(archive.read, RECORDS)
        params = _decode_all(manifest["params"], contents)
        attributes = _decode_all(manifest["attributes"], contents)
        state = _decode_all(manifest["state"], contents)
        archive.check_all_claimed()
        contents.check_all_used()
        return _rebuild(manifest["class"], params, attributes, state)


def _check_manifest(manifest: dict[str, Any]) -> dict[str, Any]:
    if set(manifest) != _KEYS or not isinstance(manifest["kplus"], str):
        raise ModelFormatError("its manifest lacks entries or has unknown ones.")
    name = manifest["class"]
    if not isinstance(name, str) or name not in ESTIMATORS:
        raise ModelFormatError(
            f"it holds a {str(name)[:60]!r}, which this kplus {__version__} does not "
            f"know (it knows {', '.join(sorted(ESTIMATORS))}). "
            "If a newer kplus wrote it, upgrade."
        )
    for part in ("params", "attributes", "state"):
        if not isinstance(manifest[part], dict):
            raise ModelFormatError(f"its manifest's {part} are not named values.")
    for name in manifest["attributes"]:
        if not _is_fitted_name(name):
            raise ModelFormatError(f"{name[:60]!r} cannot be a fitted attribute.")
    return manifest


def _decode_all(nodes: dict[str, Any], decoder: Decoder) -> dict[str, Any]:
    return {name: decoder.decode(node) for name, node in nodes.items()}


def _rebuild(
    name: str, params: dict[str, Any], attributes: dict[str, Any], state: dict[str, Any]
) -> Any:
    cls: Callable[..., Any] = find_class(name, ESTIMATORS)
    unknown = set(params) - set(cls().get_params(deep=False))
    if unknown:
        raise ModelFormatError(
            f"{name} has no parameter {min(unknown)[:60]!r} in kplus {__version__}; "
            "if a newer kplus wrote the file, upgrade."
        )
    estimator = cls(**params)
    vars(estimator).update(attributes)
    if hasattr(estimator, "_from_state"):
        try:
            estimator._from_state(state)
        except (ValueError, TypeError, LookupError, AttributeError) as error:
            raise ModelFormatError(
                f"its contents do not make a {name}: {error}"
            ) from error
    elif state:
        raise ModelFormatError(f"it has state that {name} does not use.")
    return estimator


# ---------------------------------------------------------------- inspect


@dataclass(frozen=True)
class ArrayInfo:
    """An array in a model file, unread."""

    dtype: str
    shape: tuple[int, ...]


@dataclass(frozen=True)
class ModelInfo:
    """What :func:`inspect` returns about a model file.

    Attributes
    ----------
    class_name : str
        Class of the estimator.
    kplus_version : str
        Version of kplus that wrote the file.
    schema : int
        Version of the file's format.
    file_size : int
        Bytes of the file.
    params : dict
        Constructor parameters. Here and below arrays are `ArrayInfo`, records
        are dicts of their fields and numpy scalars are Python's.
    attributes : dict
        Fitted attributes.
    state : dict
        Further state of the estimator, not part of its public interface.
    """

    class_name: str
    kplus_version: str
    schema: int
    file_size: int
    params: dict[str, Any]
    attributes: dict[str, Any]
    state: dict[str, Any]


def inspect(path: str | os.PathLike[str]) -> ModelInfo:
    """Tell what a model file holds without reading its arrays.

    Parameters
    ----------
    path : str or path-like

    Returns
    -------
    info : ModelInfo

    Raises
    ------
    ModelFormatError
        The file is damaged, foreign, too new or not what it claims to be.
        Damage inside the arrays is found by :func:`load` only.
    FileNotFoundError
        There is no such file.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> import kplus
    >>> model = kplus.DPMeans(penalty=10.0).fit([[0.0], [1.0], [9.0], [8.0]])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "model.npz"
    ...     kplus.save(model, path)
    ...     info = kplus.inspect(path)
    >>> info.class_name, info.params["penalty"]
    ('DPMeans', 10.0)
    >>> info.attributes["cluster_centers_"].shape
    (2, 1)
    """
    with open_archive(path) as archive:
        manifest = _check_manifest(archive.manifest)
        outline = _Describer(archive)
        info = ModelInfo(
            class_name=manifest["class"],
            kplus_version=manifest["kplus"],
            schema=manifest["schema"],
            file_size=archive.size,
            params=_decode_all(manifest["params"], outline),
            attributes=_decode_all(manifest["attributes"], outline),
            state=_decode_all(manifest["state"], outline),
        )
        archive.check_all_claimed()
        return info


class _Describer(Decoder):
    """Describes arrays and records instead of making them."""

    def __init__(self, archive: Archive) -> None:
        super().__init__(archive.read, RECORDS)
        self._archive = archive
        self._described: dict[str, ArraySpec] = {}

    def make_array(self, name: Any, depth: int = 0) -> ArrayInfo:
        spec = self._archive.claim(name)
        return ArrayInfo(spec.dtype.name, spec.shape)

    def make_part(self, at: Any, depth: int = 0) -> ArrayInfo:
        if not (isinstance(at, list) and len(at) == 4):
            raise ModelFormatError("its contents name a part of no array.")
        name = at[0]
        size_of(at[2])
        if not isinstance(name, str) or name not in self._described:
            self._described[name] = self._archive.claim(name)
        return ArrayInfo(self._described[name].dtype.name, tuple(at[2]))

    def make_strings(self, name: Any, depth: int = 0) -> ArrayInfo:
        return ArrayInfo("object", self._archive.claim(name).shape)

    def make_values(self, cls: Any, array: Any, depth: int = 0) -> Any:
        return self._placed(array)

    def make_objects(self, shape: Any, items: Any, depth: int = 0) -> ArrayInfo:
        size_of(shape)
        self.decode(items, depth)
        return ArrayInfo("object", tuple(shape))

    def make_table(self, columns: Any, depth: int = 0) -> Any:
        return self.make_dict(columns, depth)

    def make_scalar(self, dtype: Any, node: Any, depth: int) -> Any:
        return super().make_scalar(dtype, node, depth).item()

    def make_nan(self, dtype: Any, bits: Any, depth: int) -> Any:
        return super().make_nan(dtype, bits, depth).item()

    def make_record(self, name: Any, fields: Any, depth: int) -> Any:
        return self.make_dict(fields, depth)
