"""The scripts import each other as they do when they are run."""

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def _scripts_on_path(monkeypatch):
    monkeypatch.syspath_prepend(Path(__file__).resolve().parents[1])
