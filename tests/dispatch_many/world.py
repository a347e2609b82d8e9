"""A small tree with links, operations on it that name what they touch, and batches of them from Hypothesis."""

# ruff: noqa: PTH118, PTH120 - texts as tools write them; `pathlib` would tidy them

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from hypothesis import strategies as st

#: Every form in which the few places of the tree are written.
NAMES = ("a", "./a", "b", "d", "d/a", "d/b", "d/../a", "l", "l/a", "m", "e/a", "e", ".", "l/../a")


def build(root: Path) -> None:
    """The tree as it is before a batch: `l` leads to the directory `d`, `m` to the file `a`, `e` isn't there."""
    if root.exists():
        shutil.rmtree(root)
    (root / "d").mkdir(parents=True)
    for name in ("a", "b", "d/a"):
        (root / name).write_text(name)
    (root / "l").symlink_to("d")
    (root / "m").symlink_to("a")


def state(root: Path) -> dict[str, str]:
    """The tree as it is: contents of files, targets of links, directories."""
    found: dict[str, str] = {}
    for folder, directories, files in os.walk(root):
        for name in (*directories, *files):
            path = Path(folder, name)
            shown = str(path.relative_to(root))
            if path.is_symlink():
                found[shown] = f"-> {path.readlink()}"
            else:
                found[shown] = path.read_text() if path.is_file() else "/"
    return found


@dataclass(frozen=True)
class Operation:
    """One operation on the tree, with what it says that it touches."""

    kind: str
    name: str
    other: str = ""

    @property
    def reads(self) -> list[str]:
        return {"read": [self.name], "list": [self.name], "copy": [self.name]}.get(self.kind, [])

    @property
    def writes(self) -> list[str]:
        if self.kind in {"read", "list"}:
            return []
        if self.kind == "turn":
            return [self.name]  # Not what the link in it will lead to.
        if self.kind == "link":
            return [self.name, os.path.join(os.path.dirname(self.name), self.other)]
        return {"copy": [self.other], "move": [self.name, self.other]}.get(self.kind, [self.name])

    def run(self, root: Path) -> str:
        """Do it; what came of it."""
        try:
            return _DO[self.kind](root / self.name, root / self.other, self) or "done"
        except (OSError, shutil.Error) as error:
            return type(error).__name__


def _append(path: Path, other: Path, operation: Operation) -> None:
    with path.open("a") as stream:
        stream.write(f"+{operation.other}")


def _link(path: Path, other: Path, operation: Operation) -> None:
    with contextlib.suppress(FileNotFoundError):
        path.unlink()
    path.symlink_to(operation.other)


def _turn(path: Path, other: Path, operation: Operation) -> None:
    """Change what is in a directory: the file `a` becomes a link."""
    _link(path / "a", other, operation)


def _list(path: Path, other: Path, operation: Operation) -> str:
    return str(sorted(state(path).items())) if path.is_dir() else "none"


def _remove(path: Path, other: Path, operation: Operation) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink()


_DO: dict[str, Callable[[Path, Path, Operation], str | None]] = {
    "read": lambda path, other, operation: path.read_text(),
    "list": _list,
    "append": _append,
    "write": lambda path, other, operation: path.write_text(operation.other) and None,
    "make": lambda path, other, operation: path.mkdir(),
    "link": _link,
    "turn": _turn,
    "remove": _remove,
    "copy": lambda path, other, operation: other.write_text(path.read_text()) and None,
    "move": lambda path, other, operation: path.rename(other) and None,
}

#: How what may go on next is chosen: as it comes; or as much as may begin, then the last first, or the very first and
#: then the last first; or the very first up to its act, then what the others say, its act, and then the last first.
STYLES = ("any", "last", "head", "held")
styles = st.sampled_from(STYLES)


def chosen(style: str, choices: list[tuple[int, str]], data: st.DataObject | None = None) -> tuple[int, str]:
    """One of the choices, each `(position, what)`; what a call touches is said early, and may be old when it counts."""
    if style == "any" and data is not None:
        return data.draw(st.sampled_from(choices))
    early = [choice for choice in choices if choice[1] in {"begin", "again", "name"}]
    head = [choice for choice in choices if choice[0] == 0]
    if style == "held" and head and (head[0][1] != "act" or not early):
        return head[0]
    first = min(early or choices)
    return first if style == "head" and first[0] <= 0 else max(early or choices)


names = st.sampled_from(NAMES)
#: Names that an operation may take away without taking the root away.
inner = st.sampled_from([name for name in NAMES if name != "."])
#: The few names whose meanings depend on one another most.
knot = st.sampled_from(["l", "l/a", "d", "d/a", "e", "e/a", "b"])
knotted = st.one_of(
    st.builds(Operation, st.sampled_from(["read", "list", "remove"]), knot),
    st.builds(Operation, st.just("write"), knot, st.sampled_from("xyz")),
    st.builds(Operation, st.just("link"), knot, st.sampled_from(["d", "e", "l"])),
    st.builds(Operation, st.just("turn"), st.sampled_from(["d", "l", "e"]), st.sampled_from(["../b", "../e"])),
    st.builds(Operation, st.sampled_from(["copy", "move"]), knot, knot),
)
loose = st.one_of(
    st.builds(Operation, st.sampled_from(["read", "list"]), names),
    st.builds(Operation, st.just("append"), inner, st.sampled_from("xyz")),
    st.builds(Operation, st.just("write"), inner, st.sampled_from("xyz")),
    st.builds(Operation, st.sampled_from(["make", "remove"]), inner),
    st.builds(Operation, st.just("link"), inner, st.sampled_from(["a", "b", "d", "e", "d/b", "l", "m"])),
    st.builds(Operation, st.sampled_from(["copy", "move"]), inner, inner),
)
#: Batches in which something moves under the paths of what comes later.
KNOTS = (
    (Operation("turn", "d", "../b"), Operation("write", "d/a", "x"), Operation("read", "b")),
    (Operation("turn", "l", "../b"), Operation("read", "l/a"), Operation("write", "b", "x")),
    (Operation("link", "e", "d"), Operation("write", "e/a", "x"), Operation("read", "d/a")),
    (Operation("link", "l", "e"), Operation("make", "e"), Operation("write", "l/a", "x"), Operation("read", "e/a")),
    (Operation("move", "l", "e"), Operation("write", "e/a", "x"), Operation("list", "d")),
    (Operation("move", "d", "e"), Operation("read", "l/a"), Operation("write", "e/a", "x")),
    (Operation("remove", "m"), Operation("write", "m", "x"), Operation("read", "a")),
    (Operation("append", "d/../a", "x"), Operation("remove", "d"), Operation("read", "a")),
)
operations = st.one_of(loose, knotted)
batches = st.one_of(*(st.lists(each, min_size=2, max_size=7) for each in (loose, knotted, knotted)))
