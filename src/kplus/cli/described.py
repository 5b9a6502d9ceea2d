"""Help on parameters of estimators, read from the source without importing them."""

import ast
import re
from pathlib import Path

import kplus
from kplus.cli.models import MODELS
from kplus.cli.options import FITTED, PARAMETERS

__all__ = ["describe"]

_ENTRY = re.compile(r"^(\w[\w, ]*) : (.*)\n((?:    .*\n|\n)*)", re.MULTILINE)


def describe() -> dict[str, str]:
    """Help for each option of `FITTED`: few models by name, then what it is."""
    entries = {name: _parameters(model.estimator) for name, model in MODELS.items()}
    described = {}
    for option, (_, _, text, *_) in FITTED.items():
        found = {
            model: parameters[name]
            for model, parameters in entries.items()
            for name in PARAMETERS.get(option, (option,))
            if name in parameters
        }
        kind, sentence = next(iter(found.values()))
        owners = f"{', '.join(found)}: " if len(found) <= 2 else ""
        if kind.startswith("{"):
            choices = re.findall(r'"([^"]*)"', kind.partition("}")[0])
            sentence += f" One of {', '.join(choices)}."
        described[option] = owners + (text or sentence)
    return described


def _parameters(estimator: str) -> dict[str, tuple[str, str]]:
    """Type and first sentence of each parameter in the docstring of a class."""
    section = re.search(
        r"^Parameters\n-+\n(.*?)\n\n\w+\n---", _docstring(estimator), re.M | re.S
    )
    assert section is not None
    found = {}
    for names, kind, text in _ENTRY.findall(f"{section[1]}\n"):
        words = " ".join(text.split()).replace("`", "")
        sentence = re.match(r".*?[.](?= [A-Z\"]|$)", words)
        for name in names.split(", "):
            found[name] = (kind, sentence[0] if sentence else words)
    return found


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
