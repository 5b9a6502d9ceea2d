"""Sphinx settings. ``make docs`` builds the pages and runs every example."""

import logging
import re
import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "_ext"))

import inventories  # noqa: E402
import measured  # noqa: E402

import kplus  # noqa: E402

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
    "sphinx.ext.intersphinx",
    "numpydoc",
    "matplotlib.sphinxext.figmpl_directive",
    "matplotlib.sphinxext.plot_directive",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
    "llms",
    "mathml",
]
exclude_patterns = ["_build", "gallery"]
templates_path = ["_templates"]
nitpicky = True
nitpick_ignore = [("py:meth", "plot")]  # of the class whose attributes are listed

myst_enable_extensions = [
    "amsmath",
    "colon_fence",
    "deflist",
    "dollarmath",
    "substitution",
]
myst_heading_anchors = 3
myst_substitutions = measured.figures()

intersphinx_mapping = inventories.write(
    HERE / "inventory.txt", HERE / "_build/inventories"
)

autosummary_generate = True
autodoc_typehints = "none"  # numpydoc's Parameters section already says the types
numpydoc_show_class_members = False
numpydoc_xref_param_type = True
numpydoc_xref_ignore = "all"  # of words that are no types; the aliases are linked
numpydoc_xref_aliases = {
    "array-like": ":term:`numpy:array_like`",
    "ndarray": "numpy.ndarray",
    "DataFrame": "pandas.DataFrame",
    "RandomState": "numpy.random.RandomState",
    "Generator": "numpy.random.Generator",
}

# Docstring examples are run by pytest, those of the pages by the doctest builder.
doctest_test_doctest_blocks = ""
doctest_global_setup = "import numpy as np"

copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

plot_basedir = "figures"
plot_formats = [("png", 110)]
plot_srcset = ["2x"]  # for screens of twice the resolution
plot_html_show_formats = False
plot_html_show_source_link = True
plot_rcparams = {
    "figure.figsize": (7.0, 3.6),
    "figure.constrained_layout.use": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
}
plot_apply_rcparams = True

sphinx_gallery_conf = {
    "examples_dirs": "gallery",
    "gallery_dirs": "examples",
    "filename_pattern": r"\.py$",
    "within_subsection_order": "FileNameSortKey",
    "image_srcset": ["2x"],
    "abort_on_example_error": True,
    "download_all_examples": False,
    "min_reported_time": 1e6,
    "show_signature": False,
    "write_computation_times": False,
}

html_theme = "furo"
html_title = "kplus"
html_show_sphinx = False
html_static_path = ["_static"]
html_css_files = ["pages.css"]
html_theme_options = {
    "light_css_variables": {
        "color-brand-primary": "#0b6e99",
        "color-brand-content": "#0b6e99",
    },
    "dark_css_variables": {
        "color-brand-primary": "#6ec6e8",
        "color-brand-content": "#6ec6e8",
    },
}


def escape_fitted_names(app, what, name, obj, options, lines):
    """Keep ``n_clusters_`` in ``x : shape (n_clusters_, 2)`` from being a link."""
    for i, line in enumerate(lines):
        head, colon, kind = line.partition(" : ")
        lines[i] = head + colon + re.sub(r"(?<=\w)_(?=\W|$)", r"\\_", kind)


def setup(app):
    # Before numpydoc, whose priority is 500, turns the sections into reST.
    app.connect("autodoc-process-docstring", escape_fitted_names, priority=400)
