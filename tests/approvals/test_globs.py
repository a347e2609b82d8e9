"""Globs of commands: what denies finds a command anywhere, what admits covers the whole of it."""

from __future__ import annotations

import time

import pytest

from mibyan.approvals.globs import admits, denies, is_pattern, literal
from mibyan.approvals.simple_commands import simple_commands


def told(command):
    """The simple commands, if all of them are known."""
    listed = simple_commands(command)
    return listed.texts if listed.complete else None


@pytest.mark.parametrize(("glob", "command"), [
    ("git status*", "git status"), ("git status*", "git status --porcelain src"), ("git push *", "  git push --force  "),
    ("sudo apt-get *", "sudo apt-get remove vim"), ("find . -exec rm*", "find . -exec rm {} +"),
    ("make * && make *", "make a && make b"), ("rm -r[f] ?ist", "rm -rf dist"), ("rm -r[!f] x", "rm -ri x"),
    ("./scripts/*.sh", "./scripts/clean.sh"), ("git commit *", "git commit -m 'a b'"), ("rm -rf build", "rm -rf build"),
    ("rm -rf [*]", "rm -rf *"), ('eval "$X"', 'eval "$X"'), ("git push; git fetch", "git push; git fetch"),
])  # fmt: skip
def test_approvals_P3_a_glob_admits_what_it_covers(glob, command):
    """A wildcard stands for arguments; without one the entry is the very text."""
    assert admits(glob, command, told(command))


@pytest.mark.parametrize(("glob", "command"), [
    ("git status*", "git status; rm -rf x"), ("git status*", "git status && rm -rf x"), ("git status*", "git status\nrm -rf x"),
    ("git status*", "git status | sh"), ("git status*", "git status & rm -rf x"), ("git status*", "git status $(rm -rf x)"),
    ("git status*", "git status `rm -rf x`"), ("git status*", "git status > /etc/passwd"), ("git status*", "git status <(rm -r x)"),
    ("git *", "git -c x=y push\rrm -rf x"), ("git status*", "git status \x1b[2K; rm -rf x"), ("*", "rm -rf x"), ("* *", "rm -rf x"),
    ("env A=*", "env A=1 rm -rf x"), ("find . *", "find . -exec rm -rf {} +"), ("bash -c *", "bash -c 'rm -rf x'"),
    ("bash -c 'git status*", "bash -c 'git status; rm -rf x'"), ("sudo *", "sudo rm -rf x"), ("timeout * git *", "timeout 5 rm git x"),
    ("xargs *", "xargs rm"), ("git status", "git status "[:-1] + "x"), ("git status", "git statu"), ("make * && make *", "make a; rm -r x && make b"),
    ("git push*", "cd x && git push"), ("eval *", 'eval "$X"'), ("git *", "git 'a"), ("git *", "GIT push"), ("[", "rm -rf x"),
    ("ssh *", "ssh host rm -rf x"), ("watch *", "watch rm -rf x"), ("git [;]*", "git ;"),
])  # fmt: skip
def test_approvals_P3_a_glob_never_admits_another_command(glob, command):
    """What a wildcard stands for can neither begin a command nor name a program."""
    assert not admits(glob, command, told(command))


@pytest.mark.parametrize(("glob", "command"), [
    ("git push*", "git push"), ("git push*", "cd x && git push --force"), ("git push*", "g''it push"), ("git push*", "sudo git push"),
    ("git push*", "/usr/bin/git push"), ("git push*", "bash -c 'true; git push'"), ("*--force*", "a\nb --force\nc"),
    ("git push*", "$(git push)"), ("rm*", "xargs rm -f"), ("curl *", "ｃｕｒｌ x"), ("git push*", "f() { git push; }; f"),
])  # fmt: skip
def test_a_deny_glob_finds_a_command_anywhere(glob, command):
    """approvals.deny: the whole text, and each command in it, decoded."""
    assert denies(glob, command, simple_commands(command).texts)


@pytest.mark.parametrize(
    ("glob", "command"), [("git push*", "echo git push"), ("git push", "git push x"), ("rm *", "echo rm x")]
)
def test_a_deny_glob_leaves_data_alone(glob, command):
    """What only looks like a command isn't one."""
    assert not denies(glob, command, simple_commands(command).texts)


@pytest.mark.parametrize("command", ["a", "rm -rf *", "a[b]c?", "[!x]", "]["])
def test_a_literal_is_the_command_alone(command):
    """The entry that `always` writes for one very command admits that and nothing else."""
    assert admits(literal(command), command, None)
    assert not admits(literal(command), command + "x", ())
    assert denies(literal(command), command)
    assert is_pattern(literal(command)) == any(char in command for char in "*?[")


def test_a_glob_of_stars_takes_linear_time():
    """A pattern can't be made to explode."""
    began = time.process_time()
    assert not admits("*a" * 50 + "b", "a" * 5000, ("a" * 5000,))
    assert time.process_time() - began < 20  # it would be years


@pytest.mark.parametrize("command", ["echo 'a", 'eval "$X"', "$A b"])
def test_simple_commands_that_cant_be_told(command):
    """A command that can't be read, or hides what it runs."""
    assert not simple_commands(command).complete
