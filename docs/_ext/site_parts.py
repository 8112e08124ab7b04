"""Parts of the site that Sphinx does not bring: sections of docstrings, MathML, inherited words.

.. code-block:: rst

    .. docstring:: marginsvm.MomentumMarginClassifier Notes References

shows these sections of the docstring, so that a page need not repeat them. Formulas are
written as MathML, which browsers draw by themselves: MathJax would come from the network. So would
the pages that the docstrings of methods inherited from scikit-learn refer to: of these references,
the words are shown.
"""

import html
import re
from importlib import import_module
from xml.etree import ElementTree

from docutils import nodes
from docutils.parsers.rst import Directive
from docutils.statemachine import StringList
from docutils.utils.math.latex2mathml import tex2mathml
from numpydoc.docscrape import NumpyDocString

MATHML = "{http://www.w3.org/1998/Math/MathML}"
ElementTree.register_namespace("", MATHML.strip("{}"))


class DocstringSections(Directive):
    """Parse the named sections where the directive stands."""

    required_arguments = 1
    optional_arguments = 9

    def run(self):
        path, *sections = self.arguments
        module, name = path.rsplit(".", 1)
        found = NumpyDocString(getattr(import_module(module), name).__doc__)
        container = nodes.container()
        for section in sections:
            if not found[section]:
                raise self.error(f"{path} has no section {section}")
            lines = StringList(["", *found[section], ""], source=f"docstring of {path}")
            self.state.nested_parse(lines, self.content_offset, container)
        return container.children


def beside_accents(formula):
    """Set subscripts of accented letters beside them; docutils has them below."""
    # XML knows few of HTML's names of characters
    formula = re.sub(r"&(?!amp;|lt;|gt;)\w+;", lambda name: html.unescape(name[0]), formula)
    root = ElementTree.fromstring(formula)
    for node in list(root.iter(f"{MATHML}munderover")):
        letter, subscript, accent = node
        if accent.get("stretchy") == "false":
            node.tag = f"{MATHML}msub"
            accented = ElementTree.Element(f"{MATHML}mover", accent="true")
            accented.extend([letter, accent])
            node[:] = [accented, subscript]
    return ElementTree.tostring(root, encoding="unicode")


def visit_math(translator, node):
    """Write a formula, in a line or on lines of its own."""
    block = isinstance(node, nodes.math_block)
    formula = beside_accents(tex2mathml(node.astext(), as_block=block))
    translator.body.append(f'<div class="formula">{formula}</div>' if block else formula)
    raise nodes.SkipNode


# A reference to a page of scikit-learn's guide or glossary; its words, and where they lead.
_REFERENCE = re.compile(r":(?:ref|term):`([^`<]+?)(?:\s*<[^`>]*>)?`")


def without_references(app, what, name, obj, options, lines):
    """Show the words of references in docstrings of scikit-learn's methods."""
    if not (getattr(obj, "__module__", None) or "").startswith("marginsvm"):
        lines[:] = _REFERENCE.sub(r"\1", "\n".join(lines)).split("\n")


def setup(app):
    """Make them known."""
    app.connect("autodoc-process-docstring", without_references)
    app.add_directive("docstring", DocstringSections)
    app.add_html_math_renderer("mathml", (visit_math, None), (visit_math, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
