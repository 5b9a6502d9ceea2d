"""What notebooks show of estimators: the summary above scikit-learn's diagram."""

from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from every_estimator import ROWS, every_model, fitted
from kplus import CRAFT, DPMeans, DPMixture

HOSTILE = ["<script>alert(1)</script>", "a < b; \"c\" & 'd'", "<img src=x onerror=e>"]


class Page(HTMLParser):
    """The lines of the summary, and all tags."""

    def __init__(self, html):
        super().__init__()
        self.tags, self.lines, self._inside = [], [], False
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag == "table":
            self._inside = dict(attrs).get("class") == "kplus-summary"
        if self._inside and tag == "tr":
            self.lines.append([])
        if self._inside and tag in ("td", "th"):
            self.lines[-1].append("")

    def handle_endtag(self, tag):
        if tag == "table":
            self._inside = False

    def handle_data(self, data):
        if self._inside and self.lines and self.lines[-1]:
            self.lines[-1][-1] += data


@every_model
def test_fitted_estimators_show_their_summary(model):
    plain = clone(model)._repr_html_()
    assert Page(plain).lines == []
    shown = fitted(model)._repr_html_()
    head, *lines = Page(shown).lines
    told = fitted(model).summary().nlargest(20, "size", keep="first")
    names = dict(zip(told[model._group_noun].astype(str), told["name"], strict=True))
    assert head[0] == model._group_noun
    assert {line[0]: line[4] for line in lines} == names
    assert "sk-container" in shown  # the parameters are still there
    assert fitted(model)._repr_mimebundle_()["text/html"].count("kplus-summary") > 1


@pytest.mark.parametrize("model", [CRAFT(), DPMixture()], ids=repr)
def test_names_and_values_stay_text(model):
    rng = np.random.default_rng(0)
    numbers = np.r_[rng.normal(0, 1, 60), rng.normal(9, 1, 60)]
    frame = pd.DataFrame({HOSTILE[0]: numbers, HOSTILE[1]: HOSTILE[1:] * 60})
    frame[HOSTILE[2]] = [HOSTILE[0]] * 60 + [HOSTILE[2]] * 60
    model = clone(model).set_params(random_state=0).fit(frame)
    page = Page(model._repr_html_())
    assert not [tag for tag, _ in page.tags if tag == "img"]
    assert "alert" not in str([attrs for _, attrs in page.tags])
    words = str(page.lines)
    assert HOSTILE[0] in words
    assert "<script>alert" not in model._repr_html_()


def test_of_very_many_groups_the_largest():
    X = np.repeat(np.arange(30.0) ** 2, np.arange(1, 31))[:, None]
    model = DPMeans(penalty=1e-3, cells=None, random_state=0).fit(X)
    page = Page(model._repr_html_())
    assert model.n_clusters_ == 30
    assert len(page.lines) == 21
    assert "30 clusters of 465 rows, the 20 largest" in model._repr_html_()


def test_in_pipelines_and_as_text():
    pipe = make_pipeline(StandardScaler(), DPMeans(random_state=0)).fit(ROWS)
    assert "sk-container" in pipe._repr_html_()
    with sklearn.config_context(display="text"):
        assert not hasattr(pipe[-1], "_repr_html_")
        assert list(pipe[-1]._repr_mimebundle_()) == ["text/plain"]


def test_without_a_portrait_the_diagram_alone():
    """As of estimators in mid-fit, which callbacks get."""
    model = DPMeans(random_state=0).fit(ROWS)
    del model.portrait_
    assert Page(model._repr_html_()).lines == []
