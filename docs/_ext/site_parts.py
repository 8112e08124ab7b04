"""Parts of the site that Sphinx does not bring: links to what classes share, MathML.

.. code-block:: rst

    .. shared-methods:: marginsvm.MomentumMarginClassifier

links to the methods that the class inherits from all estimators, so that its page need not repeat
them. Parameters and attributes that mean the same as those of another class are described on
the page of the first that has them, and only named on those of others. Formulas are written as
MathML, which browsers draw by themselves: MathJax would come from the network.
"""

import html
import re
from importlib import import_module
from xml.etree import ElementTree

from docutils import nodes
from docutils.parsers.rst import Directive
from docutils.statemachine import StringList
from docutils.utils.math.latex2mathml import tex2mathml

from marginsvm import (
    DualLpPerceptron,
    DualStateMixin,
    MaxMarginClassifier,
    MaxMarginRegressor,
    MomentumMarginClassifier,
    SmoothedKernelPerceptron,
)
from marginsvm.estimator import declaring

DESCRIBED_ONCE = ("fit", "fit_blocks", "predict", "decision_function", "to_sklearn", "set_params")

# On whose pages entries of parameters and attributes are read that others have word for word.
DESCRIBING = (
    MaxMarginClassifier,
    MomentumMarginClassifier,
    SmoothedKernelPerceptron,
    DualLpPerceptron,
    MaxMarginRegressor,
)

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


def leave_to_the_first(app, what, name, obj, options, lines):
    """Name entries that stand word for word on another class's page; keep the others."""
    if what != "class" or not hasattr(obj, "_own_docstring"):
        return
    text = "\n".join(lines)
    earlier = DESCRIBING[: DESCRIBING.index(obj)] if obj in DESCRIBING else DESCRIBING
    for header in ("Parameters", "Attributes"):
        section = declaring._sections(text).get(header, "").strip()
        entries = declaring._entries(section)
        left_to = []
        for first in earlier:
            known = declaring._entries(declaring._sections(first.__doc__)[header])
            same = [e for e in entries if described(entries[e]) == described(known.get(e))]
            names = ", ".join(entries.pop(e).split(" : ")[0] for e in same)
            if names:
                left_to.append(f"{names}\n    As in :class:`~marginsvm.{first.__name__}`.")
        if section:
            text = text.replace(section, "\n".join([*entries.values(), *left_to]))
    lines[:] = text.splitlines()


def described(entry):
    """Words of an entry of a docstring, without its default, which the signature shows."""
    head, _, body = (entry or "").partition("\n")
    return head.split(", default=")[0], body.split()


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


def without_last_lines(app, name, source):
    """Leave out the empty line that ends an example in Markdown, for doctest's sake."""
    source[0] = source[0].replace("\n\n```\n", "\n```\n")


def setup(app):
    """Make them known."""
    app.add_directive("shared-methods", SharedMethods)
    app.connect("source-read", without_last_lines)
    app.connect("autodoc-process-docstring", leave_to_the_first, priority=100)  # before numpydoc
    app.add_html_math_renderer("mathml", (visit_math, None), (visit_math, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
