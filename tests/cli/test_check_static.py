"""`mibyan plugins check --static`: what a plugin's files say, whatever they are, without running any of its code (plugins.W3)."""

from __future__ import annotations

import base64
import csv
import gzip
import hashlib
import io
import json
import stat
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mibyan.cli.checking import archives
from mibyan.cli.checking.checks import RULES

from .conftest import Done, add_plugin

BOOM = "raise SystemExit('its code has been run')\n"
NAME = "mibyan_plugin_dice-1.0-py3-none-any.whl"
INFO = "mibyan_plugin_dice-1.0.dist-info"
FROZEN = {
    "manifest_version": 1, "id": "dice", "requires_mibyan": ">=0.1.dev0",
    "tools": [{"name": "roll", "toolset": "dice", "schema": {"description": "Rolls.", "parameters": {"type": "object", "properties": {}}}}],
}  # fmt: skip
METADATA = (
    "Metadata-Version: 2.4\nName: mibyan-plugin-dice\nVersion: 1.0\nSummary: Dice.\nLicense-Expression: MIT\n"
    "Requires-Dist: mibyan>=0.1.dev0\n\nA README.\n"
)
PYPROJECT = """\
[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"
[project]
name = "mibyan-plugin-dice"
version = "1.0"
[project.entry-points."mibyan.plugins"]
dice = "mibyan_plugin_dice"
"""


@pytest.fixture
def check(run: Callable[..., Done], home: Path) -> Callable[..., Any]:
    """Runs the check without code; the checks by id, each the worst that is told of it, and the exit code as `code`."""

    def check(path: Path, *words: str) -> dict[str, Any]:
        done = run("plugins", "check", str(path), "--static", "--json", *words)
        document = done.data
        assert set(document) == {"path", "plugin", "checks", "ok"}
        assert (document["path"], document["ok"]) == (str(path), done.code == 0)
        assert {one["id"] for one in document["checks"]} == set(RULES)
        found: dict[str, Any] = {"code": done.code, "plugin": document["plugin"]}
        for one in document["checks"]:
            assert set(one) == {"id", "status", "rule", "text", "fix", "origin"}
            assert one["status"] in {"ok", "warn", "fail", "skipped"}
            assert one["status"] not in {"warn", "fail"} or one["rule"]
            worst = found.get(one["id"])
            found[one["id"]] = one if worst is None or one["status"] == "fail" else worst
        return found

    return check


def failed(found: dict[str, Any]) -> set[str]:
    return {name for name, one in found.items() if name in RULES and one["status"] == "fail"}


def make_wheel(
    folder: Path, files: dict[str, str | bytes] | None = None, *, name: str = NAME, record: bool = True
) -> Path:
    """A wheel of a dice plugin with some files put in, or taken out (None)."""
    content: dict[str, Any] = {
        "mibyan_plugin_dice/__init__.py": BOOM,
        f"{INFO}/METADATA": METADATA,
        f"{INFO}/WHEEL": "Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{INFO}/entry_points.txt": "[mibyan.plugins]\ndice = mibyan_plugin_dice\n",
        f"{INFO}/extra_metadata/mibyan.json": json.dumps(FROZEN),
        **(files or {}),
    }
    content = {
        key: value.encode() if isinstance(value, str) else value for key, value in content.items() if value is not None
    }
    if record and f"{INFO}/RECORD" not in content:
        content[f"{INFO}/RECORD"] = record_of(content)
    path = folder / name
    with zipfile.ZipFile(path, "w") as archive:
        for key, value in content.items():
            archive.writestr(key, value)
    return path


def record_of(content: dict[str, bytes]) -> bytes:
    text = io.StringIO()
    rows = csv.writer(text, lineterminator="\n")
    for key, value in content.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(value).digest()).rstrip(b"=").decode()
        rows.writerow([key, f"sha256={digest}", len(value)])
    rows.writerow([f"{INFO}/RECORD", "", ""])
    return text.getvalue().encode()


def make_project(root: Path, pyproject: str = PYPROJECT, files: dict[str, str] | None = None) -> Path:
    files = {"src/mibyan_plugin_dice/__init__.py": BOOM, "pyproject.toml": pyproject, **(files or {})}
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


# Fine ones --------------------------------------------------------------------------------------------------------


def test_W3_a_wheel_that_is_fine(check: Callable, tmp_path: Path) -> None:
    """plugins.W3: a good wheel has no failed check and no warning; none of its code is run, and that is said."""
    found = check(make_wheel(tmp_path))
    assert (found["code"], found["plugin"]) == (0, "dice")
    assert not [one for name, one in found.items() if name in RULES and one["status"] in {"warn", "fail"}]
    assert found["load"] == {"id": "load", "status": "skipped", "rule": "plugins.L2", "text": "--static runs no code", "fix": None, "origin": None}  # fmt: skip
    for name in ("archive", "wheel.metadata", "wheel.record", "entry-point", "id", "version", "manifest", "manifest.shipped", "schemas", "syntax", "modules"):  # fmt: skip
        assert found[name]["status"] == "ok", name


def test_W3_the_text_for_people(run: Callable, home: Path, tmp_path: Path) -> None:
    """plugins.W3: a line for each check, what mends it below, the verdict on standard error."""
    done = run("plugins", "check", str(make_wheel(tmp_path, {f"{INFO}/entry_points.txt": "[mibyan.plugin]\ndice = mibyan_plugin_dice\n"})), "--static")  # fmt: skip
    assert done.code == 1
    line = next(line for line in done.out.splitlines() if line.startswith("fail"))
    assert line.split()[:2] == ["fail", "entry-point"]
    assert "[plugins.F3]" in line
    assert (
        'mend: call the group \'mibyan.plugins\': [project.entry-points."mibyan.plugins"] dice = "MODULE"' in done.out
    )
    assert "not fit to be published" in done.err


def test_W3_tricks_in_texts_are_escaped(run: Callable, home: Path, tmp_path: Path) -> None:
    """plugins.W3: what a package says can't turn the terminal's text around."""
    done = run(
        "plugins",
        "check",
        str(make_wheel(tmp_path, {f"{INFO}/METADATA": METADATA.replace("Dice.", "\u202eDice\x1b[2J")})),
        "--static",
    )
    assert "\u202e" not in done.out + done.err
    assert "\x1b" not in done.out + done.err


# Wheels that aren't ------------------------------------------------------------------------------------------------


def entry(name: str, mode: int = 0o644, data: bytes = b"x") -> tuple[zipfile.ZipInfo, bytes]:
    info = zipfile.ZipInfo(name)
    info.external_attr = mode << 16
    return info, data


@pytest.mark.parametrize(
    "evil",
    [
        entry("../../escaped-from-the-archive.txt"), entry("/tmp/escaped-from-the-archive.txt"), entry("a\\..\\..\\escaped-from-the-archive.txt"), entry("C:/escaped-from-the-archive.txt"),
        entry("link", stat.S_IFLNK | 0o777, b"/etc"), entry("mibyan_plugin_dice/__init__.py"), entry("bell\x07.py"),
    ],
    ids=["above", "absolute", "backslashes", "drive", "link", "twice", "control"],
)  # fmt: skip
@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_W3_hostile_entries_of_a_wheel(check: Callable, tmp_path: Path, evil: tuple[zipfile.ZipInfo, bytes]) -> None:
    """plugins.W3: an entry that leads out, a link or a name twice is a failed check, and nothing is written there."""
    path = make_wheel(tmp_path)
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr(*evil)
    found = check(path)
    assert failed(found) == {"archive"}
    assert found["archive"]["fix"]
    assert not list(tmp_path.parent.rglob("escaped-from-the-archive.txt"))


@pytest.mark.parametrize(
    "data", [b"", b"PK", b"no zip at all", b"PK\x03\x04" + bytes(200)], ids=["empty", "short", "text", "zeros"]
)
@pytest.mark.parametrize("name", [NAME, "mibyan_plugin_dice-1.0.tar.gz"])
def test_W3_what_is_no_archive(check: Callable, tmp_path: Path, name: str, data: bytes) -> None:
    """plugins.W3: a file that only has the name is told as such."""
    path = tmp_path / name
    path.write_bytes(data)
    found = check(path)
    assert "archive" in failed(found) or "project" in failed(found)
    assert found["code"] == 1


def test_W3_a_bomb_ends_early(check: Callable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """plugins.W3: what unpacks to more than the limit is refused, by what comes, not by what is said."""
    monkeypatch.setattr(archives, "LIMIT", 100_000)
    monkeypatch.setattr(archives, "ENTRIES", 10)
    path = tmp_path / NAME
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("bomb", bytes(10_000_000))
    assert "unpacks to more than" in check(path)["archive"]["text"]
    sdist = tmp_path / "mibyan_plugin_dice-1.0.tar.gz"
    with tarfile.open(sdist, "w:gz") as archive:
        info = tarfile.TarInfo("bomb")
        info.size = 10_000_000
        archive.addfile(info, io.BytesIO(bytes(info.size)))
    assert "unpacks to more than" in check(sdist)["archive"]["text"]
    many = tmp_path / f"b{NAME}"
    with zipfile.ZipFile(many, "w") as archive:
        for number in range(11):
            archive.writestr(f"f{number}", b"")
    assert "more than 10 entries" in check(many)["archive"]["text"]


def test_W3_a_bomb_in_a_header(check: Callable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """plugins.W3: a header that claims to be a gigabyte isn't read into memory."""
    monkeypatch.setattr(archives, "LIMIT", 100_000)
    monkeypatch.setattr(archives, "ENTRIES", 10)
    info = tarfile.TarInfo("pax")
    info.type, info.size = tarfile.XHDTYPE, 1 << 30
    sdist = tmp_path / "mibyan_plugin_dice-1.0.tar.gz"
    sdist.write_bytes(gzip.compress(info.tobuf() + bytes(1_000_000)))
    assert check(sdist)["archive"]["status"] == "fail"


@pytest.mark.parametrize("kind", ["above", "absolute", "symlink", "hardlink", "fifo", "device"])
def test_W3_hostile_entries_of_an_sdist(check: Callable, tmp_path: Path, kind: str) -> None:
    """plugins.W3: an sdist's entries stay inside, and are files and folders."""
    info = tarfile.TarInfo(
        {"above": "../escaped-from-the-archive.txt", "absolute": "/tmp/escaped-from-the-archive.txt"}.get(kind, "a")
    )
    info.type = {
        "symlink": tarfile.SYMTYPE,
        "hardlink": tarfile.LNKTYPE,
        "fifo": tarfile.FIFOTYPE,
        "device": tarfile.CHRTYPE,
    }.get(kind, tarfile.REGTYPE)
    info.linkname = "/etc/passwd" if "link" in kind else ""
    path = tmp_path / "mibyan_plugin_dice-1.0.tar.gz"
    with tarfile.open(path, "w:gz") as archive:
        archive.addfile(info)
    found = check(path)
    assert failed(found) == {"archive"}
    assert not list(tmp_path.parent.rglob("escaped-from-the-archive.txt"))


@pytest.mark.parametrize(
    ("files", "name", "wrong"),
    [
        ({f"{INFO}/METADATA": None}, NAME, "wheel.metadata"),
        ({f"{INFO}/WHEEL": None}, NAME, "wheel.metadata"),
        ({"other-1.0.dist-info/METADATA": METADATA}, NAME, "wheel.metadata"),
        ({}, "mibyan_plugin_coin-1.0-py3-none-any.whl", "wheel.metadata"),
        ({}, "nonsense.whl", "wheel.metadata"),
        ({f"{INFO}/METADATA": METADATA.replace("1.0\n", "2.0\n")}, NAME, "wheel.metadata"),
        ({f"{INFO}/METADATA": "Name: mibyan-plugin-dice\nVersion: \u00fc\n"}, NAME, "wheel.metadata"),
        ({f"{INFO}/METADATA": b"\xff\xfe"}, NAME, "wheel.metadata"),
        ({f"{INFO}/RECORD": f"{INFO}/RECORD,,\n"}, NAME, "wheel.record"),
        ({f"{INFO}/RECORD": "nothing,sha256=AAAA,1\n"}, NAME, "wheel.record"),
        ({f"{INFO}/RECORD": b"\xff"}, NAME, "wheel.record"),
        ({f"{INFO}/entry_points.txt": "[mibyan_plugins]\ndice = mibyan_plugin_dice\n"}, NAME, "entry-point"),
        ({f"{INFO}/entry_points.txt": None}, NAME, "entry-point"),
        ({f"{INFO}/entry_points.txt": "[mibyan.plugins]\na = x\nb = y\n"}, NAME, "entry-point"),
        ({f"{INFO}/entry_points.txt": "[mibyan.plugins]\ndice = not there\n"}, NAME, "entry-point"),
        ({f"{INFO}/entry_points.txt": "[mibyan.plugins]\ndice = somewhere_else\n"}, NAME, "entry-point"),
        ({f"{INFO}/entry_points.txt": "[mibyan.plugins]\ncoin = mibyan_plugin_dice\n"}, NAME, "id"),
        ({"utils/__init__.py": ""}, NAME, "modules"),
        ({"tests/test_it.py": ""}, NAME, "modules"),
        ({"json.py": ""}, NAME, "modules"),
        ({"mibyan_plugin_dice/__init__.py": "def (:\n"}, NAME, "syntax"),
        ({"mibyan_plugin_dice/x.py": b"\x00"}, NAME, "syntax"),
        ({"mibyan_plugin_dice/x.py": b"# coding: nonsense\n"}, NAME, "syntax"),
        ({"mibyan_plugin_dice/x.py": "(" * 100_000}, NAME, "syntax"),
        ({f"{INFO}/METADATA": METADATA.replace("mibyan>=0.1.dev0", "mibyan>=99")}, NAME, "requires-mibyan"),
        ({f"{INFO}/METADATA": METADATA.replace("mibyan>=0.1.dev0", "mibyan >= what")}, NAME, "requires-mibyan"),
    ],
)  # fmt: skip
def test_W3_one_fault_each(check: Callable, tmp_path: Path, files: dict[str, Any], name: str, wrong: str) -> None:
    """plugins.W3: each fault of a wheel is the failed check that it is about, with a mend."""
    found = check(make_wheel(tmp_path, files, name=name))
    assert wrong in failed(found)
    assert failed(found) <= {wrong, "wheel.record", "version"}
    assert found[wrong]["fix"] or wrong == "syntax"


def test_W3_a_changed_file_isnt_what_record_says(check: Callable, tmp_path: Path) -> None:
    """plugins.W3: RECORD's digests are compared."""
    path = make_wheel(tmp_path)
    content = {info.filename: zipfile.ZipFile(path).read(info) for info in zipfile.ZipFile(path).infolist()}
    content["mibyan_plugin_dice/__init__.py"] += b"# one byte more\n"
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in content.items():
            archive.writestr(name, data)
    found = check(path)
    assert failed(found) == {"wheel.record"}
    assert "mibyan_plugin_dice/__init__.py" in found["wheel.record"]["text"]


@pytest.mark.parametrize(
    "manifest",
    [
        "{", "[]", "null", '{"id": "coin"}', '{"id": "dice", "tool": []}', '{"id": "dice", "tools": [{"name": "a b"}]}',
        '{"id": "dice", "version": "9"}', '{"id": "dice", "requires_mibyan": "soon"}', "{" * 5_000, "\xff" * 5_000_000,
        '{"id": "dice", "tools": [{"name": "a", "toolset": "t", "schema": {"parameters": {"type": "nonsense"}}}]}',
    ],
    ids=["half", "list", "null", "id", "key", "tool", "version", "range", "deep", "5 MB", "schema"],
)  # fmt: skip
def test_W3_manifests_that_arent(check: Callable, tmp_path: Path, manifest: str) -> None:
    """plugins.M1: a bad manifest is one failed check."""
    found = check(make_wheel(tmp_path, {f"{INFO}/extra_metadata/mibyan.json": manifest}))
    assert failed(found) == {"manifest"}


def test_W3_a_range_without_this_mibyan(check: Callable, tmp_path: Path) -> None:
    """plugins.M3: a plugin for another Mibyan fails, in words."""
    found = check(
        make_wheel(tmp_path, {f"{INFO}/extra_metadata/mibyan.json": json.dumps({**FROZEN, "requires_mibyan": ">=99"})})
    )
    assert failed(found) == {"requires-mibyan"}
    assert ">=99" in found["requires-mibyan"]["text"]


# Projects, folders, paths -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("old", "new", "wrong", "line"),
    [
        ("mibyan.plugins", "mibyan.plugin", "entry-point", 7),
        ("mibyan.plugins", "mibyan_plugins", "entry-point", 7),
        ('dice = "mibyan_plugin_dice"', 'coin = "mibyan_plugin_dice"', "id", 7),
        ('version = "1.0"', 'version = "one"', "version", None),
        ("[build-system]", "[build]", "project", None),
        ("[project]", "[project", "project", None),
    ],
)
def test_W3_faults_of_a_project(
    check: Callable, tmp_path: Path, old: str, new: str, wrong: str, line: int | None
) -> None:
    """plugins.W3: what pyproject.toml says is judged with its line, before anything is built."""
    root = make_project(tmp_path / "dice", PYPROJECT.replace(old, new))
    found = check(root)
    assert failed(found) == {wrong}
    if line is not None:
        assert found[wrong]["origin"] == f"{root / 'pyproject.toml'}:{line}"


def test_W3_an_sdist_is_a_project(check: Callable, tmp_path: Path) -> None:
    """plugins.W3: the project in an sdist is judged; no path of a scratch folder is told."""
    root = make_project(tmp_path / "mibyan_plugin_dice-1.0", PYPROJECT.replace("mibyan.plugins", "mibyan.plugin"))
    path = tmp_path / "mibyan_plugin_dice-1.0.tar.gz"
    with tarfile.open(path, "w:gz") as archive:
        archive.add(root, root.name)
    found = check(path)
    assert failed(found) == {"entry-point"}
    assert found["entry-point"]["origin"] == "mibyan_plugin_dice-1.0.tar.gz: mibyan_plugin_dice-1.0/pyproject.toml:7"
    assert "mibyan-check-" not in json.dumps(found)


def test_W3_a_folder_plugin(check: Callable, tmp_path: Path) -> None:
    """plugins.W3: a folder has no wheel's checks; what it lacks are warnings; its code isn't run."""
    root = add_plugin(tmp_path, "weather", BOOM)
    found = check(root)
    assert (found["code"], found["plugin"]) == (0, "weather")
    assert {name for name, one in found.items() if name in RULES and one["status"] == "warn"} == {
        "version", "requires-mibyan", "description", "readme", "license",
    }  # fmt: skip
    (root / "plugin.yaml").write_text("id: weather\nmodule: nowhere.py\n")
    assert failed(check(root)) == {"manifest"}
    (root / "plugin.yaml").write_text("id: sun\n")
    assert failed(check(root)) == {"manifest"}
    (root / "plugin.yaml").write_text("id: weather\ntols: []\n")
    assert "plugin.yaml:2" in check(root)["manifest"]["text"]


def test_W3_skip_leaves_checks_out(check: Callable, run: Callable, tmp_path: Path) -> None:
    """plugins.W3: --skip takes an id or a kind; an unknown one is a mistake with a suggestion."""
    path = make_wheel(tmp_path, {"utils.py": ""})
    assert check(path)["code"] == 1
    found = check(path, "--skip", "modules", "--skip", "import")
    assert found["code"] == 0
    assert found["modules"]["text"] == found["import.time"]["text"] == "left out by --skip"
    done = run("plugins", "check", str(path), "--skip", "moduls")
    assert done.code == 2
    assert "'modules'" in done.err


@pytest.mark.parametrize("what", ["nothing", "file", "empty", "project"])
def test_W3_what_is_no_plugin(run: Callable, home: Path, tmp_path: Path, what: str) -> None:
    """plugins.W3: a path without a plugin ends with 2 and says what was looked for."""
    path = tmp_path / "thing"
    if what == "file":
        path.write_text("x")
    elif what != "nothing":
        path.mkdir()
    if what == "project":
        (path / "pyproject.toml").write_text('[project]\nname = "something"\nversion = "1"\n')
    done = run("plugins", "check", str(path))
    assert done.code == 2
    assert "plugin.yaml" in done.err
    assert "wheel" in done.err
    assert done.out == ""


@pytest.mark.parametrize(
    "line", ["dynamic = 3", "dependencies = 3", "dependencies = [3]", "readme = 3", "description = [1]", "license = {}"]
)
def test_W3_types_that_arent(check: Callable, tmp_path: Path, line: str) -> None:
    """plugins.W3: a key of pyproject.toml with a value of another type is no reason to give up."""
    root = make_project(tmp_path / "dice", PYPROJECT.replace("[project]\n", f"[project]\n{line}\n"))
    assert not [one for one in check(root).values() if isinstance(one, dict) and "came to an end" in one["text"]]
