"""What a docstring tells a model."""

from __future__ import annotations

from inspect import cleandoc

import pytest
from docstring_parser import parse
from hypothesis import given
from hypothesis import strategies as st

from mibyan.schema.docstrings import _documentation, _parsed, read_docstring

GOOGLE = """Forecast for a city.

    It looks
    ahead.

    Args:
        city: Name of the city,
            as people say it.
        days (int): Days to look ahead.

    Returns:
        A dict.

    Raises:
        ValueError: Never.
    """
NUMPY = """Forecast for a city.

    It looks
    ahead.

    Parameters
    ----------
    city : str
        Name of the city,
        as people say it.
    days : int, optional
        Days to look ahead.

    Returns
    -------
    dict
    """
SPHINX = """Forecast for a city.

    It looks
    ahead.

    :param city: Name of the city,
        as people say it.
    :param int days: Days to look ahead.
    :returns: A dict.
    """


@pytest.mark.parametrize("text", [GOOGLE, NUMPY, SPHINX], ids=["Google", "NumPy", "Sphinx"])
def test_the_three_styles(text):
    """Each style gives the text before its sections and what each parameter means."""
    found = read_docstring(text)
    assert found.description == "Forecast for a city.\n\nIt looks\nahead."
    assert found.parameters == {"city": "Name of the city,\nas people say it.", "days": "Days to look ahead."}


@pytest.mark.parametrize(
    ("text", "description"),
    [
        (None, ""), (5, ""), ("", ""), ("  \n ", ""), ("One line.", "One line."), ("Read: it says so.", "Read: it says so."),
        ("First,\n    second line.", "First,\nsecond line."), ("A list:\n\n    - one\n    - two", "A list:\n\n- one\n- two"),
        ("عربي\n\nArgs:\n    x: ع", "عربي"),
    ],
    ids=str,
)  # fmt: skip
def test_text_without_sections(text, description):
    """Text alone is the description, indentation aside (PEP 257); no docstring is no description."""
    assert read_docstring(text).description == description


LINES = st.sampled_from([
    "Text.", "", "    more", "Args:", "Parameters:", "Returns:", "Raises:", "Example:", "Note:", "Nobody knows:", "  Args:",
    "    city: Its name.", "    days (int, optional): How many. Defaults to 3.", "city: x", "    : x", ":", "::", ": a: b",
    ":param city: Its name.", ":returns: it", "@param city: Its name.", "Parameters", "----------", "Args", "----", "---",
    "city : str", ".. deprecated:: 1.0", ".. note:: x", "    ValueError: Never.", "    None", "    no colon", "\tx: y",
])  # fmt: skip


@given(st.lists(LINES, max_size=9))
def test_every_style_is_asked_where_it_could_be_another(lines):
    """What is read in Google's style alone is what the parser makes of it when it tries each style."""
    text = cleandoc("\n".join(["First.", *lines]))
    try:
        tried = _documentation(parse(text))
    except Exception:
        return
    assert _documentation(_parsed(text)) == tried
