"""Formulas as MathML, which browsers draw themselves: no script, nothing to fetch."""

from html import escape

from docutils.nodes import SkipNode
from latex2mathml.converter import convert
from sphinx.errors import ExtensionError


def formula(latex, display):
    """Return a formula as MathML; its LaTeX goes along as alternative text."""
    latex = latex.strip()
    markup = convert(latex, display=display)
    if "\\" in markup:
        raise ExtensionError(f"no MathML for a command in {latex!r}: {markup}")
    return markup.replace("<math ", f'<math alttext="{escape(latex)}" ', 1)


def visit_inline(self, node):
    self.body.append(formula(node.astext(), "inline"))
    raise SkipNode


def visit_block(self, node):
    self.body.append(f'<div class="math">{formula(node.astext(), "block")}</div>\n')
    raise SkipNode


def setup(app):
    app.add_html_math_renderer("mathml", (visit_inline, None), (visit_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
