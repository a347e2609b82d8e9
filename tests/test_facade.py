"""The seeds' module-level API over one default runtime (seeds 000 and 001; registry.R6)."""

from __future__ import annotations

import json

import pytest

import mibyan
from mibyan import MibyanError, facade
from mibyan.tools.owner import Owner

SCHEMA = {"description": "d", "parameters": {"type": "object", "properties": {}}}


@pytest.fixture(autouse=True)
def default(monkeypatch, tmp_path):
    """A default runtime of this test's own."""
    made = facade._Default()
    monkeypatch.setattr(facade, "_DEFAULT", made)
    monkeypatch.setenv("MIBYAN_SAFE_MODE", "1")
    monkeypatch.chdir(tmp_path)
    yield made
    if made._runtime is not None:
        made._runtime.close()


def test_the_two_questions_of_a_host():
    """Seed 000: register, ask for the definitions, run a call."""
    mibyan.registry.register("greet", "mine", SCHEMA, lambda args, task_id: f"hello {task_id}")
    names = [each["function"]["name"] for each in mibyan.get_tool_definitions(["mine"], quiet_mode=True)]
    assert names == ["greet"]
    assert mibyan.handle_function_call("greet", {}, task_id="t1") == "hello t1"
    assert mibyan.handle_function_call("greet", "{}", "t2") == "hello t2"
    assert mibyan.registry.dispatch("greet", {}, task_id="t3") == "hello t3"


def test_errors_are_json():
    """Seed 000: what goes wrong is JSON text with `error`."""
    assert json.loads(mibyan.handle_function_call("nope", {}))["error"] == "Unknown tool: nope"


def test_a_session_by_its_id():
    """Seed 000: `session_id` is the conversation; it is begun when it is first named."""
    mibyan.registry.register("who", "mine", SCHEMA, lambda args, session_id: session_id)
    for _ in range(2):
        assert mibyan.handle_function_call("who", {}, session_id="abc") == "abc"
    assert mibyan.handle_function_call("who", {}) == "default"


def test_one_runtime_until_it_is_closed():
    """The default runtime is made on first use and once; after it was closed there is a new one."""
    first = mibyan.get_runtime()
    assert mibyan.get_runtime() == first
    assert hash(mibyan.get_runtime()) == hash(first)
    first.close()
    assert mibyan.get_runtime() != first


def test_registry_R6_the_facade_has_no_hosts_rights(default):
    """registry.R6: code that can't be attributed takes free names and removes those; nothing else."""
    host = default.get()
    host.registry.register("held", "t", SCHEMA, lambda args: "host")
    assert mibyan.registry.register("held", "t", SCHEMA, lambda args: "mine") is None
    with pytest.raises(PermissionError):
        mibyan.registry.register("held", "t", SCHEMA, lambda args: "mine", override=True)
    with pytest.raises(PermissionError):
        mibyan.registry.deregister("held")
    with pytest.raises(PermissionError):
        mibyan.get_runtime().registry.register_plugin_override_policy("x", allowed=True)
    assert mibyan.handle_function_call("held", {}) == "host"
    assert mibyan.registry.register("free", "t", SCHEMA, print) is not None
    assert mibyan.registry.deregister("free") is True


def test_registry_R6_a_plugins_handler_acts_in_the_plugins_name(default):
    """registry.R6: while a plugin's handler runs, the facade means its runtime and its owner."""
    host = default.get()
    owner = Owner("p", "plugin", "user")
    from mibyan.tools.registry import ToolRegistry

    def handler(args):
        mibyan.registry.register("made", "t", SCHEMA, print)
        return str(mibyan.get_runtime() == host)

    host.registry  # noqa: B018 - loads
    ToolRegistry._bound(host._parts.store, owner).register("x", "t", SCHEMA, handler)
    assert host.call("x") == "True"
    assert host.registry.get_entry("made").owner is owner


def test_registry_R6_a_hook_through_the_facade_isnt_the_hosts(default):
    """A hook added through `get_runtime()` stands before the host's own: the host's modifications win."""
    host = default.get()
    host.registry.register("x", "t", SCHEMA, lambda args: args["by"])
    host.add_hook("pre_tool_call", lambda: mibyan.Modify({"by": "host"}))
    mibyan.get_runtime().add_hook("pre_tool_call", lambda: mibyan.Modify({"by": "facade"}))
    assert host.call("x", {}) == "host"


def test_discovering_a_directory_that_there_is_not(tmp_path):
    """`discover_builtin_tools` of no directory is a sentence."""
    with pytest.raises(MibyanError, match="nope"):
        mibyan.discover_builtin_tools(tmp_path / "nope")


SOURCE = "from mibyan import registry\nregistry.register('{0}', 'mine', {{'description': 'd'}}, lambda args: '{0}')\n"


@pytest.fixture
def tools_folder(tmp_path):
    folder = tmp_path / "tools"
    folder.mkdir()
    (folder / "good.py").write_text(SOURCE.format("good"))
    (folder / "bad.py").write_text(SOURCE.format("bad") + "raise SystemExit(3)\n")
    return folder


def test_discovering_a_directory_of_tools(monkeypatch, tools_folder):
    """Seed 000: a file that registers at top level is imported; one that fails is left out and the others load."""
    monkeypatch.delenv("MIBYAN_SAFE_MODE")
    assert mibyan.discover_builtin_tools(tools_folder) == ["tools.good"]
    assert mibyan.handle_function_call("good", {}) == "good"
    assert json.loads(mibyan.handle_function_call("bad", {}))["error_type"] == "unknown_tool"


def test_plugins_L6_safe_mode_imports_no_tools_directory(tools_folder):
    """plugins.L6: in safe mode there are built-ins only, also when a directory is named."""
    assert mibyan.discover_builtin_tools(tools_folder) == []
    assert json.loads(mibyan.handle_function_call("good", {}))["error_type"] == "unknown_tool"


def test_discovering_plugins_gives_their_ids():
    """`discover_plugins` loads what there is and gives the ids, sorted."""
    found = mibyan.discover_plugins()
    assert found == sorted(found)
    assert "files" in found
