"""git and the platforms around it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from mibyan.approvals.executed import Executed
from mibyan.approvals.shell.options import Options
from mibyan.approvals.shell.values import Arg

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from mibyan.approvals.rules.checks import Checker, Found
    from mibyan.approvals.shell.call import Call

_GLOBAL = (
    "C",
    "c",
    "git-dir",
    "work-tree",
    "namespace",
    "exec-path",
    "super-prefix",
    "config-env",
    "attr-source",
    "list-cmds",
)
#: Settings whose value is a command.
_COMMANDS = re.compile(
    r"core\.(?:pager|editor|sshcommand|fsmonitor|gitproxy|askpass)|pager\..*|sequence\.editor|diff\.external|diff\..*\.(?:command|textconv)|merge\..*\.driver|"
    r"filter\..*\.(?:clean|smudge|process)|credential\.helper|credential\..*\.helper|gpg\.program|gpg\..*\.program|difftool\..*\.cmd|mergetool\..*\.cmd|"
    r"interactive\.difffilter|uploadpack\.packobjectshook|sendemail\..*cmd|browser\..*\.cmd|man\..*\.cmd",
    re.IGNORECASE,
)


def _split(call: Call) -> tuple[Options, str, list[Arg]]:
    """Git's own options, its command, and the command's words."""
    options = Options(call.args[1:], _GLOBAL, mixed=False)
    if not options.operands:
        return options, "", []
    return options, options.operands[0].text, list(options.operands[1:])


def check(call: Call) -> Iterator[Found]:
    """What a call of git loses."""
    options, verb, args = _split(call)
    if any(arg.text in {"--help", "-h"} for arg in args):
        return
    one = _VERBS.get(verb)
    if one is not None and one(args):
        yield "git_destructive", call.span
    if any(value.text.startswith("ext::") for value in args) or any(
        "/" in value.text for value in options.values("exec-path")
    ):
        yield "exec_flag", call.span


def executed(call: Call) -> Executed:
    """The commands that a call of git runs."""
    found = Executed()
    options, verb, args = _split(call)
    settings = options.values("c")
    if verb == "clone":
        settings += Options(args, ("c", "config", "b", "o", "u")).values("c", "config")
    for value in settings:
        name, _, _text = value.text.partition("=")
        _set(call, name, value.after(f"{name}="), found)
    if verb == "config":
        given = [arg for arg in Options(args, ("f", "file", "blob", "type")).operands if arg.text != "set"]
        if len(given) > 1:
            _set(call, given[0].text, given[1], found)
    _run_by_verb(call, verb, args, found)
    return found


def _set(call: Call, name: str, arg: Arg, found: Executed) -> None:
    """A setting, if its value is a command."""
    text = arg.text
    if re.match(r"(?i)alias\.", name):
        if text.startswith("!"):
            found.rules.append(("exec_flag", arg.span))
            found.add_code(call, arg.after("!"))
        else:
            found.add_code(call, Arg(f"git {text}", span=arg.span))
    elif _COMMANDS.fullmatch(name) and text not in {"true", "false", ""}:
        helper = name.lower().endswith(".helper") and re.fullmatch(r"[a-z-]+(?: --?[\w=. -]+)?", text)
        if not helper:
            found.add_command(call, arg.after("!") if text.startswith("!") else arg)
    elif name.lower() == "core.hookspath" and text != "/dev/null":
        found.rules.append(("exec_flag", arg.span))


def _run_by_verb(call: Call, verb: str, args: list[Arg], found: Executed) -> None:
    if (
        verb == "submodule"
        and (index := next((i for i, arg in enumerate(args) if arg.text == "foreach"), None)) is not None
    ):
        rest = [arg for arg in args[index + 1 :] if arg.text not in {"--recursive", "--quiet"}]
        if rest:
            found.add_code(call, Arg(" ".join(arg.text for arg in rest), span=rest[0].span))
    elif verb == "bisect" and args[:1] and args[0].text == "run" and len(args) > 1:
        found.add_code(call, Arg(" ".join(arg.text for arg in args[1:]), span=args[1].span))
    elif verb == "rebase":
        for value in Options(args, ("x", "exec", "onto", "s", "X")).values("x", "exec"):
            found.add_command(call, value)
    elif verb == "filter-branch":
        for value in Options(
            args,
            (
                "tree-filter",
                "index-filter",
                "msg-filter",
                "env-filter",
                "commit-filter",
                "parent-filter",
                "tag-name-filter",
                "d",
                "setup",
            ),
        ).values(
            "tree-filter",
            "index-filter",
            "msg-filter",
            "env-filter",
            "commit-filter",
            "parent-filter",
            "tag-name-filter",
            "setup",
        ):
            found.add_code(call, value)
    elif verb in {"fetch", "clone", "ls-remote", "pull", "push", "archive"}:
        for value in Options(args, ("u", "upload-pack", "receive-pack", "exec", "o", "b", "c", "config")).values(
            "upload-pack", "receive-pack", "exec"
        ):
            found.add_command(call, value)
    elif verb in {"difftool", "grep"}:
        for value in Options(args, ("x", "extcmd", "O", "open-files-in-pager", "e", "f", "t")).values(
            "x", "extcmd", "O", "open-files-in-pager"
        ):
            found.add_command(call, value)


def _push(args: list[Arg]) -> bool:
    options = Options(args, ("o", "push-option", "repo", "receive-pack", "exec"))
    if options.has("n", "dry-run"):
        return False
    long = {name for name, _ in options.given}
    if long & {"f", "force", "force-with-lease", "force-if-includes", "mirror", "d", "delete", "prune"} or options.has(
        "force", "mirror", "delete"
    ):
        return True
    return any(arg.text.startswith(("+", ":")) and len(arg.text) > 1 for arg in options.operands[1:])


def _has(*names: str, valued: tuple[str, ...] = (), unless: tuple[str, ...] = ()) -> Callable[[list[Arg]], bool]:
    def test(args: list[Arg]) -> bool:
        options = Options(args, valued)
        return options.has(*names) and not (unless and options.has(*unless))

    return test


def _branch(args: list[Arg]) -> bool:
    options = Options(args, ("u", "set-upstream-to", "sort", "format", "contains", "merged"))
    return (
        options.has("D")
        or (options.has("d", "delete", "m", "c", "M", "C") and options.has("f", "force"))
        or (options.has("f", "force") and bool(options.operands))
    )


def _clean(args: list[Arg]) -> bool:
    options = Options(args, ("e", "exclude"))
    return not options.has("n", "dry-run", "i", "interactive") and options.has("f", "force", "d", "x", "X")


def _paths(args: list[Arg]) -> bool:
    """`checkout`: of a file, all files, or by force."""
    words = [arg.text for arg in args]
    options = Options(args, ("b", "B", "orphan", "conflict"))
    return "--" in words[:-1] or "." in words or options.has("f", "force", "discard-changes") or options.has("B")


def _restore(args: list[Arg]) -> bool:
    options = Options(args, ("s", "source"))
    return bool(options.operands or options.has("pathspec-from-file")) and not (
        options.has("S", "staged") and not options.has("W", "worktree")
    )


def _first(*verbs: str) -> Callable[[list[Arg]], bool]:
    return lambda args: bool(args) and args[0].text in verbs


def _reflog(args: list[Arg]) -> bool:
    return (
        bool(args)
        and args[0].text in {"expire", "delete", "drop"}
        and not any(arg.text in {"-n", "--dry-run"} for arg in args)
    )


_VERBS: Final[dict[str, Callable[[list[Arg]], bool]]] = {
    "push": _push, "reset": _has("hard", "merge", "keep", valued=("pathspec-from-file",)), "clean": _clean, "branch": _branch, "checkout": _paths,
    "restore": _restore, "switch": _has("f", "force", "discard-changes", "C", "force-create"), "stash": _first("clear", "drop"), "filter-branch": lambda _args: True,
    "filter-repo": lambda args: not any(arg.text == "--dry-run" for arg in args), "reflog": _reflog, "update-ref": _has("d", "stdin", valued=("m",)),
    "gc": _has("prune", "aggressive-prune", unless=()), "prune": lambda args: not Options(args).has("n", "dry-run"), "tag": _has("d", "delete", "f", "force", valued=("m", "F", "u")),
    "worktree": lambda args: bool(args) and args[0].text in {"remove", "prune"} and Options(args).has("f", "force"), "rm": lambda args: Options(args).has("f", "force") and not Options(args).has("cached", "n"),
    "submodule": lambda args: bool(args) and args[0].text == "deinit" and Options(args).has("f", "force", "all"), "replace": _has("d", "delete", "f", "force"),
    "remote": _first("remove", "rm", "prune"), "lfs": lambda args: bool(args) and args[0].text == "prune", "notes": _first("remove", "prune"),
}  # fmt: skip


def _gh(call: Call) -> Iterator[Found]:
    operands = [arg.text for arg in Options(call.args[1:], ("R", "repo", "title", "t", "b", "body", "F")).operands]
    if len(operands) > 1 and operands[1] in {"delete", "archive", "delete-asset", "remove"} and operands[0] in {
        "repo", "release", "gist", "secret", "variable", "ssh-key", "gpg-key", "cache", "label", "issue", "run", "codespace", "extension", "project", "ruleset", "environment",
    }:  # fmt: skip
        yield "infra_destructive", call.span
    if operands[:1] == ["api"] and any(re.fullmatch(r"(?i)-?X?delete", word) for word in call.words):
        yield "infra_destructive", call.span


CHECKS: Final[dict[str, Checker]] = {"git": check, "gh": _gh, "glab": _gh, "hub": check}
