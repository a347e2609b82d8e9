"""An owner that was removed is retired: what its code does late reaches nothing (registry.R6, plugins.L7)."""

from __future__ import annotations

import gc
import threading
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import mibyan
from mibyan import Runtime
from mibyan.errors import PluginError, ToolOwnershipError
from mibyan.hooks.table import HookTable
from mibyan.tools.current import Current, acting
from mibyan.tools.owner import Owner
from mibyan.tools.registration import build_entry
from mibyan.tools.registry import ToolRegistry
from mibyan.tools.store import RegistryStore, Toolset

SCHEMA = {"description": "d"}


def registered(store: RegistryStore, owner: Owner, name: str = "x") -> Any:
    return ToolRegistry._bound(store, owner).register(name, "words", SCHEMA, len)


LATE: dict[str, Callable[[RegistryStore, Owner], object]] = {
    "register": registered,
    "replace": lambda store, owner: store.replace(build_entry(owner, "x", "words", SCHEMA, len)),
    "alias": lambda store, owner: ToolRegistry._bound(store, owner).register_toolset_alias("w", "words"),
    "toolset": lambda store, owner: store.declare_toolset(Toolset("bundle", owner=owner)),
}


@pytest.mark.parametrize("act", LATE)
def test_a_removed_owner_registers_nothing(act: str) -> None:
    """registry.R6: after `remove_owner` every registration of that owner is an error that says so; nothing changes."""
    store, owner = RegistryStore(), Owner("gone", "plugin", "pip")
    registered(store, owner)
    store.remove_owner(owner)
    before = store.generation
    with pytest.raises(ToolOwnershipError, match=r"plugin 'gone' can't register the .* it isn't loaded \(any more\)"):
        LATE[act](store, owner)
    assert store.generation == before
    assert not store.snapshot.entries
    assert not store.declared_toolsets


def test_another_owner_of_that_id_is_another_owner() -> None:
    """A plugin that is loaded anew has a new owner, which isn't concerned; the same owner in another store neither."""
    store, owner = RegistryStore(), Owner("gone", "plugin", "pip")
    store.remove_owner(owner)
    assert registered(store, Owner("gone", "plugin", "pip")) is not None
    assert registered(RegistryStore(), owner) is not None


def test_removing_what_is_gone_is_no_registration() -> None:
    """`deregister` of a retired owner finds nothing of its own, as before."""
    store, owner = RegistryStore(), Owner("gone", "plugin", "pip")
    registered(store, owner)
    store.remove_owner(owner)
    assert not ToolRegistry._bound(store, owner).deregister("x")


def test_retired_owners_cost_nothing() -> None:
    """dispatch.B4's spirit: after many reloads nobody keeps the owners that are gone."""
    store, hooks = RegistryStore(), HookTable()
    owners = [Owner(f"p{number}") for number in range(20)]
    for owner in owners:
        store.remove_owner(owner)
        hooks.remove_owner(owner)
    kept = [weakref.ref(owner) for owner in owners]
    owners.clear()
    del owner
    gc.collect()
    assert [ref() for ref in kept] == [None] * 20
    assert (len(store._retired), len(hooks._retired)) == (0, 0)


def test_a_removed_owner_adds_no_hook() -> None:
    """The hook table retires owners likewise."""
    table, owner = HookTable(), Owner("gone", "plugin", "pip")
    table.remove_owner(owner)
    with pytest.raises(ToolOwnershipError, match="can't register hooks"):
        table.register(owner, {"pre_tool_call": lambda: None})
    assert not table.chain("pre_tool_call")


# In a runtime -----------------------------------------------------------------------------------------------------


PLUGIN = """
import mibyan
from contextvars import copy_context

def register(ctx):
    ctx.register_tool("x", "words", {"description": "d"}, lambda args: KEPT.append(copy_context()) or "kept")
    ctx.provide("late", lambda: (ctx, KEPT))

KEPT = []
"""


@pytest.fixture
def runtime(tmp_path: Path) -> Iterator[Runtime]:
    """A runtime with a plugin that keeps the context of a call, as a task of its own would."""
    folder = tmp_path / "plugins" / "gone"
    folder.mkdir(parents=True)
    (folder / "plugin.yaml").write_text("id: gone\n")
    (folder / "__init__.py").write_text(PLUGIN)
    with Runtime(home=tmp_path) as rt:
        yield rt


@pytest.mark.parametrize("end", ["unload", "reload"])
def test_the_facade_refuses_late_code(runtime: Runtime, end: str) -> None:
    """registry.R6: code that still runs in an unloaded plugin's name gets an error from the facade, tools and hooks."""
    ctx, kept = runtime.provided("late")
    assert runtime.call("x", {}) == "kept"
    getattr(runtime.plugins, end)("gone")
    before = sorted(runtime.registry.get_all_tool_names())
    errors: list[BaseException] = []

    def late(act: Callable[[], object]) -> None:
        try:
            kept[0].run(act)
        except BaseException as error:
            errors.append(error)

    acts: list[Callable[[], object]] = [
        lambda: mibyan.registry.register("y", "words", SCHEMA, len),
        lambda: mibyan.registry.register_toolset_alias("w", "words"),
        lambda: mibyan.get_runtime().add_hook("pre_tool_call", lambda: mibyan.Block("late")),
    ]
    for act in acts:
        thread = threading.Thread(target=late, args=(act,))
        thread.start()
        thread.join()
    assert [type(error) for error in errors] == [ToolOwnershipError] * 3
    assert sorted(runtime.registry.get_all_tool_names()) == before
    assert ctx.plugin_id == "gone"


@pytest.mark.parametrize("method", ["register", "register_toolset_alias", "deregister"])
def test_a_kept_registry_refuses(runtime: Runtime, method: str) -> None:
    """plugins.L7: `ctx.registry` that somebody kept raises an error that is an ownership error and a plugin error."""
    ctx, _ = runtime.provided("late")
    runtime.plugins.unload("gone")
    arguments = {
        "register": ("y", "words", SCHEMA, len),
        "register_toolset_alias": ("w", "words"),
        "deregister": ("x",),
    }
    with pytest.raises(ToolOwnershipError, match="it isn't loaded") as caught:
        getattr(ctx.registry, method)(*arguments[method])
    assert isinstance(caught.value, PluginError)
    assert "y" not in runtime.registry.get_all_tool_names()


def test_what_a_rolled_back_plugin_registers_late_is_refused() -> None:
    """plugins.L2: the owner of a registration that failed is retired too."""
    store = RegistryStore()
    current = Current(store, Owner("broken", "plugin", "user"))
    store.remove_owner(current.owner)
    with acting(current), pytest.raises(ToolOwnershipError):
        mibyan.registry.register("y", "words", SCHEMA, len)
