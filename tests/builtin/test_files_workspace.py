"""files/workspace.py: what a path leads to, and what it can't lead to."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mibyan import ToolError
from mibyan_builtin.files.workspace import Workspace


def located(workspace: Workspace, path: str) -> Path:
    with workspace.locate(path) as location:
        return location.path


@pytest.fixture
def tree(workspace: Path) -> Path:
    """A directory with a file, and links within the workspace and out of it."""
    (workspace / "a/b").mkdir(parents=True)
    (workspace / "a/b/f.txt").write_text("x")
    (workspace / "inside").symlink_to("a/b")
    (workspace / "absolute").symlink_to(workspace / "a")
    (workspace / "out").symlink_to(workspace.parent)
    (workspace / "file_out").symlink_to("../outside.txt")
    (workspace / "nowhere_out").symlink_to("/nonexistent/x")
    (workspace / "dangling").symlink_to("a/new.txt")
    (workspace / "loop").symlink_to("loop")
    (workspace / "to_and_fro").symlink_to("../ws/a")
    return workspace


@pytest.mark.parametrize(
    ("path", "real"),
    [
        ("a/b/f.txt", "a/b/f.txt"),
        ("./a//b/./f.txt", "a/b/f.txt"),
        ("a/b/../b/f.txt", "a/b/f.txt"),
        ("../ws/a/b/f.txt", "a/b/f.txt"),
        ("../../../../../../../../../../../../.{ws}/a/b/f.txt", "a/b/f.txt"),
        ("{ws}/a/b/f.txt", "a/b/f.txt"),
        ("/nonexistent/..{ws}/a", "a"),
        ("inside/f.txt", "a/b/f.txt"),
        ("inside/../b/f.txt", "a/b/f.txt"),
        ("absolute/b/f.txt", "a/b/f.txt"),
        ("to_and_fro/b/f.txt", "a/b/f.txt"),
        ("dangling", "a/new.txt"),
        ("new/deep/er/x.txt", "new/deep/er/x.txt"),
        ("new/../x.txt", "x.txt"),
        (".", "."),
        ("a/..", "."),
        ("~x", "~x"),
        ("ملف עברית.txt", "ملف עברית.txt"),
    ],
)
def test_a_path_in_the_workspace_leads_to_its_file(tree: Path, path: str, real: str) -> None:
    """Relative, absolute, dotted and linked forms lead to the same place, whether or not it exists."""
    assert located(Workspace(tree), path.replace("{ws}", str(tree))) == Path(os.path.normpath(tree.resolve() / real))


@pytest.mark.parametrize(
    "path",
    [
        "..", "../outside.txt", "../nothing.txt", "/", "/etc/passwd", "/nonexistent", "a/../../outside.txt",
        "out/outside.txt", "out/nothing.txt", "file_out", "nowhere_out", "inside/../../../outside.txt",
        "~", "~/.ssh/id_rsa", "{ws}x", "{ws}/../ws2/x",
    ],
)  # fmt: skip
def test_a_path_outside_is_refused_in_the_same_words(tree: Path, path: str) -> None:
    """A path outside is refused whether or not it exists, and the answer doesn't tell."""
    path = path.replace("{ws}", str(tree))
    with pytest.raises(ToolError) as refusal:
        located(Workspace(tree), path)
    assert refusal.value.message == f"The path is outside the workspace: {path}"
    assert str(tree) in (refusal.value.hint or "")


def test_roots_widen_the_workspace(tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """files.roots are in the workspace too; `~` in them and in a path is the user's home."""
    (tmp_path / "home/docs").mkdir(parents=True)
    (tmp_path / "more").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    workspace = Workspace(tree, ["~/docs", "../more"])
    assert located(workspace, "~/docs/x") == (tmp_path / "home/docs/x").resolve()
    assert located(workspace, "../more/x") == (tmp_path / "more/x").resolve()
    assert located(workspace, "a/../../more/../ws/a") == (tree / "a").resolve()
    with pytest.raises(ToolError, match="outside"):
        located(workspace, "~/other")


def test_a_root_above_the_working_directory_holds_its_parents(tree: Path) -> None:
    """Where one root lies in another, `..` goes on in the outer one."""
    workspace = Workspace(tree / "a/b", [tree])
    assert located(workspace, "../../inside/f.txt") == (tree / "a/b/f.txt").resolve()
    with pytest.raises(ToolError, match="outside"):
        located(workspace, "../../../outside.txt")


def test_another_name_of_the_workspace_counts(tree: Path, tmp_path: Path) -> None:
    """A path that goes over a link outside counts by where it arrives."""
    (tmp_path / "alias").symlink_to(tree)
    assert located(Workspace(tree), f"{tmp_path}/alias/a") == (tree / "a").resolve()
    assert located(Workspace(tmp_path / "alias"), f"{tree}/a") == (tree / "a").resolve()
    assert located(Workspace(tmp_path / "alias"), "a") == (tree / "a").resolve()


def test_the_root_of_the_file_system_can_be_the_workspace() -> None:
    """With `/` as working directory everything is inside."""
    assert located(Workspace(Path("/")), "usr/../nonexistent") == Path("/nonexistent")


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("", "empty"), ("  ", "empty"), ("a\0b", "NUL"), ("x" * 5000, "5000 bytes"), ("\ud800", "surrogates"),
        ("loop", "Too many symbolic links"), ("a/b/f.txt/x", "not a directory"),
    ],
)  # fmt: skip
def test_what_is_no_path_gets_a_sentence(tree: Path, path: str, message: str) -> None:
    """Blank, overlong and impossible paths are refused before anything is looked up."""
    with pytest.raises(ToolError, match=message):
        located(Workspace(tree), path)


def test_a_name_that_is_too_long_gets_a_sentence(tree: Path) -> None:
    """The operating system's own limits are told."""
    with pytest.raises(ToolError, match="too long"), Workspace(tree).locate("n" * 300) as location:
        location.stat()


def test_a_vanished_working_directory_gets_a_sentence(tmp_path: Path) -> None:
    """A session's directory may have been removed since."""
    with pytest.raises(ToolError, match="not found"):
        located(Workspace(tmp_path / "gone"), "x")


def test_a_directory_swapped_for_a_link_leads_nowhere(tree: Path) -> None:
    """What changes after the walk can't lead the way out: the directory itself is open, not its name."""
    with Workspace(tree).locate("a/b/f.txt") as location:
        (tree / "a").rename(tree / "moved")
        (tree / "a").symlink_to("/etc")
        status = location.stat()
        assert status is not None
        assert status.st_ino == (tree / "moved/b/f.txt").stat().st_ino


def test_descriptors_are_closed(tree: Path) -> None:
    """A walk leaves nothing open, whether it arrives or not."""
    if not Path("/proc/self/fd").is_dir():
        pytest.skip("descriptors can't be counted here")
    before = len(list(Path("/proc/self/fd").iterdir()))
    for path in ("a/b/f.txt", "../x", "loop", "a/b/f.txt/x", "new/x", "a/../../outside.txt"):
        with suppress(ToolError):
            located(Workspace(tree), path)
    assert len(list(Path("/proc/self/fd").iterdir())) == before


PARTS = st.sampled_from(
    ["a", "b", "..", ".", "", "inside", "out", "absolute", "dangling", "new", "ws", "f.txt", "loop"]
)


@settings(max_examples=300)
@given(st.lists(PARTS, max_size=8), st.booleans())
def test_no_path_leads_out(tmp_path_factory: pytest.TempPathFactory, parts: list[str], absolute: bool) -> None:
    """Whatever the path: it is refused, or it leads where the kernel would go, and that is inside."""
    base = tmp_path_factory.getbasetemp() / "property"
    tree = base / "ws"
    if not tree.exists():
        (tree / "a/b").mkdir(parents=True, exist_ok=True)
        (tree / "a/b/f.txt").write_text("x")
        (tree / "inside").symlink_to("a/b")
        (tree / "absolute").symlink_to(tree / "a")
        (tree / "out").symlink_to(base)
        (tree / "dangling").symlink_to("a/new.txt")
        (tree / "loop").symlink_to("loop")
    path = "/".join(parts)
    path = f"{tree}/{path}" if absolute else path
    try:
        found = located(Workspace(tree), path)
    except ToolError:
        return
    real = tree.resolve()
    assert found == real or real in found.parents
    if (tree / path).exists():
        assert found == Path(os.path.realpath(tree / path))
