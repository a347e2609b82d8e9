"""plugins.W4: install and uninstall through the environment's own installer; real pip and uv, real environments, local wheels."""

from __future__ import annotations

import io
import json
import os
import shutil
import subprocess
import sys
import tarfile
import venv
import zipfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement

pytestmark = pytest.mark.system

TOOL = "import mibyan\n\n@mibyan.tool(toolset='weather')\ndef forecast(city: str) -> str:\n    '''Weather.'''\n    return city\n"
#: Each leaves a trace if it is imported, then does its worst.
TRACE = "import os, pathlib\npathlib.Path(os.environ['IMPORTED']).open('a').write(__name__ + chr(10))\n"
FAULTS = {
    "raises": "raise RuntimeError('no')",
    "exits": "os._exit(7)",
    "hangs": "import threading; threading.Event().wait()",
}
MANIFEST = {
    "manifest_version": 1, "id": "weather", "version": "1.0", "description": "The weather.", "permissions": ["network"],
    "tools": [{"name": "forecast", "toolset": "weather", "target": "weather_plugin:forecast",
               "schema": {"description": "Weather.", "parameters": {"type": "object", "properties": {}}}}],
}  # fmt: skip


def wheel_files(
    name: str, version: str, module: str, source: str, *, requires=(), group="mibyan.plugins", manifest=None
) -> dict[str, str]:
    """The files of a wheel with one module."""
    info = f"{name.replace('-', '_')}-{version}.dist-info"
    head = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
    files = {
        f"{module}.py": source,
        f"{info}/METADATA": head + "".join(f"Requires-Dist: {one}\n" for one in requires),
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{info}/entry_points.txt": f"[{group}]\n{name.removeprefix('mibyan-plugin-')} = {module}\n",
    }
    if manifest is not None:
        files[f"{info}/extra_metadata/mibyan.json"] = json.dumps(manifest)
    return {**files, f"{info}/RECORD": "".join(f"{file},,\n" for file in [*files, f"{info}/RECORD"])}


def make_wheel(folder: Path, name: str, version: str, module: str, source: str, **more) -> Path:
    """A wheel, as any build backend would make it."""
    path = folder / f"{name.replace('-', '_')}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for file, text in wheel_files(name, version, module, source, **more).items():
            archive.writestr(file, text)
    return path


@dataclass(frozen=True)
class Place:
    """An environment with Mibyan in it, and a home."""

    folder: Path
    home: Path
    work: Path

    @property
    def site(self) -> Path:
        return next((self.folder / "lib").glob("python*")) / "site-packages"

    def mibyan(self, *words: str | Path, **env: str) -> subprocess.CompletedProcess[str]:
        clean = {
            key: value for key, value in os.environ.items() if not key.startswith(("MIBYAN_", "PYTHON", "VIRTUAL_ENV"))
        }
        return subprocess.run(
            [self.folder / "bin" / "mibyan", *map(str, words)], capture_output=True, text=True, cwd=self.work, timeout=120,
            stdin=subprocess.DEVNULL, check=False,
            env={**clean, "MIBYAN_HOME": str(self.home), "HOME": str(self.work), "IMPORTED": str(self.work / "imported"), **env},
        )  # fmt: skip

    def ids(self) -> set[str]:
        return {one["id"] for one in json.loads(self.mibyan("plugins", "list", "--json").stdout)["plugins"]}

    def put(self, name: str, version: str, module: str, source: str, **more) -> Path:
        """Unpack a wheel as an installer does; its dist-info."""
        files = {**wheel_files(name, version, module, source, **more)}
        info = next(file for file in files if file.endswith("/METADATA")).partition("/")[0]
        files[f"{info}/INSTALLER"] = "pip\n"
        for file, text in files.items():
            (self.site / file).parent.mkdir(parents=True, exist_ok=True)
            (self.site / file).write_text(text)
        return self.site / info


def lent(*names: str) -> set[Path]:
    """What distributions of the tests' own environment, and those they need, have in site-packages."""
    left, seen, found = list(names), set(names), set()
    while left:
        one = metadata.distribution(left.pop())
        base = Path(str(one.locate_file("")))
        tops = {Path(str(file)).parts[0] for file in one.files or ()} - {"..", "__pycache__", "bin"}
        found |= {base / top for top in tops}
        for requirement in map(Requirement, one.requires or ()):
            fits = requirement.marker is None or requirement.marker.evaluate({"extra": ""})
            if fits and requirement.name not in seen:
                seen.add(requirement.name)
                left.append(requirement.name)
    return found


def link(source: str, target: str) -> None:
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)


def furnish(folder: Path, wheel: Path, *names: str) -> None:
    """Put Mibyan's wheel into an environment, and what it and `names` need; an installer finds all of it installed."""
    with zipfile.ZipFile(wheel) as archive:
        requires = [
            line.partition(":")[2].strip()
            for line in archive.read(next(n for n in archive.namelist() if n.endswith("/METADATA")))
            .decode()
            .splitlines()
            if line.startswith("Requires-Dist:") and "extra" not in line
        ]
    site = next((folder / "lib").glob("python*")) / "site-packages"
    for path in lent(*(Requirement(text).name for text in requires), *names):
        if path.is_dir():
            shutil.copytree(path, site / path.name, copy_function=link, dirs_exist_ok=True)
        else:
            link(str(path), str(site / path.name))


def made(kind: str, wheel: Path, base: Path) -> Place:
    """An environment: one with pip (`pip`), or one that uv made, without pip (`uv`)."""
    folder = base / "env"
    if kind == "uv":
        uv = shutil.which("uv") or pytest.skip("the program uv isn't here")
        subprocess.run([uv, "venv", "-q", "--python", sys.executable, folder], check=True)
        words = [uv, "pip", "install", "-q", "--no-deps", "--compile-bytecode", "--python", folder / "bin" / "python"]
    else:
        venv.create(folder, with_pip=False)
        quiet = ["--quiet", "--disable-pip-version-check", "install", "--no-deps"]
        words = [sys.executable, "-m", "pip", "--python", folder / "bin" / "python", *quiet]
    subprocess.run([*words, wheel], check=True)
    furnish(folder, wheel, *(["pip"] if kind == "pip" else []))
    (base / "work").mkdir()
    return Place(folder, base / "home", base / "work")


@pytest.fixture(scope="module", params=["pip", "uv"])
def place(request, mibyan_wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Place:
    """An environment of each kind."""
    return made(request.param, mibyan_wheel, tmp_path_factory.mktemp(request.param))


@pytest.fixture(scope="module")
def quick(mibyan_wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Place:
    """An environment whose installer is quick, if that is here."""
    kind = "uv" if shutil.which("uv") else "pip"
    return made(kind, mibyan_wheel, tmp_path_factory.mktemp("quick"))


@pytest.fixture(scope="module")
def shelf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of wheels that an installer may take."""
    folder = tmp_path_factory.mktemp("shelf")
    plain = {"requires": ["mibyan"]}
    make_wheel(folder, "mibyan-plugin-weather", "1.0", "weather_plugin", TOOL, manifest=MANIFEST, **plain)
    make_wheel(folder, "mibyan-plugin-backwards", "1.0", "backwards", TOOL, requires=["click==8.0.0"])
    make_wheel(folder, "mibyan-plugin-other", "1.0", "other", TOOL, requires=["mibyan<0.0.5"])
    make_wheel(folder, "click", "8.0.0", "click", "", group="none")
    make_wheel(folder, "mibyan", "0.0.1", "mibyan_old", "", group="none")
    with tarfile.open(folder / "mibyan-plugin-source-1.0.tar.gz", "w:gz") as archive:
        for name, text in (
            ("setup.py", f"{TRACE}raise SystemExit(9)\n"),
            ("PKG-INFO", "Metadata-Version: 2.1\nName: x\nVersion: 1\n"),
        ):
            member = tarfile.TarInfo(f"mibyan-plugin-source-1.0/{name}")
            member.size = len(text)
            archive.addfile(member, io.BytesIO(text.encode()))
    make_wheel(folder, "mibyan-plugin-dull", "1.0", "dull", "", group="nobodys")
    return folder


def from_shelf(shelf: Path) -> list[str]:
    return ["--", "--no-index", f"--find-links={shelf}"]


def test_plugins_W4_a_plugins_way_in_and_out(place: Place, shelf: Path) -> None:
    """Shown, asked for, put in, seen by every listing (kept answers too), taken out; what config.yaml says of it is left."""
    listed = place.mibyan("tools", "list", "--json").stdout
    shown = place.mibyan("plugins", "install", "weather", "--dry-run", "--json", *from_shelf(shelf))
    plan = json.loads(shown.stdout)
    assert [(step["name"], step["version"], step["was"]) for step in plan["plan"]] == [
        ("mibyan-plugin-weather", "1.0", None)
    ]
    assert plan["installer"]["name"] == place.folder.parent.name.rstrip("0123456789-")
    refused = place.mibyan("plugins", "install", "weather", *from_shelf(shelf))
    assert (refused.returncode, "--yes" in refused.stderr, "weather" in place.ids()) == (3, True, False)

    done = place.mibyan("plugins", "install", "weather", "--yes", "--json", *from_shelf(shelf))
    assert done.returncode == 0, done.stdout + done.stderr
    assert json.loads(done.stdout)["installed"] is True
    assert [(one["id"], one["tools"]) for one in json.loads(done.stdout)["plugins"]] == [("weather", ["forecast"])]
    assert "forecast" in place.mibyan("tools", "list", "--json").stdout
    assert "forecast" not in listed
    again = place.mibyan("plugins", "install", "Weather", "--yes", *from_shelf(shelf))
    assert (again.returncode, "installed already" in again.stderr) == (0, True)

    newer = place.work / "newer"
    newer.mkdir()
    make_wheel(newer, "mibyan-plugin-weather", "1.1", "weather_plugin", TOOL, requires=["mibyan"])
    upgraded = json.loads(
        place.mibyan("plugins", "install", "weather", "--upgrade", "--yes", "--json", *from_shelf(newer)).stdout
    )
    assert [(step["name"], step["was"], step["version"]) for step in upgraded["plan"]] == [
        ("mibyan-plugin-weather", "1.0", "1.1")
    ]
    assert [(one["id"], one["version"]) for one in upgraded["plugins"]] == [("weather", "1.1")]

    place.home.mkdir(exist_ok=True)
    written = "plugins:\n  entries:\n    weather:  # my own words\n      allow_tool_override: true\n"
    (place.home / "config.yaml").write_text(written)
    gone = place.mibyan("plugins", "uninstall", "mibyan_plugin.Weather", "--yes", "--json")
    answer = json.loads(gone.stdout)
    assert (gone.returncode, answer["removed"], answer["trash"]) == (0, True, None)
    assert any(file.endswith("weather_plugin.py") for file in answer["files"])
    assert (place.home / "config.yaml").read_text() == written
    assert [one["command"] for one in answer["left"]] == ["mibyan config unset plugins.entries.weather"]
    assert place.mibyan(*answer["left"][0]["command"].split()[1:]).returncode == 0
    (place.home / "config.yaml").unlink()
    assert "forecast" not in place.mibyan("tools", "list", "--json").stdout
    assert not (place.site / "weather_plugin.py").exists()


def test_plugins_W4_a_wheel_at_hand_is_shown_before_anything_is_done(quick: Place, shelf: Path) -> None:
    """Its manifest says what it is; one that isn't a plugin is refused, and nothing is installed."""
    shown = quick.mibyan("plugins", "install", next(shelf.glob("*weather*")), "--dry-run")
    assert (shown.returncode, "network" in shown.stderr, "forecast" in shown.stderr) == (0, True, True), shown.stderr
    refused = quick.mibyan("plugins", "install", next(shelf.glob("*dull*")), "--yes")
    assert (refused.returncode, "nobodys" in refused.stderr or "isn't a plugin" in refused.stderr) == (2, True)
    assert not (quick.site / "dull.py").exists()
    assert not (quick.site / "weather_plugin.py").exists()


def assert_refused(place: Place, shelf: Path, name: str, code: int, said: str) -> None:
    before = sorted(path.name for path in place.site.iterdir())
    done = place.mibyan("plugins", "install", name, "--yes", *from_shelf(shelf))
    assert (done.returncode, said in done.stderr, "Traceback" in done.stderr) == (code, True, False), done.stderr
    assert sorted(path.name for path in place.site.iterdir()) == before
    assert place.mibyan("--version").returncode == 0


def test_plugins_W4_what_mibyan_needs_isnt_set_back(place: Place, shelf: Path) -> None:
    """An older click would come with it: the plan says so and is refused."""
    assert_refused(place, shelf, "backwards", 2, "click>=8.1.7")


@pytest.mark.parametrize(("name", "said"), [("other", "mibyan"), ("nowhere", "--exact")])
def test_plugins_W4_a_failing_installer_is_told(quick: Place, shelf: Path, name: str, said: str) -> None:
    """Another Mibyan would be needed, or nothing has that name: its last lines, exit 1, and nothing has changed."""
    assert_refused(quick, shelf, name, 1, said)


def test_plugins_W4_a_source_isnt_built_before_somebody_says_yes(quick: Place, shelf: Path) -> None:
    """Building runs its code: where there are only sources nothing is done, and the way on is told."""
    done = quick.mibyan("plugins", "install", "source", *from_shelf(shelf), IMPORTED=str(quick.work / "built"))
    assert (done.returncode, "With --yes sources are tried" in done.stderr) == (1, True), done.stderr
    assert not (quick.work / "built").exists()


def break_everything(place: Place) -> None:
    """Plugins with every fault, in the environment and in the home."""
    for name, fault in FAULTS.items():
        place.put(f"mibyan-plugin-{name}", "1.0", f"{name}_plugin", f"{TRACE}{fault}\n")
        folder = place.home / "plugins" / f"own-{name}"
        folder.mkdir(parents=True)
        (folder / "__init__.py").write_text(f"{TRACE}{fault}\n")
        (folder / "plugin.yaml").write_text(f"manifest_version: 1\nid: own-{name}\n")
    (place.put("mibyan-plugin-listless", "1.0", "listless", TRACE) / "RECORD").unlink()
    (place.put("mibyan-plugin-leftover", "1.0", "leftover", TRACE) / "METADATA").unlink()
    (place.site / "~ibyan_plugin_halfgone-1.0.dist-info").mkdir()
    place.put("mibyan-plugin-unsaid", "1.0", "unsaid", TRACE, manifest={"manifest_version": "?", "nonsense": 1})
    (place.put("mibyan-plugin-garbled", "1.0", "garbled", TRACE) / "entry_points.txt").write_bytes(
        b"[mibyan.plugins]\n\xff\xfe"
    )
    away = place.work / "away"
    away.mkdir()
    (away / "editable_plugin.py").write_text(f"{TRACE}raise RuntimeError\n")
    info = place.put("mibyan-plugin-editable", "1.0", "editable_plugin", "")
    (place.site / "editable_plugin.py").rename(place.site / "editable_plugin.pth")
    (place.site / "editable_plugin.pth").write_text(f"{away}\n")
    (info / "RECORD").write_text((info / "RECORD").read_text().replace("editable_plugin.py,", "editable_plugin.pth,"))
    (info / "direct_url.json").write_text(json.dumps({"url": f"file://{away}", "dir_info": {"editable": True}}))
    (place.home / "plugins" / "scalar").mkdir()
    (place.home / "plugins" / "scalar" / "plugin.yaml").write_text("- 1\n- :\n  {")
    (place.home / "plugins" / "bare").mkdir()


def remove_all(place: Place, names: list[str]) -> None:
    for name in names:
        done = place.mibyan("plugins", "uninstall", name, "--yes")
        assert (done.returncode, "Traceback" in done.stderr) == (0, False), (name, done.stderr)


#: What is asked of a home full of faults, and what it ends with.
COMMANDS = [
    ("--version", 0), ("plugins list --json", 0), ("plugins show raises", 0), ("plugins show unsaid", 0),
    ("plugins disable hangs", 0), ("plugins enable hangs", 0), ("plugins trust raises", 2), ("plugins untrust raises", 2),
    ("plugins manifest --schema", 0), ("config path", 0), ("config show", 0), ("config get plugins.disabled", 0),
    ("config set dispatch.timeout 7", 0), ("config unset dispatch.timeout", 0), ("config validate", 0), ("config schema", 0),
    ("doctor", None), ("doctor --json", None), ("plugins uninstall exits --dry-run", 0), ("plugins uninstall nobody", 2),
    ("plugins install ./nothere", 2),
]  # fmt: skip


def test_plugins_L8_every_management_command_answers_whatever_the_plugins_do(quick: Place) -> None:
    """With plugins that raise, exit, hang and can't be read, each answers, says what it always says, and imports none.

    Then each of them is removed, by its installer or into the trash.
    """
    break_everything(quick)
    with ThreadPoolExecutor(2) as pool:
        asked = [
            command
            for command, _ in COMMANDS
            if not command.startswith(("plugins disable", "plugins enable", "config set", "config unset"))
        ]
        answers = dict(zip(asked, pool.map(lambda command: quick.mibyan(*command.split()), asked), strict=True))
    for command, code in COMMANDS:
        done = answers.get(command) or quick.mibyan(*command.split())
        assert code is None or done.returncode == code, (command, done.stderr)
        assert done.returncode in {0, 1, 2}, (command, done.returncode)
        assert not any(word in done.stderr for word in ("Traceback", "internal fault")), (command, done.stderr)
    assert not (quick.work / "imported").exists()

    gone = [
        *FAULTS,
        *(f"own-{name}" for name in FAULTS),
        "listless",
        "leftover",
        "halfgone",
        "unsaid",
        "garbled",
        "editable",
        "scalar",
        "bare",
    ]
    away = [name for name in gone if not (quick.home / "plugins" / name).exists()]
    with ThreadPoolExecutor(2) as pool:  # one after the other in the environment, and meanwhile in the home
        ended = [pool.submit(remove_all, quick, names) for names in (away, [name for name in gone if name not in away])]
    assert [one.result() for one in ended] == [None, None]
    assert quick.ids().isdisjoint(gone)
    assert not [path for path in quick.site.iterdir() if "plugin" in path.name.lower()]
    assert sorted(path.name for path in (quick.home / "plugins").iterdir()) == []
    kept = {path.name for folder in (quick.home / "trash").iterdir() for path in folder.iterdir()}
    assert {"own-exits", "listless.py", "mibyan_plugin_leftover-1.0.dist-info", "scalar"} <= kept
    assert (quick.work / "away" / "editable_plugin.py").exists()
    assert not (quick.work / "imported").exists()


def test_plugins_L4_a_quarantined_plugin_goes_too(quick: Place) -> None:
    """One that has ended a process at its import is kept out, and is removed; in safe mode and with a broken configuration too."""
    quick.put("mibyan-plugin-deadly", "1.0", "deadly_plugin", "import os\nos._exit(7)\n")
    died = quick.mibyan("tools", "list")
    assert died.returncode == 7
    assert quick.mibyan("tools", "list").returncode == 0
    (record,) = [
        one for one in json.loads(quick.mibyan("plugins", "list", "--json").stdout)["plugins"] if one["id"] == "deadly"
    ]
    assert record["state"] == "failed", record
    (quick.home / "config.yaml").write_text("plugins: {\n")
    gone = quick.mibyan("--safe-mode", "plugins", "uninstall", "deadly", "--yes")
    (quick.home / "config.yaml").unlink()
    assert gone.returncode == 0, gone.stderr
    assert "deadly" not in quick.ids()
    assert not (quick.site / "deadly_plugin.py").exists()
