"""What a person approves is shown so that it can't deceive."""

from __future__ import annotations

import unicodedata

import pytest

from mibyan.approvals import Finding
from mibyan.approvals.showing import LONGEST, shown, shown_call, shown_finding


@pytest.mark.parametrize("hidden", [
    "\x00", "\x07", "\x1b[2K", "\r", "\x7f", "\x85", "\x9b", "\u00a0", "\u00ad", "\u034f", "\u061c", "\u2000", "\u200b", "\u200d", "\u200e", "\u2028",
    "\u202e", "\u2066", "\u2800", "\u3000", "\u3164", "\ufe0f", "\ufeff", "\U000e0041", "\U000e0100", "\U000f0000", "\ud800",
])  # fmt: skip
def test_what_hides_is_made_visible(hidden):
    """Control, bidirectional, zero-width and other characters that aren't seen are escapes, or U+FFFD."""
    text = shown(f"rm{hidden}x")
    assert all(char == "\n" or unicodedata.category(char)[0] in "LNPS" for char in text)
    assert text.startswith("rm")
    assert text.endswith("x")
    assert len(text) > 3


def test_ordinary_text_stays():
    """Letters of all scripts, line ends and tabs."""
    text = "echo 'grüße, 世界 ☃'\n\tls  -l\n\ndone"
    assert shown(text) == text


@pytest.mark.parametrize("text", [
    "x" * 20_000, "\n".join("line" for _ in range(5000)), "y\n" * 3000, " x" * 9000, "a\n" * 100 + "b" * 10_000,
])  # fmt: skip
def test_a_long_text_is_folded_and_keeps_its_ends(text):
    """Its first and last words are there, and how much isn't."""
    found = shown(f"begin {text}; rm -rf end")
    assert found.startswith("begin ")
    assert found.endswith("; rm -rf end")
    assert "left out" in found
    assert len(found) < LONGEST + 200
    assert found.count("\n") < 130


@pytest.mark.parametrize("gap", [" " * 5000, "\t" * 300, "\n" * 300, " \n" * 300])
def test_nothing_is_pushed_out_of_sight(gap):
    """A run of blanks or empty lines is told, not shown."""
    found = shown(f"ls{gap}; rm -rf x")
    assert len(found) < 100
    assert "blanks⟩" in found or "empty lines⟩" in found


def test_secrets_are_masked_before_anything_is_left_out():
    """A secret on the fold isn't half shown."""
    secret = "s3cr3t-" * 10
    text = "x" * 2390 + secret + "y" * 5000
    assert "s3cr3t" not in shown(text, lambda given: given.replace(secret, "[redacted]"))


def test_all_arguments_are_shown():
    """The command as it is, the others behind it; where there is no command, JSON."""
    assert shown_call("ls", {"command": "ls"}) == "ls"
    assert shown_call("a\nb", {"command": "a\nb", "stdin": "x"}) == 'a\nb\nwith {"stdin": "x"}'
    assert shown_call(None, {"a": 1}) == '{"a": 1}'


def test_a_finding_shows_where_it_is_unless_that_has_a_secret():
    """A piece of a secret isn't known for one."""
    finding = Finding("a", "dangerous", "what\x1b", "c", (3, 8))
    assert shown_finding(finding, "xx rm y\u200b z", granted=False)["excerpt"] == "rm y\\u200b"
    assert shown_finding(finding, "xx rm y", granted=False)["description"] == "what\\x1b"
    assert (
        shown_finding(finding, "xx rm k3y", granted=True, clean=lambda text: text.replace("k3y", "*"))["excerpt"]
        is None
    )
