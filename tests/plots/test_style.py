"""Colours that everybody can tell apart, and names as people have them."""

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pytest

from kplus.plots.style import (
    COLORS,
    cluster_style,
    group_name,
    ink_on,
    plain,
    share_words,
    write_cells,
)

# What people without red or green cones see (Machado, Oliveira & Fernandes 2009).
PROTAN = [
    [0.152286, 1.052583, -0.204868],
    [0.114503, 0.786281, 0.099216],
    [-0.003882, -0.048116, 1.051998],
]
DEUTAN = [
    [0.367322, 0.860646, -0.227968],
    [0.280085, 0.672501, 0.047413],
    [-0.011820, 0.042940, 0.968881],
]
TO_CONES = [
    [0.4122214708, 0.5363325363, 0.0514459929],
    [0.2119034982, 0.6806995451, 0.1073969566],
    [0.0883024619, 0.2817188376, 0.6299787005],
]
TO_LAB = [
    [0.2104542553, 0.7936177850, -0.0040720468],
    [1.9779984951, -2.4285922050, 0.4505937099],
    [0.0259040371, 0.7827717662, -0.8086757660],
]


def oklab(colors, seen_as):
    rgb = np.array([mpl.colors.to_rgb(color) for color in colors])
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    linear = np.clip(linear @ np.transpose(seen_as), 0.0, 1.0)
    return np.cbrt(linear @ np.transpose(TO_CONES)) @ np.transpose(TO_LAB)


@pytest.mark.parametrize("seen_as", [np.eye(3), PROTAN, DEUTAN])
def test_colors_differ_for_everybody(seen_as):
    lab = oklab(COLORS, seen_as)
    apart = np.linalg.norm(lab[:, None] - lab, axis=2)
    assert apart[np.triu_indices(len(COLORS), 1)].min() > 0.07


def test_neighbours_differ_in_grey():
    lightness = oklab(COLORS, np.eye(3))[:, 0]
    assert np.abs(np.diff(lightness, append=lightness[0])).min() > 0.05
    assert lightness.max() < 0.8  # seen on white


def test_84_clusters_differ_and_noise_from_all():
    styles = {cluster_style(k) for k in range(84)}
    assert len(styles) == 84
    assert cluster_style(-1) not in styles


@pytest.mark.parametrize("color", [*COLORS, "white", "black", "#777777"])
def test_ink_can_be_read(color):
    def luminance(name):
        rgb = np.array(mpl.colors.to_rgb(name))
        linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
        return linear @ (0.2126, 0.7152, 0.0722)

    low, high = sorted([luminance(color), luminance(ink_on(color))])
    assert (high + 0.05) / (low + 0.05) >= 4.2


def test_names():
    assert plain("a\nb\t c\x00d") == "a b c d"
    assert plain("x" * 24) == "x" * 24
    assert len(plain("x" * 25)) == 24
    assert plain("value_of_the_customer_2023") != plain("value_of_the_customer_2024")
    assert group_name(3, 1200, 12000) == "3: 1,200 (10%)"
    assert group_name(-1, 1, 1000) == "noise: 1 (<1%)"
    assert group_name(0, 0, 0) == "0: 0 (0%)"
    assert share_words(np.nan) == "-"
    assert share_words(0.005) == "<1%"
    assert plain("pet = cat") == "pet = cat"
    assert plain("occupation of the father = a") == "occupation of…father = a"
    assert plain("x" * 30 + " = " + "y" * 30).split(" = ")[1].startswith("yyyyyy")


def test_cells_have_numbers_or_signs_and_gaps_a_dash():
    _, ax = plt.subplots()
    values = np.array([[-1.04, 0.0], [np.nan, 123.4]])
    image = ax.imshow(values, vmin=-2, vmax=2)
    write_cells(ax, image, values)
    assert [text.get_text() for text in ax.texts] == ["−1.0", "0", "–", "123"]
    _, ax = plt.subplots()
    values = np.linspace(-1, 1, 800).reshape(40, 20)
    write_cells(ax, ax.imshow(values, vmin=-1, vmax=1), values)
    signs = [text.get_text() for text in ax.texts]
    assert signs.count("−") == signs.count("+") == np.count_nonzero(values > 0.5)
