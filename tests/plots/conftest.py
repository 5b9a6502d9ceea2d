"""Displays are drawn without a screen, and closed after each test."""

import pytest


@pytest.fixture(scope="session", autouse=True)
def _no_screen():
    pytest.importorskip("matplotlib").use("Agg")


@pytest.fixture(autouse=True)
def _close_figures(_no_screen):
    yield
    import matplotlib.pyplot as plt

    plt.close("all")
