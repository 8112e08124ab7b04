"""Sphinx: ``python -m sphinx -W -n docs docs/_build/html`` builds the site, offline."""

import re
import tomllib
from pathlib import Path

from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml

import marginsvm

project = "marginsvm"
version = release = marginsvm.__version__
copyright = "2026, the marginsvm developers"
extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.viewcode",
    "numpydoc",
    "myst_parser",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = [
    "_build",
    "auto_examples/*.ipynb",
    "auto_examples/*.py",
    "auto_examples/*.json",
]

# The API is as numpydoc makes it; types are in the docstrings.
autodoc_typehints = "none"
autosummary_generate = True
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False
templates_path = ["_templates"]
nitpick_ignore_regex = [  # no inventory is fetched: the build needs no network
    ("py:.*", r"(numpy|scipy|sklearn|matplotlib|np|sp)\..*"),
    ("py:class", r".*Mixin|BaseEstimator|object"),
]

# Examples that take minutes or need data show stored results.
sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "auto_examples",
    "filename_pattern": (
        r"(quickstart|tutorial_[dst]\w+|plot_(?!searchlight)\w+)\.py$"
    ),
    "ignore_pattern": r"(^|/)_|/benchmarks/|__init__\.py",
    "within_subsection_order": "NumberOfCodeLinesSortKey",  # the simple ones first
    "download_all_examples": False,
    "show_memory": False,
    "write_computation_times": False,
    "min_reported_time": float("inf"),
    "show_signature": False,
    "remove_config_comments": True,
    # the examples on the page of each class and function
    "doc_module": ("marginsvm",),
    "backreferences_dir": "generated/examples",
}

urls = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())[
    "project"
]["urls"]
html_theme = "pydata_sphinx_theme"
html_title = "marginsvm"
html_theme_options = {
    "navbar_end": ["theme-switcher", "navbar-icon-links"],
    "icon_links": [
        {"name": "Source", "url": urls["Homepage"], "icon": "fa-brands fa-github"}
    ],
    "navbar_persistent": ["search-button"],
    "header_links_before_dropdown": 7,
    "secondary_sidebar_items": ["page-toc"],
    "show_prev_next": True,
    "footer_start": ["copyright"],
    "footer_end": [],
    "show_toc_level": 2,
}
html_context = {"default_mode": "auto"}
html_show_sourcelink = False
html_use_index = False  # the search and the API's page find names
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_sidebars = {
    name: [] for name in ("index", "installation", "exact_solver", "separation")
}
# A heading can be linked to by its words, as page.md#its-words.
myst_heading_anchors = 3
html_math_renderer = "mathml"
toc_object_entries_show_parents = "hide"


def visit_math(translator, node):
    """Write a formula as MathML, which browsers draw without a script from the network."""
    block = isinstance(node, nodes.math_block)
    formula = tex2mathml(node.astext(), as_block=block)
    # docutils sets the subscript of an accented letter below it
    part = r"(<m[in]>[^<]*</m[in]>|<mrow>(?:(?!</mrow>).)*</mrow>)"
    accent = r'<mo stretchy="false">([^<]*)</mo>'
    formula = re.sub(
        rf"<munderover>\s*(<mi>[^<]*</mi>)\s*{part}\s*{accent}\s*</munderover>",
        r'<msub><mover accent="true">\1<mo stretchy="false">\3</mo></mover>\2</msub>',
        formula,
        flags=re.DOTALL,
    )
    # indices of bars that may stretch are set low
    formula = re.sub("<mo>([‖|])</mo>", r'<mo stretchy="false">\1</mo>', formula)
    # browsers set no space in "ln n"
    formula = re.sub(
        r"<mo>&ApplyFunction;</mo>(?=\s*<m[in]>)", '<mspace width="0.17em"/>', formula
    )
    translator.body.append(
        f'<div class="formula">{formula}</div>' if block else formula
    )
    raise nodes.SkipNode


def setup(app):
    """Register MathML."""
    app.add_html_math_renderer("mathml", (visit_math, None), (visit_math, None))
