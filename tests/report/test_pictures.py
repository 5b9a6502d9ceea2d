"""Pictures: what they draw is where it should be."""

import io
import re

import matplotlib
import matplotlib.image
import numpy as np
import pytest

from kplus.report import pictures
from kplus.report.about import Event, Trace, Tree
from kplus.report.content import Bar, Histogram, Interval


def test_a_histogram_has_a_step_for_each_bin():
    of = Histogram((0.0, 1.0, 2.0), (0.25, 0.75), (0.5, 0.5), ("0", "2"), False)
    drawn = pictures.histogram(of, "a <b>")
    assert "<title>a &lt;b&gt;</title>" in drawn
    overall, here = re.findall(r'<path d="([^"]+)" class="(?:all|here)"', drawn)
    assert here == "M0 52V35.33H80V2H160V52z"  # the higher bin fills the height
    assert overall == "M0 52V2H80V2H160V52z"


def test_an_interval_has_both_means_and_spreads():
    drawn = pictures.interval(Interval((1.0, 1.0), (0.0, 2.0)), ("-4", "4"), "title")
    widths = re.findall(r'class="(?:here|all)" width="([\d.]+)"', drawn)
    assert widths == ["80", "40"]  # two deviations of 8: all rows first


def test_constant_columns_have_pictures_too():
    of = Interval((1.0, 0.0), (1.0, 0.0))
    assert "nan" not in pictures.interval(of, ("1", "1"), "")
    flat = Histogram((0.0, 1.0), (0.0,), (0.0,), ("0", "1"), False)
    assert "nan" not in pictures.histogram(flat, "")


def test_bars_have_the_lengths_of_shares():
    drawn = pictures.bars([Bar("<x>", 0.25, 0.5)])
    assert "&lt;x&gt;" in drawn
    assert re.findall(r'width="([\d.]+)" class="(\w+)"', drawn) == [
        ("50", "all"),
        ("25", "here"),
    ]
    assert "25%" in drawn


@pytest.mark.parametrize(
    ("share", "width"), [(-0.5, "0"), (0.5, "50"), (1.0, "100"), (7.0, "100")]
)
def test_a_meter_ends_at_1(share, width):
    assert f'width="{width}" height="10" rx="3" class="shape"' in pictures.meter(share)


@pytest.mark.parametrize(("value", "left"), [(1.0, "50"), (-1.0, "25"), (-9.0, "0")])
def test_bars_go_to_both_sides(value, left):
    assert f'<rect x="{left}"' in pictures.signed(value, 2.0)


def test_marks_differ_in_shape_where_colours_come_again():
    marks = {
        (pictures.color_of(k), pictures._shape(k, 0.0, 0.0, 1.0)) for k in range(42)
    }
    assert len(marks) == 42
    assert pictures.color_of(-1) == "cn"


def decoded(markup):
    from base64 import b64decode

    data = re.search(r"base64,([^\"]+)", markup)[1]
    return matplotlib.image.imread(io.BytesIO(b64decode(data)))


def test_images_are_files_that_others_read():
    values = np.array([[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]])
    grey = decoded(pictures.image(values, "grey"))
    assert grey.shape == (2, 3, 3)
    np.testing.assert_allclose(grey[..., 0], values / 5.0, atol=1 / 255)


def test_images_of_what_is_added_are_white_at_0():
    values = np.array([[-2.0, -1.0, 0.0, 1.0, 9.0, np.nan]])
    found = decoded(pictures.image(values, "signed", 2.0))
    blue, orange, white = [0, 114, 178], [213, 94, 0], [255, 255, 255]
    np.testing.assert_allclose(found[0, [0, 4]] * 255, [blue, orange], atol=1)
    np.testing.assert_allclose(found[0, [2, 5]] * 255, [white, white])
    np.testing.assert_allclose(found[0, 1] * 255, np.add(blue, white) / 2, atol=1)


def test_constant_images():
    assert decoded(pictures.image(np.full((2, 2), 7.0), "")).max() == 0.0
    assert decoded(pictures.image(np.zeros((2, 2)), "", 0.0)).min() == 1.0


def test_dots_of_a_combination():
    drawn = pictures.dots([0, 2], 4)
    assert re.findall(r'r="([\d.]+)"', drawn) == ["5", "2.5", "5", "2.5"]


def test_branches_have_the_colour_of_what_they_lead_to():
    of = Tree(
        places=(0.0, 1.0, 2.0, 0.5, 1.25),
        heights=(0.0, 0.0, 0.0, 0.4, 1.0),
        groups=(0, 0, 1, 0, -1),
        children=((0, 1), (3, 2)),
        sizes=(5.0, 4.0, 3.0),
        cut=0.7,
        n_hidden=0,
    )
    drawn = pictures.tree(of, "tree")
    found = re.findall(r'class="(path c\d|ink)" (?:data-group="(\d)" )?stroke-w', drawn)
    first = [("path c0", "0")] * 3  # the step inside of group 0
    assert found == [*first, ("ink", ""), ("path c0", "0"), ("path c1", "1")]
    assert drawn.count("stroke-dasharray") == 1
    assert re.findall(r">(\d)</text>", drawn) == ["0", "1"]


def trace(**changed):
    given = {
        "measure": "objective", "words": "What is left", "group_words": "Number",
        "higher_is_better": False, "values": (9.0, 5.0, 4.0), "groups": (1, 2, 3),
        "events": (Event(2, "birth", 1), Event(3, "unknown", 1)),
        "burn_in": 0, "converged": True,
    }  # fmt: skip
    return Trace(**(given | changed))


def test_a_trace_has_both_curves_and_what_happened():
    drawn = pictures.trace(trace())
    assert drawn.count("<polyline") == 2
    assert "Pass 2: groups were born (1 times)" in drawn
    assert drawn.count('class="event') == 1
    (points,) = re.findall(r'points="([^"]+)" class="path"', drawn)[:1]
    heights = [float(pair.split(",")[1]) for pair in points.split()]
    assert heights == sorted(heights)  # falls


@pytest.mark.parametrize(
    "changed",
    [
        {"values": (1.0,), "groups": (), "events": ()},
        {"values": (1.0, 1.0 + 1e-12, 1.0)},
        {"values": (1e300, 2.0, 1.0), "burn_in": 1},
        {"values": (0.0, 0.0, 0.0)},
    ],
)
def test_traces_of_little(changed):
    assert "nan" not in pictures.trace(trace(**changed))
