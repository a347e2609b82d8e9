"""`mibyan plugins bisect`: which plugin it is, found by halving, each round a process of its own (plugins.L4)."""

from __future__ import annotations

import itertools
import json
import os
import random
import shlex
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mibyan.cli.bisect.halving import minimal

from .conftest import PATIENCE, Done, Terminal, add_plugin

Run = Callable[..., Done]

TOOL = "def register(ctx):\n    ctx.register_tool({0!r}, 'words', {{'description': 'd'}}, lambda args: {0!r})\n"
MIBYAN = f"{shlex.quote(sys.executable)} -m mibyan"

# Halving ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [1, 2, 3, 8, 13])
def test_each_single_culprit_is_found_in_few_questions(number: int) -> None:
    names = [f"p{n}" for n in range(number)]
    for culprit in names:
        asked: list[Any] = []

        def is_bad(some: Any, culprit: str = culprit, asked: list[Any] = asked) -> bool:
            asked.append(some)
            return culprit in some

        assert minimal(names, is_bad) == [culprit]
        assert len(asked) <= 2 * number.bit_length()


def test_those_that_are_needed_together_are_found_whoever_they_are() -> None:
    names = [f"p{n}" for n in range(9)]
    for size in (2, 3):
        for guilty in itertools.combinations(names, size):
            assert minimal(names, lambda some, guilty=guilty: set(guilty) <= set(some)) == list(guilty)


def test_what_is_found_is_bad_and_nothing_can_be_left_out() -> None:
    """Whatever is bad: several ways at once, one plugin that mends what another breaks."""
    chance = random.Random(1)
    for _ in range(300):
        names = [f"p{n}" for n in range(chance.randrange(1, 8))]
        bad = {frozenset(names)} | {
            frozenset(some) for size in range(1, len(names)) for some in itertools.combinations(names, size)
            if chance.random() < 0.2
        }  # fmt: skip
        found = minimal(names, lambda some, bad=bad: frozenset(some) in bad)
        assert frozenset(found) in bad
        for one in found if len(found) > 1 else ():
            assert frozenset(found) - {one} not in bad


# Rounds -----------------------------------------------------------------------------------------------------------


@pytest.fixture
def plugins(home: Path) -> Path:
    """A home with five plugins."""
    for name in "abcde":
        add_plugin(home, name, TOOL.format(name))
    return home


def bad_with(*names: str, otherwise: int = 0) -> str:
    """A command that ends with 1 if all of these plugins are on."""
    tests = " || ".join(f"case ,$MIBYAN_PLUGINS, in *,no:{name},*) true;; *) false;; esac" for name in names)
    return f"if {tests or 'false'}; then exit {otherwise}; else exit 1; fi"


def bisect(run: Run, command: str, *words: str) -> tuple[int, Any]:
    done = run("plugins", "bisect", "--command", command, *words, "--json")
    return done.code, done.data


@pytest.mark.parametrize("culprit", "abcde")
def test_it_is_found_and_nothing_is_written(run: Run, plugins: Path, culprit: str) -> None:
    code, told = bisect(run, bad_with(culprit))
    assert (code, told["verdict"], [one["id"] for one in told["plugins"]]) == (0, "found", [culprit])
    assert told["commands"] == [f"mibyan plugins disable {culprit}"]
    assert told["message"] == f"It is {culprit} (user)."
    assert len(told["rounds"]) <= 8
    assert {(one["verdict"], one["why"]) for one in told["rounds"]} == {("good", "exit code 0"), ("bad", "exit code 1")}
    assert len({tuple(one["off"]) for one in told["rounds"]}) == len(told["rounds"]), "none is run twice"
    assert not (plugins / "config.yaml").exists()
    assert not (plugins / "journal").exists()


def test_two_that_go_wrong_together(run: Run, plugins: Path) -> None:
    code, told = bisect(run, bad_with("b", "e"))
    assert (code, [one["id"] for one in told["plugins"]]) == (0, ["b", "e"])
    assert told["message"] == "It takes these together: b (user), e (user). Without one of them nothing goes wrong."


def test_a_built_in_plugin(run: Run, plugins: Path) -> None:
    code, told = bisect(run, bad_with("memory"))
    assert (code, [(one["id"], one["source"]) for one in told["plugins"]]) == (0, [("memory", "builtin")])


@pytest.mark.parametrize(
    ("command", "verdict", "words"),
    [
        ("true", "good", "nothing goes wrong"),
        ("false", "outside", "With every plugin off"),
        ("exit 125", "unclear", "can't be told"),
    ],
)
def test_what_is_no_plugins_doing(run: Run, plugins: Path, command: str, verdict: str, words: str) -> None:
    code, told = bisect(run, command)
    assert (code, told["verdict"], told["plugins"], told["commands"]) == (1, verdict, [], [])
    assert words in told["message"]


def test_rounds_that_cant_be_told_may_leave_more_than_it_takes(run: Run, plugins: Path) -> None:
    """Without `a` nothing can be told: so it stays among those that are found, and that is said."""
    command = f"case ,$MIBYAN_PLUGINS, in *,no:a,*no:d,*) exit 0;; *,no:a,*) exit 125;; *) {bad_with('d')};; esac"
    code, told = bisect(run, command)
    assert (code, [one["id"] for one in told["plugins"]]) == (0, ["a", "d"])
    assert "it may be fewer" in told["message"]


def test_what_a_plugin_requires_is_on_with_it(run: Run, plugins: Path) -> None:
    """Else the one that is required would look as if it were needed for the fault."""
    add_plugin(plugins, "f", TOOL.format("f"), "id: f\nrequires_plugins: [a]\n")
    code, told = bisect(run, bad_with("a", "f"))
    assert (code, [one["id"] for one in told["plugins"]]) == (0, ["f"])


def test_what_is_off_stays_off(run: Run, plugins: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (plugins / "config.yaml").write_text("plugins: {disabled: [c]}\n")
    monkeypatch.setenv("MIBYAN_PLUGINS", "no:a")
    code, told = bisect(run, bad_with("e"), "--no-plugin", "b")
    assert (code, [one["id"] for one in told["plugins"]]) == (0, ["e"])
    assert not {"a", "b", "c"} & {name for one in told["rounds"] for name in one["on"]}
    code, told = bisect(run, "case ,$MIBYAN_PLUGINS, in *,no:a,*no:b,*) exit 0;; esac; exit 1", "--no-plugin", "b")
    assert told["verdict"] == "good"


@pytest.mark.parametrize(
    ("words", "said"),
    [((), "there is no terminal"), (("--command", "no-such-program-at-all"), "the shell can't run the command")],
)
def test_what_cant_be_done_is_a_usage_error(run: Run, plugins: Path, words: tuple[str, ...], said: str) -> None:
    done = run("plugins", "bisect", *words)
    assert done.code == 2
    assert said in done.err


def test_with_a_broken_configuration_no_round_is_run(run: Run, plugins: Path) -> None:
    (plugins / "config.yaml").write_text("plugins: [\n")
    done = run("plugins", "bisect", "--command", "true")
    assert done.code == 2
    assert "round" not in done.err


@pytest.fixture
def two(home: Path) -> Path:
    """A home with the plugin `a` and room for another."""
    add_plugin(home, "a", TOOL.format("a"))
    return home


def is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
        return b"Z" not in Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2]
    except ProcessLookupError:
        return False
    except FileNotFoundError:
        return not Path("/proc/self/stat").exists()


# Real ones --------------------------------------------------------------------------------------------------------


@pytest.mark.system
def test_a_plugin_that_ends_the_process(run: Run, two: Path) -> None:
    add_plugin(two, "x", "import os; os._exit(9)\n")
    code, told = bisect(run, f"{MIBYAN} tools list")
    assert (code, [one["id"] for one in told["plugins"]]) == (0, ["x"])
    assert "exit code 9" in {one["why"] for one in told["rounds"]}
    assert not (two / "journal").exists(), "a round leaves no quarantine behind"


@pytest.mark.system
def test_one_that_is_in_quarantine_stays_off(run: Run, program: Run, two: Path) -> None:
    add_plugin(two, "x", "import os; os._exit(9)\n")
    assert program("call", "a").code == 9
    done = run("plugins", "bisect", "--command", f"{MIBYAN} tools list")
    usable = sum(one["state"] != "failed" for one in json.loads(run("plugins", "list", "--json").out)["plugins"])
    assert (done.code, done.out.splitlines()[0].startswith(f"With all {usable} plugins")) == (1, True)
    assert "they are in quarantine: x" in done.err


@pytest.mark.system
def test_a_plugin_that_hangs(run: Run, two: Path) -> None:
    """The round is ended with everything that it has started."""
    add_plugin(two, "x", f"import os, subprocess, sys\nchild = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])\nopen({str(two / 'pids')!r}, 'a').write(f'{{child.pid}}\\n')\nchild.wait()\n")  # fmt: skip
    code, told = bisect(run, f"{MIBYAN} tools list", "--timeout", "1.5")
    assert (code, [one["id"] for one in told["plugins"]]) == (0, ["x"])
    assert "it came to no end in 1.5 s" in {one["why"] for one in told["rounds"]}
    children = [int(pid) for pid in (two / "pids").read_text().split()]
    until = time.monotonic() + PATIENCE
    while any(map(is_running, children)):
        assert time.monotonic() < until, "what it has started still runs"
        time.sleep(0.01)


@pytest.mark.system
def test_a_person_is_asked(terminal: Callable[..., Terminal], home: Path) -> None:
    for name in "ab":
        add_plugin(home, name, TOOL.format(name))
    shown = terminal("plugins", "bisect")
    for answer in ("perhaps", "bad", "g", "good", "b"):
        shown.expect("[g(ood)/b(ad)/s(kip)/q(uit)] ")
        shown.shown = ""
        shown.type(f"{answer}\n")
    done = shown.end()
    assert (done.code, done.out.splitlines()) == (0, ["It is b (user).", "    mibyan plugins disable b"])


@pytest.mark.system
def test_what_ends_the_process_by_being_loaded_needs_nobody_to_say_so(
    terminal: Callable[..., Terminal], home: Path
) -> None:
    add_plugin(home, "x", "import os; os._exit(9)\n")
    shown = terminal("plugins", "bisect")
    shown.expect("[g(ood)/b(ad)/s(kip)/q(uit)] ")
    assert "round 1: bad (loading the plugins: exit code 9)" in shown.shown
    assert "MIBYAN_PLUGINS='no:x' MIBYAN_QUARANTINE=off mibyan …" in shown.shown
    shown.type("q\n")
    assert shown.end().code == 130
