"""`ctx.provide` and `rt.provided`: services between plugins, made once, on first use."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from mibyan import Runtime
from mibyan.errors import MibyanError, PluginError
from mibyan.plugins import making
from mibyan.plugins.making import Making
from mibyan.plugins.offers import Offer
from mibyan.tools.owner import Owner

from .world import write

#: Seconds for what happens at once.
SOON = 30.0


@pytest.fixture
def runtime(tmp_path: Path) -> Iterator[Callable[..., Runtime]]:
    """Makes a runtime over a home with folder plugins, by their sources."""
    made: list[Runtime] = []

    def make(**sources: str) -> Runtime:
        for name, source in sources.items():
            write(tmp_path / "home" / "plugins" / name / "plugin.yaml", "{}")
            write(tmp_path / "home" / "plugins" / name / "__init__.py", source)
        made.append(Runtime(home=tmp_path / "home"))
        return made[-1]

    yield make
    for one in made:
        one.close()


STORE = """
    import mibyan

    class Store:
        def __init__(self):
            self.kept, self.closed = {}, False

        def close(self):
            self.closed = True

    def register(ctx):
        ctx.provide("store", Store)
"""
USER = """
    import mibyan

    def register(ctx):
        ctx.register_tool("keep", "notes", {"description": "Keep it.", "parameters": {"type": "object", "properties":
                          {"text": {"type": "string"}}}}, keep)

    def keep(args):
        store = mibyan.get_runtime().provided("store")
        store.kept[len(store.kept)] = args["text"]
        return {"kept": len(store.kept)}
"""


def test_one_plugin_uses_the_service_of_another(runtime: Callable[..., Runtime]) -> None:
    """The example of the how-to: made on first use, one for all, closed with its plugin."""
    rt = runtime(store=STORE, user=USER)
    assert rt.call("keep", {"text": "a"}) == '{"kept": 1}'
    assert rt.call("keep", {"text": "b"}) == '{"kept": 2}'
    store = rt.provided("store")
    assert store.kept == {0: "a", 1: "b"}
    assert (rt.plugins.offers.services["store"].owner.id, store.closed) == ("store", False)
    rt.plugins.unload("store")
    assert store.closed
    with pytest.raises(MibyanError, match="No plugin provides 'store'"):
        rt.provided("store")


def test_a_factory_that_fails_is_tried_again(runtime: Callable[..., Runtime]) -> None:
    """What it raises leaves, whatever it is; nothing is kept of the attempt."""
    source = """
        tries = []

        def make():
            tries.append(1)
            if len(tries) < 3:
                raise [ValueError, SystemExit][len(tries) - 1]("not yet")
            return tries

        def register(ctx):
            ctx.provide("late", make)
    """
    rt = runtime(late=source)
    with pytest.raises(ValueError, match="not yet"):
        rt.provided("late")
    with pytest.raises(SystemExit):
        rt.provided("late")
    assert rt.provided("late") == [1, 1, 1]
    assert rt.provided("late") is rt.provided("late")


def asking(name: str, other: str) -> str:
    """A plugin whose service needs another."""
    return f"""
        import mibyan

        def register(ctx):
            ctx.provide({name!r}, lambda: ({name!r}, mibyan.get_runtime().provided({other!r})))
    """


def test_a_service_may_need_others(runtime: Callable[..., Runtime]) -> None:
    """A factory asks for another service; each is made once."""
    base = "def register(ctx):\n    ctx.provide('c', lambda: 'made')\n"
    rt = runtime(a=asking("a", "b"), b=asking("b", "c"), c=base)
    assert rt.provided("a") == ("a", ("b", "made"))


def test_a_circle_of_services_is_one_sentence(runtime: Callable[..., Runtime]) -> None:
    """It names the services and their plugins; afterwards others are made."""
    rt = runtime(a=asking("a", "b"), b=asking("b", "a"), self=asking("me", "me"))
    with pytest.raises(PluginError) as circle:
        rt.provided("a")
    assert circle.value.message == (
        "a service can't be made of itself: 'a' (plugin 'a') needs 'b' (plugin 'b') needs 'a' (plugin 'a')"
    )
    with pytest.raises(PluginError, match=r"'me' \(plugin 'self'\) needs 'me'"):
        rt.provided("me")


def test_two_who_ask_at_once_get_one(runtime: Callable[..., Runtime]) -> None:
    """Whoever comes while it is being made waits for it; the factory may call tools that need other threads."""
    source = """
        import threading

        import mibyan

        started, go, made = threading.Event(), threading.Event(), []

        def make():
            started.set()
            go.wait(30)
            made.append(1)
            return made

        def register(ctx):
            ctx.provide("slow", make)
            ctx.provide("events", lambda: (started, go))
    """
    rt = runtime(slow=source)
    started, go = rt.provided("events")
    found: list[Any] = []
    threads = [threading.Thread(target=lambda: found.append(rt.provided("slow"))) for _ in range(3)]
    for thread in threads:
        thread.start()
    assert started.wait(SOON)
    go.set()
    for thread in threads:
        thread.join(SOON)
    assert found == [[1], [1], [1]]


def offer(name: str) -> Offer:
    return Offer("service", name, Owner(name, "plugin", "user"), object)


def test_two_threads_that_wait_for_each_other() -> None:
    """One of them gets the sentence about the circle, the other its service: neither waits for ever."""
    services, a, b = Making(), offer("a"), offer("b")
    both = threading.Barrier(2)
    results: dict[str, Any] = {}

    def make(mine: Offer, other: Offer) -> Any:
        both.wait(SOON)
        try:
            return mine.name, services.made(other, lambda: other.name, lambda: True)
        except PluginError as error:
            return mine.name, error.message

    def run(mine: Offer, other: Offer) -> None:
        results[mine.name] = services.made(mine, lambda: make(mine, other), lambda: True)

    threads = [threading.Thread(target=run, args=pair) for pair in ((a, b), (b, a))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(SOON)
    assert not any(thread.is_alive() for thread in threads)
    told = [one[1] for one in results.values() if isinstance(one[1], str)]
    assert len(told) == 1
    assert told[0].startswith("a service can't be made of itself: ")


def test_a_factory_that_hangs_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who waits for it for too long gets a sentence with what to do."""
    monkeypatch.setattr(making, "PATIENCE", 0.01)
    services, slow, started, go = Making(), offer("slow"), threading.Event(), threading.Event()

    def make() -> str:
        started.set()
        go.wait(SOON)
        return "made"

    thread = threading.Thread(target=lambda: services.made(slow, make, lambda: True))
    thread.start()
    assert started.wait(SOON)
    with pytest.raises(PluginError, match=r"plugin .slow. has been making .slow. for 0\.01 s") as late:
        services.made(slow, make, lambda: True)
    assert late.value.hint == "If it doesn't come to an end: mibyan plugins disable slow"
    go.set()
    thread.join(SOON)
    assert services.made(slow, make, lambda: True) == "made"


@pytest.mark.parametrize("close", [True, False])
def test_a_service_whose_plugin_went_meanwhile_is_closed(*, close: bool) -> None:
    """It isn't handed out, and nothing of it stays open."""
    closed: list[int] = []
    service = type("Service", (), {"close": lambda self: closed.append(1)} if close else {})()
    services = Making()
    with pytest.raises(PluginError, match="plugin 'gone' provides 'gone' no longer"):
        services.made(offer("gone"), lambda: service, lambda: False)
    assert closed == [1] * close


def test_a_plugin_looks_at_what_others_offer(runtime: Callable[..., Runtime]) -> None:
    """`get_runtime().plugins.offers`: names, owners, descriptions; of commands and skills too."""
    source = """
        def register(ctx):
            ctx.register_command("say", str.upper, "Says it.", "TEXT")
            ctx.provide("x", object)
    """
    looker = """
        import mibyan

        def register(ctx):
            ctx.register_command("look", lambda text: {
                kind: {name: [offer.owner.id, offer.description] for name, offer in getattr(
                    mibyan.get_runtime().plugins.offers, kind).items()} for kind in ("commands", "services", "skills")})
    """
    rt = runtime(a=source, b=looker)
    assert rt.plugins.run_command("look") == {
        "commands": {"look": ["b", ""], "say": ["a", "Says it."]}, "services": {"x": ["a", ""]}, "skills": {},
    }  # fmt: skip
