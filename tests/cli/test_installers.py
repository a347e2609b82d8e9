"""plugins.W4: which installer an environment has of its own, by its facts; what it is told; when nothing may be changed."""

from __future__ import annotations

import sys

import pytest

from mibyan.cli.exits import UsageError
from mibyan.cli.install.installers import (
    Environment,
    Installer,
    InstallerError,
    choose,
    last_lines,
    require_changeable,
    run,
    shown,
)
from mibyan.errors import MibyanError

PLAIN = {"python": "/e/bin/python", "prefix": "/e", "has_pip": True, "uv": None, "pipx": None}


def environment(**facts) -> Environment:
    return Environment(**{**PLAIN, **facts})


@pytest.mark.parametrize(
    ("facts", "name", "why"),
    [
        ({}, "pip", "has it"),
        ({"recorded": "pip"}, "pip", "installed with it"),
        ({"recorded": "pip", "uv": "/b/uv"}, "pip", "installed with it"),
        ({"recorded": "uv", "uv": "/b/uv"}, "uv", "installed with it"),
        ({"recorded": "uv"}, "pip", "has it"),
        ({"made_by_uv": True, "uv": "/b/uv"}, "uv", "made this"),
        ({"made_by_uv": True, "uv": "/b/uv", "recorded": "pip"}, "uv", "made this"),
        ({"has_pip": False, "uv": "/b/uv"}, "uv", "no pip"),
        ({"is_uv_tool": True, "uv": "/b/uv", "recorded": "uv"}, "uv", "uv tool"),
        ({"pipx_name": "mibyan", "pipx": "/b/pipx", "uv": "/b/uv", "recorded": "uv"}, "pipx", "pipx made"),
        ({"pipx_name": "mibyan", "recorded": "pip"}, "pip", "installed with it"),
        ({"pipx_name": "mibyan", "has_pip": False, "uv": "/b/uv"}, "uv", "no pip"),
        ({"recorded": "conda", "uv": "/b/uv"}, "pip", "has it"),
        ({"pipx": "/b/pipx"}, "pip", "has it"),
    ],
)
def test_plugins_W4_the_facts_of_the_environment_choose(facts: dict, name: str, why: str) -> None:
    """Where pipx made it pipx, then what installed Mibyan, what made the environment, what is there."""
    chosen = choose(environment(**facts))
    assert (chosen.name, why in chosen.why) == (name, True), chosen.why


def test_plugins_W4_the_operator_may_name_another() -> None:
    """--installer wins, if that one can be used; without any there is one clear error."""
    assert choose(environment(uv="/b/uv", recorded="pip"), "uv").name == "uv"
    for facts, name in (
        ({}, "uv"),
        ({"has_pip": False}, "pip"),
        ({"pipx": "/b/pipx"}, "pipx"),
        ({"pipx_name": "m"}, "pipx"),
    ):
        with pytest.raises(MibyanError, match=name):
            choose(environment(**facts), name)
    with pytest.raises(UsageError, match="pip, uv, pipx"):
        choose(environment(), "poetry")
    with pytest.raises(MibyanError, match="no pip") as raised:
        choose(environment(has_pip=False))
    assert "ensurepip" in raised.value.hint


def test_plugins_W4_commands_reach_this_environment_and_no_other() -> None:
    """Each names the environment; pip isn't taken from the current directory; pipx keeps what Mibyan needs."""
    one = environment(uv="/b/uv", pipx="/b/pipx", pipx_name="mibyan")
    assert Installer("pip", "", one).install(["x"], more=["--pre"], upgrade=True) == [
        "/e/bin/python", "-P", "-m", "pip", "install", "--upgrade", "--pre", "x",
    ]  # fmt: skip
    assert Installer("uv", "", one).install(["-e", "/p"])[:5] == [
        "/b/uv",
        "pip",
        "install",
        "--python",
        "/e/bin/python",
    ]
    assert Installer("uv", "", one).uninstall("x") == ["/b/uv", "pip", "uninstall", "--python", "/e/bin/python", "x"]
    pipx = Installer("pipx", "", one)
    assert pipx.install(["-e", "/p"], more=["--find-links", "/a b"], upgrade=True) == [
        "/b/pipx", "inject", "mibyan", "--editable", "--pip-args=--find-links '/a b'", "/p",
    ]  # fmt: skip
    assert pipx.install(["x"], more=["--find-links", "/a b", "--pre"], upgrade=True, replaces=True) == [
        "/b/pipx", "runpip", "mibyan", "install", "--upgrade", "--find-links=/a b", "--pre", "x",
    ]  # fmt: skip
    assert Installer("uv", "", one).install(["x"], upgrade=True, name="x")[-2:] == ["--upgrade-package=x", "x"]
    assert "--leave-deps" in Installer("pipx", "", one).uninstall("x")
    assert Installer("pipx", "", one).beneath().name == "pip"
    assert Installer("pipx", "", environment(has_pip=False)).beneath().name == "uv"
    assert "--user" in Installer("pip", "", environment(in_user_site=True)).install(["x"])
    assert "--user" not in Installer("pip", "", environment(in_user_site=True)).uninstall("x")


def test_plugins_W4_what_belongs_to_others_is_left_alone() -> None:
    """PEP 668 and read-only folders are refused with a way out; the operator's own word, or a user's site, allows it."""
    with pytest.raises(MibyanError, match="PEP 668") as raised:
        require_changeable(environment(managed="/usr/lib/EXTERNALLY-MANAGED", is_virtual=False))
    assert "pipx install mibyan" in raised.value.hint
    require_changeable(environment(managed="/usr/lib/EXTERNALLY-MANAGED"), ["--break-system-packages"])
    with pytest.raises(MibyanError, match="written"):
        require_changeable(environment(is_writable=False, site="/e/site"))
    require_changeable(environment(is_writable=False, has_user_site=True))


def test_plugins_W4_this_environment_is_known() -> None:
    """The running one: its interpreter, and an installer that it really has."""
    one = Environment.running()
    assert (one.python, one.prefix) == (sys.executable, sys.prefix)
    assert choose(one).name in {"pip", "uv", "pipx"}


def test_plugins_W4_a_failing_installer_ends_in_its_last_lines(tmp_path) -> None:
    """No traceback of ours: what it said last, without tricks and without a URL's secrets; one that isn't there is told."""
    program = tmp_path / "installer.py"
    program.write_text(
        "print('first'); [print(n) for n in range(50)]; print('https://me:secret@host/x \x1b[2J'); raise SystemExit(4)"
    )
    with pytest.raises(InstallerError) as raised:
        run([sys.executable, str(program)], Environment.running(), tmp_path)
    text = str(raised.value)
    assert "ended with 4" in text
    assert "https://…@host/x \\x1b[2J" in text
    assert "first" not in text
    with pytest.raises(InstallerError, match="can't be started"):
        run([str(tmp_path / "nothing")], Environment.running(), tmp_path)
    assert "said nothing" in last_lines(" \n")
    assert "secret" not in shown(["pip", "install", "git+https://me:secret@host/x"])
