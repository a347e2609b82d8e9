"""`mibyan doctor`: each thing that can be wrong is found, with how bad it is, where, and what mends it."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import sysconfig
import time
import tomllib
from collections.abc import Callable, Iterator
from importlib.metadata import version
from pathlib import Path

import pytest

from mibyan._version import __version__
from mibyan.cli.doctor import examination, installation, interpreter
from mibyan.cli.doctor.finding import Finding

from .conftest import Done, add_plugin

TOOL = "import mibyan\n@mibyan.tool(toolset='words')\ndef word() -> str:\n    return 'x'\n"


@pytest.fixture(autouse=True)
def shim(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A `mibyan` of this Python, the only one on PATH."""
    folder = tmp_path / "scripts"
    folder.mkdir()
    file = folder / "mibyan"
    file.write_text(f"#!{sys.executable}\n")
    file.chmod(0o755)
    monkeypatch.setenv("PATH", str(folder))
    return file


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Path]]:
    """Makes distributions on `sys.path`."""

    def make(
        name: str, metadata: str | None = "", group: str = "mibyan.plugins", place: Path = tmp_path / "site"
    ) -> Path:
        info = place / f"{name}-1.0.dist-info"
        info.mkdir(parents=True)
        if metadata is not None:
            (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n{metadata}")
        (info / "entry_points.txt").write_text(f"[{group}]\n{name} = {name}\n")
        (place / f"{name}.py").write_text("def register(ctx): pass\n")
        if str(place) not in sys.path:
            monkeypatch.syspath_prepend(place)
        return info

    return make


def findings(done: Done, check: str) -> list[dict]:
    return [one for one in done.data["findings"] if one["check"] == check]


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Byte code is there, whether or not this interpreter keeps any."""
    monkeypatch.setattr(interpreter, "cache_from_source", lambda path: path)


@pytest.mark.usefixtures("compiled")
def test_a_healthy_home(run: Callable, home: Path) -> None:
    """Nothing to find: every check is ok, the exit code 0, and the facts are told."""
    done = run("doctor", "--json")
    told = done.data
    assert list(told) == [
        "healthy", "version", "python", "executable", "platform", "home", "project", "dependencies", "checks", "findings",
    ]  # fmt: skip
    assert (done.code, told["healthy"], told["version"], told["home"]) == (0, True, __version__, str(home))
    assert told["executable"] == sys.executable
    assert told["dependencies"]["click"] == version("click")
    assert {name: status for name, status in told["checks"].items() if name != "dependencies"} == dict.fromkeys(
        [
            "configuration",
            "environment",
            "folders",
            "caches",
            "python",
            "programs",
            "approvals",
            "discovery",
            "plugins",
            "toolsets",
        ],
        "ok",
    )
    assert {one["severity"] for one in told["findings"]} <= {"info"}


@pytest.mark.usefixtures("compiled")
def test_for_people(run: Callable, home: Path) -> None:
    """A table of the checks, then each finding with its way out, the worst first."""
    (home / "config.yaml").write_text("plugins: {disabled: [nobody]}\ndispatch: {timeout: never}\n")
    done = run("doctor")
    assert done.code == 2
    assert re.search(r"^configuration  error +2$", done.out, re.MULTILINE)
    assert f"error: configuration: {home}/config.yaml:2: key 'dispatch.timeout'" in done.out
    assert "\n    mibyan config validate\n" in done.out
    assert done.out.endswith("1 error, 1 warning.\n")
    assert done.out.index("\nerror:") < done.out.index("\nwarning:")


BROKEN = [
    ("dispatch:\n  timeout: never\n", ":2", "dispatch.timeout", None),
    ("dispatch:\n  timout: 3\n", ":2", "dispatch.timout", "timeout"),
    ("plugins: [\n", ":2", "", None),
    ("- a\n", ":1", "", None),
    ("\0", "", "", None),
]


@pytest.mark.parametrize(("content", "line", "key", "meant"), BROKEN)
def test_a_broken_configuration(
    run: Callable, home: Path, content: str, line: str, key: str, meant: str | None
) -> None:
    """L8: it works with a configuration that can't be used; each problem is an error with its line, and the exit code is 2."""
    (home / "config.yaml").write_text(content)
    add_plugin(home, "words", "raise SystemExit('somebody ran me')\n")
    done = run("doctor", "--json")
    assert (done.code, done.err) == (2, "")
    first, off = findings(done, "configuration")
    assert (first["severity"], off["severity"], off["fix"]) == ("error", "warning", "mibyan config validate")
    assert first["where"].startswith(f"{home}/config.yaml{line}")
    assert key in first["what"]
    assert meant is None or meant in first["fix"]


def test_a_broken_configuration_of_the_project(run: Callable, project: Path) -> None:
    """The project's file is told by its whole path."""
    (project / ".mibyan" / "config.yaml").write_text("dispatch: {validate: off}\n")
    first, _ = findings(run("doctor", "--json"), "configuration")
    assert first["where"] == f"{project}/.mibyan/config.yaml:1"


def test_a_home_that_cannot_be_told(run: Callable, monkeypatch: pytest.MonkeyPatch) -> None:
    """Even where the home is isn't known: an error, and what doesn't need one is looked at."""
    monkeypatch.setenv("MIBYAN_HOME", "~nobody-of-that-name/x")
    done = run("doctor", "--json")
    assert (done.code, done.data["home"]) == (2, None)
    assert (
        "no such user" in findings(done, "configuration")[0]["what"]
        or "isn't known" in findings(done, "configuration")[0]["what"]
    )
    assert done.data["checks"]["programs"] == "ok"


def everybodys_home(home: Path) -> Path:
    home.chmod(0o777)
    return home


def everybodys_plugin(home: Path) -> Path:
    root = add_plugin(home, "words", TOOL)
    root.chmod(0o777)
    return root


def everybodys_configuration(home: Path) -> Path:
    (home / "config.yaml").write_text("")
    (home / "config.yaml").chmod(0o666)
    return home / "config.yaml"


def a_file_for_a_folder(home: Path) -> Path:
    (home / "plugins").write_text("")
    return home / "plugins"


def a_folder_for_a_file(home: Path) -> Path:
    (home / "config.yaml").mkdir()
    return home / "config.yaml"


def a_broken_trust(home: Path) -> Path:
    (home / "trust.json").write_text("{")
    return home / "trust.json"


@pytest.mark.skipif(os.name == "nt", reason="rights are told otherwise there")
@pytest.mark.parametrize(
    ("make", "what", "fix"),
    [
        (everybodys_home, "everybody", "chmod o-w {}"),
        (everybodys_plugin, "everybody", "chmod o-w {}"),
        (everybodys_configuration, "everybody", "chmod o-w {}"),
        (a_file_for_a_folder, "isn't a folder", "move {} away"),
        (a_folder_for_a_file, "isn't a file", "move {} away"),
        (a_broken_trust, "no project code is trusted", "rm {}"),
    ],
)
def test_what_is_wrong_with_folders(run: Callable, home: Path, make: Callable, what: str, fix: str) -> None:
    """Others that could put code where it is run, files at the place of folders, a trust.json that can't be read."""
    path = make(home)
    done = run("doctor", "--json")
    (found,) = findings(done, "folders")
    assert (found["severity"], found["where"], done.code) == ("error", str(path), 2)
    assert what in found["what"]
    assert fix.format(path) in found["fix"]


def test_a_home_that_is_not_there(run: Callable, tmp_path: Path) -> None:
    """An absent home is nothing bad; one that is a file is."""
    done = run("doctor", "--json", "--home", str(tmp_path / "absent"))
    assert (done.code, [one["severity"] for one in findings(done, "folders")]) == (0, ["info"])
    (tmp_path / "file").write_text("")
    done = run("doctor", "--json", "--home", str(tmp_path / "file"))
    assert (done.code, findings(done, "folders")[0]["severity"]) == (2, "error")


def test_caches(run: Callable, home: Path) -> None:
    """What was kept and is damaged, others' or abandoned is told with its mend; what is sound isn't."""
    run("tools", "list")
    cache = home / "cache"
    assert findings(run("doctor", "--json"), "caches") == []
    sound = sorted(path.name for path in cache.iterdir())
    assert {"plugins.json", "discovery.bin"} <= set(sound)
    (cache / "plugins.json").write_text("{")
    (cache / "learned.bin").write_bytes(b"mibyan 0 x\n\0\0\0\0damaged")
    (cache / ".old.0011.tmp").write_text("")
    os.utime(cache / ".old.0011.tmp", (time.time() - 200_000,) * 2)
    (cache / ".new.0011.tmp").write_text("")
    (cache / "contents.bin").write_bytes((cache / "discovery.bin").read_bytes())
    (cache / "contents.bin").chmod(0o666)
    found = {Path(one["where"]).name: one for one in findings(run("doctor", "--json"), "caches")}
    assert {name: one["severity"] for name, one in found.items()} == {
        "plugins.json": "warning", "learned.bin": "warning", "contents.bin": "warning", ".old.0011.tmp": "info",
    }  # fmt: skip
    assert all(one["fix"] == f"rm {one['where']}" for one in found.values())


def test_variables(run: Callable, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A variable that means nothing, with what was meant; safe mode is told."""
    monkeypatch.setenv("MIBYAN_PLUGIN", "x")
    monkeypatch.setenv("MIBYAN_SAFE_MODE", "1")
    wrong, safe = findings(run("doctor", "--json"), "environment")
    assert (wrong["where"], wrong["fix"], wrong["severity"]) == ("MIBYAN_PLUGIN", "write MIBYAN_PLUGINS", "warning")
    assert (safe["where"], safe["severity"]) == ("MIBYAN_SAFE_MODE", "info")


def test_toolsets_that_nobody_knows(run: Callable, home: Path) -> None:
    """registry.T5: a toolset's name in the configuration that nobody brings, with its line and what was meant."""
    (home / "config.yaml").write_text(
        "toolsets:\n  disabled: [fiels, web]\n  custom: {mine: {includes: [file_tools, mine]}}\n"
        "platform_toolsets: {cli: [mibyan-cli, mine]}\n"
    )
    (found,) = findings(run("doctor", "--json"), "toolsets")
    assert (found["severity"], found["where"]) == ("warning", f"{home}/config.yaml:2: toolsets.disabled[0]")
    assert found["fix"] == "write 'files', or remove it"
    add_plugin(home, "words", TOOL)
    assert [one["severity"] for one in findings(run("doctor", "--json"), "toolsets")] == ["info"]


def test_plugins_F3_what_was_passed_over(run: Callable, project: Path, home: Path, site: Callable) -> None:
    """F3: a leftover dist-info, a cloned one in the project, a wrong group, a file that is near to a tool: each with its mend."""
    leftover = site("leftover", None)
    wrong = site("wrong", group="mibyan_plugins")
    cloned = site("cloned", place=project)
    (home / "tools").mkdir()
    (home / "tools" / "near.py").write_text("import mibyan\nif 1:\n    mibyan.registry.register('a', 'b', {}, print)\n")
    (home / "config.yaml").write_text("plugins:\n  disabled:\n    - nobody\n")
    done = run("doctor", "--json")
    found = {one["where"]: one for one in findings(done, "discovery")}
    assert "no METADATA" in found[str(leftover)]["what"]
    assert found[str(leftover)]["fix"] == "mibyan plugins uninstall leftover, or install the distribution again"
    assert "'mibyan_plugins'" in found[str(wrong)]["what"]
    assert found[str(cloned)]["fix"] == f"`mibyan plugins install -e {project}` if it is yours"
    assert "line 3" in found[str(home / "tools" / "near.py")]["what"]
    assert found[f"{home}/config.yaml:2: plugins.disabled"]["severity"] == "warning"
    assert done.code == 0


def test_plugins_F3_copies(run: Callable, home: Path, site: Callable, tmp_path: Path) -> None:
    """F3: of one distribution at two places the second is shadowed, and told."""
    site("twice", place=tmp_path / "behind")
    first = site("twice", place=tmp_path / "before")
    (found,) = [one for one in findings(run("doctor", "--json"), "discovery") if "twice" in one["what"]]
    assert (found["severity"], found["where"]) == ("warning", str(tmp_path / "behind" / "twice-1.0.dist-info"))
    assert str(first.parent) in found["what"]


def test_plugins_that_are_not_ready(run: Callable, home: Path, project: Path) -> None:
    """What the last load of a plugin came to; --strict ends with 3. Nothing is run for it."""
    add_plugin(home, "broken", "raise ValueError('oops')\n")
    run("tools", "list")
    done = run("doctor", "--json")
    found = {one["what"].split("'")[1]: one for one in findings(done, "discovery")}
    assert (found["broken"]["severity"], found["deploy"]["severity"], done.code) == ("warning", "info", 0)
    assert "oops" in found["broken"]["what"]
    assert found["deploy"]["fix"].endswith("`mibyan plugins trust deploy`")
    assert run("doctor", "--strict").code == 3


METADATA = (
    "Requires-Dist: click>=1\nRequires-Dist: pyyaml>=999\nRequires-Dist: no-such-thing>=1; python_version>='3'\n"
    "Provides-Extra: mcp\nProvides-Extra: odd\nProvides-Extra: none\nProvides-Extra: all\n"
    "Requires-Dist: no-such-mcp>=2; extra == 'mcp'\nRequires-Dist: click>=999; extra == 'odd'\n"
    "Requires-Dist: nothing>=1; extra == 'none'\nRequires-Dist: mibyan[mcp]; extra == 'all'\n"
)


def test_dependencies(run: Callable, home: Path, site: Callable) -> None:
    """What is needed and missing or too old is an error; an extra in use a warning, one that isn't there good to know."""
    site("mibyan", METADATA)
    (home / "config.yaml").write_text("mcp_servers: {one: {command: x}}\n")
    done = run("doctor", "--json")
    told = [(one["severity"], one["what"].split(";")[0], one["fix"]) for one in findings(done, "dependencies")]
    assert told[0][0] == "error"
    assert ("error", "no-such-thing isn't installed", "python -m pip install 'no-such-thing>=1'") in told
    assert ("warning", "no-such-mcp isn't installed", "python -m pip install 'mibyan[mcp]'") in told
    assert ("warning", f"click is {version('click')}", "python -m pip install 'mibyan[odd]'") in told
    assert ("info", "extras that aren't installed: none", "python -m pip install 'mibyan[NAME]'") in told
    assert any(
        what == f"PyYAML is {version('pyyaml')}" or what == f"pyyaml is {version('pyyaml')}" for _, what, _ in told
    )
    assert any("the code is" in what for severity, what, _ in told if severity == "warning")
    assert done.code == 2


def test_what_mibyan_needs_is_what_the_project_says() -> None:
    """The versions that are told are those of the dependencies in pyproject.toml."""
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
    assert sorted(installation.BASE) == sorted(re.split(r"[<>=]", one)[0] for one in project["dependencies"])


def test_programs(run: Callable, home: Path, shim: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No `mibyan` on PATH, one of another Python, one whose Python is gone, a second one, a backend's program that is missing."""

    def told() -> list[tuple[str, str]]:
        return [(one["severity"], one["what"]) for one in findings(run("doctor", "--json"), "programs")]

    assert told() == []
    other = tmp_path / "other" / "python3"
    other.parent.mkdir()
    other.touch()
    shim.write_text(f"#!{other}\n")
    assert [(severity, str(other) in what) for severity, what in told()] == [("warning", True)]
    shim.write_text(f"#!/bin/sh\n'''exec' {other} \"$0\" \"$@\"\n' '''\n")
    assert [(severity, str(other) in what) for severity, what in told()] == [("warning", True)]
    other.unlink()
    assert [(severity, "isn't there any more" in what) for severity, what in told()] == [("error", True)]
    shim.write_text("#!/bin/bash\n")
    second = tmp_path / "second" / "mibyan"
    second.parent.mkdir()
    second.touch(0o755)
    monkeypatch.setenv("PATH", f"{shim.parent}{os.pathsep}{second.parent}")
    assert [severity for severity, _ in told()] == ["info"]
    monkeypatch.setenv("PATH", str(tmp_path))
    (missing,) = findings(run("doctor", "--json"), "programs")
    assert (missing["severity"], missing["where"]) == ("warning", sysconfig.get_path("scripts"))
    monkeypatch.setenv("PATH", str(shim.parent))
    (home / "config.yaml").write_text("terminal: {backend: ssh, ssh: {host: h}}\n")
    (ssh,) = findings(run("doctor", "--json"), "programs")
    assert (ssh["where"], ssh["severity"]) == (f"{home}/config.yaml:1: terminal.backend", "warning")


def test_byte_code_that_is_not_kept(program: Callable, home: Path, tmp_path: Path) -> None:
    """Each start compiles anew where byte code may not be written: a warning, and the variable that says so."""
    done = program("doctor", "--json", PYTHONDONTWRITEBYTECODE="1", PYTHONPYCACHEPREFIX=str(tmp_path / "none"))
    (found,) = findings(done, "python")
    assert (found["where"], found["fix"]) == ("PYTHONDONTWRITEBYTECODE", "unset PYTHONDONTWRITEBYTECODE")
    latin = program("doctor", "--json", PYTHONIOENCODING="latin-1")
    assert any("standard output is iso8859-1" in one["what"] for one in findings(latin, "python"))


def test_a_check_that_fails_is_a_finding(run: Callable, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What goes wrong in one check is an error of that check, and the others are done."""

    def failing(patient: object) -> Iterator[Finding]:
        yield Finding("info", "so far")
        raise ValueError("oops")

    monkeypatch.setitem(examination._CHECKS, "folders", failing)
    done = run("doctor", "--json")
    assert [one["what"] for one in findings(done, "folders")] == ["the check itself failed: ValueError: oops", "so far"]
    assert done.data["checks"]["caches"] == "ok"


def test_it_imports_no_plugin(program: Callable, home: Path, project: Path) -> None:
    """L8: whatever state the plugins are in, none is run, not even one that is trusted and frozen."""
    add_plugin(home, "loud", "print('somebody ran me')\nraise SystemExit(7)\n")
    for words in ((), ("--strict",), ("--safe-mode",), ("--plugin", "loud")):
        done = program("doctor", "--json", *words)
        assert "somebody ran me" not in done.out + done.err
        assert done.data["healthy"] is not None


#: Hides a module from the program, as if it weren't installed.
WITHOUT = (
    "import sys; sys.modules['{0}'] = None; from mibyan.cli.main import main; sys.argv[0] = 'mibyan'; sys.exit(main())"
)


def test_without_click(home: Path) -> None:
    """A dependency that is missing is a sentence and the command that brings it; doctor works without click all the same."""

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([sys.executable, "-c", WITHOUT.format("click"), *words], capture_output=True, text=True)

    broken = run("tools", "--help")
    assert (broken.returncode, broken.stdout) == (2, "")
    assert broken.stderr.splitlines() == [
        "mibyan: error: the module 'click', which Mibyan needs, isn't installed", f"{sys.executable} -m pip install click",
    ]  # fmt: skip
    assert json.loads(run("doctor", "--json").stdout)["checks"]["configuration"] == "ok"
