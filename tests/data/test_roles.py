"""What columns are taken for."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

from kplus.data.coded_blocks import FileColumns, MemoryColumns
from kplus.data.files import open_files
from kplus.data.roles import Wishes, roles_of

pytest.importorskip("pyarrow")
N = 60
RNG = np.random.default_rng(0)
SOME = RNG.permutation(1000)[:N]  # whole numbers, all different


def role_of(values, name="x", wishes=Wishes(), make=pd.DataFrame):  # noqa: B008
    (role,) = roles_of(MemoryColumns(make({name: values})), wishes)
    return role


KINDS = {
    "numbers": [
        ("x", RNG.normal(size=N)),
        ("number of rooms", SOME),
        ("room_no", SOME % 30),
        ("number_of_rooms", SOME),
        ("notes", SOME),
        ("casino", SOME),
        ("id", RNG.normal(size=N)),
        ("x", np.r_[np.arange(N - 1), 7]),
        ("year", np.arange(1950, 1950 + N)),
        ("x", [True, False] * (N // 2)),
    ],
    "ids": [
        ("id", SOME),
        ("customer_id", SOME),
        ("customerId", SOME),
        ("Kundennummer", SOME),
        ("order no", SOME),
        ("customer id", np.r_[SOME[:-1].astype(float), np.nan]),
        ("zip", SOME + 10_000),
        ("x", np.arange(N)),
        ("x", np.arange(1.0, N + 1)),
        ("x", [f"C{i:05d}" for i in SOME]),
        ("record_id", [*map(str, SOME[:-1]), "Total"]),
        ("id", [*SOME[:-1].tolist(), "Total"]),
    ],
    "free text": [
        ("x", [f"a long note about what happened, number {i}" for i in SOME])
    ],
    "constant": [
        ("x", np.ones(N)),
        ("x", ["DE"] * N),
        ("x", ["0 %"] * N),
        ("x", [7] * N),
    ],
    "empty": [
        ("x", [None] * N),
        ("x", [np.nan] * N),
        ("x", [""] * N),
        ("x", ["-", "NA"] * (N // 2)),
    ],
    "dates": [
        ("x", [f"{d:02d}.01.2026" for d in range(1, 31)] * 2),
        ("x", pd.date_range("2026-01-01", periods=N)),
        ("x", pd.date_range("2026-01-01", periods=N, tz="UTC")),
        ("x", list(pd.date_range("2026-01-01", periods=N).date)),
        ("x", pd.to_timedelta(np.arange(N), unit="h")),
    ],
    "yes or no": [
        ("x", ["yes", "no"] * (N // 2)),
        ("x", ["Ja", "nein", "n/a"] * (N // 3)),
    ],
    "written numbers": [
        ("x", [f"€{x:,.2f}" for x in 1000 * RNG.normal(size=N)]),
        ("x", [*map(str, RNG.normal(size=N - 2)), "see note", "-"]),
        ("x", [*RNG.normal(size=N - 2).tolist(), "see note", "-"]),
        ("x", pd.Series(RNG.normal(size=N).tolist(), dtype=object)),
        ("x", [f"{i % 7}%" for i in range(N)]),
    ],
    "categories": [
        ("x", ["red", "green", "blue"] * (N // 3)),
        ("x", ["01067", "80331", "20095"] * (N // 3)),
        ("x", pd.Series([True, None] * (N // 2), dtype=object)),
    ],
}


@pytest.mark.parametrize(
    ("kind", "case"), [(k, i) for k, cases in KINDS.items() for i in range(len(cases))]
)
def test_kinds(kind, case):
    name, values = KINDS[kind][case]
    assert role_of(values, name).kind == kind


@pytest.mark.parametrize("kind", ["ids", "free text", "constant"])
def test_what_is_asked_for_is_used(kind):
    for name, values in KINDS[kind]:
        for wishes in (Wishes(keep=[name]), Wishes(categorical=[name])):
            found = role_of(values, name, wishes).kind
            assert found in ("numbers", "categories", "written numbers")


def test_tables_of_a_few_rows_lose_nothing_but_empty_columns():
    for values in ([1, 2, 3], [7, 7, 7], ["a", "b", "c"], ["a", "a", "a"]):
        assert role_of(values, "id").kind in ("numbers", "categories")
    assert role_of([None, None], "id").kind == "empty"


def test_columns_that_belong_together_stay():
    frame = {f"pixel{i}": np.zeros(N) for i in range(12)} | {"x": np.zeros(N)}
    *pixels, other = roles_of(MemoryColumns(pd.DataFrame(frame)), Wishes())
    assert {role.kind for role in pixels} == {"numbers"}
    assert other.kind == "constant"


def test_constants_are_parts_to_some():
    assert role_of(np.ones(N), wishes=Wishes(constants=True)).kind == "numbers"
    wishes = Wishes(constants=True, numbers_only=True)
    assert role_of(["5%"] * N, wishes=wishes).kind == "written numbers"


def test_consecutive_numbers_of_long_tables_name_rows():
    assert role_of(np.arange(10_001, 10_001 + 300)).kind == "ids"
    assert role_of(np.arange(10_001, 10_001 + 150)).kind == "numbers"


def test_later_rows_count():
    late = np.r_[np.ones(20_000), 2.0]
    assert role_of(late).kind == "numbers"
    again = np.tile(np.arange(15_000), 2)
    assert role_of(again, "id").kind == "numbers"
    assert role_of([None] * 20_000 + ["a", "b"]).kind == "categories"
    assert role_of(["-"] * 20_000 + ["1", "2"]).kind == "written numbers"


def test_what_is_said():
    half = role_of([*map(str, SOME[:40]), *["see note", "to do"] * 10])
    assert (half.kind, half.note) == ("categories", "40 of 60 are numbers")
    found = role_of(["a", "NA", "b"] * 20)
    assert (found.kind, found.blank) == ("categories", "NA")
    declared = role_of(pd.Categorical(["a", "NA", "b"] * 20))
    assert (declared.kind, declared.blank) == ("categories", "")
    assert role_of(["a", "b", ""] * 20).blank == ""


def test_wishes_for_numbers():
    cells = ["1", "2", "x", "y", "z"] * 12
    assert role_of(cells).kind == "categories"
    assert role_of(cells, wishes=Wishes(numbers=["x"])).kind == "written numbers"
    assert role_of(["€1", "€2"] * 30, wishes=Wishes(categories_only=True)).kind == (
        "categories"
    )


def test_frames_and_files_agree(tmp_path):
    columns = {}
    for kind, cases in KINDS.items():
        for i, (name, values) in enumerate(cases):
            if isinstance(values, (np.ndarray, list)) and kind != "numbers":
                columns[f"{kind}{'abcdefghijklmno'[i]} {name}"] = values
    frame = pd.DataFrame(columns)
    frame = frame.loc[:, [len(set(map(type, frame[c].dropna()))) < 2 for c in frame]]
    frame.to_csv(tmp_path / "t.csv", index=False)
    frame.to_parquet(tmp_path / "t.parquet")
    in_memory = [role.kind for role in roles_of(MemoryColumns(frame), Wishes())]
    polars = roles_of(MemoryColumns(pl.from_pandas(frame)), Wishes())
    assert [role.kind for role in polars] == in_memory
    for name in ("t.csv", "t.parquet"):
        files = roles_of(FileColumns(open_files(tmp_path / name)), Wishes())
        assert [role.kind for role in files] == in_memory
