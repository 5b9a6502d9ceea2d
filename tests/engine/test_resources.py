"""What fits may use: sizes, blocks within blocks, folders for scratch files."""

import gc
import os
import threading
from pathlib import Path

import numpy as np
import pytest

import kplus
from kplus.data.blocks import ArrayBlocks
from kplus.engine import LimitedStore, make_engine
from kplus.engine.meter import resident_bytes
from kplus.engine.resources import Resources, ScratchFolder, as_bytes, resources_now

X = np.random.default_rng(0).normal(size=(200, 2))


class TestSizes:
    @pytest.mark.parametrize(
        ("size", "expected"),
        [
            (1, 1),
            (np.int64(2**40), 2**40),
            (1e9, 10**9),
            ("100", 100),
            ("100b", 100),
            ("2 GB", 2 * 10**9),
            ("2gb", 2 * 10**9),
            (" 2 G ", 2 * 10**9),
            ("2 GiB", 2 * 2**30),
            ("2Gi", 2 * 2**30),
            ("1.5 kB", 1500),
            (".5 MB", 500_000),
            ("3. KiB", 3072),
            ("1 TiB", 2**40),
            ("1 TB", 10**12),
        ],
    )
    def test_are_bytes(self, size, expected):
        assert as_bytes(size) == expected

    @pytest.mark.parametrize(
        "size",
        [
            *(0, -1, 0.5, True, False, float("nan"), float("inf"), 1e300),
            *("", "GB", "two GB", "2 XB", "-2 GB", "0 GB", "1.2.3", ".", "0.1 B"),
            *("1e3", "9" * 400, "2 GB 3", b"2 GB", [2], 2j, "inf", "nan"),
        ],
    )
    def test_that_are_none(self, size):
        with pytest.raises(ValueError, match="memory_limit must be a number of bytes"):
            as_bytes(size)

    def test_are_checked_at_once(self):
        with (
            pytest.raises(ValueError, match="'lots'"),
            kplus.resources(memory_limit="lots"),
        ):
            raise AssertionError
        assert resources_now() == Resources()


class TestNesting:
    def test_the_inner_one_counts(self, tmp_path):
        with kplus.resources(memory_limit="1 GB"):
            with kplus.resources(memory_limit="2 GB"):
                assert resources_now().memory_limit == 2 * 10**9
            assert resources_now().memory_limit == 10**9
        assert resources_now() == Resources()

    def test_what_is_not_given_stays(self, tmp_path):
        with (
            kplus.resources(memory_limit="1 GB"),
            kplus.resources(scratch=tmp_path),
            kplus.resources(),
        ):
            assert resources_now() == Resources(10**9, tmp_path)

    def test_an_error_ends_it(self):
        with pytest.raises(KeyError), kplus.resources(memory_limit=1):
            raise KeyError
        assert resources_now() == Resources()

    def test_each_thread_has_its_own(self):
        seen = []
        with kplus.resources(memory_limit=1):
            thread = threading.Thread(target=lambda: seen.append(resources_now()))
            thread.start()
            thread.join()
        assert seen == [Resources()]

    def test_serves_as_a_decorator(self):
        @kplus.resources(memory_limit=5)
        def limit():
            return resources_now().memory_limit

        assert (limit(), limit()) == (5, 5)


class TestFolder:
    def test_is_made_and_gone(self, tmp_path):
        folder = ScratchFolder(tmp_path / "new" / "one")
        assert folder.path.parent == tmp_path / "new" / "one"
        (folder.path / "file").touch()
        path = folder.path
        del folder
        gc.collect()
        assert not path.exists()

    def test_is_that_for_temporary_files(self, tmp_path, monkeypatch):
        monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
        folder = Resources().folder()
        assert folder.path.parent == tmp_path

    def test_that_outlives_the_fit(self, tmp_path):
        folder = Resources(checkpoint_rows=tmp_path).folder()
        assert folder.path == tmp_path
        del folder
        gc.collect()
        assert tmp_path.exists()

    def test_a_file_in_its_place(self, tmp_path):
        (tmp_path / "file").touch()
        with (
            kplus.resources(memory_limit=1, scratch=tmp_path / "file"),
            pytest.raises(FileExistsError, match=r"file cannot be used: name another"),
        ):
            kplus.DPMeans(penalty=1.0, batch_size=50).fit(X)

    @pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
    def test_that_is_read_only(self, tmp_path):
        tmp_path.chmod(0o500)
        with (
            kplus.resources(memory_limit=1, scratch=tmp_path),
            pytest.raises(PermissionError, match="cannot be used: name another"),
        ):
            kplus.DPMeans(penalty=1.0, batch_size=50).fit(X)

    @pytest.mark.skipif(not Path("/proc/self").exists(), reason="needs /proc")
    def test_where_nothing_can_be_made(self):
        with (
            kplus.resources(memory_limit=1, scratch="/proc/self/nowhere"),
            pytest.raises(OSError, match=r"nowhere cannot be used: name another"),
        ):
            kplus.DPMeans(penalty=1.0, batch_size=50).fit(X)


class TestEngines:
    def test_have_a_limit_only_if_told(self):
        assert not isinstance(make_engine(ArrayBlocks(X, 10)).store, LimitedStore)
        limit = resident_bytes() + 2**30
        engine = make_engine(ArrayBlocks(X, 10), None, 2, Resources(limit))
        assert isinstance(engine.store, LimitedStore)
        assert 0 < engine.store._limit < 2**30

    def test_that_work_side_by_side_share_what_is_left(self, monkeypatch):
        monkeypatch.setattr("kplus.engine.resident_bytes", lambda: 10**8)
        one, four = (
            make_engine(ArrayBlocks(X, 10), None, 1, Resources(10**9, sharers=n))
            for n in (1, 4)
        )
        thread = 64 * 2**20
        assert one.store._limit + thread == 9 * 10**8
        assert 4 * (four.store._limit + thread) == 9 * 10**8

    def test_nothing_fits_where_the_limit_is_below_what_there_is(self):
        engine = make_engine(ArrayBlocks(X, 10), None, 1, Resources(1))
        assert engine.store._limit == 0

    def test_memory_is_counted(self):
        before = resident_bytes()
        held = np.ones(10**7)
        assert resident_bytes() - before > 0.9 * held.nbytes
