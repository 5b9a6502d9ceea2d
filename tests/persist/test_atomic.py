import os
import stat

import pytest

from kplus.persist import atomic
from kplus.persist.atomic import atomic_file


def write(path, content):
    with atomic_file(path) as file:
        file.write(content)


def test_content_replaces_the_old(tmp_path):
    path = tmp_path / "f"
    write(path, b"one")
    write(str(path), b"two")
    assert path.read_bytes() == b"two"
    assert os.listdir(tmp_path) == ["f"]


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_an_error_in_the_block_changes_nothing(tmp_path, error):
    path = tmp_path / "f"
    write(path, b"one")

    def interrupted():
        with atomic_file(path) as file:
            file.write(b"tw")
            raise error

    with pytest.raises(error):
        interrupted()
    assert path.read_bytes() == b"one"
    assert os.listdir(tmp_path) == ["f"]


@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_a_failing_system_call_changes_nothing(tmp_path, monkeypatch, step):
    path = tmp_path / "f"
    write(path, b"one")

    def fail(*args):
        raise OSError("no space")

    monkeypatch.setattr(atomic.os, step, fail)
    with pytest.raises(OSError, match="no space"):
        write(path, b"two")
    monkeypatch.undo()
    assert path.read_bytes() == b"one"
    assert os.listdir(tmp_path) == ["f"]


def test_file_then_rename_then_folder_reach_the_disk(tmp_path, monkeypatch):
    steps = []
    fsync, replace = os.fsync, os.replace

    def note_fsync(descriptor):
        is_folder = stat.S_ISDIR(os.fstat(descriptor).st_mode)
        steps.append("fsync folder" if is_folder else "fsync file")
        fsync(descriptor)

    def note_replace(source, target):
        steps.append("replace")
        replace(source, target)

    monkeypatch.setattr(atomic.os, "fsync", note_fsync)
    monkeypatch.setattr(atomic.os, "replace", note_replace)
    write(tmp_path / "f", b"one")
    assert steps == ["fsync file", "replace", "fsync folder"]


def test_permissions(tmp_path):
    path = tmp_path / "f"
    write(path, b"one")
    (tmp_path / "plain").write_bytes(b"")
    assert path.stat().st_mode == (tmp_path / "plain").stat().st_mode
    path.chmod(0o600)
    write(path, b"two")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_links_are_followed(tmp_path):
    write(tmp_path / "f", b"one")
    (tmp_path / "link").symlink_to(tmp_path / "f")
    write(tmp_path / "link", b"two")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "f").read_bytes() == b"two"


def test_a_folder_as_path(tmp_path):
    with pytest.raises(IsADirectoryError, match="give the name of a file"):
        write(tmp_path, b"")


def test_a_missing_folder(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"folder .* does not exist"):
        write(tmp_path / "no" / "f", b"")
