"""``docstring``: sections of an object's docstring, so that a page need not repeat them.

.. code-block:: rst

    .. docstring:: marginsvm.MomentumMarginClassifier Notes References
"""

from importlib import import_module

from docutils import nodes
from docutils.parsers.rst import Directive
from docutils.statemachine import StringList
from numpydoc.docscrape import NumpyDocString


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
            lines = found[section]
            if not lines:
                raise self.error(f"{path} has no section {section}")
            source = StringList(["", *lines, ""], source=f"docstring of {path}")
            self.state.nested_parse(source, self.content_offset, container)
        return container.children


def setup(app):
    """Make the directive known."""
    app.add_directive("docstring", DocstringSections)
    return {"parallel_read_safe": True}
