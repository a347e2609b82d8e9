"""`Files`: what it means that a script writes or deletes files at some paths."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias

from mibyan.approvals.paths import is_secret, is_system_file, loses_machine, write_rule
from mibyan.approvals.shell.scope import Scope
from mibyan.approvals.shell.values import HOME, UNKNOWN, Arg

if TYPE_CHECKING:
    import ast
    from collections.abc import Iterator

    from mibyan.approvals.verdict import CommandContext

    #: A rule, and the node it is found at.
    Found: TypeAlias = tuple[str, ast.AST]

#: Folders of files that anybody may make and remove.
_TEMPORARY: Final = ("/tmp/", "/var/tmp/", "/dev/shm/", "/private/tmp/")  # noqa: S108 - judged, not used


class Files:
    """Judges paths.

    Args:
        context: Where the script would run.
    """

    def __init__(self, context: CommandContext) -> None:
        self._context = context
        self._scope = Scope(context.cwd)
        self._scope.home = context.home

    def is_secret(self, text: str) -> bool:
        """Whether there are credentials at a path."""
        return is_secret(self._scope.path(text))

    def take_away(self, call: ast.AST, paths: list[str]) -> Iterator[Found]:
        """Files or folders are taken away from where they were."""
        for text in paths:
            path = self._scope.path(text)
            if loses_machine(Arg(text), self._scope) or (UNKNOWN not in path and is_system_file(path)):
                yield "system_path_delete", call

    def write(self, call: ast.AST, paths: list[str], *, unseen: bool) -> Iterator[Found]:
        """Files are written, or made; `unseen`: whether a path that can't be seen counts."""
        for text in paths:
            path = self._scope.path(text)
            if rule := write_rule(path):
                yield rule, call
            elif unseen and _is_unseen(text):
                yield "python_unseen_path", call

    def delete(self, call: ast.AST, paths: list[str]) -> Iterator[Found]:
        """Single files are deleted."""
        for text in paths:
            path = self._scope.path(text)
            if _is_unseen(text):
                yield "python_unseen_path", call
            elif is_system_file(path):
                yield "system_path_delete", call
            elif is_secret(path) and path.startswith(HOME):
                yield "credential_delete", call
            elif self._is_outside(path):
                yield "python_delete", call

    def _is_outside(self, path: str) -> bool:
        if path.startswith(_TEMPORARY):
            return False
        cwd = self._context.cwd
        inside = cwd is not None and (path == cwd or path.startswith(cwd.rstrip("/") + "/"))
        if cwd is not None and self._context.home and self._scope.path(cwd).startswith(HOME):
            inside = inside or path.startswith(self._scope.path(cwd).rstrip("/") + "/")
        return not inside and (path.startswith(("/", HOME, "..")))

    def delete_tree(self, call: ast.AST, paths: list[str]) -> Iterator[Found]:
        """Folders are deleted with all that is in them."""
        for text in paths:
            if UNKNOWN not in text and loses_machine(Arg(text), self._scope):
                yield (
                    (
                        "home_delete"
                        if self._scope.path(text).startswith((HOME, "/home/", "/root", "/Users/"))
                        else "root_delete"
                    ),
                    call,
                )
            else:
                yield "recursive_delete", call


def _is_unseen(text: str) -> bool:
    """Whether it can't be told where a path leads: what is known of it doesn't begin with a folder or a name."""
    return text.startswith(UNKNOWN) or (UNKNOWN in text and ".." in text)
