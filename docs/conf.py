"""Sphinx: ``python -m sphinx -W -n docs docs/_build/html`` builds the site, offline."""

import sys
import tomllib
from pathlib import Path

import marginsvm

sys.path.insert(0, str(Path(__file__).parent / "_ext"))

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
    "site_parts",
]
exclude_patterns = [
    "_build",
    "auto_examples/*.ipynb",
    "auto_examples/*.py",
    "auto_examples/*.json",
    # for maintainers, who have the repository
    *("architecture.md", "statements.rst"),
]

# The API: as the docstrings say it; types are in the signatures of the source.
autodoc_typehints = "none"
autosummary_generate = True
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False
templates_path = ["_templates"]
nitpick_ignore_regex = [  # of others: no inventory is fetched, so that the build needs no network
    ("py:.*", r"(numpy|scipy|sklearn|matplotlib|np|sp)\..*"),
    ("py:class", r".*Mixin|BaseEstimator|object"),
]

# Only what takes seconds and needs no data is run; the others, tutorial_genes among them, show
# stored results.
sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "auto_examples",
    "filename_pattern": (
        r"(quickstart|tutorial_[dst]\w+|plot_(certificate|leaderboard|separ\w+))\.py$"
    ),
    "ignore_pattern": r"(^|/)_|/benchmarks/|__init__\.py",
    "within_subsection_order": "NumberOfCodeLinesSortKey",  # the simple ones first
    "download_all_examples": False,
    "show_memory": False,
    "write_computation_times": False,
    "min_reported_time": float("inf"),  # how long this machine took is nobody's
    "show_signature": False,
    "remove_config_comments": True,
    # "Examples that use it", on the page of each class and function
    "doc_module": ("marginsvm",),
    "backreferences_dir": "generated/examples",
}

urls = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())["project"]["urls"]
html_theme = "pydata_sphinx_theme"
html_title = "marginsvm"
html_theme_options = {
    "navbar_end": ["theme-switcher", "navbar-icon-links"],
    "icon_links": [{"name": "Source", "url": urls["Homepage"], "icon": "fa-brands fa-github"}],
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
html_sidebars = {"index": [], "benchmarks": []}  # they have no neighbours
# A heading can be linked to by its words, as page.md#its-words.
myst_heading_anchors = 3
html_math_renderer = "mathml"
toc_object_entries_show_parents = "hide"
