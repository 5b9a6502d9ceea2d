"""What the parameters of estimators are: their documentation, and what they allow.

Nothing slow is imported, so that the command line can show its help at once.
"""

import ast
import re
from pathlib import Path
from typing import Any, NamedTuple

import kplus

__all__ = ["ParameterDoc", "allowed_values", "parameter_docs"]

_ENTRY = re.compile(r"^(\w[\w, ]*) : (.*)\n((?:    .*\n|\n)*)", re.MULTILINE)


class ParameterDoc(NamedTuple):
    """A parameter in a docstring."""

    type: str
    sentence: str  # the first


def parameter_docs(estimator: str) -> dict[str, ParameterDoc]:
    """The parameters in the docstring of a class, read from its source."""
    section = re.search(
        r"^Parameters\n-+\n(.*?)\n\n\w+\n---", _docstring(estimator), re.M | re.S
    )
    assert section is not None
    docs = {}
    for names, kind, text in _ENTRY.findall(f"{section[1]}\n"):
        words = " ".join(text.split()).replace("`", "")
        sentence = re.match(r".*?[.](?= [A-Z\"]|$)", words)
        for name in names.split(", "):
            docs[name] = ParameterDoc(kind, sentence[0] if sentence else words)
    return docs


def _docstring(name: str) -> str:
    """The docstring of a class that `kplus` exports; follows imports to its file."""
    module = kplus._HOMES[name]
    while True:
        tree = ast.parse(_source(module))
        for node in tree.body:
            if isinstance(node, ast.ClassDef) and node.name == name:
                return ast.get_docstring(node) or ""
        module = next(
            node.module
            for node in tree.body
            if isinstance(node, ast.ImportFrom) and node.module
            if name in [alias.name for alias in node.names]
        )


def _source(module: str) -> str:
    path = Path(kplus.__file__).parent.joinpath(*module.split(".")[1:])
    file = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    return file.read_text(encoding="utf-8")


def allowed_values(estimator: Any, name: str, value: Any) -> str | None:
    """What a parameter must be, in words; None where `value` is allowed."""
    from sklearn.utils._param_validation import make_constraint

    constraints = [
        part
        for allowed in map(make_constraint, estimator._parameter_constraints[name])
        for part in getattr(allowed, "_constraints", [allowed])
    ]
    if any(allowed.is_satisfied_by(value) for allowed in constraints):
        return None
    kinds = ("options", "left") if isinstance(value, str) else ("left",)
    return " or ".join(
        _describe(allowed)
        for kind in kinds
        for allowed in constraints
        if hasattr(allowed, kind)
    )


def _describe(allowed: Any) -> str:
    if hasattr(allowed, "options"):
        options = sorted(allowed.options)
        return options[0] if len(options) == 1 else f"one of {', '.join(options)}"
    low = "at least" if allowed.closed in ("left", "both") else "above"
    high = "at most" if allowed.closed in ("right", "both") else "below"
    bounds = ((low, allowed.left), (high, allowed.right))
    return " and ".join(f"{word} {end}" for word, end in bounds if end is not None)
