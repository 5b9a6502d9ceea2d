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

import numpy as np

from kplus import __version__
from kplus.core.errors import ModelFormatError
from kplus.io.archive import Archive, open_archive, write_archive
from kplus.io.registry import ESTIMATORS, RECORDS, find_class, is_listed
from kplus.io.values import MAX_STRINGS, Encoder, Reader, decode

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
        The class is not one of kplus, or a parameter or fitted attribute is of
        a kind that the file cannot hold. That includes a random generator as
        ``random_state``: set it to a whole number or ``None`` before saving.
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
    if not is_listed(cls, ESTIMATORS):
        raise TypeError(
            f"{cls.__module__}.{cls.__qualname__} cannot be saved; the classes that "
            f"can are {', '.join(sorted(ESTIMATORS))}."
        )
    _require_fitted(estimator)
    encoder = Encoder()
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
    return {k: encoder.encode(v, f"{prefix}{k}") for k, v in values.items()}


# ---------------------------------------------------------------- load


def load(path: str | os.PathLike[str]) -> Any:
    """Load an estimator that :func:`save` wrote.

    Nothing in the file is run, and no more memory is used than the file's own
    size calls for, whoever made it. The digests tell damage, not forgery: the
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
        contents = _Contents(archive)
        params = _decode_all(manifest["params"], contents)
        attributes = _decode_all(manifest["attributes"], contents)
        state = _decode_all(manifest["state"], contents)
        archive.check_all_claimed()
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


def _decode_all(nodes: dict[str, Any], reader: Reader) -> dict[str, Any]:
    return {name: decode(node, reader) for name, node in nodes.items()}


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


class _Contents:
    """Reader that gives the stored values themselves."""

    def __init__(self, archive: Archive) -> None:
        self._archive = archive
        self._n_strings = 0

    def array(self, name: Any) -> np.ndarray:
        return self._archive.read(name)

    def strings(self, name: Any) -> np.ndarray:
        text = self._archive.read(name)
        self._n_strings += text.size
        if text.dtype.kind != "U" or self._n_strings > MAX_STRINGS:
            raise ModelFormatError(
                f"array {name}: it is not text, or there are over {MAX_STRINGS} names."
            )
        return text.astype(object)

    def table(self, columns: dict[str, Any]) -> np.ndarray:
        lengths = {
            len(column) if isinstance(column, np.ndarray) and column.ndim == 1 else -1
            for column in columns.values()
        }
        if len(lengths) != 1 or -1 in lengths or "" in columns:
            raise ModelFormatError("it has a table whose columns do not match.")
        fields = [(name, column.dtype) for name, column in columns.items()]
        out = np.empty(lengths.pop(), dtype=fields)
        for name, column in columns.items():
            out[name] = column
        return out

    def scalar(self, value: np.generic) -> np.generic:
        return value

    def record(self, class_name: Any, fields: dict[str, Any]) -> Any:
        if not isinstance(class_name, str) or class_name not in RECORDS:
            raise ModelFormatError(f"it holds an unknown {str(class_name)[:60]!r}.")
        try:
            return find_class(class_name, RECORDS)(**fields)
        except (TypeError, ValueError) as error:
            raise ModelFormatError(
                f"its contents do not make a {class_name}: {error}"
            ) from error


# ---------------------------------------------------------------- inspect


@dataclass(frozen=True)
class ArrayInfo:
    """An array in a model file, unread."""

    dtype: str
    shape: tuple[int, ...]


@dataclass(frozen=True)
class ModelInfo:
    """What :func:`inspect` tells about a model file.

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
        outline = _Outline(archive)
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


class _Outline:
    """Reader that describes arrays and records instead of making them."""

    def __init__(self, archive: Archive) -> None:
        self._archive = archive

    def array(self, name: Any) -> ArrayInfo:
        spec = self._archive.claim(name)
        return ArrayInfo(spec.dtype.name, spec.shape)

    def strings(self, name: Any) -> ArrayInfo:
        return ArrayInfo("object", self._archive.claim(name).shape)

    def table(self, columns: dict[str, Any]) -> dict[str, Any]:
        return columns

    def scalar(self, value: np.generic) -> Any:
        return value.item()

    def record(self, class_name: Any, fields: dict[str, Any]) -> dict[str, Any]:
        return fields
