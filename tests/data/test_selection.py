"""Columns become categories by name, number or mask, and mistakes are told."""

import numpy as np
import pandas as pd
import pytest

from kplus.core.errors import DataError
from kplus.data.selection import categorical_mask

NAMES = ["size", "color", "room"]


@pytest.mark.parametrize(
    "choice",
    [
        ["color", "room"],
        ("room", "color", "room"),
        {"color", "room"},
        np.array(["color", "room"]),
        np.array(["color", "room"], dtype=object),
        pd.Index(["color", "room"]),
        [1, 2],
        (2, 1),
        range(1, 3),
        np.array([1, 2]),
        np.array([1, 2], dtype=np.uint8),
        [False, True, True],
        np.array([False, True, True]),
        pd.Series([False, True, True]),
    ],
)
def test_names_numbers_and_masks(choice):
    assert categorical_mask(choice, 3, NAMES).tolist() == [False, True, True]


@pytest.mark.parametrize("choice", ["from_dtype", [], (), np.array([])])
def test_no_columns(choice):
    assert not categorical_mask(choice, 3, NAMES).any()
    assert not categorical_mask(choice, 3).any()


def test_columns_without_names():
    assert categorical_mask([0], 2).tolist() == [True, False]
    assert categorical_mask([False, True], 2).tolist() == [False, True]
    with pytest.raises(
        DataError, match=r"'a', but the columns of X have no names.*0 to 1"
    ):
        categorical_mask(["a"], 2)


LISTED = r"\['size', 'color', 'room'\]"


@pytest.mark.parametrize(
    ("choice", "words"),
    [
        (["rooms"], f"no column 'rooms'; the columns are {LISTED}"),
        ([3], f"no column 3; .*0 to 2; the columns are {LISTED}"),
        ([-1], "no column -1"),
        ([True, False], f"mask of 2 entries, but there are 3 columns.*{LISTED}"),
        (["color", 2], "mixture of names and numbers"),
        ([True, 1], "mixture of mask and numbers"),
        ([1, True, 0], "mixture of mask and numbers"),
        ([1.0], "must be a list of the names"),
        ([None], "must be a list of the names"),
        (np.eye(3, dtype=bool), "must be a list of the names"),
        ("color", "must be 'from_dtype'.*got 'color'"),
        (1, "must be 'from_dtype'.*got 1"),
        (None, "must be 'from_dtype'.*got None"),
    ],
)
def test_mistakes(choice, words):
    with pytest.raises(DataError, match=f"categorical_features.*{words}"):
        categorical_mask(choice, 3, NAMES)


def test_many_names_are_cut_short():
    names = [f"c{j}" for j in range(30)]
    with pytest.raises(DataError, match=r"'c19'\] and 10 more\.$"):
        categorical_mask(["x"], 30, names)
