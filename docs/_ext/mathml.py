"""Formulas as MathML, which browsers draw themselves: no script, nothing to fetch."""

import re
import unicodedata
from html import escape

from docutils.nodes import SkipNode
from latex2mathml.converter import convert
from sphinx.errors import ExtensionError


def formula(latex, display):
    """Return a formula as MathML; its LaTeX goes along as alternative text."""
    latex = latex.strip()
    markup = convert(latex.replace("{aligned}", "{align*}"), display=display)
    if "\\" in markup or ">&<" in markup:
        raise ExtensionError(f"no MathML for a command in {latex!r}: {markup}")
    # Browsers know letters of their own in place of the attribute, and no functions.
    markup = re.sub(r'<mi mathvariant="([a-z-]+)">([A-Z])</mi>', letter, markup)
    markup = re.sub(
        r"<mi>(log|ln|exp)</mi>(?!<mo)", r'\g<0><mspace width="0.17em"/>', markup
    )
    return markup.replace("<math ", f'<math alttext="{escape(latex)}" ', 1)


def letter(match):
    """Return a capital in script or with double strokes."""
    name = f"{match[1].upper()} CAPITAL {match[2]}"
    try:
        return f"<mi>{unicodedata.lookup(name)}</mi>"
    except KeyError:  # most have the longer name
        return f"<mi>{unicodedata.lookup(f'MATHEMATICAL {name}')}</mi>"


def visit_inline(self, node):
    self.body.append(formula(node.astext(), "inline"))
    raise SkipNode


def visit_block(self, node):
    self.body.append(f'<div class="math">{formula(node.astext(), "block")}</div>\n')
    raise SkipNode


def setup(app):
    app.add_html_math_renderer("mathml", (visit_inline, None), (visit_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
