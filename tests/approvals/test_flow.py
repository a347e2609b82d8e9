"""What commands write and read, code in other languages, and the kept verdicts (terminal.J3, J4)."""

from __future__ import annotations

import pytest

from mibyan.approvals import evaluate
from mibyan.approvals.foreign_code import foreign_code
from mibyan.approvals.kept import KeptVerdicts
from mibyan.approvals.normal import normalised, without_nul
from mibyan.approvals.shell.call import Call
from mibyan.approvals.shell.scope import Scope
from mibyan.approvals.shell.values import NOTHING, Arg, Data
from mibyan.approvals.streams import written


def output(*words: str, stdin: str | None = None) -> tuple[str | None, set[str]]:
    """What a command writes, and where that comes from."""
    data = written(Call(tuple(Arg(word) for word in words), Scope("/w"), NOTHING if stdin is None else Data(stdin)))
    return data.text, set(data.origins)


@pytest.mark.parametrize(
    ("words", "stdin", "text", "origins"),
    [
        (("echo", "a", "b"), None, "a b\n", set()), (("echo", "-n", "a"), None, "a", set()), (("echo", "-e", r"\x61"), None, "a\n", set()), (("printf", "%s-%s\\n", "a", "b"), None, "a-b\n", set()),
        (("printf", "%s ", "a", "b"), None, "a b ", set()), (("cat",), "x", "x", set()), (("rev",), "abc", "cba", {"decoded"}), (("tr", "a-c", "b-d"), "abc", "bcd", {"decoded"}),
        (("base64", "-d"), "bHM=", "ls", {"decoded"}), (("base64", "-d"), "!", "", {"decoded"}), (("xxd", "-r", "-p"), "6c73", "ls", {"decoded"}), (("curl", "https://x.example"), None, None, {"network"}),
        (("curl", "-o", "f", "https://x.example"), None, "", set()), (("wget", "https://x.example/f"), None, "", set()), (("wget", "-qO-", "https://x.example"), None, None, {"network"}),
        (("cat", "/home/u/.ssh/id_rsa"), None, None, {"credential"}), (("pgrep", "x"), None, None, {"pids"}), (("sort",), "x", None, set()), (("head", "-n1"), "x\n", "x\n", set()),
    ],
)  # fmt: skip
def test_J3_what_a_command_writes(words, stdin, text, origins):
    """terminal.J3: known text is followed through filters, origins through everything."""
    assert output(*words, stdin=stdin) == (text, origins)


@pytest.mark.parametrize(
    ("code", "language", "codes", "rules"),
    [
        ("os.system('rm -rf /')", "python3", ["rm -rf /"], []), ("subprocess.run(['rm', '-rf', '/'])", "python3", ["'rm' '-rf' '/'"], []), ("spawn('rm', ['-rf'])", "node", ["rm", "'rm' '-rf'"], []),
        ("shutil.rmtree('/')", "python3", [], ["root_delete"]), ("`ls`", "ruby", ["ls"], []), ("fork while fork", "perl", [], ["fork_bomb"]), ("print(1)", "python3", [], []),
        ('BEGIN{system("ls")}', "awk", ["ls"], ["exec_flag"]), ('{print | "sort"}', "awk", ["sort"], []), ("{system($0)}", "awk", [], ["opaque_exec", "exec_flag"]), ("1e ls", "sed", ["ls"], ["exec_flag"]), ("s/a/b/", "sed", [], []),
    ],
)  # fmt: skip
def test_J3_code_in_other_languages(code, language, codes, rules):
    """terminal.J3: the shell code in it, and the worst of the rest."""
    assert foreign_code(code, language) == (codes, rules)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("\x1b[31mrm\x1b[0m", "rm"),
        ("\x1b]0;t\x07rm", "rm"),
        ("a\r\nb", "a\nb"),
        ("ｒｍ　－ｒ", "rm -r"),
        ("r\x00m", "rm"),
        ("\x9b31mrm", "rm"),
        ("naïve “x”", "naïve “x”"),
    ],
)
def test_J3_what_only_deceives_is_dropped(text, expected):
    """terminal.J3: escapes, NUL and carriage returns; full-width letters are ASCII's."""
    assert normalised(text) == expected


def test_J3_bytes_that_are_no_text_keep_their_place():
    """terminal.J3: a character each."""
    assert without_nul("a\udc80b\ud800") == "a\ufffdb\ufffd"


def test_J4_a_verdict_is_kept(monkeypatch):
    """terminal.J4: a command that was judged isn't parsed again, a long one isn't kept, and the oldest make room."""
    judged = []
    real = evaluate._judged
    monkeypatch.setattr(evaluate, "_judged", lambda command, context: judged.append(command) or real(command, context))
    monkeypatch.setattr(evaluate, "_kept", KeptVerdicts(2, 20_000))
    for command in ("echo 1", "echo 1", "echo 2", "echo 3", "echo 1"):
        evaluate.evaluate_command(command)
    assert judged == ["echo 1", "echo 2", "echo 3", "echo 1"]
    long = "echo " + "x" * 30_000
    evaluate.evaluate_command(long)
    evaluate.evaluate_command(long)
    assert judged[-2:] == [long, long]


@pytest.mark.parametrize(
    ("command", "found"),
    [("ls; rm -rf dist", "rm -rf dist"), ("echo é; rm -rf /", "/"), ("rm -rf a /etc", "/etc"), ("bash -c 'echo; reboot'", "'echo; reboot'"), ("echo x > /etc/hosts", "/etc/hosts"), ("echo a # \\\nreboot", "reboot")],
)  # fmt: skip
def test_J2_a_finding_has_its_place(command, found):
    """terminal.J2: where what is meant stands in the command, in characters."""
    start, end = evaluate.evaluate_command(command).findings[0].span
    assert command[start:end] == found
