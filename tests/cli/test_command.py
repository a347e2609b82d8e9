"""`mibyan command`: commands that plugins offer; and commands that plugins add to the command line themselves."""

from __future__ import annotations

import json
import shlex
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mibyan.cli.commanding import joined
from mibyan.cli.commands import COMMANDS
from mibyan.cli.completing import items
from mibyan.plugins.names import RESERVED

from .conftest import PATIENCE, Done, add_plugin

Run = Callable[..., Done]

SAY = """
import mibyan

print("a greeting at import")


class Odd(BaseException):
    pass


def fail(text):
    raise {"value": ValueError, "exit": SystemExit, "odd": Odd, "generator": GeneratorExit}[text](f"no {text}\\nway")


async def later(text):
    return f"later: {text}"


def register(ctx):
    ctx.register_command("say", lambda text: f"<{text}>", "Says it.", "TEXT")
    ctx.register_command("later", later)
    ctx.register_command("data", lambda text: {"text": text, "numbers": [1, 2], "set": {1}})
    ctx.register_command("nothing", lambda text: None)
    ctx.register_command("noisy", lambda text: print("noise") or "quiet")
    ctx.register_command("secret", lambda text: f"key {ctx.config['api_key']} / {text}")
    ctx.register_command("leak", lambda text: int(ctx.config["api_key"]))
    ctx.register_command("tool", lambda text: ctx.dispatch_tool("shout", {"text": text}))
    ctx.register_command("fail", fail)


@mibyan.tool(toolset="words")
def shout(text: str) -> dict:
    '''Say it loudly.'''
    return {"said": text.upper()}
"""
KEY = "Zk93hsQ0pLw7TtVbn2Xe"

LOUD = "raise RuntimeError('imported')\n"
FROZEN_TOOL = "tools: [{name: forecast, toolset: weather, schema: {description: The weather.}}]\n"


@pytest.fixture
def say(home: Path) -> Path:
    """A home with a plugin that has commands and no manifest of them."""
    add_plugin(home, "speaker", SAY)
    (home / "config.yaml").write_text(f"plugins: {{entries: {{speaker: {{config: {{api_key: {KEY}}}}}}}}}\n")
    return home


# Running -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "out"),
    [
        (["say"], "<>\n"),
        (["say", "one"], "<one>\n"),
        (["say", "one", "two"], "<one two>\n"),
        (["say", "it's  raw \\ text"], "<it's  raw \\ text>\n"),
        (["say", "it's", "raw text", ""], "<'it'\"'\"'s' 'raw text' ''>\n"),
        (["say", "--loud", "-x=3", "y"], "<--loud -x=3 y>\n"),
        (["say", "--", "--json", "--debug"], "<--json --debug>\n"),
        (["say", "--", "--list"], "<--list>\n"),
        (["--", "say", "-h"], "<-h>\n"),
        (["say", "key=*", "grüße", "$x"], "<key=* grüße $x>\n"),
        (["later", "one"], "later: one\n"),
        (["nothing"], ""),
        (["noisy"], "quiet\n"),
    ],
)
def test_a_command_gets_raw_text_and_prints_text(say: Path, run: Run, words: list[str], out: str) -> None:
    """api.md, `mibyan command NAME …`: raw text in, text out; what is printed beside isn't data."""
    done = run("command", *words)
    assert (done.code, done.out) == (0, out)


@given(st.lists(st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"])), min_size=2))
def test_several_words_lose_nothing(words: list[str]) -> None:
    """What `joined` makes of several words `shlex.split` takes apart into the same words."""
    assert shlex.split(joined(words)) == words


@given(st.text())
def test_a_single_word_is_the_text(word: str) -> None:
    """Whoever quotes the whole in the shell says exactly what the command gets."""
    assert joined([word]) == word


def test_what_isnt_text_is_json(say: Path, run: Run) -> None:
    """Without --json too: a dict is printed as one document, a set as a list."""
    assert run("command", "data", "x").data == {"text": "x", "numbers": [1, 2], "set": [1]}


def test_json_is_one_document(say: Path, run: Run) -> None:
    """`--json` before, between and behind: {"command", "plugin", "status", "result"}."""
    expected = {"command": "say", "plugin": "speaker", "status": "ok", "result": "<a b>"}
    for words in (["--json", "command", "say", "a", "b"], ["command", "say", "a", "--json", "b"],
                  ["command", "say", "a", "b", "--json"]):  # fmt: skip
        assert run(*words).data == expected
    assert run("command", "nothing", "--json").data["result"] is None


def test_a_command_calls_tools_through_the_pipeline(say: Path, run: Run) -> None:
    """`ctx.dispatch_tool` from a command is a call like any other."""
    assert run("command", "tool", "text=odd").data == {"said": "TEXT=ODD"}


@pytest.mark.parametrize(
    ("how", "kind"), [("value", "ValueError"), ("exit", "SystemExit"), ("odd", "Odd"), ("generator", "GeneratorExit")]
)
def test_a_command_that_raises_is_one_sentence(say: Path, run: Run, how: str, kind: str) -> None:
    """Exit code 1, one line that names the plugin, whatever was raised; a traceback only with --debug."""
    done = run("command", "fail", how)
    assert (done.code, done.out) == (1, "")
    assert done.err.splitlines()[-1:] == [
        f"mibyan: error: plugin 'speaker': its command 'fail' raised {kind}: no {how} way"
    ]
    assert "Traceback" not in done.err
    assert "Traceback" in run("--debug", "command", "fail", how).err
    document = run("--json", "command", "fail", how)
    assert document.code == 1
    assert document.data == {"command": "fail", "plugin": "speaker", "status": "error", "result": None,
                             "error": f"no {how}\nway", "error_type": kind}  # fmt: skip


def test_dispatch_C9_no_secret_leaves(say: Path, run: Run) -> None:
    """dispatch.C9: neither in what a command gives nor in what it raises."""
    for words in (["secret", "x"], ["--json", "secret", "x"], ["leak"], ["--json", "leak"]):
        done = run("command", *words)
        assert KEY not in done.out + done.err
        assert "[redacted]" in done.out + done.err


def test_an_unknown_command_is_told_with_what_there_is(say: Path, run: Run) -> None:
    """Exit code 2, a suggestion, and the list."""
    done = run("command", "sya", "x")
    assert (done.code, done.out) == (2, "")
    assert "no plugin has a command 'sya' (did you mean 'say'?); there are data, fail, later," in done.err
    assert run("--safe-mode", "command", "say").code == 2


def test_a_command_of_a_plugin_that_isnt_ready(home: Path, run: Run) -> None:
    """Exit code 3 with the state, the reason and what to do."""
    add_plugin(home, "poor", LOUD, f"commands: [ask]\nrequires: {{env: [NOT_THERE]}}\n{FROZEN_TOOL}")
    add_plugin(home, "broken", LOUD, f"commands: [break]\n{FROZEN_TOOL}")
    add_plugin(home, "off", LOUD, "commands: [whisper]\n")
    add_plugin(home, "liar", "def register(ctx):\n    ctx.provide('x', object)\n", "commands: [lie]\n")
    (home / "config.yaml").write_text("plugins: {disabled: ['off']}\n")
    whisper = run("command", "whisper")
    assert whisper.code == 3
    assert "whisper is a command of plugin off, which is disabled: " in whisper.err
    broken = run("command", "break")
    assert broken.code == 3
    assert "plugin 'broken' has failed: it raised RuntimeError: imported" in broken.err
    lie = run("command", "lie")
    assert lie.code == 3
    assert "plugin 'liar' announces the command 'lie', but doesn't register it" in lie.err


def test_a_command_of_a_project_that_nobody_trusts(project: Path, run: Run) -> None:
    """plugins.S1: it isn't run; exit code 3, with the command that trusts it."""
    add_plugin(project / ".mibyan", "shipper", LOUD, "commands: [launch]\n")
    done = run("command", "launch")
    assert done.code == 3
    assert "launch is a command of plugin shipper, which is untrusted" in done.err
    assert "mibyan plugins trust shipper" in done.err


def test_only_the_commands_plugin_is_imported(home: Path, run: Run) -> None:
    """A manifest announces the command: another frozen plugin stays as it is."""
    add_plugin(home, "other", LOUD, FROZEN_TOOL)
    manifest = "commands: [{name: say, description: Says it., args_hint: TEXT}]\ntools: []\n"
    add_plugin(home, "speaker", "def register(ctx):\n    ctx.register_command('say', str.upper)\n", manifest)
    assert run("command", "say", "x").out == "X\n"


def test_strict_refuses(home: Path, run: Run) -> None:
    """`--strict`: nothing is run while a plugin isn't ready."""
    add_plugin(home, "broken", LOUD)
    add_plugin(home, "speaker", "def register(ctx):\n    ctx.register_command('say', str.upper)\n")
    assert run("--strict", "command", "say", "x").code == 3
    assert run("command", "say", "x").code == 0


def test_ctrl_c_ends_a_command(home: Path) -> None:
    """130, and no traceback, for a sync command and an async one."""
    source = """
import asyncio, sys, threading

def wait(text):
    print("waiting", file=sys.stderr, flush=True)
    threading.Event().wait(60)

async def await_(text):
    print("waiting", file=sys.stderr, flush=True)
    await asyncio.sleep(60)

def register(ctx):
    ctx.register_command("wait", wait)
    ctx.register_command("await", await_)
"""
    add_plugin(home, "slow", source)
    for name in ("wait", "await"):
        process = subprocess.Popen(
            [sys.executable, "-m", "mibyan", "command", name], stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert process.stderr is not None
        assert "waiting" in process.stderr.readline()
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=PATIENCE)
        assert (process.returncode, out) == (130, "")
        assert err == "mibyan: interrupted\n"


# Listing -------------------------------------------------------------------------------------------------------------


def test_the_list_imports_nothing(home: Path, run: Run) -> None:
    """`mibyan command` and `--list`: names, arguments, plugins, descriptions by the manifests."""
    add_plugin(
        home, "speaker", LOUD, "commands: [{name: say, description: Says it., args_hint: TEXT}, hush]\n" + FROZEN_TOOL
    )
    add_plugin(home, "silent", LOUD)
    add_plugin(home, "off", LOUD, "commands: [whisper]\n")
    (home / "config.yaml").write_text("plugins: {disabled: ['off']}\n")
    expected = {
        "commands": [
            {"name": "hush", "plugin": "speaker", "description": "", "args_hint": ""},
            {"name": "say", "plugin": "speaker", "description": "Says it.", "args_hint": "TEXT"},
        ],
        "untold": ["silent"],
    }
    assert run("command", "--json").data == run("command", "--list", "--json").data == expected
    listed = run("command")
    assert [line.split() for line in listed.out.splitlines()] == [
        ["NAME", "ARGUMENTS", "PLUGIN", "DESCRIPTION"], ["hush", "-", "speaker", "-"],
        ["say", "TEXT", "speaker", "Says", "it."],
    ]  # fmt: skip
    assert "only when they are imported: silent" in listed.err


def test_the_list_knows_what_was_learned(say: Path, run: Run) -> None:
    """plugins.M4: what a plugin registered once is told without importing it again."""
    assert run("command", "--json").data == {"commands": [], "untold": ["speaker"]}
    assert run("command", "say", "x").code == 0
    listed = run("command", "--json").data
    assert listed["untold"] == []
    assert [one["name"] for one in listed["commands"]] == sorted(
        ["say", "later", "data", "nothing", "noisy", "secret", "leak", "tool", "fail"]
    )
    assert {"name": "say", "plugin": "speaker", "description": "Says it.", "args_hint": "TEXT"} in listed["commands"]


def test_a_shell_completes_the_names(say: Path, run: Run) -> None:
    """The names of commands, and nothing behind one: that is the plugin's."""
    add_plugin(say, "weather", LOUD, "cli: [weather]\ndescription: Forecasts.\ncommands: [sky]\n" + FROZEN_TOOL)
    run("command", "say", "x")
    assert [one.value for one in items(["command"], "s")] == ["say", "secret", "sky"]
    assert [(one.value, one.help) for one in items(["command"], "sa")] == [("say", "Says it.")]
    assert items(["command", "say"], "") == []
    assert [(one.value, one.help) for one in items([], "wea")] == [("weather", "Forecasts.")]
    assert items(["--safe-mode"], "wea") == []
    (say / "config.yaml").write_text("nonsense: 1\n")
    assert [one.value for one in items([], "comm")] == ["command"]
    assert items(["command"], "s") == []


# Added to the command line -------------------------------------------------------------------------------------------

WEATHER = """
import sys
import click
import mibyan

print("a greeting at import")


@mibyan.tool(toolset="weather")
def forecast(city: str = "Rome") -> dict:
    '''The weather.'''
    return {"city": city}


@mibyan.hookimpl
def mibyan_cli(group):
    @group.group()
    def weather():
        '''The weather and its stations.'''

    @weather.command()
    @click.option("--city", default="Rome", help="Where.")
    @click.option("--json", "as_json", is_flag=True)
    @click.argument("words", nargs=-1)
    def sync(city, as_json, words):
        '''Fetch the forecasts.'''
        click.echo(f"{mibyan.get_runtime().call('forecast', {'city': city})} {as_json} {list(words)}")

    @weather.command()
    @click.argument("how")
    def end(how):
        {
            "exit": lambda: click.get_current_context().exit(7), "sys": lambda: sys.exit(5), "none": lambda: sys.exit(),
            "text": lambda: sys.exit("said so"), "abort": lambda: (_ for _ in ()).throw(click.Abort()),
            "told": lambda: (_ for _ in ()).throw(click.ClickException("not today")), "raise": lambda: 1 / 0,
            "return": lambda: 3,
        }[how]()

    @weather.command()
    async def later():
        click.echo("later")

    group.add_command(click.Command("unnamed", callback=lambda: None))
    if "tools" not in group.commands:
        group.add_command(click.Command("tools", callback=lambda: click.echo("stolen")))
"""


@pytest.fixture
def weather(home: Path) -> Path:
    """A home with a plugin that adds `weather`, and would add more."""
    add_plugin(
        home,
        "weather",
        WEATHER,
        "cli: [weather, tools, '-x']\ndescription: Forecasts.\n" + FROZEN_TOOL,
    )
    add_plugin(home, "zeus", LOUD, "cli: [weather, thunder]\n" + FROZEN_TOOL.replace("forecast", "storm"))
    return home


def test_an_added_command_is_the_plugins_own(weather: Path, run: Run) -> None:
    """`mibyan_cli(group)`: its words, its options, its output, the runtime's tools."""
    done = run("weather", "sync", "--city", "Oslo", "--json", "a", "--", "--b")
    assert (done.code, done.out) == (0, "{\"city\": \"Oslo\"} True ['a', '--b']\n")
    assert run("weather", "later").out == "later\n"
    helped = run("weather", "sync", "--help")
    assert helped.code == 0
    assert helped.out.startswith("Usage: mibyan weather sync [OPTIONS] [WORDS]...\n\n  Fetch the forecasts.")
    assert run("--home", str(weather), "weather", "sync").code == 0


@pytest.mark.parametrize(
    ("how", "code", "said"),
    [
        ("exit", 7, ""), ("sys", 5, ""), ("none", 0, ""), ("text", 1, "said so"), ("abort", 1, "mibyan: aborted"),
        ("told", 1, "mibyan: error: not today"), ("return", 0, ""),
        ("raise", 1, "mibyan: error: plugin 'weather': its command 'weather' raised ZeroDivisionError: division by zero"),
    ],
)  # fmt: skip
def test_an_added_command_ends_as_it_says(weather: Path, run: Run, how: str, code: int, said: str) -> None:
    """An exit code is the command's; what it raises is one sentence and 1."""
    done = run("weather", "end", how)
    assert (done.code, done.out) == (code, "")
    assert "Traceback" not in done.err
    assert done.err.splitlines()[-1:] == ([said] if said else done.err.splitlines()[-1:])


def test_an_added_command_tells_mistakes(weather: Path, run: Run) -> None:
    """Exit code 2, the plugin's words, and whose help says more."""
    wrong = run("weather", "sync", "--nope")
    assert wrong.code == 2
    assert "Try `mibyan weather sync --help`." in wrong.err
    bare = run("weather")
    assert bare.code in {0, 2}  # click 8.1, 8.2
    assert "sync" in bare.out + bare.err


def test_names_that_a_plugin_cant_take(weather: Path, run: Run, home: Path) -> None:
    """Mibyan's own commands, words that aren't, another plugin's name: each is a record."""
    assert "stolen" not in run("tools", "list").out
    run("weather", "sync")
    problems = {one["subject"]: one for one in run("plugins", "list", "--load", "--json").data["problems"]}
    assert problems["cli:tools"]["reason"] == "the command 'tools' is a command of Mibyan itself"
    assert problems["cli:-x"]["reason"].startswith("the command '-x' isn't a word that a command line takes")
    assert problems["cli:weather"]["reason"] == "the command of the command line 'weather' belongs to plugin 'weather'"
    assert set(COMMANDS) <= RESERVED


def test_help_and_suggestions_name_added_commands(weather: Path, run: Run) -> None:
    """By the manifests alone; in safe mode there are none."""
    helped = run("--help")
    assert helped.code == 0
    assert [line.split() for line in helped.out.partition("Commands of plugins:\n")[2].splitlines()[:2]] == [
        ["thunder", "zeus"], ["weather", "Forecasts.", "(weather)"],
    ]  # fmt: skip
    assert "Did you mean 'weather'?" in run("wether").err
    assert run("--safe-mode", "weather", "sync").code == 2
    assert "weather" not in run("--safe-mode", "--help").out


def test_an_added_command_imports_its_plugin_alone(weather: Path, run: Run) -> None:
    """The plugin that would raise at its import isn't looked into; its own name is one sentence, exit code 3."""
    assert run("weather", "sync").code == 0
    thunder = run("thunder", "--help")
    assert (thunder.code, thunder.out) == (3, "")
    assert "plugin 'zeus' has failed: it raised RuntimeError: imported" in thunder.err
    (weather / "config.yaml").write_text("plugins: {disabled: [zeus]}\n")
    off = run("thunder")
    assert off.code == 3
    assert "thunder is a command of plugin zeus, which is disabled" in off.err


@pytest.mark.parametrize(
    ("hook", "said"),
    [
        ("def mibyan_cli(group):\n    raise SystemExit('gone')\n", "its hook mibyan_cli raised SystemExit: gone"),
        (
            "def mibyan_cli():\n    pass\n",
            "its manifest names the command 'odd', which its hook mibyan_cli doesn't add",
        ),
        (
            "def mibyan_cli(group):\n    group.commands['odd'] = 3\n",
            "its manifest names the command 'odd', which its hook mibyan_cli doesn't add",
        ),
        (
            "async def mibyan_cli(group):\n    raise ValueError('later')\n",
            "its hook mibyan_cli raised ValueError: later",
        ),
    ],
)
def test_a_hook_that_fails_is_one_sentence(home: Path, run: Run, hook: str, said: str) -> None:
    """Exit code 1, the plugin's name, no traceback."""
    add_plugin(home, "odd", "import mibyan\n@mibyan.hookimpl\n" + hook, "cli: [odd]\n")
    done = run("odd")
    assert (done.code, done.out) == (1, "")
    assert f"mibyan: error: plugin 'odd': {said}" in done.err
    assert "Traceback" not in done.err


def test_a_hook_without_names_in_the_manifest_is_told(home: Path, run: Run) -> None:
    """What would never be called is a warning that says how to mend it."""
    add_plugin(home, "odd", "import mibyan\n@mibyan.hookimpl\ndef mibyan_cli(group):\n    pass\n")
    problems = run("plugins", "list", "--load", "--json").data["problems"]
    assert [one["fix"] for one in problems] == ["the plugin's author can mend it: cli: [NAME] in the manifest"]


def test_ordinary_commands_dont_look_for_added_ones(weather: Path, program: Callable[..., Any]) -> None:
    """Start-up: only an unknown first word looks; click isn't imported for the others, a command's text neither."""
    add_plugin(
        weather,
        "speaker",
        "def register(ctx):\n    ctx.register_command('say', str.upper)\n",
        "commands: [say]\ntools: []\n",
    )
    script = (
        "import json, sys; from mibyan.cli.main import main; code = main(json.loads(sys.argv[1])); "
        "print(code, sorted({'click', 'pydantic', 'yaml', 'mibyan.cli.adding'} & set(sys.modules)))"
    )

    def modules(*words: str) -> str:
        done = subprocess.run(
            [sys.executable, "-c", script, json.dumps(words)],
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
        return done.stdout.splitlines()[-1]

    for words in (["tools", "list"], ["command", "--list"], ["command", "say", "--loud"]):
        modules(*words)  # what is kept for the next start
        assert modules(*words) == "0 []"
