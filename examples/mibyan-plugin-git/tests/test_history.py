"""The tool, called as a model would call it, in a real repository."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import mibyan
import pytest
from mibyan.testing import ToolCaller

# Runtimes of these tests have a temporary home, and see this plugin as it is installed here.
pytestmark = pytest.mark.mibyan(plugins=["git"])

AUTHORS = {"one": "Ada", "two": "Grace", "three": "Ada"}


def git(folder: Path, *words: str) -> None:
    """Run git as nobody in particular."""
    who = ["-c", "user.name=Nobody", "-c", "user.email=nobody@example.com", "-c", "commit.gpgsign=false"]
    subprocess.run(["git", *who, *words], cwd=folder, check=True, capture_output=True)


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three commits, one a file."""
    folder = tmp_path_factory.mktemp("repository")
    git(folder, "init", "--quiet")
    for number, (name, author) in enumerate(AUTHORS.items()):
        (folder / name).write_text(name)
        git(folder, "add", name)
        date = f"2026-01-0{number + 1}T12:00:00Z"
        git(
            folder, "commit", "--quiet", f"--message=Add {name}", f"--author={author} <a@example.com>", f"--date={date}"
        )
    return folder


@pytest.fixture
def call_here(mibyan_runtime: mibyan.Runtime, call_tool: ToolCaller, repository: Path) -> ToolCaller:
    """Calls tools in a conversation that works in the repository."""
    return call_tool.using(session=mibyan_runtime.session(cwd=repository))


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({}, ["Add three", "Add two", "Add one"]),
        ({"count": 2, "order": "oldest"}, ["Add two", "Add three"]),
        ({"only": {"author": "Grace"}}, ["Add two"]),
        ({"only": {"path": "one"}}, ["Add one"]),
        ({"only": {"text": "thr"}}, ["Add three"]),
        ({"only": {"author": "--output=x"}}, []),
    ],
)
def test_what_is_wanted(call_here: ToolCaller, arguments: dict[str, Any], expected: list[str]) -> None:
    """Numbers, order and filters; what looks like an option is text."""
    commits = call_here("git_log", arguments).data["commits"]
    assert [commit["subject"] for commit in commits] == expected


@pytest.mark.mibyan(plugin_config={"git": {"commits": 1}})
def test_the_configuration_says_how_many(call_here: ToolCaller) -> None:
    """What config.yaml says for the plugin counts where the call doesn't say."""
    assert len(call_here("git_log").data["commits"]) == 1
    assert len(call_here("git_log", count=2).data["commits"]) == 2


@pytest.mark.parametrize("arguments", [{"folder": "nowhere"}, {"folder": "/"}, {"order": "random"}, {"count": 0}])
def test_what_cant_be_done_is_answered(call_here: ToolCaller, arguments: dict[str, Any]) -> None:
    """No folder, no repository, no such order, no commit at all."""
    assert call_here.failing("git_log", arguments).status == "error"
