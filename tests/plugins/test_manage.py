"""`mibyan.plugins.manage`: what the operator's commands change; none imports a plugin (plugins.L8)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mibyan.config.load import LoadedConfig, load_config
from mibyan.errors import PluginError
from mibyan.plugins import manage

from .world import World, frozen_tool, tool, write

STOP = "raise BaseException('imported')\n"


class Operator:
    """Somebody at the command line."""

    def __init__(self, world: World) -> None:
        self.world = world

    def config(self) -> LoadedConfig:
        return load_config(self.world.home, self.world.project)

    def enable(self, name: str) -> str:
        return manage.enable(name, self.world.loader().survey(), self.config())

    def disable(self, name: str) -> str:
        return manage.disable(name, self.world.loader().survey(), self.config())

    def request(self, name: str) -> manage.TrustRequest:
        return manage.trust_request(name, self.world.loader().survey(), self.world.home, self.world.project)

    def trust(self, name: str) -> str:
        return manage.trust(self.request(name), self.world.home, self.world.project)

    def untrust(self, name: str) -> str:
        return manage.untrust(name, self.world.loader().survey(), self.world.home, self.world.project)

    def state(self, name: str) -> str:
        return manage.find_record(name, self.world.loader().survey()).state

    def plugins(self) -> Any:
        return self.config().settings.plugins


@pytest.fixture
def operator(world: World) -> Operator:
    """An operator, and plugins that must not be imported."""
    world.folder("my_plugin", STOP)
    world.wheel("managed_wheel", STOP)
    return Operator(world)


@pytest.mark.parametrize("name", ["my_plugin", "My-Plugin", "mibyan-plugin-my.plugin"])
def test_disable_and_enable(operator: Operator, name: str) -> None:
    """Ids in any spelling; the sentence says what has changed, comments of config.yaml stay."""
    operator.world.config("# mine\nplugins:\n  disabled: [managed-wheel]  # why\n")
    assert operator.disable(name) == (
        "Disabled my_plugin: added it to plugins.disabled. Undo: mibyan plugins enable my_plugin"
    )
    assert (operator.plugins().disabled, operator.state(name)) == (("managed-wheel", "my_plugin"), "disabled")
    assert operator.disable(name) == "my_plugin is disabled already."
    assert operator.enable(name) == "Enabled my_plugin: took 'my_plugin' from plugins.disabled."
    assert (operator.plugins().disabled, operator.state(name)) == (("managed-wheel",), "found")
    assert operator.enable(name) == "my_plugin is enabled already."
    assert "# mine" in (operator.world.home / "config.yaml").read_text()


def test_enable_takes_every_spelling_from_the_list(operator: Operator) -> None:
    """Whatever the operator wrote for it goes."""
    operator.world.config("plugins: {disabled: [My.Plugin, my-plugin, other]}\n")
    operator.enable("my_plugin")
    assert (operator.plugins().disabled, operator.state("my_plugin")) == (("other",), "found")


def test_enable_without_autoload(operator: Operator) -> None:
    """`autoload: false`: a plugin is enabled by being listed."""
    operator.world.config("plugins: {autoload: false}\n")
    assert operator.state("managed-wheel") == "disabled"
    assert operator.enable("managed_wheel") == "Enabled managed-wheel: added 'managed-wheel' to plugins.enabled."
    assert operator.state("managed-wheel") == "found"
    operator.disable("managed-wheel")
    assert operator.state("managed-wheel") == "disabled"
    operator.enable("managed-wheel")
    assert operator.state("managed-wheel") == "found"


def test_enable_says_what_else_keeps_it_off(operator: Operator) -> None:
    """A project's deny list isn't the operator's to change, and trust is another matter."""
    world = operator.world
    world.config("plugins: {disabled: [my_plugin]}\n", project=True)
    assert "It stays off here: " in operator.enable("my_plugin")
    world.config("plugins: {disabled: [my_plugin]}\n")
    assert operator.enable("my_plugin").startswith("Enabled my_plugin: ")
    world.folder("theirs", STOP, project=True)
    assert "It still needs trust: mibyan plugins trust theirs" in operator.enable("theirs")


@pytest.mark.parametrize("command", ["enable", "disable", "request", "untrust", "state"])
def test_unknown_ids_get_a_suggestion(operator: Operator, command: str) -> None:
    """plugins.F2: unknown ids are errors with a suggestion; nothing is written."""
    operator.world.folder("theirs", STOP, project=True)
    wrong, right = ("my_plugni", "my_plugin") if command in {"enable", "disable", "state"} else ("thiers", "theirs")
    with pytest.raises(PluginError, match=f"did you mean '{right}'"):
        getattr(operator, command)(wrong)
    assert not (operator.world.home / "config.yaml").exists()


def test_trust_shows_what_it_is_about(operator: Operator) -> None:
    """plugins.S1: files, permissions, tools; then those very bytes are trusted, and no others."""
    world = operator.world
    root = world.folder(
        "theirs", tool("word"), {"permissions": ["network"], "tools": [frozen_tool("word")]}, project=True
    )
    request = operator.request("Theirs")
    assert (request.id, request.root, request.permissions, request.tools, request.trusted) == (
        "theirs",
        root,
        ("network",),
        ("word",),
        False,
    )
    assert sorted(request.digest.files) == ["__init__.py", "plugin.yaml"]
    write(root / "__init__.py", STOP)
    assert manage.trust(request, world.home, world.project).startswith("Trusted theirs: 2 files in ")
    assert operator.state("theirs") == "untrusted"
    operator.trust("theirs")
    assert (operator.state("theirs"), operator.request("theirs").trusted) == ("found", True)
    assert operator.untrust("theirs") == (
        "theirs isn't trusted any more: it isn't loaded until `mibyan plugins trust theirs`."
    )
    assert operator.state("theirs") == "untrusted"
    assert operator.untrust("theirs") == "theirs wasn't trusted."


@pytest.mark.parametrize("name", ["project-tools", "project_tools", "project-tools.clock", "project-tools.helper"])
def test_tools_of_a_project_are_trusted_together(operator: Operator, name: str) -> None:
    """plugins.S1: any file of the directory stands for the whole of it."""
    path = operator.world.tool_file("clock", STOP + "registry.register('x')\n", project=True)
    write(path.with_name("helper.py"), STOP)
    if name.endswith("helper"):
        with pytest.raises(PluginError):
            operator.request(name)
        return
    request = operator.request(name)
    assert (request.id, request.root, request.tools) == ("project-tools", path.parent, ("project-tools.clock",))
    assert sorted(request.digest.files) == ["clock.py", "helper.py"]
    assert operator.state("project-tools.clock") == "untrusted"
    operator.trust(name)
    assert operator.state("project-tools.clock") == "found"
    operator.untrust(name)
    assert operator.state("project-tools.clock") == "untrusted"


def test_only_project_code_needs_trust(operator: Operator, tmp_path: Path) -> None:
    """A user's plugin, or a place without a project, is told so."""
    with pytest.raises(PluginError, match="isn't a project's"):
        operator.request("my_plugin")
    with pytest.raises(PluginError, match="there is no project here"):
        manage.trust_request("x", (), tmp_path, None)


def test_a_link_that_leaves_the_folder_can_t_be_trusted(operator: Operator, tmp_path: Path) -> None:
    """plugins.S1: such a folder is refused before anything is written."""
    root = operator.world.folder("theirs", "", project=True)
    (root / "link").symlink_to(tmp_path)
    with pytest.raises(PluginError, match="leaves the folder"):
        operator.trust("theirs")
    assert not (operator.world.home / "trust.json").exists()
