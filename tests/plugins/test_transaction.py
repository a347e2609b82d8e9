"""`mibyan.plugins.transaction` and `process_state`: what plugin code changes of the process is put back (plugins.L2)."""

from __future__ import annotations

import builtins
import contextvars
import io
import logging
import os
import signal
import sys
import threading
import types
import warnings
from collections.abc import Callable, Iterator
from importlib.machinery import ModuleSpec
from pathlib import Path
from typing import Any

import pytest

from mibyan.errors import PluginError
from mibyan.plugins import transaction as transaction_module
from mibyan.plugins.process_state import ProcessState, remove_additions
from mibyan.plugins.transaction import Transaction, transaction, turn


class Fault(BaseException):
    """What a plugin ends with."""


def mine(name: str, module: object) -> bool:
    """The modules of the plugin."""
    return name.startswith("plugin_of_test")


def run(do: Callable[[], object], *, fail: bool, undo: Callable[[], object] = lambda: None) -> Transaction:
    """Do something in a transaction."""
    try:
        with transaction("test", mine, undo) as running:
            do()
            if fail:
                raise Fault
    except Fault:
        assert fail
    return running


def set_environ(name: str, value: str | None) -> None:
    if value is None:
        os.environ.pop(name, None)
    else:
        os.environ[name] = value


def clear(container: Any) -> None:
    container.clear()


def add_module(name: str) -> types.ModuleType:
    return sys.modules.setdefault(name, types.ModuleType(name))


#: What a plugin may do: the deed, and what is to be as it was.
DEEDS: dict[str, tuple[Callable[[], object], Callable[[], object]]] = {
    "an entry of sys.path": (lambda: sys.path.insert(0, "/nowhere"), lambda: list(sys.path)),
    "an entry of sys.path taken away": (lambda: sys.path.pop(-1), lambda: list(sys.path)),
    "another sys.path": (lambda: setattr(sys, "path", ["/nowhere"]), lambda: (id(sys.path), list(sys.path))),
    "sys.path emptied": (lambda: clear(sys.path), lambda: list(sys.path)),
    "a finder": (lambda: sys.meta_path.insert(0, object()), lambda: list(sys.meta_path)),
    "no finder": (lambda: clear(sys.meta_path), lambda: list(sys.meta_path)),
    "a path hook": (lambda: sys.path_hooks.append(lambda entry: None), lambda: list(sys.path_hooks)),
    "a root handler": (lambda: logging.root.addHandler(logging.NullHandler()), lambda: list(logging.root.handlers)),
    "basicConfig": (lambda: logging.basicConfig(level=1, force=True), lambda: (list(logging.root.handlers), logging.root.level)),
    "a root filter": (lambda: logging.root.addFilter(lambda record: False), lambda: list(logging.root.filters)),
    "the root level": (lambda: logging.root.setLevel(1), lambda: logging.root.level),
    "logging.disable": (lambda: logging.disable(50), lambda: logging.root.manager.disable),
    "a warnings filter": (lambda: warnings.simplefilter("ignore"), lambda: list(warnings.filters)),
    "no warnings filter": (warnings.resetwarnings, lambda: list(warnings.filters)),
    "showwarning": (lambda: setattr(warnings, "showwarning", print), lambda: warnings.showwarning),
    "a variable": (lambda: set_environ("PLUGIN_OF_TEST", "1"), lambda: dict(os.environ)),
    "a changed variable": (lambda: set_environ("PATH", "/nowhere"), lambda: dict(os.environ)),
    "a removed variable": (lambda: set_environ("PATH", None), lambda: dict(os.environ)),
    "an empty environment": (lambda: clear(os.environ), lambda: dict(os.environ)),
    "stdout": (lambda: setattr(sys, "stdout", io.StringIO()), lambda: sys.stdout),
    "excepthook": (lambda: setattr(sys, "excepthook", print), lambda: sys.excepthook),
    "threading.excepthook": (lambda: setattr(threading, "excepthook", print), lambda: threading.excepthook),
    "print": (lambda: setattr(builtins, "print", id), lambda: print),
    "__import__": (lambda: setattr(builtins, "__import__", None), lambda: builtins.__import__),
    "a trace function": (lambda: sys.settrace(lambda *_: None), sys.gettrace),
    "a profile function": (lambda: sys.setprofile(lambda *_: None), sys.getprofile),
    "a new builtin": (lambda: setattr(builtins, "plugin_of_test", 1), lambda: hasattr(builtins, "plugin_of_test")),
    "a builtin less": (lambda: delattr(builtins, "copyright"), lambda: hasattr(builtins, "copyright")),
    "the recursion limit": (lambda: sys.setrecursionlimit(5000), sys.getrecursionlimit),
    "the working directory": (lambda: os.chdir("/"), os.getcwd),
    "a signal's handler": (lambda: signal.signal(signal.SIGUSR1, lambda *_: None), lambda: signal.getsignal(signal.SIGUSR1)),
    "its module": (lambda: add_module("plugin_of_test.part"), lambda: "plugin_of_test.part" in sys.modules),
    "a module replaced": (lambda: sys.modules.__setitem__("json", types.ModuleType("json")), lambda: sys.modules["json"]),
    "a module taken away": (lambda: sys.modules.pop("json"), lambda: sys.modules.get("json")),
    "nonsense in sys.modules": (lambda: sys.modules.__setitem__("plugin_of_test", 3), lambda: "plugin_of_test" in sys.modules),
}  # fmt: skip


@pytest.fixture(autouse=True)
def put_back(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """A failed test mustn't spoil the next one; the working directory isn't the one of a deed."""
    monkeypatch.chdir(tmp_path)
    before = ProcessState()
    yield
    before.restore(mine)


@pytest.mark.parametrize("name", DEEDS)
def test_a_failed_transaction_puts_the_process_back(name: str) -> None:
    """plugins.L2: whatever a plugin changed of the process before it failed is as it was."""
    do, look = DEEDS[name]
    before = look()
    seen: list[object] = []
    run(lambda: (do(), seen.append(look())), fail=True)
    assert look() == before
    assert seen != [before], "the deed did nothing, so the test says nothing"


def test_a_good_transaction_lets_everything_stay() -> None:
    """A plugin's changes stay when its loading succeeds."""
    run(lambda: (sys.path.insert(0, "/nowhere"), set_environ("PLUGIN_OF_TEST", "1")), fail=False)
    assert sys.path[0] == "/nowhere"
    assert os.environ["PLUGIN_OF_TEST"] == "1"


def test_other_modules_may_stay() -> None:
    """A library that was imported on the way stays: others may have got hold of it."""

    def imported() -> None:
        add_module("a_library_of_test").__spec__ = ModuleSpec("a_library_of_test", None)
        add_module("a_library_of_test.made_up")

    run(imported, fail=True)
    assert sys.modules.pop("a_library_of_test.made_up", None) is not None
    assert sys.modules.pop("a_library_of_test", None) is not None


@pytest.mark.parametrize(
    "module",
    [types.ModuleType("made_up_by_test"), sys, object(), None],
    ids=["made up", "another", "no module", "none"],
)
def test_a_module_that_no_import_made_goes(module: Any) -> None:
    """What plugin code puts into `sys.modules` itself, a new name for another module too, is taken back."""
    run(lambda: sys.modules.__setitem__("made_up_by_test", module), fail=True)
    assert "made_up_by_test" not in sys.modules


def test_a_removed_module_leaves_its_package() -> None:
    """A sub-module that goes isn't an attribute of its package any more."""
    package = add_module("package_of_test")

    def do() -> None:
        with transaction("test", lambda name, _: name.endswith("plugin_of_test"), lambda: None):
            package.plugin_of_test = add_module("package_of_test.plugin_of_test")
            raise Fault

    try:
        with pytest.raises(Fault):
            do()
        assert not hasattr(package, "plugin_of_test")
    finally:
        del sys.modules["package_of_test"]


def test_handlers_that_go_are_closed(tmp_path: Path) -> None:
    """A log file that a failed plugin opened is closed."""
    handler = logging.FileHandler(tmp_path / "log")
    run(lambda: logging.root.addHandler(handler), fail=True)
    assert handler not in logging.root.handlers
    assert handler.stream is None


def test_what_was_added_can_be_taken_away_later() -> None:
    """plugins.L7: what a loaded plugin added to the process's lists goes when it is unloaded, nothing else does."""
    handler = logging.NullHandler()
    running = run(lambda: (sys.path.insert(0, "/nowhere"), logging.root.addHandler(handler)), fail=False)
    sys.path.append("/somewhere")
    remove_additions(running.additions)
    assert "/nowhere" not in sys.path
    assert sys.path[-1] == "/somewhere"
    assert handler not in logging.root.handlers


def test_undo_comes_before_the_process_is_put_back() -> None:
    """What a plugin did in its runtime is taken back while its changes of the process still hold."""
    seen: list[bool] = []
    run(lambda: sys.path.insert(0, "/nowhere"), fail=True, undo=lambda: seen.append("/nowhere" in sys.path))
    assert seen == [True]
    assert "/nowhere" not in sys.path


def test_undo_can_run_whatever_was_done(tmp_path: Path) -> None:
    """Mibyan's own code needs built-in functions and some stack to take a plugin back."""

    def do() -> None:
        sys.setrecursionlimit(sys.getrecursionlimit() // 2)
        builtins.__import__ = None

    seen: list[object] = []
    limit = sys.getrecursionlimit()
    run(do, fail=True, undo=lambda: (seen.append(sys.getrecursionlimit()), __import__("json")))
    assert seen == [limit]


def test_a_failing_undo_doesn_t_keep_the_process_changed() -> None:
    """The process is put back, whatever else goes wrong."""

    def undo() -> None:
        raise ValueError("undo")

    with pytest.raises(ValueError, match="undo"):
        run(lambda: sys.path.insert(0, "/nowhere"), fail=True, undo=undo)
    assert "/nowhere" not in sys.path


def test_a_good_transaction_within_a_failed_one_stays() -> None:
    """A plugin that was loaded on the way (its tool was used) isn't undone with the one that used it."""

    def inner() -> None:
        sys.path.append("/inner")
        set_environ("PLUGIN_OF_TEST", "inner")
        add_module("plugin_of_test.inner")

    def outer() -> None:
        sys.path.append("/outer")
        run(inner, fail=False)
        add_module("plugin_of_test.outer")

    run(outer, fail=True)
    assert "/inner" in sys.path
    assert "/outer" not in sys.path
    assert os.environ["PLUGIN_OF_TEST"] == "inner"
    assert sys.modules.pop("plugin_of_test.inner", None) is not None
    assert "plugin_of_test.outer" not in sys.modules


def test_a_failed_transaction_within_a_good_one_goes() -> None:
    """The other way round."""

    def outer() -> None:
        sys.path.append("/outer")
        run(lambda: sys.path.append("/inner"), fail=True)

    run(outer, fail=False)
    assert "/outer" in sys.path
    assert "/inner" not in sys.path


def test_threads_that_stay_are_named() -> None:
    """A thread can't be taken back: the transaction knows its name."""
    stop = threading.Event()
    thread = threading.Thread(target=stop.wait, name="stray")
    running = run(thread.start, fail=True)
    stop.set()
    thread.join()
    assert running.threads == ("stray",)


def test_transactions_take_turns() -> None:
    """What plugins change is the process's: two are never loaded at the same time."""
    inside: list[int] = []
    most: list[int] = []

    def load() -> None:
        with transaction("test", mine, lambda: None):
            inside.append(1)
            most.append(len(inside))
            threading.Event().wait(0.002)
            inside.pop()

    threads = [threading.Thread(target=load) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == [1] * 8


def test_a_transaction_in_the_same_context_needs_no_turn() -> None:
    """A plugin whose register calls another's tool on a pool thread doesn't wait for itself."""
    done: list[str] = []

    def inner() -> None:
        with transaction("inner", mine, lambda: None, wait=0.01):
            done.append("inner")

    with transaction("outer", mine, lambda: None):
        context = contextvars.copy_context()
        thread = threading.Thread(target=context.run, args=(inner,))
        thread.start()
        thread.join()
    assert done == ["inner"]


def test_a_context_outlives_its_transaction() -> None:
    """What runs later in the context of a loading, such as a timer, takes its turn like everybody."""
    with transaction("first", mine, lambda: None):
        context = contextvars.copy_context()
    running = context.run(run, lambda: None, fail=False)
    assert running.outer is None


def test_a_stuck_plugin_is_named() -> None:
    """Who waits for a plugin that doesn't come to an end is told which one that is."""
    entered, leave = threading.Event(), threading.Event()

    def hang() -> None:
        with transaction("stuck", mine, lambda: None):
            entered.set()
            leave.wait()

    thread = threading.Thread(target=hang)
    thread.start()
    entered.wait()
    try:
        with (
            pytest.raises(PluginError, match="plugin 'stuck' has been loading for 0 s") as caught,
            turn("x", wait=0.01),
        ):
            pass
        assert caught.value.hint == "If it doesn't come to an end: mibyan plugins disable stuck"
    finally:
        leave.set()
        thread.join()


def test_a_child_process_has_its_own_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    """After a fork the thread that had the turn isn't there: the child doesn't wait for it."""
    entered, leave = threading.Event(), threading.Event()

    def hang() -> None:
        with turn("parent"):
            entered.set()
            leave.wait()

    monkeypatch.setattr(transaction_module, "_TURN", transaction_module._Turn())
    thread = threading.Thread(target=hang)
    thread.start()
    entered.wait()
    try:
        monkeypatch.setattr(transaction_module.os, "getpid", lambda: -1)
        with turn("child", wait=0.01):
            pass
    finally:
        leave.set()
        thread.join()


def test_nothing_is_put_back_on_another_thread_that_can_t_be() -> None:
    """Signals are the main thread's: on another one a rollback leaves them alone and does the rest."""
    seen: list[Any] = []

    def load() -> None:
        run(lambda: sys.path.insert(0, "/nowhere"), fail=True)
        seen.append("/nowhere" in sys.path)

    thread = threading.Thread(target=load)
    thread.start()
    thread.join()
    assert seen == [False]


def test_logging_that_wasn_t_there_is_as_it_would_be() -> None:
    """A plugin that imports logging first of all and configures it leaves an unconfigured one when it fails."""
    kept = {name: sys.modules.pop(name) for name in list(sys.modules) if name.partition(".")[0] == "logging"}
    try:
        before = ProcessState()
        import logging as fresh

        fresh.basicConfig(level=1)
        before.restore(mine)
        import logging as again

        assert (again.root.handlers, again.root.level) == ([], again.WARNING)
    finally:
        for name in [name for name in sys.modules if name.partition(".")[0] == "logging"]:
            del sys.modules[name]
        sys.modules.update(kept)
