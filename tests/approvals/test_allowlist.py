"""The allowlist of config.yaml: what `always` writes, what counts, what takes it back."""

from __future__ import annotations

import os
import subprocess
import sys
import time

import pytest

from mibyan.approvals import Allowlist, evaluate_command
from mibyan.approvals.grants import BY_COMMAND, SessionGrants, is_granted, lasting_entries, session_grants
from mibyan.approvals.rules.book import RULES
from mibyan.errors import ConfigError, MibyanError

SEVERAL = "rm -rf x; git push --force"
TEXT = """\
# my own words
approvals:
  mode: manual  # stay careful

command_allowlist:
  # an old friend
  - git_destructive   # since spring
dispatch: {timeout: 5}
"""


@pytest.fixture
def path(tmp_path):
    file = tmp_path / "config.yaml"
    file.write_text(TEXT)
    return file


@pytest.fixture
def allowlist(path):
    return Allowlist(path)


def test_approvals_P3_entries_have_their_places(allowlist, path):
    """An entry is known with its file and line, and with what it names."""
    allowlist.add("npm run *", "policy:net")
    assert [(entry.text, entry.kind) for entry in allowlist.entries()] == [
        ("git_destructive", "rule"), ("npm run *", "glob"), ("policy:net", "key"),
    ]  # fmt: skip
    assert allowlist.entries()[0].place == f"{path}:7"


def test_approvals_P3_an_entry_is_added_and_nothing_else_changes(allowlist, path):
    """`always` keeps comments, order and keys; the same entry isn't written twice."""
    assert allowlist.add("sql", "git_destructive", "sql") == ("sql",)
    assert path.read_text() == TEXT.replace("# since spring\n", "# since spring\n  - sql\n")
    assert allowlist.remove("sql")
    assert not allowlist.remove("sql")
    assert path.read_text() == TEXT


def test_approvals_J2_every_finding_must_be_allowed(allowlist):
    """An entry for one rule doesn't open what another rule finds in the same command."""
    verdict = evaluate_command(SEVERAL)
    assert not allowlist.covers(verdict)
    assert set(allowlist.reasons(verdict.findings, SEVERAL)) == {"git_destructive"}
    allowlist.add("recursive_delete")
    assert allowlist.covers(verdict)


@pytest.mark.parametrize("entry", ["root_delete", "rm -rf /", "rm*", "*"])
def test_approvals_J1_nothing_allows_what_is_hardline(allowlist, entry):
    """Neither a rule's id, nor a glob, nor the very command."""
    allowlist.add(entry)
    assert not allowlist.covers(evaluate_command("rm -rf /"))


def test_approvals_P3_others_see_it_at_their_next_decision(allowlist, path):
    """Another process's line counts at once; taking it out revokes it."""
    verdict = evaluate_command("rm -rf x")
    for _ in range(3):
        assert not allowlist.covers(verdict)
        Allowlist(path).add("rm -rf *")
        assert allowlist.covers(verdict)
        path.write_text(path.read_text().replace("  - rm -rf *\n", "").replace('  - "rm -rf *"\n', ""))
    assert not allowlist.covers(verdict)
    path.unlink()
    assert allowlist.entries() == ()


def test_an_unchanged_file_is_read_once(allowlist, path, monkeypatch):
    """Looking costs one `stat` while the file stays as it is."""
    old = time.time() - 100
    os.utime(path, (old, old))
    deadline = time.monotonic() + 20
    while allowlist._kept is None or allowlist._kept[0] is None:  # the time of its last change must have passed
        allowlist.entries()
        assert time.monotonic() < deadline
    monkeypatch.setattr(allowlist, "_read", lambda: pytest.fail("read again"))
    assert allowlist.entries()[0].text == "git_destructive"


@pytest.mark.parametrize(
    "text", ["command_allowlist: [", "- a", "command_allowlist: {a: b}", "command_allowlist: 5", "\x00"]
)
def test_a_file_that_cant_be_read_allows_nothing(allowlist, path, text):
    """Closed, not open: no entries until it is mended, and nothing is written over it."""
    path.write_text(text)
    assert allowlist.entries() == ()
    with pytest.raises(MibyanError):
        allowlist.add("sql")
    assert path.read_text() == text


def test_entries_that_code_gave(path):
    """`Runtime(config=...)` counts before the file: nothing is added to that."""
    allowlist = Allowlist(path, fixed=["sql"])
    assert [entry.text for entry in allowlist.entries()] == ["sql"]
    with pytest.raises(ConfigError, match="given in code"):
        allowlist.add("git_destructive")


ADD = "import sys; from pathlib import Path; from mibyan.approvals import Allowlist\nfor n in range({count}): Allowlist(Path(sys.argv[1])).add(f'{{sys.argv[2]}} {{n}}'); print(n, flush=True)"


def _writer(path, name, count):
    return subprocess.Popen(
        [sys.executable, "-c", ADD.format(count=count), path, name], stdout=subprocess.PIPE, text=True
    )


def test_approvals_P3_two_processes_write_at_once(path, allowlist):
    """No grant is lost, none is there twice, and every comment stays."""
    writers = [_writer(path, name, 10) for name in ("a", "b")]
    for writer in writers:
        writer.communicate(timeout=60)
        assert writer.returncode == 0
    texts = [entry.text for entry in allowlist.entries()]
    assert sorted(texts) == sorted(["git_destructive", *(f"{name} {n}" for name in "ab" for n in range(10))])
    assert [line for line in path.read_text().splitlines() if "  - " not in line] == [
        line for line in TEXT.splitlines() if "  - " not in line
    ]


def test_approvals_P3_killed_at_any_moment(path, allowlist):
    """After `kill -9` the file is whole: what was told to be written is there, and at most the one that was under way."""
    for round_ in range(4):
        writer = _writer(path, f"r{round_}", 1000)
        lines = [writer.stdout.readline() for _ in range(2 + round_)]
        time.sleep(round_ * 0.004)  # somewhere within a write
        writer.kill()
        rest = writer.communicate()[0]
        told = len([line for line in [*lines, *rest.split("\n")] if line.strip()])
        written = [entry.text for entry in allowlist.entries() if entry.text.startswith(f"r{round_} ")]
        assert written in ([f"r{round_} {n}" for n in range(told)], [f"r{round_} {n}" for n in range(told + 1)])
        assert path.read_text().startswith("# my own words\n")
        assert path.read_text().endswith("dispatch: {timeout: 5}\n")
    assert allowlist.add("the lock is free") == ("the lock is free",)


class _Session:
    pass


def test_approvals_P3_a_session_grant_is_the_sessions_own():
    """What one session was granted another wasn't; it is by rule, and taken back alone or with the others."""
    grants, one, other = SessionGrants(), _Session(), _Session()
    findings = evaluate_command(SEVERAL).findings
    grants.add(one, session_grants(findings[:1], SEVERAL))
    assert [is_granted(finding, grants.of(one), SEVERAL) for finding in findings] == [True, False]
    assert not any(is_granted(finding, grants.of(other), SEVERAL) for finding in findings)
    assert grants.revoke(one, findings[0].id)
    assert not grants.revoke(one)
    del one
    assert not grants._of


@pytest.mark.parametrize(
    ("command", "other"), [('eval "$X"', 'eval "$Y"'), ("echo 'a", "echo 'b"), ("curl a | sh", "curl b | sh")]
)
def test_a_grant_for_what_cant_be_told_is_for_that_command(command, other, allowlist):
    """A yes to one command that nobody can see through is no yes to all of them."""
    finding = evaluate_command(command).findings[0]
    grants = session_grants([finding], command)
    assert is_granted(finding, grants, command)
    assert not is_granted(finding, grants, other)
    assert session_grants([finding], None) == frozenset()
    assert lasting_entries([finding], None) == ()
    allowlist.add(*lasting_entries([finding], command))
    assert allowlist.covers(evaluate_command(command))
    assert not allowlist.covers(evaluate_command(other))


def test_the_rules_that_are_granted_by_command_are_rules():
    """No id is misspelt."""
    assert set(RULES) >= BY_COMMAND


@pytest.mark.parametrize("command", ['eval "$X"\n', 'eval "$X" # ' + "x" * 2000])
def test_what_cant_be_written_is_for_the_session_only(command):
    """A text that is long or has line ends doesn't go into config.yaml."""
    entries = lasting_entries(evaluate_command(command).findings, command)
    assert entries == (() if len(command) > 1000 else ('eval "$X"',))
