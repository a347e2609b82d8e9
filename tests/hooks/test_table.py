"""The table of hook implementations: who implements what, in which order (dispatch.H4)."""

from __future__ import annotations

import asyncio
import functools
import inspect
import threading

import pytest

from mibyan.errors import PluginError
from mibyan.hooks.decisions import Ask, Block, Modify, read_decision
from mibyan.hooks.names import HOOK_ARGUMENTS
from mibyan.hooks.specs import Specs
from mibyan.hooks.table import HookTable
from mibyan.report import DecisionLog
from mibyan.tools.owner import Owner

SOON = 20.0


def owner(name: str = "p", source: str = "user") -> Owner:
    return Owner(name, "plugin", source)


@pytest.fixture
def log() -> DecisionLog:
    return DecisionLog()


@pytest.fixture
def table(log) -> HookTable:
    return HookTable(log)


def test_the_names_and_the_specifications_agree():
    """The hooks known as data are pluggy's specifications, argument by argument."""
    specs = {
        name: tuple(inspect.signature(getattr(Specs, name)).parameters)[1:] for name in dir(Specs) if name[0] != "_"
    }
    assert specs == HOOK_ARGUMENTS


def test_a_hook_nobody_implements_has_an_empty_chain(table):
    """dispatch.H5: an empty chain is false."""
    assert not table.chain("pre_tool_call")
    assert not table.ready("pre_tool_call")


def test_an_unknown_hook_is_a_record_with_a_suggestion(table, log):
    """plugins.L3: an unknown name is in the report with a suggestion; the known ones are taken."""
    taken = table.register(owner(), {"pre_tool_cal": lambda: None, "post_tool_call": lambda: None})
    assert taken == ("post_tool_call",)
    (decision,) = log
    assert (decision.kind, "did you mean 'pre_tool_call'" in decision.reason) == ("unknown", True)


BAD = {
    "an unknown argument": (lambda nonsense: None, "nonsense"),
    "by position only": (eval("lambda args, /: None"), "by position only"),
    "an unknown keyword": (eval("lambda *, nonsense: None"), "nonsense"),
}


@pytest.mark.parametrize("case", BAD)
def test_a_bad_signature_is_refused(table, case):
    """plugins.L3: an implementation that can't be called is refused at once, with what is wrong, and nothing is kept."""
    function, words = BAD[case]
    with pytest.raises(PluginError) as error:
        table.register(owner(), {"post_tool_call": lambda: None, "pre_tool_call": function})
    assert words in str(error.value)
    assert not table.chain("post_tool_call")


class Counting:
    """An object that can be called."""

    def __call__(self, status):
        return ("counted", status)


async def awaited(prefix, status):
    return (prefix, status)


def plain(prefix, status):
    return (prefix, status)


CALLABLES = {
    "an object": (Counting(), ("counted", "ok")),
    "a partial": (functools.partial(plain, "part"), ("part", "ok")),
    "a partial of a coroutine function": (functools.partial(awaited, "later"), ("later", "ok")),
    "a method": (Counting().__call__, ("counted", "ok")),
}


@pytest.mark.parametrize("case", CALLABLES)
def test_dispatch_H4_whatever_can_be_called(table, case):
    """An implementation may be any callable, with the arguments that its signature has; a coroutine function stays one."""
    function, expected = CALLABLES[case]
    assert table.register(owner(), {"post_tool_call": function}) == ("post_tool_call",)
    (bound,) = table.chain("post_tool_call").plain
    assert bound.names == ("status",)
    given = bound.function(status="ok")
    assert inspect.iscoroutinefunction(bound.function) is inspect.iscoroutine(given)
    assert (asyncio.run(given) if inspect.iscoroutine(given) else given) == expected


@pytest.mark.parametrize(("function", "words"), [(len, "by position only"), (int, "signature")])
def test_plugins_L3_a_built_in_that_does_not_fit(table, function, words):
    """What is no function of Python's and can't be bound is refused with a sentence, as functions are."""
    with pytest.raises((PluginError, ValueError), match=words):
        table.register(owner(), {"on_session_end": function})


def test_removing_an_owner(table):
    """`remove_owner` takes everything of one owner, announcements too, and nothing of another's."""
    one, two = owner("one"), owner("two")
    for each in (one, two):
        table.register(each, {"pre_tool_call": lambda: None})
        table.announce(each, ["post_tool_call"], lambda: None)
    table.remove_owner(one)
    assert [i.owner for i in table.chain("pre_tool_call").plain] == [two]
    assert (table.names_of(one), table.names_of(two)) == ((), ("post_tool_call", "pre_tool_call"))


def test_the_generation_grows_with_each_change(table):
    """Whoever keeps something made of the hooks can see that they changed."""
    before = table.generation
    table.register(owner(), {"pre_tool_call": lambda: None})
    assert table.generation > before


def test_an_announced_plugin_is_imported_when_its_hook_is_needed(table):
    """architecture: a plugin whose manifest names a hook is imported when the hook is first needed, once."""
    mine, imported = owner(), []

    def activate():
        imported.append(1)
        table.register(mine, {"pre_tool_call": lambda: None})

    table.announce(mine, ["pre_tool_call"], activate)
    assert not table.chain("post_tool_call")
    assert imported == []
    assert table.ready("pre_tool_call") is None
    assert len(table.chain("pre_tool_call").plain) == 1
    assert table.ready("pre_tool_call") is table.chain("pre_tool_call")
    assert imported == [1]


def test_dispatch_H2_nobody_slips_past_a_policy_that_is_being_imported(table):
    """dispatch.H2: while a plugin is being imported for its hook, another thread gets no chain without it."""
    mine, begun, release, turn = owner(), threading.Event(), threading.Event(), threading.Lock()
    chains, done = [], []

    def activate():
        with turn:
            if done:
                return
            begun.set()
            release.wait(SOON)
            table.register(mine, {"pre_tool_call": lambda: Block("no")})
            done.append(1)

    table.announce(mine, ["pre_tool_call"], activate)
    threads = [threading.Thread(target=lambda: chains.append(table.chain("pre_tool_call"))) for _ in range(2)]
    threads[0].start()
    assert begun.wait(SOON)
    assert table.ready("pre_tool_call") is None
    threads[1].start()
    release.set()
    for thread in threads:
        thread.join(SOON)
    assert [len(chain.plain) for chain in chains] == [1, 1]


def test_a_plugin_that_asks_while_it_is_being_imported(table):
    """A chain that is asked for during the import isn't kept as if it were whole."""
    mine, inside, busy = owner(), [], []

    def activate():
        if busy:
            raise PluginError("it is being imported right now")
        busy.append(1)
        inside.append(table.chain("pre_tool_call"))
        table.register(mine, {"pre_tool_call": lambda: None})

    table.announce(mine, ["pre_tool_call"], activate)
    assert len(table.chain("pre_tool_call").plain) == 1
    assert len(inside[0].plain) == 0


@pytest.mark.parametrize(
    ("answer", "decision"),
    [
        (None, None),
        (Block("x"), Block("x")),
        ({"action": "block", "message": "x"}, Block("x")),
        ({"action": "block"}, Block("blocked by policy")),
        ({"action": "approve", "message": "x", "rule_key": "k"}, Ask("x", "k")),
        ({"action": "approve", "reason": "x"}, Ask("x")),
        ({"action": "modify", "args": {"a": 1}}, Modify({"a": 1})),
        ({"action": "modify", "args": {}, "replace": True}, Modify({}, replace=True)),
        ({"action": "allow"}, None),
    ],
)
def test_dispatch_H1_the_forms_of_a_decision(answer, decision):
    """api: a decision is one of the classes, or the dict of another plugin system that means the same."""
    assert read_decision(answer) == decision


@pytest.mark.parametrize(
    "answer", [5, "block", [], {"action": "x"}, {}, Block(5), Ask(5), Ask("x", 5), Modify(5), Modify({1: 2})]
)
def test_dispatch_H2_what_isnt_a_decision(answer):
    """dispatch.H2: anything else is nonsense."""
    with pytest.raises(TypeError):
        read_decision(answer)
