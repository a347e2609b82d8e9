"""The terminal's parts: output while it comes, exit codes in words, the environment."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mibyan_builtin.terminal.environment import command_environment
from mibyan_builtin.terminal.meaning import meaning
from mibyan_builtin.terminal.output import LONGEST_LINE, Output, clean_line


@pytest.mark.parametrize(
    ("line", "clean"),
    [
        ("plain\ttext é שלום", "plain\ttext é שלום"),
        ("\x1b[1;31mred\x1b[0m", "red"),
        ("\x1b[38;2;1;2;3mcolour\x1b[m", "colour"),
        ("\x1b]0;title\x07text", "text"),
        ("\x1b]8;;https://x\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x1bPq#0\x1b\\text", "text"),
        ("\x1b(Btext\x1b=", "text"),
        ("\x9b31mred", "red"),
        ("\x1b[2K\r 50%\r100%", "100%"),
        ("100%\r", "100%"),
        ("a\rb\r\x1b[K", "b"),
        ("line\r", "line"),
        ("b\x08bo\x08ol\x08ld", "bold"),
        ("\x08\x08x", "x"),
        ("_\x08u", "u"),
        ("be\x07ll\0", "bell"),
        ("\x1b", ""),
        ("\x1b[", ""),
        ("\x1b]0;never ended", ""),
        ("\r\r\r", ""),
    ],
)
def test_lines_are_cleaned(line: str, clean: str) -> None:
    """terminal.E4: colours, titles, links and overwritten states go; text stays."""
    assert clean_line(line) == clean


@given(st.text("ab\x1b[]0;m\x07\\\r\x08\x9b(P", max_size=40))
def test_nothing_that_steers_is_left(line: str) -> None:
    """Whatever comes: no control character but the tabulator is left."""
    assert not any(ord(c) < 32 or 127 <= ord(c) < 160 for c in clean_line(line))


@given(st.binary(max_size=200), st.lists(st.integers(0, 200), max_size=6))
def test_it_doesnt_matter_how_the_output_comes(data: bytes, cuts: list[int]) -> None:
    """The same bytes in other pieces give the same text."""
    data = data.replace(b"\r", b"")  # a state that was overwritten may be dropped earlier or later
    whole, pieces = Output(1000), Output(1000)
    whole.write(data)
    whole.close()
    for start, end in zip([0, *sorted(cuts)], [*sorted(cuts), None], strict=True):
        pieces.write(data[start:end])
    pieces.close()
    assert whole.text() == pieces.text()
    assert (whole.characters, whole.lines) == (pieces.characters, pieces.lines)


@given(st.lists(st.text("ab\n", max_size=50), max_size=20), st.integers(10, 100))
def test_beginning_and_end_are_kept(parts: list[str], limit: int) -> None:
    """terminal.E4: all of it up to the limit; beyond it 40 % from the beginning and 60 % from the end."""
    output, text = Output(limit), "".join(parts)
    for part in parts:
        output.write(part.encode())
    output.close()
    assert output.truncated == (len(text) > limit)
    if not output.truncated:
        assert output.text() == text
        return
    head, tail = int(limit * 0.4), limit - int(limit * 0.4)
    assert output.text().startswith(text[:head])
    assert output.text().endswith(text[-tail:])
    assert f"{len(text) - limit:,} of {len(text):,} characters ({text.count(chr(10)):,} lines" in output.text()


def test_a_line_without_an_end_is_bounded() -> None:
    """Neither a progress bar of hours nor one endless line grows in memory."""
    output = Output(1000)
    for i in range(20_000):
        output.write(f"\r{i} of 20000".encode())
    assert len(output._line) < 100
    output.write(b"\n")
    for _ in range(100):
        output.write(b"x" * 10_000)
    assert len(output._line) <= LONGEST_LINE
    output.close()
    assert output.text().startswith("19999 of 20000\nxxx")
    assert output.characters == len("19999 of 20000\n") + 1_000_000


@pytest.mark.parametrize(
    ("command", "exit_code", "words"),
    [
        ("grep x f", 1, "nothing matched"),
        ("LANG=C sudo /usr/bin/grep -r x .", 1, "nothing matched"),
        ("cat f | grep x", 1, "nothing matched"),
        ("make; grep x f", 1, "nothing matched"),
        ("cd src && grep x f", 1, "nothing matched"),
        ("echo a\ngrep x f", 1, "nothing matched"),
        ("git grep x", 1, "nothing matched"),
        ("diff a b", 1, "differ"),
        ("git diff --exit-code", 1, "differ"),
        ("[ -f x ]", 1, "false"),
        ("test -f x", 1, "false"),
        ("[[ -f x ]]", 1, "false"),
        ("pgrep x", 1, "no process"),
        ("timeout 1 sleep 2", 124, "ran out"),
        ("sh -c 'kill -9 $$'", 137, "SIGKILL"),
        ("x", 127, "wasn't found"),
    ],
)
def test_exit_codes_in_words(command: str, exit_code: int, words: str) -> None:
    """terminal.T1: what isn't a failure is called so, for the program whose exit code it is."""
    assert words in (meaning(command, exit_code) or "")


@pytest.mark.parametrize(
    ("command", "exit_code"),
    [
        ("grep x f", 0), ("grep x f", 2), ("make && grep x f", 1), ("grep x f && make", 1), ("make", 1),
        ("grep x f; make", 1), ("set -o pipefail; a | grep x", 1), ("if grep x f; then make; fi", 1),
        ("(grep x f)", 1), ("! grep x f", 1), ("echo $(grep x f); false-ish", 1), ("grep 'x", 1), ("", 1),
        ("grep x <<E\nE\n", 1), ("x", 255), ("x", -1), ("grep x f " + "y" * 20_000, 1),
    ],
)  # fmt: skip
def test_no_meaning_is_made_up(command: str, exit_code: int) -> None:
    """Where it isn't plain whose exit code it is, nothing is said."""
    assert meaning(command, exit_code) is None


@given(st.text(max_size=80), st.integers(-300, 300))
def test_any_command_can_be_looked_at(command: str, exit_code: int) -> None:
    """Nothing in a command can make the look at it fail."""
    assert meaning(command, exit_code) is None or meaning(command, exit_code)


@pytest.mark.parametrize(
    ("name", "seen"),
    [
        ("PATH", True), ("HOME", True), ("KEYBOARD", True), ("MONKEY", True), ("TOKENIZERS_PARALLELISM", True),
        ("SSH_AUTH_SOCK", True), ("OPENAI_API_KEY", False), ("KEY", False), ("GITHUB_TOKEN", False), ("TOKEN_FILE", False),
        ("AWS_SECRET_ACCESS_KEY", False), ("DB_PASSWORD", False), ("MYSQL_PASSWD", False), ("GOOGLE_CREDENTIALS", False),
        ("A_CREDENTIAL", False), ("npm_token", False), ("BASH_ENV", False), ("ENV", False), ("CONFIGURED", False),
    ],
)  # fmt: skip
def test_which_variables_commands_see(name: str, seen: bool) -> None:
    """terminal.E5: the names that tell of secrets, as whole words between underscores."""
    assert (name in command_environment({name: "x"}, secrets={"CONFIGURED"})) is seen
    assert name in command_environment({name: "x"}, secrets={"CONFIGURED"}, passthrough={name})
