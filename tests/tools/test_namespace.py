"""The namespace policy: who gets a name, and what comes back."""

from __future__ import annotations

import logging

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mibyan.errors import ToolOverrideError, ToolOwnershipError
from mibyan.tools.owner import Owner
from mibyan.tools.registry import ToolRegistry
from mibyan.tools.store import RegistryStore

SCHEMA = {"description": "d", "parameters": {"type": "object", "properties": {}}}


def register(view: ToolRegistry, name: str = "x", toolset: str = "A", **options):
    """Register a tool whose handler says who made it."""
    return view.register(name, toolset, SCHEMA, lambda args: view, **options)


@pytest.fixture
def store() -> RegistryStore:
    return RegistryStore()


def owner(name: str, source: str = "pip", allow: object = False) -> Owner:
    return Owner(name, "plugin", source, allow)


def views(store: RegistryStore, *owners: Owner) -> list[ToolRegistry]:
    return [ToolRegistry._bound(store, each) for each in owners]


@pytest.mark.parametrize("toolset", ["A", "B"])
def test_registry_R4_another_owner_is_rejected(store, caplog, toolset):
    """A name of another owner isn't replaced, in the same toolset as in another: None, an ERROR, a record, no change."""
    one, two = views(store, owner("one"), owner("two"))
    first = register(one, toolset="A")
    generation = store.generation
    with caplog.at_level(logging.ERROR):
        assert register(two, toolset=toolset) is None
    assert (
        f"Tool registration REJECTED: 'x' (toolset '{toolset}') would shadow existing tool from toolset 'A'"
        in caplog.text
    )
    assert store.find("x") is first
    assert store.generation == generation
    assert [d.kind for d in store.log.report().problems] == ["rejected"]


def test_registry_R4_the_same_owner_in_another_toolset_is_rejected(store):
    """The same owner doesn't move a tool to another toolset without the keys."""
    (one,) = views(store, owner("one"))
    first = register(one, toolset="A")
    assert register(one, toolset="B") is None
    assert store.find("x") is first


def test_registry_R4_the_same_owner_and_toolset_replace(store, caplog):
    """Same owner, same toolset: replaced, that is how reload works; DEBUG only."""
    (one,) = views(store, owner("one"))
    register(one)
    with caplog.at_level(logging.DEBUG):
        second = register(one)
    assert store.find("x") is second
    assert {record.levelno for record in caplog.records} == {logging.DEBUG}


def test_registry_R5_host_override_is_enough(store, caplog):
    """`override=True` from host code displaces; removing it brings the displaced tool back."""
    plugin, host = views(store, owner("one"), Owner("host", "host"))
    first = register(plugin)
    with caplog.at_level(logging.INFO):
        mine = register(host, toolset="B", override=True)
    assert store.find("x") is mine
    assert "displaces" in caplog.text
    assert host.deregister("x")
    assert store.find("x") is first


@pytest.mark.parametrize(
    ("allow", "passes"), [(True, True), (("x",), True), (False, False), (("y",), False), ((), False)]
)
def test_registry_R5_a_plugin_needs_the_operators_opt_in(store, allow, passes):
    """A plugin's override needs `allow_tool_override`: true, or a list with the tool's name; the error quotes the YAML."""
    one, two = views(store, owner("one"), owner("two", allow=allow))
    first = register(one)
    if passes:
        assert register(two, toolset="B", override=True) is store.find("x")
        return
    with pytest.raises(
        ToolOverrideError, match=r"plugins:\n  entries:\n    two:\n      allow_tool_override: true"
    ) as caught:
        register(two, override=True)
    assert isinstance(caught.value, PermissionError)
    assert store.find("x") is first


def test_registry_R5_a_project_plugins_yaml_names_its_source(store):
    """For a project plugin the quoted YAML also says `source: project`."""
    one, two = views(store, owner("one"), owner("two", "project"))
    register(one)
    with pytest.raises(ToolOverrideError, match="source: project"):
        register(two, override=True)


def test_registry_R5_override_on_a_free_name_is_a_registration(store):
    """`override=True` on a free name needs no key."""
    (one,) = views(store, owner("one"))
    assert register(one, override=True) is store.find("x")


def test_registry_R7_only_owner_and_host_remove(store, caplog):
    """Another plugin gets a PermissionError and an ERROR; owner and host may."""
    one, two, host = views(store, owner("one"), owner("two"), Owner("host", "host"))
    register(one)
    register(one, "y")
    with pytest.raises(ToolOwnershipError) as caught, caplog.at_level(logging.ERROR):
        two.deregister("x")
    assert isinstance(caught.value, PermissionError)
    assert "REFUSED" in caplog.text
    assert one.deregister("x")
    assert host.deregister("y")
    assert not host.deregister("y")
    assert store.snapshot.entries == {}


def test_registry_R7_toolset_aliases_go_with_the_last_tool(store):
    """Removing a toolset's last tool drops its aliases."""
    (one,) = views(store, owner("one"))
    register(one)
    register(one, "y")
    assert one.register_toolset_alias("alpha", "A")
    one.deregister("x")
    assert store.snapshot.toolset_aliases == {"alpha": "A"}
    one.deregister("y")
    assert store.snapshot.toolset_aliases == {}


def test_registry_R8_aliases_lead_to_the_tool(store):
    """An alias answers like the tool; it isn't a tool of its own."""
    (one,) = views(store, owner("one"))
    entry = register(one, aliases=("z",))
    assert store.find("z") is entry
    assert dict(store.snapshot.entries) == {"x": entry}
    assert dict(store.snapshot.aliases) == {"z": "x"}
    one.deregister("x")
    assert store.find("z") is None


def test_registry_R8_a_held_alias_is_rejected(store):
    """An alias that is another's stays another's; the tool itself is registered, and the report tells it."""
    one, two = views(store, owner("one"), owner("two"))
    held = register(one, "y")
    entry = register(two, "x", aliases=("y",))
    assert store.find("x") is entry
    assert store.find("y") is held
    assert [d.subject for d in store.log.report().problems] == ["tool:y"]


def test_registry_R8_toolset_aliases_follow_the_policy(store, caplog):
    """A toolset alias of another owner, or a toolset's own name, isn't taken."""
    one, two = views(store, owner("one"), owner("two"))
    register(one)
    register(two, "y", "B")
    assert one.register_toolset_alias("alpha", "A")
    with caplog.at_level(logging.ERROR):
        assert not two.register_toolset_alias("alpha", "B")
        assert not two.register_toolset_alias("A", "B")
    assert caplog.text.count("REJECTED") == 2
    assert dict(store.snapshot.toolset_aliases) == {"alpha": "A"}


def test_registry_R10_last_wins(caplog):
    """`last_wins`: the newest registration answers and a WARNING names both toolsets."""
    store = RegistryStore(last_wins=True)
    one, two = views(store, owner("one"), owner("two"))
    register(one)
    with caplog.at_level(logging.WARNING):
        second = register(two, toolset="B")
    assert store.find("x") is second
    assert "'A'" in caplog.text
    assert "'B'" in caplog.text


@pytest.mark.parametrize(("held", "new"), [
    (owner("b", "builtin"), owner("p")),
    (owner("p"), owner("b", "builtin")),
    (Owner("host", "host"), owner("p")),
    (owner("p"), Owner("unattributed", "unattributed")),
])  # fmt: skip
def test_registry_R10_never_across_the_border(held, new):
    """`last_wins` never lets a plugin take a built-in's or the host's tool, nor code that can't be attributed a plugin's."""
    store = RegistryStore(last_wins=True)
    one, two = views(store, held, new)
    first = register(one)
    assert register(two) is None
    assert store.find("x") is first


@pytest.mark.parametrize("name", ["tool_search", "tool_describe", "tool_call", "todo_list", "todo", "memory",
                                  "session_search", "delegate_task"])  # fmt: skip
def test_registry_R11_reserved_names(store, name):
    """Plugins can't take a reserved name, not even with both keys; a built-in can."""
    plugin, builtin = views(store, owner("p", allow=True), owner("b", "builtin"))
    assert register(plugin, name, override=True) is None
    assert store.find(name) is None
    assert register(builtin, name) is store.find(name)


def test_registry_R6_the_policy_isnt_a_plugins_to_set(store, caplog):
    """`register_plugin_override_policy` is the loader's call: a plugin is refused, the host may."""
    one, two, host = views(store, owner("one"), owner("two"), Owner("host", "host"))
    register(one)
    with pytest.raises(ToolOwnershipError), caplog.at_level(logging.ERROR):
        two.register_plugin_override_policy("two", allowed=True)
    with pytest.raises(ToolOverrideError):
        register(two, override=True)
    host.register_plugin_override_policy("two", allowed=True)
    assert register(two, override=True) is store.find("x")


OWNERS = [
    owner("b", "builtin"),
    owner("p"),
    owner("q", allow=True),
    owner("r", "user", allow=("n0",)),
    Owner("host", "host"),
]
ACTS = st.lists(
    st.tuples(
        st.sampled_from(["register", "override", "deregister"]),
        st.integers(0, len(OWNERS) - 1),
        st.sampled_from(["n0", "n1"]),
        st.sampled_from(["A", "B"]),
    ),
    max_size=14,
)


def play(store: RegistryStore, acts, skip: int | None = None) -> None:
    """Let the owners act; what is refused changes nothing."""
    for act, who, name, toolset in acts:
        if who == skip:
            continue
        view = ToolRegistry._bound(store, OWNERS[who])
        try:
            if act == "deregister":
                view.deregister(name)
            else:
                register(view, name, toolset, override=act == "override")
        except PermissionError:
            continue


def state(store: RegistryStore):
    return {name: (entry.owner.id, entry.toolset) for name, entry in store.snapshot.entries.items()}


@given(acts=ACTS, gone=st.integers(0, len(OWNERS) - 2), last_wins=st.booleans())
def test_registry_R6_unload_is_as_if_it_had_never_been(acts, gone, last_wins):
    """After an owner is unloaded the names are held as if only the others had ever acted."""
    # What the host removes depends on who is there: host removals aren't part of this.
    acts = [act for act in acts if not (act[0] == "deregister" and OWNERS[act[1]].is_host)]
    store, expected = RegistryStore(last_wins=last_wins), RegistryStore(last_wins=last_wins)
    logging.disable(logging.CRITICAL)
    try:
        play(store, acts)
        store.remove_owner(OWNERS[gone])
        play(expected, acts, skip=gone)
    finally:
        logging.disable(logging.NOTSET)
    assert state(store) == state(expected)


@given(acts=ACTS, order=st.permutations(range(len(OWNERS))))
def test_registry_R6_nothing_remains_when_all_are_gone(acts, order):
    """When every owner is unloaded, in any order, nothing is left."""
    store = RegistryStore()
    logging.disable(logging.CRITICAL)
    try:
        play(store, acts)
        for who in order:
            store.remove_owner(OWNERS[who])
    finally:
        logging.disable(logging.NOTSET)
    assert state(store) == {}
    assert store._acts == {}
