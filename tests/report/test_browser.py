"""Pages in a real browser: they work, keep quiet, and everybody can read them."""

import csv
import re

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_digits, make_blobs

import kplus
from every_estimator import ROWS

pytestmark = pytest.mark.browser

HOSTILE = (
    "</script></style><script>window.broken=1</script><img src=x onerror=alert(1)>"
)
PAGES = ("clusters", "sixty", "features", "images", "compared", "hostile")


def _clusters(path):
    X, _ = make_blobs(150, centers=3, n_features=4, random_state=1)
    X[0] = 60.0
    names = [f'wine "{i}", red' for i in range(len(X))]
    frame = pd.DataFrame(X, index=names, columns=["hue", "ash", "acid", "alcohol"])
    model = kplus.DPMixture(noise=True, n_init=1, random_state=0).fit(frame)
    model.report(path, frame, stability=2)
    return model


def _sixty(path):
    X, _ = make_blobs(1200, centers=60, center_box=(-40, 40), random_state=0)
    return kplus.DPMeans(n_clusters=60, random_state=0).fit(X).report(path, X)


def _features(path):
    X = ROWS.copy()
    X[::7, 1] = np.nan
    model = kplus.MEIBP(random_state=0).fit(X)
    model.report(path, X)
    return model


def _images(path):
    X = load_digits().data[:100]
    model = kplus.KFeatures(3, random_state=0).fit(X)
    return model.report(path, X, image_shape=(8, 8))


def _compared(path):
    X, _ = make_blobs(120, centers=3, random_state=1)
    models = ["dp-means", "dp-mixture"]
    return kplus.compare(X, models, n_resamples=2, random_state=0).report(path)


def _hostile(path):
    X, z = make_blobs(120, centers=3, n_features=2, random_state=1)
    bad = np.array([f"{HOSTILE}{k}" for k in "\u2028\0'"], dtype=object)[z]
    columns = [HOSTILE, "javascript:alert(1)", "';--\"><b>"]
    frame = pd.DataFrame(dict(zip(columns, [*X.T, bad], strict=True)))
    frame.index = [f"{HOSTILE}{i}" for i in range(len(frame))]
    model = kplus.DPMixture(n_init=1, random_state=0).fit(frame)
    return model.report(path, frame, title=HOSTILE)


@pytest.fixture(scope="module")
def paths(browser, tmp_path_factory):
    """All pages, written once; each with what its function returned."""
    folder = tmp_path_factory.mktemp("pages")
    made = {}
    for name in PAGES:
        path = folder / f"{name}.html"
        made[name] = (path, globals()[f"_{name}"](path))
    return made


@pytest.fixture
def opened(paths, show):
    return lambda name, **context: show(paths[name][0], **context)


@pytest.fixture
def clusters(opened):
    return opened("clusters", reduced_motion="reduce").page


# ------------------------------------------------------------------- for everybody


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", ["clusters", "features", "images", "compared"])
def test_pages_are_readable_by_all(opened, name, scheme):
    """axe-core finds nothing serious, whatever is open."""
    base = pytest.importorskip("axe_playwright_python.base")
    page = opened(name, color_scheme=scheme).page
    page.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
    page.evaluate(base.AXE_SCRIPT)
    found = page.evaluate("axe.run()")
    assert found["passes"]
    serious = [
        (each["id"], each["nodes"][0]["html"])
        for each in found["violations"]
        if each["impact"] in ("serious", "critical")
    ]
    assert serious == []


@pytest.mark.parametrize("name", PAGES)
def test_pages_fit_on_a_phone(opened, name):
    page = opened(name, viewport={"width": 360, "height": 740}).page
    assert page.evaluate("document.documentElement.scrollWidth") == 360
    assert page.get_by_role("heading", level=1).is_visible()


def test_pages_print(opened):
    """Without what needs a screen; in black on white, though the screen be dark."""
    page = opened("clusters", color_scheme="dark").page
    page.emulate_media(media="print", color_scheme="dark")
    for hidden in ("nav", "#theme", "#labels", ".tools >> nth=0"):
        assert not page.locator(hidden).is_visible()
    assert page.locator("#group-0").is_visible()
    color = "getComputedStyle(document.body).backgroundColor"
    assert page.evaluate(color) == "rgb(255, 255, 255)"
    assert page.pdf().startswith(b"%PDF")


def test_light_and_dark(opened):
    page = opened("clusters", color_scheme="dark").page
    color = "getComputedStyle(document.body).backgroundColor"
    dark = page.evaluate(color)
    assert page.locator("#theme").inner_text() == "Light"
    page.click("#theme")
    assert page.evaluate(color) == "rgb(255, 255, 255)" != dark
    page.click("#theme")
    assert page.evaluate(color) == dark


# ------------------------------------------------------------------ what pages do


def _values(page, column):
    cells = page.locator(f"#all-groups tbody tr td:nth-child({column})").all()
    return [float(cell.get_attribute("data-value") or "nan") for cell in cells]


def test_tables_are_sorted(clusters):
    sizes = _values(clusters, 2)
    heading = clusters.locator("#all-groups th", has_text="Rows")
    heading.locator("button").click()
    assert heading.get_attribute("aria-sort") == "descending"
    assert _values(clusters, 2) == sorted(sizes, reverse=True)
    heading.locator("button").click()
    assert heading.get_attribute("aria-sort") == "ascending"
    assert _values(clusters, 2) == sorted(sizes)
    words = clusters.locator("#all-groups th", has_text="What sets it apart")
    words.locator("button").click()
    told = clusters.locator("#all-groups td.words").all_inner_texts()
    assert told == sorted(told, key=str.lower)
    assert clusters.locator("#all-groups th[aria-sort]").count() == 1


def test_what_is_not_known_is_sorted_to_the_end(clusters):
    """The line of noise has no probability."""
    button = clusters.locator("#all-groups th", has_text="Sure").locator("button")
    for _ in range(2):
        button.click()
        *known, last = _values(clusters, 4)
        assert np.isnan(last)
        assert not np.isnan(known).any()


def test_tables_are_filtered(opened):
    page = opened("sixty").page
    field = page.get_by_label("Find in the table")
    field.fill("group 17")
    rows = page.locator("#all-groups tbody tr")
    shown = [row.inner_text() for row in rows.all() if row.is_visible()]
    assert [re.match(r"Group 17\b", words) is not None for words in shown] == [True]
    assert page.locator("#all-groups-count").inner_text() == "1 of 60"
    field.fill("group no")
    assert page.locator("#all-groups-count").inner_text() == "0 of 60"
    field.fill("")
    assert sum(row.is_visible() for row in rows.all()) == 60


def test_words_are_found_wherever_they_are(clusters):
    """In a row, and if nothing has them so, in any order; a number as a whole."""
    field = clusters.get_by_label("Find in the table")
    texts = clusters.locator("#all-groups tbody tr").all_text_contents()
    found = {}
    for words in ("acid low", "low acid", "nowhere"):
        field.fill(words)
        shown = clusters.locator("#all-groups tbody tr:visible").all_text_contents()
        found[words] = shown
    assert found["acid low"] == [text for text in texts if "acid low" in text]
    assert found["low acid"] == [t for t in texts if "low" in t and "acid" in t]
    assert [text.startswith("None") for text in found["nowhere"]] == [True]


def test_cards_are_found_and_opened(opened):
    page = opened("sixty").page
    cards = page.locator("#cards > details")
    assert page.locator("#cards > details[open]").count() == 12
    page.get_by_role("button", name="Open all").click()
    assert page.locator("#cards > details[open]").count() == 60
    page.get_by_role("button", name="Close all").click()
    assert page.locator("#cards > details[open]").count() == 0
    page.get_by_label("Find a group").fill("group 42")
    shown = [card for card in cards.all() if card.is_visible()]
    assert "group-42" in [card.get_attribute("id") for card in shown]
    assert all(re.search(r"roup 42\b", card.inner_html()) for card in shown)
    page.get_by_label("Find a group").fill("")
    page.locator("#all-groups a", has_text="Group 31").click()
    assert page.locator("#group-31").get_attribute("open") is not None


def _on(page):
    """The groups that stand out."""
    found = page.locator(".pointing .on").all()
    return {node.get_attribute("data-group") for node in found}


def test_pointing_shows_a_group_everywhere(clusters):
    told = clusters.locator(".told")
    before = told.inner_text()
    clusters.locator("#map .name[data-group='1']").hover()
    assert _on(clusters) == {"1"}
    assert told.inner_text().startswith("Group 1: ")
    opacity = "e => getComputedStyle(e).opacity"
    for group, expected in [("0", "0.18"), ("1", "1")]:
        dots = clusters.locator(f"#map .dots[data-group='{group}']")
        assert dots.evaluate(opacity) == expected
    clusters.locator("h1").hover()
    assert _on(clusters) == set()
    assert told.inner_text() == before


def test_a_click_keeps_a_group_and_escape_lets_go(clusters):
    chip = clusters.locator(".chips button[data-group='2']")
    clusters.locator("#map .name[data-group='2']").click()
    clusters.locator("h1").hover()
    assert _on(clusters) == {"2"}
    assert chip.get_attribute("aria-pressed") == "true"
    clusters.keyboard.press("Escape")
    assert _on(clusters) == set()
    chip.focus()
    clusters.keyboard.press("Enter")
    assert _on(clusters) == {"2"}
    clusters.keyboard.press("Enter")
    assert chip.get_attribute("aria-pressed") == "false"


@pytest.mark.parametrize("name", ["clusters", "features"])
def test_labels_are_saved(opened, paths, name, tmp_path):
    page, model = opened(name).page, paths[name][1]
    with page.expect_download() as download:
        page.get_by_role("button", name="Save them as CSV").click()
    download.value.save_as(tmp_path / "labels.csv")
    with open(tmp_path / "labels.csv", newline="", encoding="utf-8") as file:
        header, *rows = csv.reader(file)
    if name == "clusters":
        assert header == ["row", "cluster"]
        assert [row[0] for row in rows] == [f'wine "{i}", red' for i in range(150)]
        assert [int(row[1]) for row in rows] == model.labels_.tolist()
        assert -1 in model.labels_
    else:
        assert header[1:] == [f"feature {k}" for k in range(model.n_components_)]
        assert [row[0] for row in rows] == [str(i) for i in range(len(ROWS))]


# --------------------------------------------------------------------------- safety


def test_hostile_names_stay_text(opened):
    page = opened("hostile").page
    assert page.evaluate("window.broken") is None
    assert page.locator("h1 ~ *, main b").filter(has=page.locator("b")).count() == 0
    assert page.locator("script").count() == 2  # labels as data, and the page's own
    assert page.locator("img[src='x'], [onerror]").count() == 0
    assert page.locator("a:not([href^='#'])").count() == 0
    assert page.title().startswith("</script></style><script>")
    assert "<script>window.broken=1" in page.locator("main").inner_text()


@pytest.mark.parametrize("name", PAGES)
def test_the_policy_of_a_page_lets_nothing_else_run(paths, browser, name):
    """A script, a style and a picture put into it do not count."""
    context = browser.new_context()
    page = context.new_page()
    blocked, asked = [], []
    page.goto(paths[name][0].as_uri())
    page.on("console", lambda message: blocked.append(message.text))
    page.on("requestfinished", lambda request: asked.append(request.url))
    page.evaluate(
        """() => {
            for (const [kind, text] of [["script", "window.broken = 1"],
                                        ["style", "h1 { display: none }"]]) {
                const node = document.createElement(kind);
                node.textContent = text;
                document.body.append(node);
            }
            const image = document.createElement("img");
            image.src = "https://example.org/x.png";
            document.body.append(image);
        }"""
    )
    page.wait_for_timeout(50)
    assert page.evaluate("window.broken") is None
    assert page.locator("h1").is_visible()
    assert asked == []
    assert len([words for words in blocked if "Content Security Policy" in words]) == 3
    context.close()
