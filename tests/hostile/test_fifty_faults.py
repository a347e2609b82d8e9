"""Issue "a plugin's whole life": fifty faulty plugins beside three good ones, in one installation and one process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from filelock import FileLock

from .faults import FAULTS, Fault, Installation

#: Seconds for the whole on a busy machine.
PATIENCE = 120.0
GOOD = """
def register(ctx):
    ctx.register_tool({0!r}, "good", {{"description": {0!r}, "parameters": {{"type": "object", "properties":
                      {{"text": {{"type": "string"}}}}}}}}, lambda args: {0!r} + args["text"])
"""
TOOLS = ["good_folder", "good_wheel", "good_zebra"]
#: Commands for people, at a later start, and what each ends with.
COMMANDS = {
    "plugins list --json": 0,
    "tools list --json": 0,
    "call good_wheel text=x": 0,
    "doctor": 2,
    "command --list --json": 0,
}
#: What the operator says.
CONFIG = "dispatch: {timeout: 60, hook_timeout: 0.3}\nplugins: {entries: {bad-settings: {config: {unit: miles}}}}\n"
#: The command line of that environment.
SHELL = (
    "import os, sys; sys.path += os.environ['INSTALLED'].split(os.pathsep); "
    "from mibyan.cli.main import main; sys.exit(main(sys.argv[1:]))"
)


@pytest.fixture(scope="session")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What the host found: it runs once, in a process of its own, whichever of several test processes comes first."""
    shared = tmp_path_factory.getbasetemp()
    shared = shared.parent if "PYTEST_XDIST_WORKER" in os.environ else shared
    with FileLock(shared / "fifty.lock"):
        kept = shared / "fifty.json"
        if not kept.exists():
            kept.write_text(json.dumps(looked_at(tmp_path_factory.mktemp("fifty"))))
        found: dict[str, Any] = json.loads(kept.read_text())
        return found


def looked_at(root: Path) -> dict[str, Any]:
    """Make the installation, and let the host and the command line run in it."""
    there = Installation(root)
    there.folder("aaa-good", GOOD.format("good_folder"))
    there.folder("zebra", GOOD.format("good_zebra"))
    there.wheel("good_wheel", GOOD.format("good_wheel"))
    for one in FAULTS:
        one.put(there, one.name)
    there.folder("cycle-two", "def register(ctx):\n    ctx.register_command('two', len)\n", "after: [cycle-one]\n")
    (there.home / "config.yaml").write_text(CONFIG)
    work = there.root / "work"
    work.mkdir()
    plain = {name: value for name, value in os.environ.items() if not name.startswith("MIBYAN_")}
    path = os.pathsep.join(map(str, there.path))
    given = {**plain, "INSTALLED": path, "MIBYAN_HOME": str(there.home), "HOME": str(there.root)}

    def run(*words: str) -> dict[str, Any]:
        command = [sys.executable, *words]
        done = subprocess.run(command, cwd=work, env=given, capture_output=True, timeout=PATIENCE, check=False)
        return {"code": done.returncode, "out": done.stdout.decode(), "err": done.stderr.decode()}

    host = run(str(Path(__file__).with_name("faulty_host.py")), *TOOLS)
    assert host["code"] == 0, host["err"][-5000:]
    told = json.loads(host["out"].partition("<<<")[2].partition(">>>")[0])
    commands = {one: run("-c", SHELL, *one.split()) for one in COMMANDS}
    return {**told, "root": str(there.root), "out": host["out"], "err": host["err"], "commands": commands}


def about(found: dict[str, Any], fault: Fault) -> list[dict[str, Any]]:
    """The records of one kind about a faulty plugin."""
    subject = fault.subject or f"plugin:{fault.name}"
    return [
        one for one in found["decisions"] if one["kind"] == fault.kind and one["subject"].startswith(subject)
        and (not subject.startswith("path:") or fault.name.replace("-", "_") in one["origin"] or fault.name in one["reason"])
    ]  # fmt: skip


def test_there_are_fifty() -> None:
    """At least fifty faults, and each has a name of its own."""
    names = [one.name for one in FAULTS]
    assert len(names) >= 50
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_the_report_says_the_truth_in_one_sentence(found: dict[str, Any], fault: Fault) -> None:
    """plugins.L1, L2: one record with the plugin, the cause and the next step."""
    told = about(found, fault)
    assert len(told) == (2 if fault.name == "same-id" else 1), [
        one for one in found["decisions"] if fault.name in json.dumps(one)
    ]
    record = told[0]
    at = 0
    for words in (one.replace("§", fault.name) for one in fault.says):
        assert words in record["reason"][at:], record
        at = record["reason"].index(words, at) + len(words)
    assert fault.name.replace("-", "_") in json.dumps(record).replace("-", "_")
    assert fault.fix.replace("§", fault.name) in record["fix"]
    assert len(record["reason"]) < 1000
    assert "\n" not in record["reason"] or fault.name == "wrong-signature", "more than one line"


@pytest.mark.parametrize("fault", [one for one in FAULTS if not one.works], ids=lambda fault: fault.name)
def test_nothing_of_a_failed_plugin_remains(found: dict[str, Any], fault: Fault) -> None:
    """plugins.L2: tools, aliases, toolsets, hooks, commands, services, modules."""
    mark = f"left_{fault.name.replace('-', '_')}"
    for kind in ("tools", "aliases", "toolsets", "toolset_aliases", "commands", "services", "definitions"):
        left = [name for name in found[kind] if name.endswith(mark)]
        assert left == ([mark] if (kind, fault.name) == ("definitions", "lies") else []), kind  # until it was called
    folders = (f"{found['root']}/home/plugins/{fault.name}/", f"{found['root']}/first/{fault.name.replace('-', '_')}/",
               f"{found['root']}/zipped.zip/{fault.name.replace('-', '_')}/")  # fmt: skip
    kept = [name for name, file in found["modules"].items() if file.startswith(folders)]
    assert kept == [] or fault.name in {"hanging-hook", "takes-a-name"}
    assert mark not in found["modules"]
    assert fault.name not in found["hooks"] or fault.name == "hanging-hook"


def test_the_good_ones_work(found: dict[str, Any]) -> None:
    """All three are defined and can be called; what one prints reaches nobody's data."""
    assert {name: (one["status"], one["text"]) for name, one in found["calls"].items()} == {
        name: ("ok", f"{name}x") for name in TOOLS
    }
    assert set(TOOLS) <= set(found["definitions"])
    assert found["definitions"] == sorted(found["definitions"])
    assert found["again"]
    assert {"read_file", "terminal"} <= set(found["definitions"])


def test_the_process_is_as_it_was(found: dict[str, Any]) -> None:
    """plugins.L2: `sys.path`, the root logger, the environment, modules, built-in functions, the working directory."""
    assert found["after"] == found["before"]


def test_a_lie_of_a_manifest_costs_one_call(found: dict[str, Any]) -> None:
    """plugins.M4: a frozen plugin whose code hasn't what it announces is found out when it is first used."""
    assert found["lies"]["status"] == "error"
    assert "lies" in found["lies"]["text"]


def test_the_works_of_those_that_only_misbehave(found: dict[str, Any]) -> None:
    """What is odd but not fatal leaves the plugin there."""
    tools = {f"left_{one.name.replace('-', '_')}" for one in FAULTS if one.works}
    assert tools <= set(found["tools"])
    assert "a greeting" in found["out"]


def test_no_traceback_is_shown(found: dict[str, Any]) -> None:
    """A line in the log for each, no more."""
    assert "Traceback" not in found["err"]


def test_the_command_line_works_there(found: dict[str, Any]) -> None:
    """plugins.L8: at a later start; a listing tells the same tools, and the report's failures."""
    ended = {one: (done["code"], "Traceback" in done["err"]) for one, done in found["commands"].items()}
    assert ended == {one: (code, False) for one, code in COMMANDS.items()}
    listed = json.loads(found["commands"]["plugins list --json"]["out"])
    states = {(one["id"], one["state"]) for one in listed["plugins"]}
    # Of one whose module is nowhere, it can't be told whether it still is what it was: it is only `found`.
    kinds = {"failed", "needs", "incompatible", "shadowed"}
    faulty = [one for one in FAULTS if one.kind in kinds and one.name not in {"lies", "no-module"}]
    assert {(one.name, one.kind) for one in faulty} <= states
    assert ("no-module", "found") in states
    tools = {one["name"] for one in json.loads(found["commands"]["tools list --json"]["out"])["tools"]}
    assert {*TOOLS} <= tools <= {*found["definitions"]}
    assert found["commands"]["call good_wheel text=x"]["out"] == "good_wheelx\n"
