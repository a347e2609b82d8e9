"""`mibyan.plugins.sources.scan` and `selection`: every source together, in one order (plugins.F1, F3, L6)."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from mibyan.config.sources import PluginSettings
from mibyan.plugins.candidate import Candidate, Discovery, Note, Target
from mibyan.plugins.sources.scan import discover
from mibyan.plugins.sources.selection import Selection

if TYPE_CHECKING:
    from pathlib import Path

STOP = "raise SystemExit('a plugin is never imported to be found')\n"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home that is there."""
    folder = tmp_path / "home"
    folder.mkdir()
    return folder


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project that is there."""
    folder = tmp_path / "project"
    (folder / ".mibyan").mkdir(parents=True)
    return folder


def folder_plugin(root: Path, name: str, manifest: str = "") -> None:
    (root / name).mkdir(parents=True)
    (root / name / "plugin.yaml").write_text(manifest)
    (root / name / "__init__.py").write_text(STOP)


def tool_file(root: Path, name: str) -> None:
    root.mkdir(parents=True, exist_ok=True)
    (root / name).write_text(STOP + "registry.register('x')\n")


def wheel(site: Path, name: str) -> None:
    info = site / f"mibyan_plugin_{name}-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Name: mibyan-plugin-{name}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[mibyan.plugins]\n{name} = {name}\n")


def everywhere(tmp_path: Path, home: Path, project: Path, order: list[int]) -> Path:
    """One plugin or more of every source, made in some order."""
    site = tmp_path / "site"
    makers: list[Any] = [
        lambda: wheel(site, "rain"),
        lambda: wheel(site, "ant"),
        lambda: folder_plugin(home / "plugins", "zebra"),
        lambda: folder_plugin(home / "plugins", "bee", "after: [zebra]\n"),
        lambda: folder_plugin(project / ".mibyan" / "plugins", "cat"),
        lambda: folder_plugin(project / ".mibyan" / "plugins", "animals/ape"),
        lambda: tool_file(home / "tools", "user.py"),
        lambda: tool_file(project / ".mibyan" / "tools", "a.py"),
    ]
    for number in order:
        makers[number]()
    return site


def find(home: Path, project: Path | None = None, *path: Path, settings: Any = None, **options: Any) -> Discovery:
    found = discover(settings or PluginSettings(), home, project, path=[str(entry) for entry in path], **options)
    others = tuple(candidate for candidate in found if candidate.source != "builtin")
    return Discovery(others, found.notes)


def ids(found: Discovery) -> list[str]:
    return [candidate.id for candidate in found]


@pytest.mark.parametrize("seed", range(4))
def test_all_sources_in_one_order(tmp_path: Path, home: Path, project: Path, seed: int) -> None:
    """plugins.F1: builtin < pip < user < project < tools directories, whatever was made first."""
    order = random.Random(seed).sample(range(8), 8)
    site = everywhere(tmp_path, home, project, order)
    found = discover(PluginSettings(), home, project, path=[str(site)])
    sources = [candidate.source for candidate in found]
    assert sources[: sources.index("pip")] == ["builtin"] * sources.count("builtin")
    assert ids(find(home, project, site)) == [
        "ant", "rain", "zebra", "bee", "ape", "cat", "tools.user", "project-tools.a",
    ]  # fmt: skip
    assert not found.notes


def test_two_processes_find_the_same(tmp_path: Path, home: Path, project: Path) -> None:
    """plugins.F1: the order is the same in every process and under every hash seed, and costs no heavy import."""
    site = everywhere(tmp_path, home, project, list(range(8)))
    code = (
        "import sys; from pathlib import Path; from mibyan.config.sources import PluginSettings;"
        "from mibyan.plugins.sources.scan import discover; home, project, site = sys.argv[1:];"
        "found = discover(PluginSettings(disabled=('cat', 'x', 'y'), modules=('b', 'a')), Path(home), Path(project), path=[site]);"
        "print([(one.id, one.origin, one.problem) for one in found], found.notes);"
        "print([n for n in ('pydantic', 'importlib.metadata', 'asyncio') if n in sys.modules], file=sys.stderr)"
    )
    outputs = set()
    for seed in ("0", "1", "random"):
        done = subprocess.run(
            [sys.executable, "-c", code, str(home), str(project), str(site)],
            capture_output=True, text=True, check=True, env={**os.environ, "PYTHONHASHSEED": seed},
        )  # fmt: skip
        outputs.add(done.stdout)
        assert done.stderr == "[]\n"
    assert len(outputs) == 1


def test_without_anything_there_is_nothing(tmp_path: Path) -> None:
    """plugins.F5: a fresh machine has the built-ins, and looking leaves no trace."""
    assert find(tmp_path / "home") == Discovery()
    assert not (tmp_path / "home").exists()


def test_safe_mode_looks_at_builtins_only(tmp_path: Path, home: Path, project: Path) -> None:
    """plugins.L6: `--safe-mode`: built-ins only; nothing else is even read."""
    site = everywhere(tmp_path, home, project, list(range(8)))
    found = discover(
        PluginSettings(modules=("json",)), home, project, path=[str(site)], safe_mode=True, also=["json"],
        further=[lambda: pytest.fail("asked in safe mode")],
    )  # fmt: skip
    assert {candidate.source for candidate in found} <= {"builtin"}


def test_one_id_in_two_sources_is_loaded_once(tmp_path: Path, home: Path, project: Path) -> None:
    """plugins.F1, L1: the earlier tier keeps an id; the others are shadowed, in any spelling."""
    site = tmp_path / "site"
    wheel(site, "rain")
    folder_plugin(home / "plugins", "Rain")
    folder_plugin(project / ".mibyan" / "plugins", "rain")
    found = find(home, project, site)
    assert [candidate.usable for candidate in found] == [True, False, False]
    assert {candidate.shadowed_by for candidate in found} == {None, found.candidates[0].origin}


def test_what_is_unable_shadows_nothing(tmp_path: Path, home: Path) -> None:
    """plugins.L1: an incompatible wheel doesn't keep the user's plugin of its id off."""
    site = tmp_path / "site"
    wheel(site, "rain")
    folder_plugin(home / "plugins", "rain")
    _, user = find(home, None, site, unable=lambda candidate: candidate.source == "pip")
    assert user.usable


def test_further_sources_take_part(home: Path) -> None:
    """compat: a bridge is a source like the others; its plugins are ordered and selected with them."""
    bridged = Candidate("bridged", "pip", "/somewhere")
    folder_plugin(home / "plugins", "a")
    settings = PluginSettings(disabled=("bridged",))
    found = find(home, settings=settings, further=[lambda: Discovery((bridged,), (Note("warning", "text"),))])
    assert ids(found) == ["bridged", "a"]
    assert found.candidates[0].disabled == "it is in `plugins.disabled`"
    assert found.notes == (Note("warning", "text"),)


def test_a_newer_manifest_is_noted(home: Path) -> None:
    """plugins.M1: the warning of a manifest reaches the report."""
    folder_plugin(home / "plugins", "a", "manifest_version: 7\n")
    (note,) = find(home).notes
    assert note.kind == "warning"
    assert "manifest_version 7 is newer" in note.text


# plugins.modules and --plugin


def test_modules_are_plugins_of_the_pip_tier(tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """plugins.F3: `plugins.modules`: id = the module's name, and nothing is imported."""
    (tmp_path / "src" / "odd_pkg").mkdir(parents=True)
    for name in ("odd_one.py", "odd_pkg/__init__.py", "odd_pkg/sub.py"):
        (tmp_path / "src" / name).write_text(STOP)
    monkeypatch.setattr(sys, "path", [*sys.path, str(tmp_path / "src")])
    found = find(home, settings=PluginSettings(modules=("odd_pkg.sub", "odd_one", "odd_one")))
    assert [(one.id, one.source, one.target, one.problem) for one in found] == [
        ("odd_one", "pip", Target("module", "odd_one"), None),
        ("odd_pkg.sub", "pip", Target("module", "odd_pkg.sub"), None),
    ]
    assert "odd_pkg" not in sys.modules


@pytest.mark.parametrize(
    ("name", "said"),
    [("no_such_module", "there is no module 'no_such_module'"), ("a b", "'a b' isn't a module's name")],
)
def test_a_module_that_isnt_there_is_a_problem(home: Path, name: str, said: str) -> None:
    """plugins.F3: a wrong entry of `plugins.modules` is a record with a hint."""
    (candidate,) = find(home, settings=PluginSettings(modules=(name,)))
    assert (candidate.problem, candidate.hint) == (said, "mend plugins.modules, or install the module")


def test_plugin_takes_ids_and_modules(home: Path) -> None:
    """plugins.L6: `--plugin` and `MIBYAN_PLUGINS` work as pytest's `-p`: an id, or an importable module."""
    folder_plugin(home / "plugins", "json5")
    settings = PluginSettings(autoload=False)
    found = find(home, settings=settings, also=["json5", "json", "", " no:tools.x "])
    assert [(one.id, one.disabled) for one in found] == [("json", None), ("json5", None)]
    assert [note.text for note in found.notes] == ["there is no plugin 'tools.x'"]


# Selection

CASES = [
    ({}, "user", None),
    ({"disabled": ("rain",)}, "user", "it is in `plugins.disabled`"),
    ({"disabled": ("mibyan_plugin_Rain",)}, "user", "it is in `plugins.disabled`"),
    ({"disabled": ("rain",), "enabled": ("rain",), "also": ("rain",)}, "user", "it is in `plugins.disabled`"),
    ({"disabled": ("rain",)}, "builtin", "it is in `plugins.disabled`"),
    ({"no": ("Rain",)}, "user", "--no-plugin turns it off"),
    ({"no": ("rain",), "also": ("rain",)}, "user", "--no-plugin turns it off"),
    ({"autoload": False}, "user", "`plugins.autoload` is false and it isn't in `plugins.enabled`"),
    ({"autoload": False}, "builtin", None),
    ({"autoload": False, "enabled": ("RAIN",)}, "user", None),
    ({"autoload": False, "also": ("rain",)}, "user", None),
    ({"enabled": ("other",)}, "user", None),
]


@pytest.mark.parametrize(("said", "source", "reason"), CASES)
def test_what_is_off_and_why(said: dict[str, Any], source: Any, reason: str | None) -> None:
    """plugins.L6, F3: disabled wins over everything; autoload off leaves built-ins and what is enabled."""
    candidate = Selection(**said).applied(Candidate("rain", source, "/x"))
    assert candidate.disabled == reason
    assert candidate.usable is (reason is None)
    assert (candidate.hint is not None) is (reason is not None)


@pytest.mark.parametrize("word", ["project-tools", "project-tools.a", "Project_Tools"])
def test_the_project_tools_are_turned_off_together_or_alone(word: str) -> None:
    """plugins.S1: `project-tools` stands for the whole directory."""
    selection = Selection(disabled=(word,))
    assert selection.applied(Candidate("project-tools.a", "tools", "/x")).disabled
    assert not selection.applied(Candidate("tools.a", "tools", "/x")).disabled


def test_disabled_plugins_shadow_nothing(tmp_path: Path, home: Path) -> None:
    """plugins.L1: with both copies off by the deny list, neither is shadowed."""
    site = tmp_path / "site"
    wheel(site, "rain")
    folder_plugin(home / "plugins", "rain")
    found = find(home, None, site, settings=PluginSettings(disabled=("rain",)))
    assert [(one.disabled is None, one.shadowed_by) for one in found] == [(False, None), (False, None)]


@pytest.mark.parametrize(
    ("settings", "options", "where"),
    [
        ({"disabled": ("wether",)}, {}, "plugins.disabled"),
        ({"enabled": ("wether",)}, {}, "plugins.enabled"),
        ({}, {"no": ["wether"]}, "--no-plugin"),
        ({}, {"also": ["wether"]}, "--plugin"),
    ],
)
def test_an_unknown_id_is_a_note_with_a_suggestion(
    home: Path, settings: dict[str, Any], options: dict[str, Any], where: str
) -> None:
    """plugins.F2: an id that nobody has is said, with the place and the one that was probably meant."""
    folder_plugin(home / "plugins", "weather")
    (note,) = find(home, settings=PluginSettings(**settings), **options).notes
    assert (note.kind, note.origin) == ("unknown", where)
    assert note.text == "there is no plugin 'wether' (did you mean 'weather'?)"


def test_a_working_directory_that_is_gone_is_no_obstacle(
    tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """plugins.F3: a removed current directory raises nothing."""
    folder_plugin(home / "plugins", "a")
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    assert ids(find(home, None, "")) == ["a"]  # type: ignore[arg-type]


def test_a_cloned_project_brings_no_plugin_by_being_entered(
    tmp_path: Path, home: Path, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """plugins.S1, F3: a dist-info in a cloned repository isn't found, with the repository as working directory or not."""
    wheel(project, "evil")
    wheel(project / "src", "evil2")
    assert ids(find(home, project, project, project / "src")) == []
    monkeypatch.chdir(project)
    found = find(home, None, "", project / "src")  # type: ignore[arg-type]
    assert ids(found) == []
    assert [note.kind for note in found.notes] == ["skipped", "skipped"]
