"""dask.array and dask.dataframe: the rows, fits on them, and what is refused."""

import pickle
import sys

import numpy as np
import pandas as pd
import pytest

from every_estimator import assert_same_attributes, bits, mixed_rows
from kplus import CRAFT, BPMeans, DPMeans, DPMixture
from kplus.core.errors import DataError
from kplus.core.reading import read_all

pytestmark = pytest.mark.dask
dask = pytest.importorskip("dask")
pytest.importorskip("pyarrow")
da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")

from kplus.data.dask import open_collection  # noqa: E402
from kplus.data.open import has_columns, number_blocks  # noqa: E402

X = np.random.default_rng(0).normal(size=(57, 5))
X[30:] += 12.0
FRAME, _ = mixed_rows(120)


@pytest.fixture(autouse=True)
def _no_client_is_started(monkeypatch):
    """Nor is one there afterwards."""
    client = pytest.importorskip("distributed").Client

    def refuse(*arguments, **options):
        raise AssertionError("a Client was started")

    monkeypatch.setattr(client, "__init__", refuse)
    yield
    assert sys.modules["distributed"].client._get_global_client() is None


def same_fit(model, collection, rows):
    """Fits on both, which must be the same to the last bit."""
    one = type(model)(**model.get_params()).fit(collection)
    other = type(model)(**model.get_params()).fit(rows)
    assert_same_attributes(one, other)
    return one, other


class TestArray:
    @pytest.mark.parametrize("chunks", [(57, 5), (8, 5), (8, 2), ((1, 50, 6), (2, 3))])
    @pytest.mark.parametrize("block_rows", [1, 7, 1000, None])
    def test_rows(self, chunks, block_rows):
        blocks = number_blocks(open_collection(da.from_array(X, chunks)), block_rows)
        assert (blocks.n_rows, blocks.n_features) == X.shape
        np.testing.assert_array_equal(read_all(blocks), X)
        rows = np.array([0, 7, 8, 50, 51, 56])
        np.testing.assert_array_equal(blocks.take(rows), X[rows])

    def test_chunks_of_unknown_size(self):
        lazy = da.from_array(X, (8, 5))
        chosen = lazy[lazy[:, 0] > 0.5]
        assert np.isnan(chosen.chunks[0]).all()
        expected = X[X[:, 0] > 0.5]
        found = read_all(open_collection(chosen))
        np.testing.assert_array_equal(found, expected)

    def test_chunks_of_unknown_size_that_are_empty(self):
        lazy = da.from_array(X, (8, 5))
        chosen = lazy[lazy[:, 0] > 8.0]  # no row of the first chunks
        np.testing.assert_array_equal(
            read_all(open_collection(chosen)), X[X[:, 0] > 8.0]
        )

    @pytest.mark.parametrize(
        ("kind", "expected"),
        [("f4", "f4"), ("f2", "f8"), ("i2", "f8"), ("u8", "f8"), ("?", "f8")],
    )
    def test_types(self, kind, expected):
        rows = np.abs(X).astype(kind)
        found = read_all(open_collection(da.from_array(rows, (8, 2))))
        assert found.dtype == expected
        np.testing.assert_array_equal(found, rows.astype(expected))

    def test_rows_are_computed_when_read(self):
        seen = []

        def part(block):
            seen.append(len(block))
            return block

        lazy = da.from_array(X, (8, 5)).map_blocks(part, dtype=float, meta=X[:0])
        blocks = open_collection(lazy).cut(8)
        assert not seen
        blocks.read(3)
        assert seen == [8]

    def test_may_be_pickled(self):
        blocks = open_collection(da.from_array(X, (8, 5)))
        np.testing.assert_array_equal(read_all(pickle.loads(pickle.dumps(blocks))), X)

    @pytest.mark.parametrize(
        "model",
        [
            DPMeans(penalty=40.0, batch_size=16, random_state=0),
            DPMixture(batch_size=16, random_state=0),
            CRAFT(batch_size=16, random_state=0),
            BPMeans(batch_size=16, random_state=0),
        ],
        ids=repr,
    )
    def test_fits_are_those_in_memory(self, model):
        lazy = da.from_array(X, (11, 2))
        one, other = same_fit(model, lazy, X)
        for name in ("predict", "transform"):
            if hasattr(one, name):
                assert bits(getattr(one, name)(lazy)) == bits(getattr(other, name)(X))

    def test_parts_of_a_stream(self):
        lazy = da.from_array(X, (8, 5))
        one = DPMeans(penalty=40.0, random_state=0)
        other = DPMeans(penalty=40.0, random_state=0)
        for part in (slice(0, 20), slice(20, 57)):
            one.partial_fit(lazy[part])
            other.partial_fit(X[part])
        assert_same_attributes(one, other)

    @pytest.mark.parametrize(
        ("rows", "message"),
        [
            (X[:, 0], "1 dimensions"),
            (X[None], "3 dimensions"),
            (X.astype("U5"), "<U5, not real numbers"),
            (X.astype(object), "object, not real numbers"),
            (X.astype(complex), "complex128, not real numbers"),
            (X[:0], "Found array with 0 sample"),
            (X[:, :0], "Found array with 0 feature"),
        ],
        ids=lambda value: str(value)[:12] if isinstance(value, str) else "",
    )
    def test_what_is_refused(self, rows, message):
        with pytest.raises(DataError, match=message):
            DPMeans(penalty=1.0).fit(da.from_array(rows, chunks=-1))

    def test_other_collections(self):
        bag = pytest.importorskip("dask.bag").from_sequence([1, 2, 3])
        with pytest.raises(DataError, match=r"Bag; of dask, arrays and data frames"):
            DPMeans(penalty=1.0).fit(bag)

    def test_bad_values_are_told(self):
        rows = X.copy()
        rows[40, 2] = np.nan
        with pytest.raises(DataError, match="NaN"):
            DPMeans(penalty=1.0).fit(da.from_array(rows, (8, 2)))


def numbers():
    return pd.DataFrame(X, columns=list("abcde"))


class TestFrame:
    @pytest.mark.parametrize("npartitions", [1, 4])
    @pytest.mark.parametrize("block_rows", [7, None])
    def test_rows_of_numbers(self, npartitions, block_rows):
        table = open_collection(dd.from_pandas(numbers(), npartitions=npartitions))
        assert has_columns(table)
        blocks = number_blocks(table, block_rows)
        assert blocks.feature_names == list("abcde")
        np.testing.assert_array_equal(read_all(blocks), X)
        rows = np.array([0, 14, 15, 56])
        np.testing.assert_array_equal(blocks.take(rows), X[rows])

    def test_types_of_numbers(self):
        frame = pd.DataFrame(
            {
                "single": X[:, 0].astype("f4"),
                "whole": np.arange(57),
                "yes": X[:, 1] > 0,
                "gaps": pd.array([None, *range(56)], dtype="Int64"),
            }
        )
        found = read_all(
            number_blocks(open_collection(dd.from_pandas(frame, npartitions=3)))
        )
        expected = frame.astype(float).to_numpy(na_value=np.nan)
        np.testing.assert_array_equal(found, expected)
        single = dd.from_pandas(frame[["single"]], npartitions=3)
        assert read_all(number_blocks(open_collection(single))).dtype == np.float32

    def test_an_empty_partition(self):
        frame = dd.from_pandas(numbers(), npartitions=4)
        some = frame[frame["a"] > 9.0]
        expected = X[X[:, 0] > 9.0]
        assert 0 in [len(part) for part in dask.compute(*some.to_delayed())]
        np.testing.assert_array_equal(
            read_all(number_blocks(open_collection(some))), expected
        )

    def test_first_partition_empty_with_text(self):
        words = ["x", "y", "z"] * 5
        frame = pd.DataFrame({"a": np.arange(15.0), "word": words})
        lazy = dd.from_pandas(frame, npartitions=3)
        some = lazy[lazy["a"] > 5.5]
        one = CRAFT(n_clusters=2, random_state=0).fit(some)
        other = CRAFT(n_clusters=2, random_state=0).fit(frame[frame["a"] > 5.5])
        assert bits(one.labels_) == bits(other.labels_)

    def test_no_rows_at_all(self):
        frame = dd.from_pandas(numbers(), npartitions=2)
        with pytest.raises(DataError, match="0 sample"):
            DPMeans(penalty=1.0).fit(frame[frame["a"] > 99.0])

    @pytest.mark.parametrize(
        "model",
        [
            DPMeans(penalty=40.0, batch_size=16, random_state=0),
            DPMixture(batch_size=16, random_state=0),
            CRAFT(batch_size=16, random_state=0),
        ],
        ids=repr,
    )
    def test_fits_are_those_in_memory(self, model):
        lazy = dd.from_pandas(numbers(), npartitions=5)
        one, other = same_fit(model, lazy, numbers())
        assert bits(one.predict(lazy)) == bits(other.predict(numbers()))

    @pytest.mark.parametrize(
        "model",
        [
            CRAFT(batch_size=32, random_state=0),
            DPMixture("mixed", batch_size=32, random_state=0),
        ],
        ids=repr,
    )
    @pytest.mark.parametrize("kind", ["text", "category", "object"])
    def test_fits_with_categories(self, model, kind):
        frame = FRAME.copy()
        if kind != "text":
            frame["color"] = frame["color"].astype(kind)
        lazy = dd.from_pandas(frame, npartitions=4)
        one, other = same_fit(model, lazy, FRAME)
        assert bits(one.predict(lazy)) == bits(other.predict(FRAME))

    def test_categories_that_dask_does_not_know(self):
        """Each partition has codes of its own."""
        lazy = dd.from_pandas(FRAME, npartitions=4)
        lazy["color"] = lazy["color"].astype("category").cat.as_unknown()
        assert not lazy["color"].cat.known
        model = CRAFT(batch_size=32, random_state=0)
        same_fit(model, lazy, FRAME)

    def test_numbers_that_are_categories(self):
        frame = FRAME.assign(
            color=FRAME["color"].map({"red": 7, "green": 9, "blue": 2})
        )
        model = CRAFT(categorical_features=["color"], batch_size=32, random_state=0)
        same_fit(model, dd.from_pandas(frame, npartitions=4), frame)

    def test_unknown_categories_are_told(self):
        model = CRAFT(random_state=0).fit(dd.from_pandas(FRAME, npartitions=4))
        other = FRAME.assign(color="pink")
        with pytest.raises(DataError, match="pink"):
            model.predict(dd.from_pandas(other, npartitions=4))

    def test_text_is_not_numbers(self):
        with pytest.raises(DataError, match=r"Column 'color' of The dask.dataframe"):
            DPMeans(penalty=1.0).fit(dd.from_pandas(FRAME, npartitions=2))

    def test_dates_are_refused(self):
        frame = pd.DataFrame({"when": pd.to_datetime(["2026-01-01"] * 6)})
        for model in (DPMeans(penalty=1.0), CRAFT()):
            with pytest.raises(DataError, match=r"No column is left.*dates: when"):
                model.fit(dd.from_pandas(frame, npartitions=2))

    def test_names_that_are_not_text(self):
        frame = pd.DataFrame(X[:, :3], columns=[0, "b", 2.5])
        blocks = number_blocks(open_collection(dd.from_pandas(frame, npartitions=3)))
        assert blocks.feature_names == ["0", "b", "2.5"]
        np.testing.assert_array_equal(read_all(blocks), X[:, :3])

    @pytest.mark.parametrize("names", [["a", "b", "a"], ["1", "b", 1]])
    def test_names_that_come_twice(self, names):
        lazy = dd.from_pandas(pd.DataFrame(X[:, :3], columns=list("abc")), 2)
        lazy = lazy.map_partitions(
            lambda part: part.set_axis(names, axis=1),
            meta=pd.DataFrame(X[:0, :3], columns=names),
        )
        with pytest.raises(DataError, match=f"2 columns called '{names[0]}'"):
            open_collection(lazy)

    def test_may_be_pickled(self):
        blocks = number_blocks(
            open_collection(dd.from_pandas(numbers(), npartitions=3)), 8
        )
        blocks.read(0)
        np.testing.assert_array_equal(read_all(pickle.loads(pickle.dumps(blocks))), X)
