"""Settings of the documentation site: ``make docs`` builds it into docs/_build."""

from newfound import __version__

project = "newfound"
author = "The newfound developers"
copyright = "2026, The newfound developers"
release = version = __version__

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
]
templates_path = ["_templates"]
exclude_patterns = ["_build", "_templates", "data"]

myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 4  # links such as trust.md#coarser-and-finer, as on GitHub

autosummary_generate = True
autodoc_typehints = "none"  # the types are in the docstrings, in words
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False

html_theme = "pydata_sphinx_theme"
html_title = "newfound"
html_sidebars = {"**": ["globaltoc.html"]}  # all pages, under their captions
html_theme_options = {
    "navbar_center": [],
    "show_prev_next": True,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": ["sphinx-version"],
}
html_copy_source = False
html_show_sourcelink = False
