"""The load journal and the quarantine (plugins.L4, L1): who ends the process by being imported is named, and kept out."""

from __future__ import annotations

import json
import os
import random
import signal
import sys
from pathlib import Path

import pytest

from mibyan import Runtime, ToolCall
from mibyan.config.load import load_config
from mibyan.errors import MibyanError
from mibyan.plugins import manage
from mibyan.plugins.journal import journal_of, leftovers
from mibyan.plugins.quarantine import Quarantine
from mibyan.plugins.writers import this_process
from mibyan.records import replace

from .deaths import CALL, dead_writer, ended, leave, started, wait_for, write_lines
from .world import World, frozen_tool, tool, tools, write

pytestmark = pytest.mark.skipif(os.name != "posix", reason="there is no journal where files have no locks of that kind")

#: Keeps in the home what the journal says while the plugin is imported, and while it registers.
LOOKING = """
import pathlib, sys
HOME = pathlib.Path({home!r})
def look(name):
    (HOME / name).write_text("".join(path.read_text() for path in (HOME / "journal").iterdir()))
look("{name}.import")
def register(ctx):
    look("{name}.register")
    ctx.register_tool({name!r}, "words", {{"description": "d"}}, lambda args: {name!r})
"""


def looking(world: World, name: str, more: str = "") -> str:
    return LOOKING.format(home=str(world.home), name=name) + more


def seen(world: World, name: str) -> list[list[object]]:
    return [json.loads(line) for line in (world.home / name).read_text().splitlines()]


def is_clean(world: World) -> bool:
    return not (world.home / "journal").exists()


# Written ahead ----------------------------------------------------------------------------------------------------


def test_plugins_L4_it_is_written_ahead_of_each_step_and_removed(world: World) -> None:
    world.folder("a", looking(world, "a"))
    world.load()
    head, begun = seen(world, "a.import")
    assert head[1:] == [*(getattr(this_process(), name) for name in ("pid", "started", "boot", "space", "machine"))]
    assert begun[:5] == ["begin", begun[1], 0, "a", str(world.home / "plugins" / "a" / "plugin.yaml")]
    assert begun[7] == "import"
    assert seen(world, "a.register")[2:] == [["step", begun[1], "register"]]
    assert is_clean(world)


def test_plugins_L4_a_lazy_import_a_tools_file_and_a_reload_are_written_too(world: World) -> None:
    world.folder("lazy", looking(world, "lazy"), {"tools": [frozen_tool("lazy")]})
    world.tool_file("file", looking(world, "file") + "from mibyan import registry\n"
                    "registry.register('file', 'words', {'description': 'd'}, lambda args: 1)\n")  # fmt: skip
    loader = world.load()
    assert seen(world, "file.import")[1][3] == "tools.file"
    assert not (world.home / "lazy.import").exists()
    loader.activate("lazy")
    assert seen(world, "lazy.import")[1][3] == "lazy"
    (world.home / "lazy.import").unlink()
    loader.reload("lazy")
    loader.activate("lazy")
    assert seen(world, "lazy.import")[1][3] == "lazy"
    assert is_clean(world)


def test_plugins_L4_a_module_that_only_a_target_names_is_written(world: World) -> None:
    source = looking(world, "deep") + "def run(args): return 1\n"
    world.folder("p", "", {"tools": [frozen_tool("deep", target="deep:run")]}, deep=source)
    world.load().activate("p")
    assert [line[7] for line in seen(world, "deep.import") if line[0] == "begin"] == ["import", "import deep"]
    assert is_clean(world)


@pytest.mark.parametrize(
    "end", ["raise ValueError", "raise SystemExit(1)", "raise GeneratorExit", "import nothing_", "1 +"]
)
@pytest.mark.parametrize("where", ["import", "register"])
def test_plugins_L4_however_it_ends_nothing_is_left(world: World, end: str, where: str) -> None:
    world.folder("a", f"{end}\n" if where == "import" else f"def register(ctx):\n    {end}\n")
    world.folder("b", tool("b"))
    loader = world.load()
    assert (loader.get("a").state, loader.get("b").state) == ("failed", "active")
    assert "quarantined" not in loader.get("a").reason
    assert is_clean(world)


def test_plugins_L4_ctrl_c_leaves_nothing(world: World) -> None:
    world.folder("a", "raise KeyboardInterrupt\n")
    with pytest.raises(KeyboardInterrupt):
        world.load()
    assert is_clean(world)


def test_plugins_L4_one_that_is_imported_meanwhile_stands_within(world: World) -> None:
    """A plugin that uses another's tool while it registers: the innermost one is what the process would die of."""
    world.folder("inner", looking(world, "inner"), {"tools": [frozen_tool("inner")]})
    world.folder("outer", "def register(ctx):\n    ctx.dispatch_tool('inner', {})\n" + tool("outer")[1:].replace(
        "def register(ctx):\n", ""), {"after": ["inner"]})  # fmt: skip
    world.load()
    begun = [line for line in seen(world, "inner.import") if line[0] == "begin"]
    assert [line[3] for line in begun] == ["outer", "inner"]
    assert begun[1][2] == begun[0][1]
    path = write_lines(world.home, begun, dead_writer())
    assert [death.plugin_id for death in Quarantine(world.home).deaths] == ["inner"]
    path.write_text(path.read_text() + json.dumps(["end", begun[1][1]]) + "\n")
    assert [death.plugin_id for death in Quarantine(world.home).deaths] == ["outer"]


@pytest.mark.skipif(getattr(os, "geteuid", lambda: 1)() == 0, reason="root writes anywhere")
def test_plugins_L4_without_a_place_to_write_there_is_no_journal_and_no_error(world: World) -> None:
    world.folder("a", tool("a"))
    world.home.chmod(0o500)
    try:
        assert world.load().get("a").state == "active"
    finally:
        world.home.chmod(0o700)


def test_plugins_L4_with_a_file_in_its_place_there_is_no_journal_and_no_error(world: World) -> None:
    world.folder("a", tool("a"))
    write(world.home / "journal", "mine")
    assert world.load().get("a").state == "active"
    assert (world.home / "journal").read_text() == "mine"


def test_plugins_L4_a_plugin_that_closes_all_files_is_still_taken_out(world: World) -> None:
    """Descriptors may be closed or be somebody else's by then: nothing of theirs is written to or closed."""
    mine = write(world.home / "mine", "")
    journal = journal_of(world.home)
    with journal.importing("a", "/a", "x"):
        taken = journal._file[0]
        other = os.open(mine, os.O_RDWR)
        os.dup2(other, taken)
        with journal.importing("b", "/b", "x"):
            [path] = map(Path, leftovers(str(world.home)))
            begun = [line for line in map(json.loads, path.read_text().splitlines()) if line[0] == "begin"]
            assert [line[3] for line in begun] == ["a", "b"]
    assert is_clean(world)
    assert os.fstat(taken).st_ino == os.fstat(other).st_ino
    assert mine.read_text() == ""
    os.close(taken)
    os.close(other)


def test_plugins_L4_processes_that_import_at_once_have_files_of_their_own(world: World) -> None:
    script = (
        "import sys, pathlib; from mibyan.plugins.journal import journal_of, leftovers\n"
        "journal = journal_of(pathlib.Path(sys.argv[1]))\n"
        "for _ in range(200):\n"
        "    with journal.importing('p', '/p', 'x'): assert journal._path in leftovers(sys.argv[1])\n"
    )
    processes = [started(script, world.home) for _ in range(3)]
    assert [ended(process) for process in processes] == [0, 0, 0]
    assert is_clean(world)


def test_plugins_L4_a_home_that_is_not_there_is_there_while_it_is_needed(world: World, tmp_path: Path) -> None:
    world.wheel("homeless", "import os\nif 'DIE' in os.environ: os._exit(4)\n" + tool("homeless"))
    home = tmp_path / "absent"
    path = os.pathsep.join([str(world.site), *filter(None, sys.path)])
    assert ended(started(CALL, home, "homeless", PYTHONPATH=path)) == 0
    assert not home.exists()
    assert ended(started(CALL, home, "homeless", PYTHONPATH=path, DIE="1")) == 4
    assert "quarantined" in world.load(home=home).get("homeless").reason


# Who is dead ------------------------------------------------------------------------------------------------------


def is_named(world: World, writer: object) -> bool:
    path = write_lines(world.home, [["begin", 1, 0, "a", "/a", "x", "by", "import", 1e9]], writer)
    try:
        return bool(Quarantine(world.home).deaths)
    finally:
        path.unlink()


def test_plugins_L4_only_a_dead_writer_counts(world: World) -> None:
    me = this_process()
    alive = started("import sys; sys.stdin.read()")
    other = started("import time; time.sleep(60)")
    try:
        assert is_named(world, dead_writer())
        running = replace(me, pid=other.pid, started=_start(other.pid))
        assert not is_named(world, running)
        os.kill(other.pid, signal.SIGSTOP)
        assert not is_named(world, running), "a suspended process goes on some time"
        if me.started:
            assert is_named(world, replace(running, started=running.started - 1)), "another process has that id now"
        os.kill(other.pid, signal.SIGKILL)
        if me.started:
            os.waitid(os.P_PID, other.pid, os.WEXITED | os.WNOWAIT)
            assert is_named(world, running), "a zombie is dead"
    finally:
        for process in (alive, other):
            process.kill()
            ended(process)


def _start(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19])
    except OSError:
        return 0


def test_plugins_L4_of_another_container_its_lock_tells_and_of_another_machine_nothing(world: World) -> None:
    me = this_process()
    assert is_named(world, replace(me, pid=1, space="pid:[1]"))
    assert is_named(world, replace(me, boot="before")), "this machine was started anew"
    assert not is_named(world, replace(me, boot="theirs", machine="elsewhere"))
    with journal_of(world.home).importing("a", "/a", "x"):
        [path] = map(Path, leftovers(str(world.home)))
        said = path.read_text()
        for was, now in ((me.space, "pid:[1]"), (f",{me.pid},", ",1,")):
            said = said.replace(was, now) if was else said
        with path.open("r+") as file:  # the same file, on which the lock is
            file.write(said)
            file.truncate()
        assert not Quarantine(world.home).deaths


def test_plugins_L4_a_program_that_replaced_itself_is_named(world: World) -> None:
    """Exec keeps id and start of the process; the lock doesn't outlive it."""
    assert is_named(world, this_process())
    with journal_of(world.home).importing("a", "/a", "x"):
        assert not Quarantine(world.home).deaths


def test_plugins_L4_once_it_is_dead_it_stays_dead(world: World) -> None:
    """The one who finds it writes that down: after a restart of the machine nobody could tell."""
    world.folder("a", tool("a"))
    path = leave(world.loader(), "a")
    first = world.loader().survey()[0]
    assert "at most 5 s later" in first.reason
    head, *rest = path.read_text().splitlines()
    path.write_text(
        "\n".join([head.replace(this_process().machine, "elsewhere").replace(this_process().boot, "b"), *rest, ""])
    )
    assert world.loader().survey()[0].reason == first.reason


def test_plugins_L4_whatever_stands_in_the_folder_nothing_raises(world: World) -> None:
    world.folder("a", tool("a"))
    whole = leave(world.loader(), "a").read_bytes()
    chance = random.Random(4)
    for number in range(100):
        damaged = bytearray(whole[: chance.randrange(len(whole) + 1)])
        for _ in range(chance.randrange(4)):
            if damaged:
                damaged[chance.randrange(len(damaged))] = chance.randrange(256)
        (world.home / "journal" / "1-x").write_bytes(bytes(damaged))
        for death in Quarantine(world.home).deaths:
            assert death.reason.isprintable(), number
            assert death.hint
    (world.home / "journal" / "folder").mkdir()
    os.mkfifo(world.home / "journal" / "pipe")
    (world.home / "journal" / "link").symlink_to("/dev/zero")
    assert [one.state for one in world.loader().survey()] == ["failed"]
    Quarantine(world.home).sweep()


# Kept out ---------------------------------------------------------------------------------------------------------


def test_plugins_L4_L1_exactly_that_plugin_is_kept_out_until_it_is_released(world: World) -> None:
    world.folder("bad", "raise BaseException('imported')\n")
    world.folder("good", tool("good"))
    leave(world.loader(), "bad", step="register")
    for load in (world.load, lambda: world.load(also=("bad",))):
        loader = load()
        record = loader.get("bad")
        assert (record.state, record.rule, record.hint) == ("failed", "plugins.L4", "mibyan plugins enable bad")
        assert record.reason.startswith("quarantined: the process died during its registration, which began on 20")
        assert loader.get("good").state in {"active", "ready"}
        assert set(tools(loader)) == {"good"}
        [told] = [one for one in loader._services.log if one.subject == "plugin:bad"]
        assert (told.kind, told.problem, told.fix) == ("failed", True, "mibyan plugins enable bad")
        with pytest.raises(MibyanError, match="quarantined"):
            loader.activate("bad")
    assert world.loader().survey()[0].reason == record.reason
    said = manage.enable("Bad", world.loader().survey(), load_config(world.home, world.project), world.home)
    assert "released it from quarantine" in said
    assert is_clean(world)
    assert "imported" in world.load().get("bad").reason


def test_plugins_L4_enabling_one_that_is_disabled_releases_it_too(world: World) -> None:
    world.folder("bad", tool("bad"))
    leave(world.loader(), "bad")
    world.config("plugins: {disabled: [bad]}\n")
    said = manage.enable("bad", world.loader().survey(), load_config(world.home, world.project))
    assert "took 'bad' from plugins.disabled and released it from quarantine" in said
    assert world.load().get("bad").state == "active"


def test_plugins_L4_what_has_changed_gets_a_new_chance(world: World) -> None:
    root = world.folder("a", "raise BaseException\n")
    leave(world.loader(), "a")
    leave(world.loader(), "a", by="another interpreter", content="its own")
    assert "quarantined" in world.load().get("a").reason
    write(root / "__init__.py", tool("a"))
    assert world.loader().survey()[0].state == "found"
    assert world.load().get("a").state == "active"
    assert len(leftovers(str(world.home))) == 1, "what another interpreter died of isn't this one's to delete"


def test_plugins_L4_of_a_plugin_that_is_gone_nothing_stays(world: World) -> None:
    root = world.folder("a", tool("a"))
    leave(world.loader(), "a")
    (root / "plugin.yaml").rename(root / "away")
    world.folder("b", tool("b"))
    world.load()
    assert is_clean(world)


def test_plugins_L4_another_plugin_with_that_id_is_not_meant(world: World) -> None:
    world.folder("a", tool("a"))
    path = leave(world.loader(), "a")
    path.write_text(path.read_text().replace(str(world.home), "/elsewhere"))
    assert world.load().get("a").state == "active"


def test_plugins_L4_M2_a_policy_in_quarantine_lets_no_call_through(world: World) -> None:
    world.folder("guard", "raise BaseException\n", {"role": "policy"})
    leave(world.loader(), "guard")
    with Runtime(home=world.home) as rt:
        rt.registry.register("free", "host", {"description": "d"}, lambda args: "free")
        result = rt.execute(ToolCall("free", {}))
        assert result.status == "blocked"
        assert "quarantined" in result.error


def test_plugins_L4_the_variable_turns_it_off(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.folder("a", looking(world, "a"))
    leave(world.loader(), "a")
    monkeypatch.setenv("MIBYAN_QUARANTINE", "off")
    assert world.load().get("a").state == "active"
    assert len(leftovers(str(world.home))) == 1


def test_plugins_L4_where_nothing_was_left_one_look_is_all(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.folder("a", tool("a"))
    world.folder("b", tool("b"))
    looks: list[str] = []
    listdir = os.listdir

    def noticed(path: str = ".") -> list[str]:
        looks.append(os.fspath(path))
        return listdir(path)

    monkeypatch.setattr(os, "listdir", noticed)
    world.loader().survey()
    assert [path for path in looks if path.startswith(str(world.home / "journal"))] == [str(world.home / "journal")]


# Processes that die -----------------------------------------------------------------------------------------------

ENDS = {
    "os._exit": "import os; os._exit(0)",
    "segfault": "import ctypes, faulthandler; faulthandler.disable(); ctypes.string_at(0)",
    "abort": "import os; os.abort()",
    "exec": "import os, sys; os.execv(sys.executable, [sys.executable, '-c', ''])",
}


@pytest.mark.parametrize("end", ENDS)
def test_plugins_L4_who_ends_the_process_is_named(world: World, end: str) -> None:
    world.folder("a", tool("a"))
    world.folder("bad", ENDS[end] + "\n")
    ended(started(CALL, world.home, "a"))
    loader = world.load()
    assert "quarantined: the process died during its import" in loader.get("bad").reason
    assert loader.get("a").is_usable


def test_plugins_L4_a_frozen_plugin_that_ends_the_process_in_a_call_is_named(world: World) -> None:
    source = "import os\ndef register(ctx):\n    os._exit(3)\n"
    world.folder("lazy", source, {"tools": [frozen_tool("lazy")]})
    world.folder("a", tool("a"))
    assert ended(started(CALL, world.home, "a")) == 0
    assert is_clean(world)
    assert ended(started(CALL, world.home, "lazy")) == 3
    assert "quarantined: the process died during its registration" in world.load().get("lazy").reason


def test_plugins_L4_a_child_lets_go_of_its_parents_file(world: World) -> None:
    """Else the lock on it would outlive the parent."""
    script = (
        "import os, sys; from mibyan import Runtime\n"
        "from mibyan.plugins.journal import journal_of\n"
        "with Runtime(home=sys.argv[1]) as rt:\n"
        "    rt.definitions()\n"
        "    journal = journal_of(rt._parts.home)\n"
        "    with journal.importing('p', '/p', 'x'):\n"
        "        file = journal._file[0]\n"
        "        if not (pid := os.fork()):\n"
        "            try: os.fstat(file)\n"
        "            except OSError: os._exit(7)\n"
        "            os._exit(8)\n"
        "        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])\n"
        "        assert len(os.listdir(sys.argv[1] + '/journal')) == 1\n"
        "sys.exit(code)\n"
    )
    assert ended(started(script, world.home)) == 7
    assert is_clean(world)


HANGS = """
import pathlib, time
pathlib.Path({sign!r}).touch()
{how}
"""
SLEEPS = "time.sleep(600)"


def hanging(world: World, how: str = SLEEPS) -> Path:
    sign = world.home / "hangs"
    world.folder("slow", HANGS.format(sign=str(sign), how=how))
    return sign


@pytest.mark.parametrize(
    ("number", "named"), [(signal.SIGKILL, True), (signal.SIGTERM, True), (signal.SIGINT, False)], ids=str
)
def test_plugins_L4_a_hang_that_is_killed_is_named(world: World, number: int, named: bool) -> None:
    """Ctrl-C is Python's own: it goes on, if only to its end. SIGTERM ends a host that doesn't handle it like a crash."""
    sign = hanging(world)
    process = started(CALL, world.home, "x")
    wait_for(sign)
    assert world.loader().survey()[0].state == "found", "it lives"
    process.send_signal(number)
    ended(process)
    assert ("quarantined" in world.loader().survey()[0].reason) is named
    assert is_clean(world) is not named


def test_plugins_L4_the_command_line_ends_cleanly_when_asked_to(world: World) -> None:
    sign = hanging(world)
    process = started(
        "import sys; from mibyan.cli.main import main; sys.exit(main())", "--home", world.home, "tools", "list"
    )
    wait_for(sign)
    process.terminate()
    assert ended(process) == 128 + signal.SIGTERM
    assert is_clean(world)


def test_plugins_L4_an_import_that_is_left_behind_by_a_normal_end_is_merely_slow(world: World) -> None:
    """Abandoned at a call's deadline, on a daemon thread."""
    sign = hanging(world)
    script = (
        "import sys, threading; from mibyan import Runtime\n"
        "rt = Runtime(home=sys.argv[1])\n"
        "threading.Thread(target=rt.definitions, daemon=True).start()\n"
        "import pathlib, time\n"
        "while not pathlib.Path(sys.argv[2]).exists(): time.sleep(0.01)\n"
    )
    assert ended(started(script, world.home, sign)) == 0
    assert is_clean(world)


FORKS = """
import os, pathlib
pid = os.fork()
if pid == 0:
    {child}
os.waitpid(pid, 0)
"""


@pytest.mark.parametrize("child", ["os._exit(1)", "raise SystemExit(0)", "os.kill(os.getpid(), 9)"])
def test_plugins_L4_a_child_that_dies_during_an_import_is_no_death_of_its_parent(world: World, child: str) -> None:
    world.folder("forking", FORKS.format(child=child) + looking(world, "forking"))
    assert ended(started(CALL, world.home, "forking")) == 0
    assert seen(world, "forking.register")[-1][0] == "step", "the parent's file is the parent's"
    assert is_clean(world)
    assert world.load().get("forking").is_usable


def test_plugins_L4_a_child_that_imports_has_a_file_of_its_own(world: World) -> None:
    world.folder("lazy", "import os; os._exit(5)\n", {"tools": [frozen_tool("lazy")]})
    world.folder("a", tool("a"))
    script = (
        "import os, sys; from mibyan import Runtime\n"
        "with Runtime(home=sys.argv[1]) as rt:\n"
        "    rt.call('a', {})\n"
        "    if not (pid := os.fork()): rt.call('lazy', {})\n"
        "    os._exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))\n"
    )
    assert ended(started(script, world.home)) == 5
    assert "quarantined" in world.load().get("lazy").reason


@pytest.mark.system
def test_plugins_L4_killed_at_any_moment_only_what_was_being_imported_is_named(world: World) -> None:
    """Each plugin says when it begins and ends; whatever moment it is, the quarantine agrees with that."""
    for number in range(6):
        world.folder(f"p{number}", (
            "import pathlib, time\n"
            f"log = pathlib.Path({str(world.home / 'log')!r})\n"
            f"with log.open('a') as file: file.write('begin p{number}\\n')\n"
            "time.sleep(0.004)\n" + tool(f"p{number}")[1:] +
            f"    with log.open('a') as file: file.write('end p{number}\\n')\n"
        ))  # fmt: skip
    chance, named = random.Random(), 0
    for number in range(5):
        (world.home / "log").write_text("")
        for name in ("learned.bin", "contents.bin"):
            (world.home / "cache" / name).unlink(missing_ok=True)
        process = started(CALL, world.home, "p0")
        until = 7 if number == 0 else chance.randrange(13)  # at 7 it is in the midst of one
        while process.poll() is None and (world.home / "log").read_text().count("\n") < until:
            pass
        process.kill()
        ended(process)
        last = (world.home / "log").read_text().splitlines()[-1:]
        deaths = [death.plugin_id for death in Quarantine(world.home).deaths]
        named += len(deaths)
        # Just before it says that it begins, and just after it says that it has ended, it may be named too.
        near = {f"p{(int(last[0][-1]) + step) % 6}" for step in (0, 1)} if last else {"p0"}
        assert len(deaths) <= 1
        assert set(deaths) <= near
        if last and last[0].startswith("begin"):
            assert deaths == [last[0].split()[1]]
        for plugin_id in deaths:
            assert Quarantine(world.home).release(plugin_id)
    assert named
    # Whoever was killed before it had said anything left a file that says nothing; the next start that ends tidies up.
    assert ended(started(CALL, world.home, "p0")) == 0
    assert not any(map(os.path.getsize, leftovers(str(world.home))))
