"""The classes that files may hold."""

import dataclasses
from importlib import import_module

import pytest

from kplus.core.storable import (
    ESTIMATORS,
    RECORDS,
    RECORDS_AND_STATES,
    STATES,
    find_class,
    name_of,
)

# Neither parameters nor sums nor state of rows: no loop keeps them.
SHARED = {"core", "engine"}
PASSING = {"Rows", "Profile", "Penalties", "_Tile", "_Sequential", "MoveRecords"}
PASSING |= {"Hyperprior", "Spectrum"}


@pytest.mark.parametrize("name", RECORDS_AND_STATES)
def test_records_are_where_the_table_says(name):
    cls = find_class(name, RECORDS_AND_STATES)
    assert dataclasses.is_dataclass(cls)
    assert cls.__module__ == RECORDS_AND_STATES[name]
    assert name_of(cls, RECORDS_AND_STATES) == name


@pytest.mark.parametrize("name", RECORDS_AND_STATES)
def test_declared_shapes_name_fields(name):
    """Others would make every resume fail."""
    cls = find_class(name, RECORDS_AND_STATES)
    names = {field.name for field in dataclasses.fields(cls)}
    assert set(getattr(cls, "shapes", {})) <= names


def test_no_name_is_in_two_tables():
    assert not set(RECORDS) & set(STATES)
    assert not set(ESTIMATORS) & set(RECORDS_AND_STATES)


def test_what_models_keep_can_be_stored():
    """A class that is not listed would make checkpoints of a fit fail."""
    missing = []
    methods = [name for name in STATES.values() if name.split(".")[1] not in SHARED]
    for name in sorted(set(methods)):
        for cls in vars(import_module(name)).values():
            if (
                isinstance(cls, type)
                and dataclasses.is_dataclass(cls)
                and cls.__module__ == name
                and not hasattr(cls, "summarize")
                and cls.__name__ not in PASSING
                and name_of(cls, RECORDS_AND_STATES) is None
            ):
                missing.append(cls)
    assert not missing


@pytest.mark.parametrize("cls", [dict, type("State", (), {}), None])
def test_namesakes_are_not_listed(cls):
    assert name_of(type(cls) if cls is None else cls, RECORDS_AND_STATES) is None
