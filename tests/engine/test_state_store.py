"""State stores: what is stored comes back, what nobody needs is gone."""

import gc
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from kplus.core.errors import DataError
from kplus.data.blocks import ArrayBlocks
from kplus.engine import SerialEngine, ThreadEngine, state_store
from kplus.engine.engine import BlockEngine, State
from kplus.engine.state_store import (
    FolderStore,
    LimitedStore,
    MemoryStore,
    read_states,
    write_states,
)

STATES = [
    (np.arange(5), np.linspace(0, 1, 7)),
    None,
    [np.array([True, False]), 2.5, "text"],
]


def same(one, other):
    if isinstance(one, np.ndarray):
        return one.dtype == other.dtype and np.array_equal(one, other)
    if isinstance(one, (list, tuple)):
        return type(one) is type(other) and all(map(same, one, other))
    return one == other


def files(folder):
    return sorted(path.name for path in folder.iterdir())


def limited(tmp_path, limit):
    return LimitedStore(limit, lambda: tmp_path)


@pytest.fixture(params=["memory", "folder", "limited, fits", "limited, does not fit"])
def store(request, tmp_path):
    return {
        "memory": MemoryStore(),
        "folder": FolderStore(tmp_path / "new" / "folder"),
        "limited, fits": limited(tmp_path, 10**6),
        "limited, does not fit": limited(tmp_path, 0),
    }[request.param]


class TestEveryShelf:
    def test_gives_back_what_was_put(self, store):
        assert same(store.put(STATES).load(), STATES)

    def test_finds_it_by_its_description(self, store):
        handle = store.put(STATES)
        assert same(store.find(handle.describe()).load(), STATES)

    def test_others_find_it(self, store, tmp_path):
        handle = store.put(STATES)
        for other in (
            MemoryStore(),
            FolderStore(tmp_path / "elsewhere"),
            limited(tmp_path, 10**6),
            limited(tmp_path, 0),
        ):
            assert same(other.find(handle.describe()).load(), STATES)
        assert same(handle.load(), STATES)

    def test_pins_change_nothing(self, store):
        handle = store.put(STATES)
        for action in (
            handle.pin,
            handle.pin,
            handle.unpin,
            handle.unpin,
            handle.pin,
            handle.unpin,
        ):
            action()
            assert same(handle.load(), STATES)


class TestFolder:
    def test_files_go_with_those_who_refer_to_them(self, tmp_path):
        store = FolderStore(tmp_path)
        first, second = store.put(STATES), store.put(STATES)
        assert len(files(tmp_path)) == 2
        del first
        gc.collect()
        assert files(tmp_path) == [second.path.name]
        del second
        gc.collect()
        assert files(tmp_path) == []

    def test_a_file_found_twice_is_one(self, tmp_path):
        """Two that delete the same file would take it from each other."""
        store = FolderStore(tmp_path)
        handle = store.put(STATES)
        found = store.find(handle.describe())
        assert found is handle
        assert store.on_disk(handle.path.name) is handle

    def test_pinned_files_stay_until_unpinned(self, tmp_path):
        store = FolderStore(tmp_path)
        handle = store.put(STATES)
        handle.pin()
        described = handle.describe()
        del handle
        gc.collect()
        assert len(files(tmp_path)) == 1
        found = store.find(described)
        found.unpin()
        del found
        gc.collect()
        assert files(tmp_path) == []

    def test_pinned_files_are_on_the_disk_once_each(self, tmp_path, monkeypatch):
        """Else a checkpoint, which is, could refer to empty ones after a power cut."""
        synced = []
        monkeypatch.setattr(state_store, "_sync", synced.append)
        store = FolderStore(tmp_path)
        first, second = store.put(STATES), store.put(STATES)
        assert not synced
        for handle in (first, second, first):
            handle.pin()
        assert synced == [first.path, tmp_path, second.path]  # both are in the folder
        first.unpin()
        first.pin()
        third = store.put(STATES)
        third.pin()
        assert synced[3:] == [third.path, tmp_path]

    def test_what_is_deleted_is_not_remembered(self, tmp_path):
        store = FolderStore(tmp_path)
        for _ in range(5):
            store.put(STATES)
        gc.collect()
        assert not store._fresh

    def test_a_file_that_is_gone_can_be_pinned(self, tmp_path):
        handle = FolderStore(tmp_path).put(STATES)
        handle.path.unlink()
        handle.pin()

    def test_a_folder_that_was_moved(self, tmp_path):
        handle = FolderStore(tmp_path / "a").put(STATES)
        handle.pin()
        (tmp_path / "a").rename(tmp_path / "b")
        assert same(FolderStore(tmp_path / "b").find(handle.describe()).load(), STATES)

    def test_names_are_never_used_twice(self, tmp_path):
        assert len({write_states(tmp_path, STATES) for _ in range(20)}) == 20

    def test_a_full_disk(self, tmp_path, monkeypatch):
        def full(*arguments):
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(state_store.os, "replace", full)
        with pytest.raises(OSError, match=r"No space left.*room.*scratch=") as caught:
            FolderStore(tmp_path).put(STATES)
        assert caught.value.errno == 28
        assert files(tmp_path) == []

    def test_what_cannot_be_packed_leaves_nothing(self, tmp_path):
        with pytest.raises(TypeError):
            FolderStore(tmp_path).put([object()])
        assert files(tmp_path) == []


class TestDamage:
    def test_a_file_that_is_gone(self, tmp_path):
        handle = FolderStore(tmp_path).put(STATES)
        handle.path.unlink()
        with pytest.raises(DataError, match=r"is gone: do not delete"):
            handle.load()
        with pytest.raises(DataError, match="is gone"):
            FolderStore(tmp_path).find(handle.describe())
        with pytest.raises(DataError, match="is gone"):
            MemoryStore().find(handle.describe())

    @pytest.mark.parametrize(
        "damage",
        [
            lambda content: b"",
            lambda content: b"garbage",
            lambda content: content[: len(content) // 2],
            lambda content: content[:-1],
            lambda content: content.replace(b"0", b"1"),
            lambda content: content.replace(b"outline", b"outlaws"),
            lambda content: content[:40] + b"\xff" * 40 + content[80:],
        ],
    )
    def test_a_damaged_file(self, tmp_path, damage):
        handle = FolderStore(tmp_path).put(STATES)
        handle.path.write_bytes(damage(handle.path.read_bytes()))
        with pytest.raises(DataError, match=r"state of rows, is damaged"):
            handle.load()

    @pytest.mark.parametrize("value", [np.zeros(3), np.array([{}], dtype=object)])
    def test_an_array_or_a_pickle(self, tmp_path, value):
        np.save(tmp_path / "a.npy", value)
        with pytest.raises(DataError, match="is damaged"):
            read_states(tmp_path / "a.npy")

    def test_something_else_than_states(self, tmp_path):
        name = write_states(tmp_path, {"not": "a list"})
        with pytest.raises(DataError, match="is damaged"):
            read_states(tmp_path / name)


@dataclass
class Record:
    one: np.ndarray
    two: tuple


def kinds(held):
    return [type(handle).__name__ for handle in held]


class TestLimit:
    def test_bytes_are_counted(self):
        inside = (np.zeros(10), [np.zeros(5, np.int8), None, "text"])
        assert state_store.bytes_of([Record(np.zeros((3, 4)), inside)]) == 96 + 80 + 5
        assert state_store.bytes_of(MemoryStore()) == 0

    def test_what_is_beyond_goes_to_files(self, tmp_path):
        store = limited(tmp_path, 200)
        held = [store.put([np.zeros(10)]) for _ in range(4)]
        assert len(files(tmp_path)) == 2
        assert [type(handle).__name__ for handle in held] == [
            "InMemory",
            "InMemory",
            "OnDisk",
            "OnDisk",
        ]

    def test_bytes_are_released(self, tmp_path):
        store = limited(tmp_path, 200)
        held = [store.put([np.zeros(10)]) for _ in range(4)]
        del held[0]
        gc.collect()
        assert store._held == 80
        assert type(store.put([np.zeros(10)])).__name__ == "InMemory"
        del held
        gc.collect()
        assert store._held == 0
        assert files(tmp_path) == []

    def test_small_states_fit_where_a_large_one_did_not(self, tmp_path):
        store = limited(tmp_path, 100)
        handles = [store.put([np.zeros(n)]) for n in (13, 14, 1)]
        assert kinds(handles) == ["OnDisk", "OnDisk", "InMemory"]

    def test_the_folder_is_asked_for_when_needed_and_once(self, tmp_path):
        asked = []

        def folder() -> Path:
            asked.append(1)
            return tmp_path

        store = LimitedStore(100, folder)
        held = [store.put([np.zeros(10)])]
        assert not asked
        held += [store.put([np.zeros(10)]) for _ in range(3)]
        assert asked == [1]


class Adding:
    """A model whose states are the number of visits, in an array."""

    def summarize(self, params, block, local):
        return 1, np.ones(20) if local is None else local + 1

    def regroup_local(self, local, old_to_new, K):
        return local


@pytest.mark.parametrize(
    "make", [SerialEngine, lambda *a, **k: ThreadEngine(*a, n_threads=3, **k)]
)
class TestEngine:
    def visits(self, engine):
        return [int(local[0]) for local in engine.locals()]

    def swept(self, engine, times=1):
        for _ in range(times):
            engine.sweep(Adding(), 0, range(engine.n_blocks))

    @pytest.mark.parametrize("limit", [0, 1000, 10**6])
    def test_states_of_replaced_visits_are_gone(self, make, tmp_path, limit):
        blocks = ArrayBlocks(np.zeros((300, 2)), 10)
        with make(blocks, store=limited(tmp_path, limit)) as engine:
            self.swept(engine, 5)
            gc.collect()
            assert self.visits(engine) == [5] * 30
            held = engine.store._held
            assert held <= limit
            assert len(files(tmp_path)) * 160 + held == 30 * 160
        del engine
        gc.collect()
        assert files(tmp_path) == []

    def test_snapshots_keep_theirs(self, make, tmp_path):
        blocks = ArrayBlocks(np.zeros((300, 2)), 10)
        with make(blocks, store=limited(tmp_path, 1000)) as engine:
            self.swept(engine, 2)
            snapshot = engine.snapshot()
            self.swept(engine, 3)
            assert self.visits(engine) == [5] * 30
            engine.restore(snapshot)
            assert self.visits(engine) == [2] * 30

    def test_other_engines_resume(self, make, tmp_path):
        blocks = ArrayBlocks(np.zeros((300, 2)), 10)
        engine: BlockEngine
        with make(blocks, store=limited(tmp_path / "a", 1000)) as engine:
            self.swept(engine, 2)
            state = engine.state(engine.snapshot())
        assert isinstance(state, State)
        del engine  # as after a crash
        gc.collect()
        for other in (None, FolderStore(tmp_path / "b"), limited(tmp_path / "c", 0)):
            with make(blocks, store=other) as engine:
                engine.resume(state)
                self.swept(engine)
                assert self.visits(engine) == [3] * 30
