"""`mibyan.cli.output`: data reaches standard output whole and alone, or a sentence says why not."""

from __future__ import annotations

import io
import json
import os
import sys
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mibyan.cli.output import Output, OutputError, safe


def written(monkeypatch: pytest.MonkeyPatch, encoding: str, write: Callable[[Output], None]) -> bytes:
    """What `write` puts on a standard output of that encoding."""
    raw = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw, encoding=encoding, newline=""))
    write(Output())
    return raw.getvalue()


@pytest.mark.parametrize("encoding", ["utf-8", "ascii", "latin-1", "utf-16-le", "cp1252"])
def test_a_document_is_json_in_every_encoding(monkeypatch: pytest.MonkeyPatch, encoding: str) -> None:
    """--json: one JSON document, readable where the stream is Unicode, escaped where it isn't, the same value in both."""
    value = {"é": "✓ 𝄞 天 \u202e", "n": 1.5}
    data = written(monkeypatch, encoding, lambda out: out.document(value))
    assert json.loads(data.decode(encoding)) == value
    assert ("✓" in data.decode(encoding)) is encoding.startswith("utf")


def test_a_document_has_no_key_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    """A key that isn't text becomes text, and never the same one as another (dispatch.C6)."""
    pairs = []
    text = written(
        monkeypatch, "utf-8", lambda out: out.document({"a": [{1: "one", "1": "text", None: "none"}]})
    ).decode()
    json.loads(text, object_pairs_hook=lambda found: pairs.append([key for key, _ in found]))
    assert pairs[0] == ["1", "1 (2)", "null"]


@pytest.mark.parametrize(
    "value",
    [float("nan"), "\udcff", {1: 2, "1": 3}, {"x": object()}, [b"bytes"]],
    ids=["nan", "half a character", "keys", "object", "bytes"],
)
def test_a_document_degrades_and_never_fails(monkeypatch: pytest.MonkeyPatch, value: object) -> None:
    """What JSON can't say degrades (dispatch.C6): the document is valid JSON all the same."""
    text = written(monkeypatch, "utf-8", lambda out: out.document(value)).decode()
    json.loads(text, parse_constant=pytest.fail)  # Python's reader knows NaN, JSON doesn't.


@pytest.mark.parametrize(
    ("encoding", "expected"), [("utf-8", "é ✓ \\udcff\n"), ("latin-1", "é \\u2713 \\udcff\n"), ("ascii", "\\xe9 \\u2713 \\udcff\n")]
)  # fmt: skip
def test_text_is_escaped_where_the_encoding_has_no_word_for_it(
    monkeypatch: pytest.MonkeyPatch, encoding: str, expected: str
) -> None:
    """A locale that isn't UTF-8, or half a surrogate pair, costs readability and nothing else."""
    assert written(monkeypatch, encoding, lambda out: out.line("é ✓ \udcff")).decode(encoding) == expected


@given(st.text())
def test_safe_leaves_nothing_that_commands_a_terminal(text: str) -> None:
    """Whatever the text: no control character but tab and line end, no bidirectional mark is left."""
    left = set(safe(text)) & set("\x00\x07\x08\r\x1b\x7f\x9b\u200e\u200f\u202e\u2066\u2069\u061c")
    assert left == set()


def test_safe_keeps_what_scripts_need() -> None:
    """Joiners, variation selectors and combining marks stay: Persian, Devanagari and emoji are made of them."""
    for text in ("می‌خواهم", "क्‍ष", "👩‍💻", "✔️", "e\u0301", "a\tb\nc"):
        assert safe(text) == text


class Broken(io.StringIO):
    """A stream that fails."""

    def __init__(self, error: Exception) -> None:
        super().__init__()
        self.error = error

    def write(self, text: str) -> int:
        raise self.error


def test_a_reader_that_went_away_is_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """`| head`: nothing more is written, nobody complains."""
    monkeypatch.setattr(sys, "stdout", Broken(BrokenPipeError(32, "x")))
    out = Output()
    out.line("one")
    monkeypatch.setattr(sys.stdout, "error", AssertionError("it was tried again"))
    out.line("two")


@pytest.mark.parametrize(
    ("stream", "said"),
    [
        (None, "standard output is closed"),
        (Broken(OSError(28, "x")), "no space left on device"),
        (Broken(ValueError("I/O operation on closed file")), "closed file"),
    ],
)
def test_what_cannot_be_written_is_an_error(monkeypatch: pytest.MonkeyPatch, stream: object, said: str) -> None:
    """Data that is lost is never passed over."""
    monkeypatch.setattr(sys, "stdout", stream)
    with pytest.raises(OutputError, match=said):
        Output().line("one")


@pytest.mark.parametrize(
    ("line", "code", "said"),
    [
        ("mibyan tools list --safe-mode >&-", 1, "standard output is closed"),
        ("mibyan --version >&-", 1, "standard output is closed"),
        ("mibyan tools list --safe-mode >/dev/full", 1, "no space left on device"),
        ("mibyan --version >/dev/full", 1, "no space left on device"),
        ("mibyan tools --help >/dev/full", 1, "no space left on device"),
        ("mibyan toolsets list --safe-mode --json | head -1 >/dev/null", 0, ""),
        ("mibyan tools --help | true", 0, ""),
        ("mibyan --version | true", 0, ""),
        ("mibyan tools nope 2>&-", 2, ""),
        ("mibyan tools nope 2>/dev/full", 2, ""),
        ("mibyan tools list --safe-mode 2>&- | grep -q terminal", 0, ""),
    ],
)
def test_streams_in_every_state(shell: Callable, home, line: str, code: int, said: str) -> None:
    """Closed and full streams and readers that go away: a sentence or silence, never a traceback or an ignored exception."""
    done = shell(line)
    assert done.code == code
    assert said in done.err
    assert len(done.err.splitlines()) == bool(said), done.err


@pytest.mark.parametrize(
    "environment",
    [
        {"LC_ALL": "C"},
        {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
        {"PYTHONIOENCODING": "ascii"},
        {"PYTHONIOENCODING": "latin-1"},
    ],
    ids=str,
)
def test_a_locale_that_is_not_utf_8(program: Callable, bench, environment: dict[str, str]) -> None:
    """A result with characters of every script is valid JSON, and says the same, in every locale."""
    done = program("call", "echo", "-", stdin='{"text": "é ✓ 天 𝄞"}', **environment)
    assert (done.code, done.data["text"]) == (0, "é ✓ 天 𝄞")


def test_what_plugins_and_their_programs_print_is_not_data(program: Callable, bench) -> None:
    """Data goes to standard output, everything else to standard error: imports, tools, and programs that tools start."""
    done = program("call", "noisy", "--json")
    assert (done.code, done.data["data"]) == (0, {"quiet": True})
    for text in ("a greeting at import", "printed by a tool", "printed by a program"):
        assert text in done.err


def test_standard_output_is_given_back(bench, capfd: pytest.CaptureFixture[str]) -> None:
    """After a command descriptor 1 and `sys.stdout` are what they were."""
    from mibyan.cli.main import main

    before = os.fstat(1)
    with open(1, "w", closefd=False) as stream, pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "stdout", stream)
        assert main(["call", "noisy"]) == 0
        assert sys.stdout is stream
        print("afterwards", file=stream)
    assert os.path.samestat(os.fstat(1), before)
    out, err = capfd.readouterr()
    assert out == '{"quiet": true}\nafterwards\n'
    assert "printed by a program" in err
