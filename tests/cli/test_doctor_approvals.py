"""`mibyan doctor` about approvals: whether commands can be judged, and what the configuration says about them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from mibyan.approvals.shell import parser

from .test_doctor import findings


def test_approvals_that_do_not_do_what_one_may_think(run: Callable, home: Path) -> None:
    """An entry that allows nothing, one that isn't needed, and mode off, each with its line and what mends it."""
    config = home / "config.yaml"
    config.write_text(
        "approvals:\n  mode: off\ncommand_allowlist:\n  - recursive_delete\n  - recursive_delet\n  - ls -l\n"
    )
    found = findings(run("doctor", "--json"), "approvals")
    assert [(one["severity"], one["where"], one["fix"]) for one in found] == [
        ("warning", f"{config}:2: approvals.mode", "mibyan config set approvals.mode manual"),
        ("warning", f"{config}:5", "mibyan approvals revoke recursive_delet"),
        ("info", f"{config}:6", "mibyan approvals revoke 'ls -l'"),
    ]
    config.write_text("approvals: {mode: smart}\n")
    (one,) = findings(run("doctor", "--json"), "approvals")
    assert (one["severity"], "approvals.smart_model" in one["fix"]) == ("warning", True)


def test_a_rule_that_its_examples_gainsay(run: Callable, home: Path) -> None:
    """approvals.rules are held against their examples: an error with its line."""
    (home / "config.yaml").write_text(
        "approvals:\n  rules:\n    - {id: release, pattern: release, description: a release, matches: [make it]}\n"
    )
    done = run("doctor", "--json")
    (one,) = findings(done, "approvals")
    assert (done.code, one["severity"], "make it" in one["what"], "config.yaml:3" in one["what"]) == (
        2,
        "error",
        True,
        True,
    )


@pytest.mark.parametrize("kind", ["missing", "broken", "hanging"])
def test_without_a_parser_commands_cannot_be_judged(
    run: Callable, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """A shell parser that isn't there, doesn't start, or doesn't answer is an error with the command that mends it."""
    program = tmp_path / "shfmt"
    program.write_text("#!/nonexistent\n" if kind == "broken" else "#!/bin/sh\nexec /bin/sleep 30\n")
    program.chmod(0o755)
    monkeypatch.setattr(parser, "_PROGRAM", [None if kind == "missing" else str(program)])
    done = run("doctor", "--json")
    (one,) = findings(done, "approvals")
    assert (done.code, one["severity"], one["where"]) == (2, "error", None if kind == "missing" else str(program))
    assert "can't be judged" in one["what"]
    assert "shfmt-py" in one["fix"]


def test_a_configuration_that_everybody_can_write(run: Callable, home: Path) -> None:
    """Who can write it can grant itself anything: an error."""
    config = home / "config.yaml"
    config.write_text("command_allowlist: []\n")
    config.chmod(0o666)
    (one,) = [one for one in findings(run("doctor", "--json"), "folders") if one["where"] == str(config)]
    assert (one["severity"], one["fix"]) == ("error", f"chmod o-w {config}")
