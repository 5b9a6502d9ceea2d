"""Pages that several files of tests look at, and a browser that shows them."""

import os
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import make_blobs

_NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
_WANTED = (
    "needs Chromium and the browser tools: apt-get install chromium, "
    "then pip install --group browser"
)
_QUIET = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]


@pytest.fixture(scope="session")
def blobs():
    """Three groups in a frame with names of rows, a few of which are far out."""
    X, z = make_blobs(300, centers=3, n_features=4, random_state=1)
    X[0] = 60.0
    names = [f"wine {i}" for i in range(len(X))]
    return pd.DataFrame(X, index=names, columns=["hue", "ash", "acid", "alcohol"]), z


@pytest.fixture(scope="session")
def mixed():
    """Groups that numbers and categories tell apart, with gaps."""
    rng = np.random.default_rng(0)
    z = np.repeat([0, 1, 2], [120, 60, 20])
    age = rng.normal(30.0 + 15.0 * z, 3.0)
    age[rng.random(len(z)) < 0.1] = np.nan
    color = np.array(["red", "green", "blue"], dtype=object)[z]
    color[rng.random(len(z)) < 0.05] = None
    noise = rng.normal(size=len(z))
    return pd.DataFrame({"age": age, "color": color, "noise": noise}), z


def _browser_tools():
    """The driver and a browser, or what keeps them from running."""
    try:
        from playwright import sync_api
    except ImportError:
        return None, None
    found = os.environ.get("KPLUS_CHROMIUM") or next(
        filter(None, map(shutil.which, _NAMES)), None
    )
    return sync_api, found


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    """Headless Chromium by Playwright; where there is none the tests are skipped."""
    driver, executable = _browser_tools()
    if driver is None or executable is None:  # a check of everything must not skip
        if os.environ.get("CI") == "true":
            pytest.fail(_WANTED)
        pytest.skip(_WANTED)
    with driver.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=executable, args=_QUIET)
        yield browser
        browser.close()


class Shown:
    """A page in the browser, with all that it logged and asked for."""

    def __init__(self, browser, path: Path, **context):
        self.context = browser.new_context(accept_downloads=True, **context)
        self.page = self.context.new_page()
        self.logged, self.asked = [], []
        self.page.on("console", lambda message: self.logged.append(message.text))
        self.page.on("pageerror", lambda error: self.logged.append(str(error)))
        self.page.on("request", lambda request: self.asked.append(request.url))
        self.page.on("dialog", lambda dialog: self.logged.append(dialog.message))
        self.page.goto(path.as_uri())

    def texts(self, selector):
        """What those elements say that are shown."""
        found = self.page.locator(selector)
        return [one.inner_text() for one in found.all() if one.is_visible()]


@pytest.fixture
def show(browser):
    """Show a file; afterwards it must have been quiet, and alone."""
    pages = []

    def open_page(path, **context):
        pages.append(Shown(browser, path, **context))
        return pages[-1]

    yield open_page
    for shown in pages:
        shown.context.close()
        assert shown.logged == []
        asked = [url for url in shown.asked if not url.startswith("data:")]
        assert [url.partition(":")[0] for url in asked] == ["file"]  # the page itself
