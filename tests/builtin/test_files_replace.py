"""patch(path, old_string, new_string): exact, unambiguous, and helpful when it isn't."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mibyan import ToolError
from mibyan_builtin.files import patch
from mibyan_builtin.files.replacing import replace


def test_one_occurrence_is_replaced(context, workspace: Path) -> None:
    """The answer says how often and where."""
    (workspace / "f").write_text("a\nb\nc\n")
    answer = patch(context, "f", "b\nc", "B\nC")
    assert (workspace / "f").read_text() == "a\nB\nC\n"
    assert answer == {"path": str((workspace / "f").resolve()), "replacements": 1, "lines": [2]}


def test_several_occurrences_need_replace_all(context, workspace: Path) -> None:
    """More than one place is an error with their number and lines; replace_all takes them all."""
    (workspace / "f").write_text("x = 1\ny = 2\nx = 1\n")
    with pytest.raises(ToolError, match="2 times, in lines 1, 3"):
        patch(context, "f", "x = 1", "x = 3")
    assert (workspace / "f").read_text() == "x = 1\ny = 2\nx = 1\n"
    assert patch(context, "f", "x = 1", "x = 3", replace_all=True)["replacements"] == 2
    assert (workspace / "f").read_text() == "x = 3\ny = 2\nx = 3\n"


@pytest.mark.parametrize(
    ("text", "old", "hint"),
    [
        ("def f():\n    return 1\n", "def f():\n\treturn 1\n", "differs in blanks only from lines 1 to 2"),
        ("alpha\nbeta gamma delta\n", "beta gama delta", "nearest is at line 2:\nbeta gamma delta"),
        ("a\n\n\n  b c\n", "b  c", "differs in blanks only from line 4:\n  b c"),
        ("one\ntwo\n", "zzzzzz", "Nothing like it"),
        ("", "x", "Nothing like it"),
        ("one\n", "\n\n", "Nothing like it"),
    ],
)
def test_what_isnt_found_brings_the_nearest(text: str, old: str, hint: str) -> None:
    """The hint shows what the model probably meant."""
    with pytest.raises(ToolError, match="isn't in f") as refusal:
        replace(text, old, "y", every=False, path="f")
    assert hint in (refusal.value.hint or "")


@pytest.mark.parametrize(
    ("before", "old", "new", "after"),
    [
        (b"a\r\nb\r\nc\r\n", "a\nb", "x\ny", b"x\r\ny\r\nc\r\n"),
        (b"a\r\nb\r\nc\r\n", "a\r\nb", "x\r\ny", b"x\r\ny\r\nc\r\n"),
        (b"a\r\nb\nc\nd\n", "a\nb", "x\ny", b"x\ny\nc\nd\n"),
        (b"\xef\xbb\xbfa\n", "a", "b", b"\xef\xbb\xbfb\n"),
        ("\ufeffא\n".encode("utf-16-be"), "א", "ب", "\ufeffب\n".encode("utf-16-be")),
        (rb"a\nb\1", r"\nb\1", r"\g<0>", rb"a\g<0>"),
        (b"a.c abc", "a.c", "x", b"x abc"),
        (b"keep\nremove\n", "remove\n", "", b"keep\n"),
    ],
)
def test_the_style_of_the_file_stays(context, workspace: Path, before: bytes, old: str, new: str, after: bytes) -> None:
    """Line endings are found and written as the file has them; nothing in the texts is special."""
    (workspace / "f").write_bytes(before)
    (workspace / "f").chmod(0o750)
    patch(context, "f", old, new)
    assert (workspace / "f").read_bytes() == after
    assert stat.S_IMODE((workspace / "f").stat().st_mode) == 0o750


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "either"),
        ({"path": "f"}, "either"),
        ({"path": "f", "old_string": "a"}, "either"),
        ({"old_string": "a", "new_string": "b"}, "either"),
        ({"path": "f", "old_string": "a", "new_string": "b", "diff": "x"}, "either"),
        ({"path": "f", "diff": "x"}, "either"),
        ({"path": "f", "old_string": "", "new_string": "b"}, "old_string is empty"),
        ({"path": "f", "old_string": "a", "new_string": "a"}, "nothing to change"),
        ({"path": "g", "old_string": "a", "new_string": "b"}, "File not found"),
        ({"path": "../outside.txt", "old_string": "not", "new_string": "b"}, "outside"),
        ({"path": ".", "old_string": "a", "new_string": "b"}, "directory"),
        ({"path": "binary", "old_string": "a", "new_string": "b"}, "binary"),
        ({"path": "f", "old_string": "a", "new_string": "\udc00"}, r"U\+DC00"),
    ],
)
def test_bad_arguments_get_a_sentence(context, workspace: Path, arguments: dict, message: str) -> None:
    """Half a form, both forms and impossible texts are told, and nothing is written."""
    (workspace / "f").write_text("a\n")
    (workspace / "binary").write_bytes(b"a\0")
    with pytest.raises(ToolError, match=message):
        patch(context, **arguments)
    assert (workspace / "f").read_text() == "a\n"


@given(st.text("ab\n.\\", max_size=30), st.text("ab\n.\\", min_size=1, max_size=5), st.text("ab\n\\1", max_size=5))
def test_replacing_is_what_str_replace_does(text: str, old: str, new: str) -> None:
    """Where lines end with a line feed the outcome is Python's own."""
    try:
        result, lines = replace(text, old, new, every=True, path="f")
    except ToolError:
        assert old not in text or old == new
        return
    assert result == text.replace(old, new)
    assert len(lines) == text.count(old)
