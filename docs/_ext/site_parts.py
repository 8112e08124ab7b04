"""Parts of the site that Sphinx does not bring: links to shared methods, MathML.

.. code-block:: rst

    .. shared-methods:: marginsvm.MomentumMarginClassifier

links to the methods that the class inherits from all estimators, so that its page need not repeat
them. Formulas are written as MathML, which browsers draw by themselves: MathJax would come from
the network.
"""

import html
import re
from importlib import import_module
from xml.etree import ElementTree

from docutils import nodes
from docutils.parsers.rst import Directive
from docutils.statemachine import StringList
from docutils.utils.math.latex2mathml import tex2mathml

from marginsvm import DualStateMixin

DESCRIBED_ONCE = ("fit", "fit_blocks", "predict", "decision_function", "to_sklearn", "set_params")

MATHML = "{http://www.w3.org/1998/Math/MathML}"
ElementTree.register_namespace("", MATHML.strip("{}"))


class SharedMethods(Directive):
    """One line of links to the methods of a class that docs/classifiers.rst describes for all."""

    required_arguments = 1

    def run(self):
        module, name = self.arguments[0].rsplit(".", 1)
        cls = getattr(import_module(module), name)
        links = [
            f":meth:`~marginsvm.DualStateMixin.{method}`"
            for method in DESCRIBED_ONCE
            if getattr(cls, method, None) is getattr(DualStateMixin, method)
        ]
        container = nodes.container()
        if links:
            line = f"Methods of all classifiers: {', '.join(links)}, and scikit-learn's ``score``."
            self.state.nested_parse(StringList([line]), self.content_offset, container)
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


def setup(app):
    """Make them known."""
    app.add_directive("shared-methods", SharedMethods)
    app.add_html_math_renderer("mathml", (visit_math, None), (visit_math, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
