"""Guide pages say which function computes an equation; such functions exist."""

import importlib
import re
from functools import reduce
from pathlib import Path

import pytest

import kplus

PACKAGE = Path(kplus.__file__).parent
GUIDE = Path(__file__).parent.parent / "docs" / "guide"
PAGES = ["dp-means", "dp-mixture", "features", "craft", "ibp"]


def exists(name):
    """Whether some module of the package has that; folders are left out of names."""
    stem, *path = name.split(".")
    for file in PACKAGE.rglob(f"{stem}.py"):
        module = ".".join(("kplus", *file.relative_to(PACKAGE).with_suffix("").parts))
        try:
            reduce(getattr, path, importlib.import_module(module))
        except AttributeError:
            continue
        return True
    return False


@pytest.mark.parametrize("page", PAGES)
def test_every_function_named_beside_an_equation_exists(page):
    _, table = (GUIDE / f"{page}.md").read_text().split("## The paper in the code")
    names = re.findall(r"`(\w+(?:\.\w+)+)`", table)
    assert len(names) > 10
    assert [name for name in names if not exists(name)] == []
