"""What a docstring tells a model."""

from __future__ import annotations

import pytest

from mibyan.schema.docstrings import read_docstring

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
