"""The page of a comparison: counts by brute force, and names that are only text."""

import numpy as np
import pytest
from sklearn.cluster import HDBSCAN, KMeans
from sklearn.datasets import make_blobs

import kplus
from kplus.report.comparison import crossing
from kplus.validation.comparison import Candidate, Comparison

BLOBS, _ = make_blobs(200, centers=3, n_features=3, random_state=1)
HOSTILE = "</script><script>alert('x')</script>"


def test_crossings_count_the_rows():
    rng = np.random.default_rng(0)
    one, other = rng.integers(-1, 4, 300), rng.integers(0, 3, 300)
    counts, lines, columns = crossing(one, other)
    for i, a in enumerate(lines):
        for j, b in enumerate(columns):
            assert counts[i, j] == np.sum((one == a) & (other == b))
    assert lines[-1] == -1
    sizes = counts.sum(axis=1)[:-1]
    assert np.all(np.diff(sizes) <= 0)


def test_the_same_groups_are_on_the_diagonal():
    one = np.repeat([2, 0, 1], [50, 30, 20])
    counts, lines, columns = crossing(one, np.array([1, 2, 0])[one])
    np.testing.assert_array_equal(counts, np.diag([50.0, 30.0, 20.0]))
    assert (lines, columns) == ([2, 0, 1], [0, 1, 2])


@pytest.mark.parametrize("n_resamples", [0, 2])
def test_a_page_of_models(tmp_path, n_resamples):
    models = {"dp-means": "dp-means", HOSTILE: KMeans(30), "bits": "bp-means"}
    result = kplus.compare(BLOBS, models, n_resamples=n_resamples, random_state=0)
    path = result.report(tmp_path / "page.html")
    text = path.read_text("utf-8")
    assert HOSTILE not in text
    assert "Start with dp-means: 3 groups." in text
    assert "Features: a row may have several." in text
    assert "The largest 12 groups of each are shown." in text
    assert "DPMeans(random_state=" in text


def test_pages_of_little(tmp_path):
    rows = np.arange(40)
    one = Candidate("one", model=KMeans(1), groups=rows * 0)
    left = Candidate("left", why_not="it holds text")
    result = Comparison((one, left), 40, rows)
    text = result.report(tmp_path / "page.html").read_text("utf-8")
    assert "No model sees several groups in this table." in text
    assert "Not fitted: it holds text" in text
    assert "How far they agree" not in text


def test_noise_is_a_line_of_its_own(tmp_path):
    result = kplus.compare(
        BLOBS, [HDBSCAN(min_cluster_size=30), "dp-means"], n_resamples=0
    )
    text = result.report(tmp_path / "page.html").read_text("utf-8")
    assert '<th scope="row">none</th>' in text or np.all(
        result.candidates[0].groups >= 0
    )
