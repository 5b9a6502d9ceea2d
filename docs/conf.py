"""Sphinx settings. ``make docs`` builds the pages and runs every example."""

import logging
import re
from pathlib import Path

import kplus

project = "kplus"
author = "The kplus developers"
copyright = "2026, The kplus developers"
version = release = kplus.__version__

# Fits tell at the end what they took; pages need not.
logging.getLogger("kplus").setLevel(logging.WARNING)

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.doctest",
    "sphinx.ext.mathjax",
    "numpydoc",
    "matplotlib.sphinxext.plot_directive",
]
exclude_patterns = ["_build"]
templates_path = ["_templates"]
nitpicky = False

myst_enable_extensions = ["amsmath", "colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3

autosummary_generate = True
autodoc_typehints = "none"  # numpydoc's Parameters section already says the types
numpydoc_show_class_members = False

# Docstring examples are run by pytest, those of the pages by the doctest builder.
doctest_test_doctest_blocks = ""
doctest_global_setup = "import numpy as np"

plot_basedir = "figures"
plot_formats = [("png", 160)]
plot_html_show_formats = False
plot_html_show_source_link = False
plot_rcparams = {
    "figure.figsize": (7.0, 3.6),
    "figure.constrained_layout.use": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
}
plot_apply_rcparams = True

html_theme = "furo"
html_title = "kplus"
html_show_sphinx = False

RESULTS = Path(__file__).parent.parent / "benchmarks" / "results"


def append_results(app, docname, source):
    """Put every benchmark table under the benchmarks page."""
    if docname != "benchmarks":
        return
    for table in sorted(RESULTS.glob("*.md")):
        app.env.note_dependency(str(table))
        source[0] += "\n" + table.read_text(encoding="utf-8")


def escape_fitted_names(app, what, name, obj, options, lines):
    """Keep ``n_clusters_`` in ``x : shape (n_clusters_, 2)`` from being a link."""
    for i, line in enumerate(lines):
        head, colon, kind = line.partition(" : ")
        lines[i] = head + colon + re.sub(r"(?<=\w)_(?=\W|$)", r"\\_", kind)


def setup(app):
    app.connect("source-read", append_results)
    # Before numpydoc, whose priority is 500, turns the sections into reST.
    app.connect("autodoc-process-docstring", escape_fitted_names, priority=400)
