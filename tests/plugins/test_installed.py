"""`mibyan.plugins.sources.installed` and what it stands on: plugins of installed distributions (plugins.F2-F4)."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
import zipfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mibyan.filecache import stamp
from mibyan.plugins.candidate import Candidate, Discovery, Target
from mibyan.plugins.sources.cache import ContentCache
from mibyan.plugins.sources.distributions import header, name_and_version
from mibyan.plugins.sources.entrypoints import entry_point, groups, near_misses
from mibyan.plugins.sources.installed import find_installed
from mibyan.plugins.sources.sitepaths import Interpreter, searched

WEATHER = "[mibyan.plugins]\nweather = weather:register\n"


def dist(
    site: Path,
    name: str = "mibyan_plugin_weather",
    version: str = "1.0",
    entry_points: str | bytes | None = WEATHER,
    *,
    metadata: str | None = "Metadata-Version: 2.1\n",
    manifest: Any = None,
    direct_url: Any = None,
    ending: str = "dist-info",
) -> Path:
    """A distribution as an installer leaves it."""
    info = site / f"{name}-{version}.{ending}"
    info.mkdir(parents=True)
    if metadata is not None:
        file = "METADATA" if ending == "dist-info" else "PKG-INFO"
        (info / file).write_text(f"{metadata}Name: {name}\nVersion: {version}\n\nName: not-this\n")
    if entry_points is not None:
        (info / "entry_points.txt").write_bytes(
            entry_points if isinstance(entry_points, bytes) else entry_points.encode()
        )
    if manifest is not None:
        (info / "extra_metadata").mkdir()
        (info / "extra_metadata" / "mibyan.json").write_text(json.dumps(manifest))
    if direct_url is not None:
        (info / "direct_url.json").write_text(json.dumps(direct_url))
    return info


def code(site: Path, *files: str, manifest: str | None = None) -> None:
    """Modules that must not be imported, and package data."""
    for name in files:
        path = site / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("raise SystemExit('a plugin is never imported to be found')\n")
    if manifest is not None:
        (site / files[0]).with_name("plugin.yaml").write_text(manifest)


def find(*path: Path | str, inside: tuple[Path, ...] = ()) -> Discovery:
    return find_installed(ContentCache(), path=[str(entry) for entry in path], inside=inside, finders=False)


def only(found: Discovery) -> Candidate:
    (candidate,) = found
    return candidate


# Finding


def test_a_distribution_with_an_entry_point_is_a_plugin(tmp_path: Path) -> None:
    """plugins.F3, F2: found by its entry point, with the canonical id, version, origin and code."""
    info = dist(tmp_path)
    code(tmp_path, "weather/__init__.py")
    assert only(find(tmp_path)) == Candidate(
        "weather", "pip", str(info), "1.0", tmp_path / "weather", Target("entry_point", "weather:register"),
        distribution="mibyan_plugin_weather",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("lines", "value"),
    [
        ("weather = weather", "weather"),
        ("weather=weather.plugin", "weather.plugin"),
        ("weather = weather.plugin : register", "weather.plugin:register"),
        ("weather = weather:Plugin.register [fast,extra]", "weather:Plugin.register"),
        ("# comment\n\n  mibyan_plugin.weather = weather  \n", "weather"),
    ],
)
def test_the_object_is_a_module_or_an_attribute(tmp_path: Path, lines: str, value: str) -> None:
    """plugins.F3: the object may be a module or a callable; extras and comments don't count."""
    dist(tmp_path, entry_points=f"[console_scripts]\nweather = other:main\n[mibyan.plugins]\n{lines}\n[x]\ny = z\n")
    assert only(find(tmp_path)).target == Target("entry_point", value)


def test_other_distributions_are_no_plugins(tmp_path: Path) -> None:
    """plugins.F3: only the group counts."""
    dist(tmp_path, "mibyan", entry_points="[console_scripts]\nmibyan = mibyan.cli.main:main\n")
    dist(tmp_path, "mibyan_tools", entry_points=None)
    dist(tmp_path, "c", entry_points="")
    (tmp_path / "d-1.0.dist-info").write_text("a file")
    (tmp_path / "e.egg-info").write_text("a file, as distutils wrote it")
    assert find(tmp_path) == Discovery()


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ("rain = weather", "the entry point's name says 'rain', but the plugin's id is 'weather'"),
        ("weather = a\nrain = b", "has 2: weather, rain"),
        ("", "has 0: none"),
        ("weather = ", "the entry point '' isn't of the form"),
        ("weather = weather:", "isn't of the form"),
        ("weather = 1weather", "isn't of the form"),
        ("weather = we ather", "isn't of the form"),
        ("weather", "isn't of the form"),
    ],
)
def test_a_wrong_entry_point_is_a_problem(tmp_path: Path, lines: str, said: str) -> None:
    """plugins.F2: a differing name is an error that says so; so is any other form."""
    dist(tmp_path, entry_points=f"[mibyan.plugins]\n{lines}\n")
    candidate = only(find(tmp_path))
    assert candidate.target is None
    assert said in (candidate.problem or "")
    assert candidate.hint == "tell the plugin's author, or turn it off: `mibyan plugins disable weather`"


def test_a_reserved_id_is_a_problem(tmp_path: Path) -> None:
    """plugins.S1: a wheel called `project-tools` can't be mistaken for the tools directory."""
    dist(tmp_path, "project_tools", entry_points="[mibyan.plugins]\nproject-tools = x\n")
    assert "reserved" in (only(find(tmp_path)).problem or "")


def test_two_distributions_with_one_id_are_both_off(tmp_path: Path) -> None:
    """plugins.F3: differently named distributions with one id: both off, both paths named."""
    one = dist(tmp_path / "a", "weather")
    other = dist(tmp_path / "b", "mibyan_plugin_weather")
    dist(tmp_path / "b", "rain", entry_points="[mibyan.plugins]\nrain = rain\n")
    rain, *both = find(tmp_path / "a", tmp_path / "b")
    assert rain.usable
    for candidate in both:
        assert not candidate.usable
        assert candidate.target is None
        assert str(one) in (candidate.problem or "")
        assert str(other) in (candidate.problem or "")
        assert candidate.hint == "mibyan plugins uninstall mibyan_plugin_weather, or weather"


# Each once


def test_one_directory_by_several_names_is_searched_once(tmp_path: Path) -> None:
    """plugins.F3: the same real path is one place, by links, relative or twice."""
    site = tmp_path / "site"
    dist(site)
    (tmp_path / "link").symlink_to(site)
    assert only(find(site, site, tmp_path / "link", f"{site}/../site/")).shadowed_by is None


def test_the_first_copy_on_the_path_wins(tmp_path: Path) -> None:
    """plugins.F3: of one distribution name at two places the first on `sys.path` wins, the other is shadowed."""
    old, new = dist(tmp_path / "old", version="1.0"), dist(tmp_path / "new", "Mibyan.Plugin-Weather", "2.0")
    for first, second in ((old, new), (new, old)):
        winner, loser = find(first.parent, second.parent)
        assert (winner.origin, winner.shadowed_by) == (str(first), None)
        assert (loser.origin, loser.shadowed_by) == (str(second), str(first))


def test_a_first_copy_without_a_plugin_shadows_too(tmp_path: Path) -> None:
    """plugins.F3: the copy that is imported is the first, even if it has no entry point."""
    dist(tmp_path / "a", entry_points=None)
    dist(tmp_path / "b")
    assert only(find(tmp_path / "a", tmp_path / "b")).shadowed_by == str(tmp_path / "a")


def test_two_versions_in_one_directory_are_one_plugin(tmp_path: Path) -> None:
    """plugins.F3: of two dist-infos of one name in one place the newer version counts."""
    versions = ["1.9", "1.10", "1.10rc1", "0.99"]
    for version in versions:
        dist(tmp_path, version=version)
    winner, *losers = find(tmp_path)
    assert winner.version == "1.10"
    assert {loser.shadowed_by for loser in losers} == {winner.origin}


@pytest.mark.parametrize("name", ["mibyan_plugin_weather", "~ibyan_plugin_weather"])
def test_a_leftover_is_skipped_and_noted(tmp_path: Path, name: str) -> None:
    """plugins.F3: a dist-info without METADATA (an interrupted uninstall, pip's `~` names) isn't a plugin."""
    leftover = dist(tmp_path / "a", name, metadata=None if name[0] == "m" else "")
    real = dist(tmp_path / "b")
    found = find(tmp_path / "a", tmp_path / "b")
    assert (only(found).origin, only(found).shadowed_by) == (str(real), None)
    assert [(note.kind, note.origin) for note in found.notes] == [("leftover", str(leftover))]


# Forms of installation


def test_editable_installs_are_found(tmp_path: Path) -> None:
    """plugins.F3: an editable install (PEP 610, 660) has its dist-info in the site directory and says so."""
    dist(tmp_path, direct_url={"url": "file:///src", "dir_info": {"editable": True}})
    assert only(find(tmp_path)).editable


@pytest.mark.parametrize(
    "direct_url", [{"dir_info": {"editable": False}}, {"dir_info": {}}, {"editable": True}, [], "editable", 3]
)
def test_other_direct_urls_arent_editable(tmp_path: Path, direct_url: Any) -> None:
    """plugins.F3: only `dir_info.editable: true` is an editable install, whatever else is in the file."""
    dist(tmp_path, direct_url=direct_url)
    assert not only(find(tmp_path)).editable


@pytest.mark.parametrize(
    ("entry", "name", "editable"),
    [
        ("src", "mibyan_plugin_weather-1.0.egg-info", True),
        ("site-packages", "mibyan_plugin_weather-1.0-py3.11.egg-info", False),
        ("src", "mibyan_plugin_weather.egg-info", True),
        ("src", "mibyan-plugin-weather-1.0-py3.11-linux-x86_64.egg-info", True),
    ],
)
def test_eggs_are_found(tmp_path: Path, entry: str, name: str, editable: bool) -> None:
    """plugins.F3: setuptools' egg-infos count; name and version come from their metadata."""
    made = dist(tmp_path / entry, ending="egg-info")
    made.rename(made.with_name(name))
    candidate = only(find(tmp_path / entry))
    assert (candidate.id, candidate.version, candidate.editable) == ("weather", "1.0", editable)


def zipped(path: Path, *files: tuple[str, str]) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        info = "mibyan_plugin_weather-1.0.dist-info"
        archive.writestr(f"{info}/METADATA", "Name: mibyan-plugin-weather\nVersion: 1.0\n")
        archive.writestr(f"{info}/entry_points.txt", WEATHER)
        archive.writestr("weather/__init__.py", "raise SystemExit")
        for name, content in files:
            archive.writestr(name.replace("INFO", info), content)
    return path


@pytest.mark.parametrize(
    ("files", "manifest_id"),
    [
        ((), None),
        ((("INFO/extra_metadata/mibyan.json", '{"id": "weather"}'),), "weather"),
        ((("weather/plugin.yaml", "id: weather\n"),), "weather"),
    ],
)
def test_zipped_distributions_are_found(
    tmp_path: Path, files: tuple[tuple[str, str], ...], manifest_id: str | None
) -> None:
    """plugins.F3: a distribution in a zip on `sys.path` is found, with its manifest."""
    candidate = only(find(zipped(tmp_path / "bundle.zip", *files)))
    assert (candidate.id, candidate.version, candidate.problem) == ("weather", "1.0", None)
    assert candidate.target == Target("entry_point", "weather:register")
    assert (candidate.manifest and candidate.manifest.id) == manifest_id
    assert candidate.origin == f"{tmp_path}/bundle.zip/mibyan_plugin_weather-1.0.dist-info"


def test_a_zip_and_a_directory_shadow_each_other(tmp_path: Path) -> None:
    """plugins.F3: it doesn't matter what kind of place the first copy lies in."""
    archive, site = zipped(tmp_path / "bundle.zip"), tmp_path / "site"
    dist(site)
    for path in ((archive, site), (site, archive)):
        assert [candidate.shadowed_by is None for candidate in find(*path)] == [True, False]


def test_a_file_that_is_no_zip_is_no_obstacle(tmp_path: Path) -> None:
    """plugins.F3: whatever else is on `sys.path` hides nothing and raises nothing."""
    (tmp_path / "text").write_text("not a zip")
    (tmp_path / "cut.zip").write_bytes(zipped(tmp_path / "bundle.zip").read_bytes()[:200])
    os.mkfifo(tmp_path / "pipe")
    dist(tmp_path / "site")
    names = [tmp_path / name for name in ("text", "cut.zip", "pipe", "missing", "site")]
    assert only(find(*names, "a\0b", "/python311.zip")).usable


def test_finders_on_the_meta_path_are_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """plugins.F4: a finder that lists distributions of its own serves plugins too; a failing one is a note."""
    import importlib.metadata

    class Frozen(importlib.metadata.Distribution):
        def read_text(self, filename: str) -> str | None:
            texts = {"METADATA": "Name: weather\nVersion: 3\n\n", "entry_points.txt": WEATHER}
            return texts.get(filename)

        def locate_file(self, path: Any) -> Any:
            return Path("/nowhere") / path

    class Finder:
        @staticmethod
        def find_distributions(_: Any) -> list[Any]:
            return [Frozen()]

        @staticmethod
        def find_spec(*_: Any) -> None:
            return None

    class Broken(Finder):
        @staticmethod
        def find_distributions(_: Any) -> list[Any]:
            raise RuntimeError("no catalogue")

    monkeypatch.setattr(sys, "meta_path", [*sys.meta_path, Broken, Finder()])
    found = find_installed(ContentCache(), path=[])
    assert (only(found).id, only(found).version, only(found).problem) == ("weather", "3", None)
    assert [note.text for note in found.notes] == ["can't be searched for plugins: RuntimeError: no catalogue"]


# Manifests


def test_the_manifest_is_read_from_the_dist_info(tmp_path: Path) -> None:
    """plugins.M1: `extra_metadata/mibyan.json` in the dist-info is the manifest, before package data."""
    dist(tmp_path, manifest={"id": "weather", "description": "from the dist-info"})
    code(tmp_path, "weather/__init__.py", manifest="description: package data\n")
    manifest = only(find(tmp_path)).manifest
    assert manifest is not None
    assert manifest.description == "from the dist-info"


@pytest.mark.parametrize(
    ("value", "files"),
    [
        ("weather", ("weather/__init__.py",)),
        ("weather.plugin:register", ("weather/__init__.py", "weather/plugin.py")),
        ("ns.weather.plugin", ("ns/weather/__init__.py", "ns/weather/plugin.py")),
        ("weather.sub.deep", ("weather/__init__.py", "weather/sub/deep.py")),
    ],
)
def test_package_data_is_the_other_place(tmp_path: Path, value: str, files: tuple[str, ...]) -> None:
    """plugins.M1: else `plugin.yaml` as package data, in the package of the module or above it."""
    dist(tmp_path, entry_points=f"[mibyan.plugins]\nweather = {value}\n")
    code(tmp_path, *files, manifest="description: package data\n")
    manifest = only(find(tmp_path)).manifest
    assert manifest is not None
    assert manifest.description == "package data"


def test_a_file_beside_single_modules_isnt_package_data(tmp_path: Path) -> None:
    """plugins.M1: `site-packages/plugin.yaml` belongs to nobody."""
    dist(tmp_path)
    code(tmp_path, "weather.py", manifest="id: somebody-elses\n")
    candidate = only(find(tmp_path))
    assert (candidate.manifest, candidate.problem, candidate.root) == (None, None, None)


@pytest.mark.parametrize(
    ("manifest", "said"),
    [
        ({"id": "rain"}, "the manifest says 'rain', but the plugin's id is 'weather'"),
        ({"verison": "1"}, "mibyan.json: key 'verison': unknown key (did you mean 'version'?)"),
        ([], "mibyan.json: a manifest is a mapping of keys"),
    ],
)
def test_a_bad_manifest_is_a_problem(tmp_path: Path, manifest: Any, said: str) -> None:
    """plugins.F2, M1: the distribution is found, and what is wrong with its manifest is said."""
    dist(tmp_path, manifest=manifest)
    candidate = only(find(tmp_path))
    assert candidate.target is None
    assert said in (candidate.problem or "")


def test_an_editable_installs_package_data_is_found_where_it_lies(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """plugins.M1: with an editable install the code is elsewhere on `sys.path`."""
    dist(tmp_path / "site", direct_url={"dir_info": {"editable": True}})
    code(tmp_path / "src", "weather/__init__.py", manifest="id: weather\n")
    monkeypatch.setattr(sys, "path", [*sys.path, str(tmp_path / "src")])
    candidate = only(find(tmp_path / "site"))
    assert candidate.manifest is not None
    assert candidate.root == tmp_path / "src" / "weather"


def test_an_editable_installs_finder_is_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """plugins.M1: setuptools' editable installs may have a finder that maps the package to a folder of another name."""
    from importlib.machinery import ModuleSpec

    dist(tmp_path / "site", direct_url={"dir_info": {"editable": True}})
    code(tmp_path / "src", "__init__.py", manifest="id: weather\n")

    class Finder:
        @staticmethod
        def find_spec(name: str, _: Any = None) -> ModuleSpec | None:
            if name != "weather":
                return None
            spec = ModuleSpec(name, None, is_package=True)
            spec.submodule_search_locations = [str(tmp_path / "src")]
            return spec

    monkeypatch.setattr(sys, "meta_path", [*sys.meta_path, Finder])
    candidate = only(find(tmp_path / "site"))
    assert candidate.manifest is not None
    assert candidate.root == tmp_path / "src"


# Real backends


def build(kind: str, backend: str, project: Path, site: Path) -> None:
    """Build a wheel with a real backend and lay it out as installers do."""
    script = (
        f"import os, {backend} as backend; os.makedirs('out');"
        f"print(backend.build_{kind}('out'))"
    )  # fmt: skip
    subprocess.run([sys.executable, "-c", script], cwd=project, check=True, capture_output=True)
    (wheel,) = (project / "out").glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(site)


@pytest.mark.parametrize("kind", ["wheel", "editable"])
def test_a_wheel_of_hatchling_is_found_with_its_manifest(tmp_path: Path, kind: str) -> None:
    """plugins.M1: hatchling's `extra-metadata` puts mibyan.json into the dist-info, in editable installs too."""
    pytest.importorskip("hatchling")
    project, site = tmp_path / "project", tmp_path / "site"
    code(project, "weather/__init__.py")
    (project / "mibyan.json").write_text('{"id": "weather", "tools": []}')
    (project / "pyproject.toml").write_text(
        '[build-system]\nrequires = ["hatchling"]\nbuild-backend = "hatchling.build"\n'
        '[project]\nname = "mibyan-plugin-weather"\nversion = "1.0"\n'
        '[project.entry-points."mibyan.plugins"]\nweather = "weather"\n'
        '[tool.hatch.build.targets.wheel]\npackages = ["weather"]\n'
        '[tool.hatch.build.targets.wheel.extra-metadata]\n"mibyan.json" = "mibyan.json"\n'
    )
    build(kind, "hatchling.build", project, site)
    candidate = only(find(site))
    assert (candidate.id, candidate.version, candidate.problem) == ("weather", "1.0", None)
    assert candidate.manifest is not None
    assert candidate.manifest.frozen


# Bad files


@pytest.mark.parametrize(
    "entry_points",
    [b"[mibyan.plugins]\nweather = w\xe4ther\n", "[mibyan.plugins]\nweather = x\n".encode("utf-16")],
)
def test_entry_points_that_arent_utf8_are_one_record(tmp_path: Path, entry_points: bytes) -> None:
    """plugins.F3: bytes that aren't UTF-8 are a problem of that distribution, if they concern us at all."""
    dist(tmp_path, entry_points=entry_points)
    for candidate in find(tmp_path):
        assert "isn't UTF-8 text" in (candidate.problem or "")


@pytest.mark.parametrize("kind", ["directory", "fifo", "loop", "huge"])
def test_entry_points_that_arent_a_file_are_one_note(tmp_path: Path, kind: str) -> None:
    """plugins.F3: a directory, pipe or loop called entry_points.txt is a note, and nothing waits."""
    path = dist(tmp_path, entry_points=None) / "entry_points.txt"
    {
        "directory": path.mkdir,
        "fifo": lambda: os.mkfifo(path),
        "loop": lambda: path.symlink_to("entry_points.txt"),
        "huge": lambda: path.touch() or os.truncate(path, 1 << 40),
    }[kind]()
    found = find(tmp_path)
    assert len(found) == 0
    assert [(note.kind, note.origin) for note in found.notes] == [("unreadable", str(path))]


def test_an_unreadable_directory_is_one_note(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """plugins.F3: a permission error is a note (root reads everything, hence the double)."""
    from mibyan.plugins.sources import distributions

    dist(tmp_path / "good")
    (tmp_path / "locked").mkdir()

    def listdir(path: str) -> list[str]:
        if path.endswith("locked"):
            raise PermissionError(13, "Permission denied")
        return [entry.name for entry in Path(path).iterdir()]

    monkeypatch.setattr(distributions, "os", SimpleNamespace(**{**vars(os), "listdir": listdir}))
    found = find(tmp_path / "locked", tmp_path / "good")
    assert only(found).usable
    assert [(note.kind, note.text) for note in found.notes] == [
        ("unreadable", "can't be searched for plugins: permission denied")
    ]


def test_a_byte_order_mark_is_no_problem(tmp_path: Path) -> None:
    """plugins.F3: an entry point file with a byte order mark is read."""
    dist(tmp_path, entry_points=b"\xef\xbb\xbf" + WEATHER.encode())
    assert only(find(tmp_path)).usable


@given(st.binary(max_size=120))
def test_any_entry_point_file_is_survived(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    """plugins.F3: whatever is in the file, finding never raises."""
    site = tmp_path_factory.mktemp("site")
    dist(site, entry_points=b"[mibyan.plugins]\n" + data)
    assert len(find(site)) <= 1


# The place


@pytest.mark.parametrize("place", [".", "src", ".venv/lib/site-packages"])
def test_a_cloned_dist_info_isnt_searched(tmp_path: Path, place: str) -> None:
    """plugins.F3: path entries in the project that nobody installed are skipped, and doctor can say so."""
    info = dist(tmp_path / "project" / place)
    dist(tmp_path / "site", "rain", entry_points="[mibyan.plugins]\nrain = rain\n")
    found = find(tmp_path / "project" / place, tmp_path / "site", inside=(tmp_path / "project",))
    assert only(found).id == "rain"
    assert [(note.kind, note.origin) for note in found.notes] == [("skipped", str(info))]


def test_the_current_directory_isnt_searched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """plugins.F3: `''` on `sys.path` is the current directory."""
    dist(tmp_path)
    monkeypatch.chdir(tmp_path)
    assert len(find("", inside=(tmp_path,))) == 0
    assert len(find("")) == 1


def test_a_skipped_copy_shadows_nothing(tmp_path: Path) -> None:
    """plugins.F3: a cloned dist-info can't turn an installed plugin off; an installed plugin's own isn't a note."""
    dist(tmp_path / "project")
    dist(tmp_path / "site")
    found = find(tmp_path / "project", tmp_path / "site", inside=(tmp_path / "project",))
    assert only(found).usable
    assert not found.notes


def interpreter(*prefixes: Path, site: tuple[Path, ...] = ()) -> Interpreter:
    return Interpreter(tuple(map(os.path.realpath, prefixes)), tuple(map(os.path.realpath, site)))


def kept(path: list[Path], inside: Path, known: Interpreter) -> list[Path]:
    return [Path(entry) for entry in searched([str(entry) for entry in path], [inside], known)[0]]


def test_a_virtual_environment_in_the_project_counts(tmp_path: Path) -> None:
    """plugins.F3: what is under `sys.prefix` was installed, also inside the project; another environment wasn't."""
    site, other = (tmp_path / name / "lib" / "site-packages" for name in (".venv", "cloned-venv"))
    for folder in (site, other):
        folder.mkdir(parents=True)
    assert kept([site, other], tmp_path, interpreter(tmp_path / ".venv")) == [site]


def test_a_prefix_that_holds_the_project_says_nothing(tmp_path: Path) -> None:
    """plugins.F3: with the prefix /usr, /usr/src/app is no installation; its site directories are."""
    site, app = tmp_path / "lib" / "site-packages", tmp_path / "src" / "app"
    for folder in (site, app):
        folder.mkdir(parents=True)
    known = interpreter(tmp_path, site=(site,))
    assert kept([app, site], app, known) == [site]
    assert kept([app, site], tmp_path, known) == [site]


@pytest.mark.parametrize("line", ["{src}", "../../../project/src", "# x\nimport os\n\n{src}  "])
def test_a_pth_file_names_what_counts(tmp_path: Path, line: str) -> None:
    """plugins.F3: an editable install's directory in the project counts: a `.pth` file of the environment names it."""
    site, src = tmp_path / "env" / "lib" / "site-packages", tmp_path / "project" / "src"
    for folder in (site, src):
        folder.mkdir(parents=True)
    known = interpreter(tmp_path / "env")
    assert kept([site, src], tmp_path / "project", known) == [site]
    (site / "_weather.pth").write_text(line.format(src=src))
    assert kept([site, src], tmp_path / "project", known) == [site, src]


def test_a_pth_file_in_the_project_names_nothing(tmp_path: Path) -> None:
    """plugins.F3: a cloned `.pth` file can't vouch for the clone."""
    src = tmp_path / "project" / "src"
    src.mkdir(parents=True)
    (src / "x.pth").write_text(str(src))
    assert kept([src], tmp_path / "project", interpreter(tmp_path / "env")) == []


@pytest.mark.parametrize("content", [b"\xff\xfe\n", b"a\0b\n", b"import os\n" * 3])
def test_odd_pth_files_are_survived(tmp_path: Path, content: bytes) -> None:
    """plugins.F3: a `.pth` file with anything in it is read as `site` reads it."""
    site, src = tmp_path / "env", tmp_path / "project"
    for folder in (site, src):
        folder.mkdir()
    (site / "x.pth").write_bytes(content)
    (site / "y.pth").mkdir()
    assert kept([site, src], src, interpreter(tmp_path / "env")) == [site]


def test_the_running_interpreters_packages_count_everywhere() -> None:
    """plugins.F3: even in the root directory as project, the site directories are searched."""
    site = [entry for entry in sys.path if entry.endswith("site-packages") and Path(entry).is_dir()]
    assert searched(site, [Path("/")])[0] == site


# Near misses


@pytest.mark.parametrize(
    "group", ["mibyan_plugins", "mibyan-plugins", "Mibyan.Plugins", "mibyan.plugin", "mibyan", "hermes.plugins"]
)
def test_a_near_miss_group_is_noted(tmp_path: Path, group: str) -> None:
    """plugins.W6: a group that was meant to be ours is a note with the right one."""
    info = dist(tmp_path, entry_points=f"[{group}]\nweather = weather\n")
    found = find(tmp_path)
    assert len(found) == 0
    assert [(note.kind, note.origin, note.hint) for note in found.notes] == [
        ("near_miss", str(info), "plugins for Mibyan use the group 'mibyan.plugins'")
    ]


@pytest.mark.parametrize("group", ["console_scripts", "hermes_agent.plugins", "pytest11", "mibyan_extras.things", ""])
def test_other_groups_arent_near_misses(group: str) -> None:
    """plugins.W6: nobody is told about groups that somebody reads."""
    assert near_misses([group, "mibyan.plugins"]) == []


@pytest.mark.parametrize("entry_points", [None, "", "[console_scripts]\nmibyan.plugins = weather:main\n"])
def test_a_near_miss_name_is_noted(tmp_path: Path, entry_points: str | None) -> None:
    """plugins.W6: a distribution that is called like a plugin and isn't one is a note."""
    info = dist(tmp_path, "Mibyan_Plugin_weather", entry_points=entry_points)
    found = find(tmp_path)
    assert len(found) == 0
    assert [(note.kind, note.origin) for note in found.notes] == [("near_miss", str(info))]
    assert (
        found.notes[0].text == "distribution 'Mibyan_Plugin_weather' has no entry point in the group 'mibyan.plugins'"
    )


# The small readers, against the standard library's


LINES = st.lists(
    st.sampled_from(
        [
            "[mibyan.plugins]",
            "[ other ]",
            "a = b",
            "a=b:c",
            "  x = y.z : f [e] ",
            "# c = d",
            "",
            "= f",
            "g = h = i",
        ]
    ),
    max_size=8,
)


@given(LINES)
def test_groups_are_read_as_importlib_metadata_reads_them(lines: list[str]) -> None:
    """The reader of entry_points.txt is a quick double of the standard library's."""
    from importlib.metadata import Sectioned

    text = "\n".join(lines)
    expected: dict[str, list[tuple[str, str]]] = {}
    for pair in Sectioned.section_pairs(text):
        expected.setdefault(str(pair.name).strip(), []).append((pair.value.name, pair.value.value))
    read = {group: pairs for group, pairs in groups(text).items() if pairs}
    assert read == {group: [(name, value) for name, value in pairs] for group, pairs in expected.items()}


@pytest.mark.parametrize("value", ["a", "a.b:c", "a.b : c.d", "a:b[x]", "a:b [x, y]", "ä.b:ç", "a [x]"])
def test_values_are_read_as_importlib_metadata_reads_them(value: str) -> None:
    """plugins.F3: module and attribute are those the standard library would load."""
    from importlib.metadata import EntryPoint

    expected = EntryPoint("n", value, "g")
    found = entry_point("n", value)
    assert found.well_formed
    assert found.module == expected.module
    assert found.value.partition(":")[2] == (expected.attr or "")


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("foo-1.0.dist-info", ("foo", "1.0")),
        ("foo_bar-1.0.post1+local.dist-info", ("foo_bar", "1.0.post1+local")),
        ("foo-bar-1.0.dist-info", ("foo-bar", "1.0")),
        ("foo.dist-info", ("foo", "")),
        ("foo-1.0-py3.11.egg-info", ("foo", "1.0")),
        ("foo-1.0-py3.11-linux-x86_64.egg-info", ("foo", "1.0")),
        ("foo.egg-info", ("foo", "")),
    ],
)
def test_a_directorys_name_says_name_and_version(name: str, parts: tuple[str, str]) -> None:
    """plugins.F3: METADATA needn't be read for wheels."""
    assert name_and_version(name) == parts


def test_headers_end_with_the_first_empty_line() -> None:
    """A description that looks like a header isn't one."""
    metadata = b"Metadata-Version: 2.1\r\nname:  Foo \r\n\r\nVersion: 9\n"
    assert (header(metadata, "Name"), header(metadata, "Version")) == ("Foo", "")


# F4


@pytest.mark.parametrize(("kind", "imported"), [("directories", False), ("zip", True)])
def test_finding_costs_no_import_of_importlib_metadata(tmp_path: Path, kind: str, imported: bool) -> None:
    """plugins.F4: when every existing entry is a directory neither importlib.metadata nor its backport is imported."""
    dist(tmp_path / "site", manifest={"id": "weather"})
    zipped(tmp_path / "bundle.zip")
    code = (
        "import sys; sys.path += sys.argv[1:]; sys.path.append('/missing/python399.zip')\n"
        "from pathlib import Path\n"
        "from mibyan.plugins.sources.cache import ContentCache\n"
        "from mibyan.plugins.sources.installed import find_installed\n"
        "found = [one for one in find_installed(ContentCache()) if one.id == 'weather']\n"
        "print(len(found), any(n in sys.modules for n in ('importlib.metadata', 'importlib_metadata')))"
    )
    entries = [str(tmp_path / "site"), *([str(tmp_path / "bundle.zip")] if kind == "zip" else [])]
    done = subprocess.run([sys.executable, "-c", code, *entries], capture_output=True, text=True, check=True)
    assert done.stdout == f"{len(entries)} {imported}\n"


def test_order_of_making_doesnt_matter(tmp_path: Path) -> None:
    """plugins.F1: the same distributions give the same result in whatever order they were installed."""
    names = ["b", "a", "mibyan_plugin_c", "d"]
    for number, order in enumerate((names, names[::-1])):
        for name in order:
            plain = name.removeprefix("mibyan_plugin_")
            dist(tmp_path / str(number), name, entry_points=f"[mibyan.plugins]\n{plain} = {plain}\n")
    one, other = (find(tmp_path / number) for number in ("0", "1"))
    assert [candidate.id for candidate in one] == [candidate.id for candidate in other] == ["a", "b", "c", "d"]


def readings(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The paths of files that are read from now on."""
    from mibyan.plugins.sources import distributions

    read: list[str] = []
    real = distributions.read_bytes
    monkeypatch.setattr(distributions, "read_bytes", lambda path: read.append(path) or real(path))
    return read


def test_entry_points_that_havent_changed_arent_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """architecture: only content is kept; what was edited in place, came or went is seen at the next look."""
    site, home = tmp_path / "site", tmp_path / "home"
    home.mkdir()
    infos = [dist(site, name, entry_points=WEATHER.replace("weather", name)) for name in ("rain", "snow")]
    while any(stamp(info / "entry_points.txt") is None for info in infos):
        time.sleep(0.001)

    def look() -> tuple[list[str], list[str]]:
        read, cache = readings(monkeypatch), ContentCache.of_home(home)
        found = find_installed(cache, path=[str(site)], finders=False)
        cache.save()
        monkeypatch.undo()
        return [one.id for one in found if one.usable], [
            Path(path).parent.name for path in read if path.endswith(".txt")
        ]

    assert look() == (["rain", "snow"], ["rain-1.0.dist-info", "snow-1.0.dist-info"])
    assert look() == (["rain", "snow"], [])
    file = infos[0] / "entry_points.txt"
    text, status = file.read_text(), file.stat()
    file.write_text(text.replace("mibyan.plugins", "mibyan.plugims"))
    os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert look() == (["snow"], ["rain-1.0.dist-info"])
    file.write_text(text)
    assert look()[0] == ["rain", "snow"]
    file.unlink()
    dist(site, "hail", entry_points=WEATHER.replace("weather", "hail"))
    assert look()[0] == ["hail", "snow"]
    shutil.rmtree(infos[1])
    assert look()[0] == ["hail"]


def test_each_distribution_is_looked_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """plugins.F4: finding reads the entry points of each distribution, and nothing more of those without any of ours."""
    for number in range(50):
        dist(tmp_path, f"dist_{number}", entry_points="[console_scripts]\na = b:c\n" if number % 3 else None)
    read = readings(monkeypatch)
    find(tmp_path)
    theirs = [f"{tmp_path}/dist_{number}-1.0.dist-info/entry_points.txt" for number in range(50) if number % 3]
    assert sorted(read) == sorted(theirs)
