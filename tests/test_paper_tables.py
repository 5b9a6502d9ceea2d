"""Guide pages say which function computes an equation; such functions exist."""

import ast
import re
from pathlib import Path

import pytest

import kplus

PACKAGE = Path(kplus.__file__).parent
GUIDE = Path(__file__).parent.parent / "docs" / "guide"
PAGES = [
    "dp-means",
    "inside/dp-mixture",
    "inside/features",
    "inside/craft",
    "inside/ibp",
]


def exists(name):
    """Whether some file of the package has that; folders are left out of names.

    Python does not see the functions that compiled kernels call: files are read.
    """
    stem, *path = name.split(".")
    return any(
        defines(ast.parse(file.read_text()), path)
        for file in PACKAGE.rglob(f"{stem}.py")
    )


def defines(node, path):
    """Whether a module or class defines path[0], that path[1], and so on."""
    if not path:
        return True
    return any(
        defines(child, path[1:])
        for child in getattr(node, "body", ())
        if getattr(child, "name", None) == path[0]
    )


@pytest.mark.parametrize("page", PAGES)
def test_every_function_named_beside_an_equation_exists(page):
    _, table = (GUIDE / f"{page}.md").read_text().split("## The paper in the code")
    names = re.findall(r"`(\w+(?:\.\w+)+)`", table)
    assert len(names) > 10
    assert [name for name in names if not exists(name)] == []
