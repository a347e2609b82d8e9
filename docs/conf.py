"""Sphinx's configuration."""

from __future__ import annotations

import sys
from importlib.metadata import version as installed_version
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "_ext"))

project = "Mibyan"
author = "The Mibyan maintainers"
copyright = "The Mibyan maintainers"  # noqa: A001 - Sphinx's name for it
release = version = installed_version("mibyan")

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.doctest",
    "sphinx.ext.napoleon",
    "mibyan_reference",
]
exclude_patterns = ["_build", "_ext"]

html_theme = "furo"
html_title = f"Mibyan {release}"

myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3

autodoc_member_order = "bysource"
autodoc_typehints = "signature"
napoleon_numpy_docstring = False

# The examples of a reader's session run in a home of their own.
doctest_global_setup = """
import os, tempfile
_home = tempfile.TemporaryDirectory()
os.environ["MIBYAN_HOME"] = _home.name
"""
doctest_global_cleanup = "_home.cleanup()"
doctest_test_doctest_blocks = ""  # docstrings are run by the tests
