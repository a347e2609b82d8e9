"""`mibyan.plugins.sources.trust` and `digest`: project code is inert until it was looked at (plugins.S1)."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import stat
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mibyan.errors import MibyanError, PluginError
from mibyan.plugins.sources import digest as digest_module
from mibyan.plugins.sources.digest import combined, digest_folder
from mibyan.plugins.sources.trust import TrustStore, read_trusted_sources

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project with the plugin `weather`."""
    folder = tmp_path / "project" / ".mibyan" / "plugins" / "weather"
    (folder / "data").mkdir(parents=True)
    (folder / "plugin.yaml").write_text("id: weather\n")
    (folder / "__init__.py").write_text("from . import helper\n")
    (folder / "helper.py").write_text("x = 1\n")
    (folder / "data" / "cities.txt").write_text("Bern\n")
    return tmp_path / "project"


@pytest.fixture
def root(project: Path) -> Path:
    """The plugin's folder."""
    return project / ".mibyan" / "plugins" / "weather"


@pytest.fixture
def store(tmp_path: Path) -> TrustStore:
    """The trust of a home that isn't there yet."""
    return TrustStore(tmp_path / "home")


def trust(store: TrustStore, root: Path, project: Path, plugin_id: str = "weather") -> str | None:
    return store.trust(plugin_id, digest_folder(root), project)


def refusal(root: Path) -> str:
    with pytest.raises(PluginError) as caught:
        digest_folder(root)
    return caught.value.message.removeprefix(f"{root} can't be trusted: ")


def test_a_digest_has_every_file(root: Path) -> None:
    """plugins.S1: each file's SHA-256, hidden ones too; the sources are the very bytes that were hashed."""
    (root / ".hidden").write_bytes(b"h")
    digest = digest_folder(root)
    assert list(digest.files) == [".hidden", "__init__.py", "data/cities.txt", "helper.py", "plugin.yaml"]
    assert digest.files["helper.py"] == hashlib.sha256(b"x = 1\n").hexdigest()
    assert digest.size == sum(path.stat().st_size for path in root.rglob("*") if path.is_file())
    assert dict(digest.sources) == {
        "__init__.py": b"from . import helper\n",
        "helper.py": b"x = 1\n",
        "plugin.yaml": b"id: weather\n",
    }
    assert digest.digest == digest_folder(root).digest


def test_bytecode_isnt_hashed(root: Path, store: TrustStore, project: Path) -> None:
    """plugins.S1: `__pycache__` is neither read nor hashed, wherever it is."""
    trust(store, root, project)
    for folder in (root, root / "data"):
        (folder / "__pycache__").mkdir()
        (folder / "__pycache__" / "helper.cpython-311.pyc").write_bytes(b"evil")
        (folder / "__pycache__" / "evil.py").write_bytes(b"evil")
    verdict = store.check("weather", root, project)
    assert verdict.trusted
    assert not any("__pycache__" in name for name in read_trusted_sources(store, "weather", root, project))


@given(st.dictionaries(st.text(max_size=4), st.sampled_from(["aa", "bb"]), max_size=4), st.data())
def test_another_set_of_files_has_another_digest(files: dict[str, str], data: st.DataObject) -> None:
    """plugins.S1: the combined digest says the paths and the contents, in no order."""
    other = data.draw(st.dictionaries(st.text(max_size=4), st.sampled_from(["aa", "bb"]), max_size=4))
    assert (combined(files) == combined(other)) == (files == other)
    assert combined(files) == combined(dict(reversed(files.items())))


def test_nothing_is_trusted_at_first(store: TrustStore, root: Path, project: Path) -> None:
    """plugins.S1: inert until `mibyan plugins trust`; looking writes nothing."""
    verdict = store.check("weather", root, project)
    assert (verdict.trusted, verdict.reason) == (False, "never trusted")
    assert verdict.hint == "look at it and allow it: `mibyan plugins trust weather`"
    assert not store.path.parent.exists()


def test_what_was_trusted_is_trusted(store: TrustStore, root: Path, project: Path) -> None:
    """plugins.S1: as long as every byte is the same, in any spelling of the id and of the project's path."""
    assert trust(store, root, project) is None
    link = project.parent / "link"
    link.symlink_to(project)
    for spelling in ("weather", "Weather", "mibyan-plugin-weather"):
        assert store.check(spelling, root, link).trusted
    assert TrustStore(store.path.parent).check("weather", root, project).trusted


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda root: (root / "helper.py").write_text("x = 2\n"), "changed since it was trusted: helper.py"),
        (lambda root: (root / "new.so").write_bytes(b""), "added since it was trusted: new.so"),
        (lambda root: (root / "data" / "cities.txt").unlink(), "removed since it was trusted: data/cities.txt"),
        (
            lambda root: (root / "helper.py").rename(root / "h.py"),
            "added since it was trusted: h.py; removed since it was trusted: helper.py",
        ),
        (lambda root: (root / ".env").write_bytes(b"A=1"), "added since it was trusted: .env"),
        (
            lambda root: [(root / f"{n}.py").touch() for n in range(9)],
            "added since it was trusted: 0.py, 1.py, 2.py, 3.py, 4.py and 4 more",
        ),
    ],
)
def test_one_changed_byte_or_added_file_is_untrusted(
    store: TrustStore, root: Path, project: Path, change: object, reason: str
) -> None:
    """plugins.S1: any difference returns to untrusted, and the reason names the files."""
    trust(store, root, project)
    change(root)  # type: ignore[operator]
    verdict = store.check("weather", root, project)
    assert (verdict.trusted, verdict.reason) == (False, reason)
    with pytest.raises(PluginError, match="isn't trusted"):
        read_trusted_sources(store, "weather", root, project)


def test_changing_back_is_trusted_again(store: TrustStore, root: Path, project: Path) -> None:
    """plugins.S1: it is the bytes that count, not the history."""
    trust(store, root, project)
    (root / "helper.py").write_text("x = 2\n")
    assert not store.check("weather", root, project).trusted
    (root / "helper.py").write_text("x = 1\n")
    assert store.check("weather", root, project).trusted


def test_trust_is_for_what_was_shown(store: TrustStore, root: Path, project: Path) -> None:
    """plugins.S1: a file changed between showing and trusting isn't trusted."""
    shown = digest_folder(root)
    (root / "helper.py").write_text("evil\n")
    store.trust("weather", shown, project)
    assert store.check("weather", root, project).reason == "changed since it was trusted: helper.py"


def test_the_sources_are_the_bytes_that_were_hashed(
    store: TrustStore, root: Path, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """plugins.S1: each file is read once; what changes behind the check doesn't run."""
    trust(store, root, project)
    read: list[str] = []
    real = digest_module.read_bytes

    def once(path: str, limit: int) -> bytes:
        read.append(str(path))
        data = real(path, limit)
        if path.endswith(".py"):
            root.joinpath(path).write_text("evil\n")
        return data

    monkeypatch.setattr(digest_module, "read_bytes", once)
    assert read_trusted_sources(store, "weather", root, project)["helper.py"] == b"x = 1\n"
    assert len(read) == len(set(read)) == 4


def test_trust_is_for_one_project_and_one_id(store: TrustStore, root: Path, project: Path) -> None:
    """plugins.S1: a copy in another project, or under another id, is another matter."""
    trust(store, root, project)
    other = project.parent / "other"
    shutil.copytree(project, other)
    assert not store.check("weather", other / ".mibyan" / "plugins" / "weather", other).trusted
    assert not store.check("weather2", root, project).trusted


def test_project_tools_are_trusted_together(store: TrustStore, project: Path) -> None:
    """plugins.S1: the id `project-tools` stands for the directory, and a file's id means it."""
    tools = project / ".mibyan" / "tools"
    tools.mkdir()
    (tools / "a.py").write_text("registry.register(1)\n")
    trust(store, tools, project, "project-tools.a")
    assert store.check("project-tools", tools, project).trusted
    assert store.check("project-tools.b", tools, project).trusted
    (tools / "helper.py").write_text("evil\n")
    verdict = store.check("project-tools.a", tools, project)
    assert verdict.reason == "added since it was trusted: helper.py"
    assert verdict.hint == "look at it and allow it: `mibyan plugins trust project-tools`"


def test_untrust_takes_it_back(store: TrustStore, root: Path, project: Path) -> None:
    """plugins.S1: `untrust` says whether there was anything to take back."""
    assert store.untrust("weather", project) is False
    trust(store, root, project)
    trust(store, root, project, "other")
    assert store.untrust("Weather", project) is True
    assert store.check("weather", root, project).reason == "never trusted"
    assert store.check("other", root, project).trusted
    assert store.untrust("weather", project) is False


def test_the_file_is_private(store: TrustStore, root: Path, project: Path) -> None:
    """plugins.S1: trust.json is readable and writable by its owner alone, whatever it was."""
    trust(store, root, project)
    assert stat.S_IMODE(store.path.stat().st_mode) == 0o600
    store.path.chmod(0o666)
    trust(store, root, project, "other")
    assert stat.S_IMODE(store.path.stat().st_mode) == 0o600


@pytest.mark.parametrize(
    "content",
    [
        b"", b"{", b"[]", b"null", b"\xff", b"[" * 100_000, b'{"version": 1}', b'{"version": 2, "projects": {}}',
        b'{"version": 1, "projects": []}', b'{"version": 1, "projects": {"/p": []}}',
        b'{"version": 1, "projects": {"/p": {"x": 3}}}', b'{"version": 1, "projects": {"/p": {"x": {"files": []}}}}',
        b'{"version": 1, "projects": {"/p": {"x": {"files": {"a": 1}}}}}',
    ],
)  # fmt: skip
def test_a_broken_file_trusts_nothing_and_is_kept(store: TrustStore, root: Path, project: Path, content: bytes) -> None:
    """plugins.S1: with a broken trust.json everything is untrusted, it is said, and nothing of it is lost."""
    store.path.parent.mkdir()
    store.path.write_bytes(content)
    assert "can't be used, so no project code is trusted" in store.check("weather", root, project).reason
    assert store.problem() is not None
    with pytest.raises(PluginError, match="can't be used"):
        store.untrust("weather", project)
    assert store.path.read_bytes() == content
    said = trust(store, root, project)
    assert said is not None
    assert "trust.json.broken-1" in said
    assert (store.path.parent / "trust.json.broken-1").read_bytes() == content
    assert store.check("weather", root, project).trusted
    assert store.problem() is None


def test_each_broken_file_is_kept(store: TrustStore, root: Path, project: Path) -> None:
    """Nothing lost: a second broken file doesn't replace the first."""
    store.path.parent.mkdir()
    for content in ("one", "two"):
        store.path.write_text(content)
        trust(store, root, project)
    kept = sorted(path.name for path in store.path.parent.glob("trust.json.broken-*"))
    assert kept == ["trust.json.broken-1", "trust.json.broken-2"]


def test_trust_given_at_the_same_time_is_all_there(store: TrustStore, root: Path, project: Path) -> None:
    """plugins.S1: the file is locked while it is changed."""
    digest = digest_folder(root)
    names = [f"p{number}" for number in range(12)]
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda name: store.trust(name, digest, project), names))
    (ids,) = json.loads(store.path.read_text())["projects"].values()
    assert sorted(ids) == sorted(names)


def test_a_home_that_cant_be_written_is_an_error(tmp_path: Path, root: Path, project: Path) -> None:
    """Bad input: no silent half-trust; the message says where."""
    (tmp_path / "home").write_text("a file")
    with pytest.raises(MibyanError, match="home"):
        trust(TrustStore(tmp_path / "home"), root, project)


@pytest.mark.parametrize(
    ("link", "target", "said"),
    [
        ("evil.py", "../../../../outside.py", "the link 'evil.py' leaves the folder (to "),
        ("data/evil", "/etc", "the link 'data/evil' leaves the folder (to /etc)"),
        ("gone.py", "../gone.py", "the link 'gone.py' leaves the folder"),
        ("self", ".", "the link 'self' goes in a circle"),
        ("data/up", "..", "the link 'data/up' goes in a circle"),
        ("loop", "loop", "the file 'loop' can't be read"),
        ("broken", "missing", "the file 'broken' can't be read"),
        ("hidden.py", "__pycache__/x.py", "leads into __pycache__, which isn't looked at"),
    ],
)
def test_links_that_leave_are_refused(root: Path, project: Path, link: str, target: str, said: str) -> None:
    """plugins.S1: a link out of the folder, into a circle or to nothing is refused, naming it."""
    (project / "outside.py").write_text("evil\n")
    (root / link).symlink_to(target)
    assert said in refusal(root)


def test_a_neighbour_with_the_same_beginning_is_outside(root: Path) -> None:
    """plugins.S1: `weather-evil` isn't inside `weather`."""
    evil = root.with_name("weather-evil")
    evil.mkdir()
    (root / "x").symlink_to(evil)
    assert "leaves the folder" in refusal(root)


def test_a_folder_that_is_a_link_elsewhere_is_refused(root: Path, project: Path) -> None:
    """plugins.S1: the plugin's folder itself may not lead out of the project's plugins."""
    outside = project.parent / "outside"
    shutil.move(root, outside)
    root.symlink_to(outside)
    assert "it is a link that leads elsewhere" in refusal(root)


def test_links_inside_count_under_their_names(root: Path, store: TrustStore, project: Path) -> None:
    """plugins.S1: a link within the folder is hashed as what it leads to."""
    (root / "alias.py").symlink_to("helper.py")
    (root / "more").symlink_to("data")
    digest = digest_folder(root)
    assert digest.files["alias.py"] == digest.files["helper.py"]
    assert digest.files["more/cities.txt"] == digest.files["data/cities.txt"]
    store.trust("weather", digest, project)
    assert store.check("weather", root, project).trusted


def test_what_isnt_a_file_is_refused(root: Path) -> None:
    """plugins.S1: a pipe is refused and never waited for."""
    os.mkfifo(root / "pipe")
    assert refusal(root) == "the file 'pipe' can't be read: not a regular file"


def test_a_missing_folder_is_refused(root: Path, store: TrustStore, project: Path) -> None:
    """plugins.S1: a plugin that went away is untrusted with a reason, never an exception."""
    trust(store, root, project)
    shutil.rmtree(root)
    assert "can't be read: no such file or directory" in store.check("weather", root, project).reason


@pytest.mark.parametrize(("limit", "said"), [("FILES_LIMIT", "files"), ("BYTES_LIMIT", "bytes")])
def test_too_much_is_refused(root: Path, monkeypatch: pytest.MonkeyPatch, limit: str, said: str) -> None:
    """plugins.S1: hashing is bounded; what nobody could look through isn't trusted."""
    monkeypatch.setattr(digest_module, limit, 3)
    assert said in refusal(root) or "larger than 3 bytes" in refusal(root)


def test_links_that_multiply_are_bounded(root: Path) -> None:
    """plugins.S1: thirty levels of doubled links are refused, not walked."""
    folder = root / "d0"
    folder.mkdir()
    for level in range(1, 30):
        (root / f"d{level}").mkdir()
        for name in ("a", "b"):
            (root / f"d{level}" / name).symlink_to(f"../d{level - 1}")
    assert "files" in refusal(root)


@pytest.mark.skipif(not hasattr(os, "fsencode") or os.name != "posix", reason="names are bytes on POSIX only")
def test_names_that_arent_text_are_kept(root: Path, store: TrustStore, project: Path) -> None:
    """plugins.S1: a file name that isn't UTF-8 is hashed like any other."""
    (root / os.fsdecode(b"\xff.py")).write_bytes(b"x = 1")
    trust(store, root, project)
    assert store.check("weather", root, project).trusted
