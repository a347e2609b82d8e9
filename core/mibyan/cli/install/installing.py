"""`mibyan plugins install`: what is meant, what would change, a yes, the environment's own installer, a fresh look (plugins.W4)."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from mibyan.cli import exits
from mibyan.cli.asking import ask_yes_no, can_ask
from mibyan.cli.install import installers
from mibyan.cli.install.look import Look, look_at, told
from mibyan.cli.install.plan import is_named_as_plugin, pins, versions, work_out
from mibyan.cli.install.result import differences, fresh_look, tell_new
from mibyan.cli.install.safety import conflicts, require_harmless
from mibyan.cli.install.spec import read_editable, read_more, read_spec
from mibyan.cli.output import say
from mibyan.errors import MibyanError
from mibyan.records import record, replace

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mibyan.cli.install.installers import Installer
    from mibyan.cli.install.plan import Step
    from mibyan.cli.install.spec import Wanted
    from mibyan.cli.invocation import Invocation
    from mibyan.cli.pluginview import Found
    from mibyan.plugins.state import PluginRecord

#: What keeps an installer from building sources.
_ONLY_WHEELS = ("--only-binary=:all:",)


@record
class Order:
    """What was asked for."""

    wanted: Wanted
    #: Arguments for the installer.
    more: tuple[str, ...] = ()
    upgrade: bool = False
    yes: bool = False
    dry_run: bool = False


@record
class Prepared:
    """What would be done."""

    order: Order
    installer: Installer
    steps: tuple[Step, ...]
    #: What was seen of the distributions that are at hand, by canonical name (empty: it isn't known).
    looks: Mapping[str, Look]

    @property
    def command(self) -> list[str]:
        """The installer's command, without what holds it to the plan."""
        return self.held(())

    def held(self, pinned: Sequence[str]) -> list[str]:
        """The installer's command, with what holds it to the plan."""
        one = self.order
        return self.installer.install(
            one.wanted.words,
            more=[*pinned, *one.more],
            upgrade=one.upgrade,
            name=one.wanted.name,
            replaces=self.replaces,
        )

    @property
    def replaces(self) -> bool:
        """Whether the plugin is there in another version."""
        name = self.order.wanted.name
        return any(one.was and (one.name == name if name else is_named_as_plugin(one)) for one in self.steps)

    def to_dict(self) -> dict[str, Any]:
        """As JSON."""
        steps = [{**step.to_dict(), "plugin": self._plugin(step)} for step in self.steps]
        chosen = {"name": self.installer.name, "why": self.installer.why, "command": installers.shown(self.command)}
        return {"spec": installers.without_secrets(self.order.wanted.spec), "understood": self.order.wanted.said,
                "installer": chosen, "plan": steps}  # fmt: skip

    def _plugin(self, step: Step) -> dict[str, Any] | None:
        look = self.looks.get(step.name)
        if look is not None and look.id:
            return look.to_dict()
        return {"id": None, "problem": None, "manifest": None} if is_named_as_plugin(step) else None


def read_order(
    words: Sequence[str], editable: str | None, *, records: Sequence[PluginRecord], exact: bool, upgrade: bool, yes: bool,
    dry_run: bool,
) -> Order:  # fmt: skip
    """What the words of the command line ask for.

    Raises:
        UsageError: They can't be understood.
    """
    if editable is not None:
        return Order(read_editable(editable), tuple(read_more(words)), upgrade, yes, dry_run)
    if not words:
        raise exits.UsageError("SPEC is needed: a plugin's name, a requirement, a path or a URL; or -e PATH")
    installed = {one.id: one.candidate.distribution for one in records if one.candidate.distribution}
    wanted = read_spec(words[0], exact=exact, installed=installed)
    return Order(wanted, tuple(read_more(words[1:])), upgrade, yes, dry_run)


def plugins_before(invocation: Invocation, found: Found) -> Sequence[dict[str, Any]]:
    """The plugins as `plugins list --json` tells them now; in safe mode, where few are seen, another process looks."""
    return fresh_look(invocation)["plugins"] if found.runtime._parts.safe_mode else found.objects()


def run(invocation: Invocation, order: Order, before: Sequence[dict[str, Any]], installer: Installer) -> int:
    """Do it; the exit code.

    Args:
        invocation: Says where the home and the project are, and gets the answer.
        order: What was asked for.
        before: The plugins as `plugins list --json` tells them now.
        installer: The environment's.

    Raises:
        RefusedError: Nobody says yes.
        MibyanError: It can't be done, or would harm Mibyan; nothing was changed.
    """
    with TemporaryDirectory(prefix="mibyan-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        try:
            return _run(invocation, order, before, installer, folder)
        except installers.InstallerError as error:
            return failed(invocation, error, _explained(order, str(error)))


def _run(
    invocation: Invocation, order: Order, before: Sequence[dict[str, Any]], installer: Installer, folder: Path
) -> int:  # fmt: skip
    look = _seen(order.wanted)
    if look is not None and look.distribution:
        order = replace(order, wanted=replace(order.wanted, name=look.distribution))
    installers.require_changeable(installer.environment, order.more)
    say(f"{order.wanted.said[:1].upper()}{order.wanted.said[1:]}.")
    say(f"Installer: {installer.name}, {installer.why} ({installer.environment.prefix}).")
    order, steps = _planned(order, installer.beneath(), folder)
    ready = Prepared(order, installer, steps, _looks(order.wanted, look, steps))
    require_harmless(steps, versions())
    if not steps:
        return _nothing_to_do(invocation, ready, before)
    _show(ready)
    if order.dry_run:
        return _answer(invocation, ready, {"installed": False, "plugins": [], "problems": []})
    _require_yes(order)
    installers.run(ready.held(pins(steps, folder)), installer.environment, folder)
    return _told(invocation, ready, before)


def _planned(order: Order, installer: Installer, folder: Path) -> tuple[Order, tuple[Step, ...]]:
    """The plan, and the order that it is of: by wheels alone where that can be, since building a source runs its code.

    Raises:
        InstallerError: Nothing fits, or nothing but sources, and nobody says yes to that.
    """
    careful = () if order.wanted.kind not in {"name", "wheel"} else _ONLY_WHEELS
    if any(word.startswith(("--only-binary", "--no-binary")) for word in order.more):
        careful = ()
    first = replace(order, more=(*careful, *order.more))
    try:
        return first, work_out(installer, order.wanted, folder, more=first.more, upgrade=order.upgrade)
    except installers.InstallerError as error:
        if not careful or not _may_build(order, error):
            raise
    return order, work_out(installer, order.wanted, folder, more=order.more, upgrade=order.upgrade)


def _may_build(order: Order, error: installers.InstallerError) -> bool:
    """Whether sources may be built to find out what would change."""
    if order.yes:
        return True
    if not can_ask():
        error.hint = "With --yes sources are tried as well: building them runs code of theirs."
        return False
    say(str(error))
    return bool(ask_yes_no("With wheels alone it can't be done. Building sources runs code of theirs: try that?"))


def _seen(wanted: Wanted) -> Look | None:
    """What is at hand.

    Raises:
        MibyanError: It isn't a plugin.
    """
    if wanted.path is None or wanted.kind == "sdist":
        return None
    look = look_at(wanted.path)
    told_by_code = wanted.kind == "folder" and (wanted.path / "setup.py").is_file()
    if not look.id and not told_by_code:
        raise MibyanError(f"nothing was installed: {look.problem}", origin=str(wanted.path), hint=look.hint)
    return look if look.id else None


def _looks(wanted: Wanted, look: Look | None, steps: Sequence[Step]) -> dict[str, Look]:
    """What is at hand of the plan: what SPEC names, and wheels that lie here.

    Raises:
        MibyanError: SPEC names one that isn't a plugin.
    """
    found: dict[str, Look] = {}
    for step in steps:
        if step.path is not None and step.path.is_file():
            seen = look_at(step.path)
            if not seen.id and step.name == wanted.name:
                raise MibyanError(f"nothing was installed: {seen.problem}", origin=str(step.path), hint=seen.hint)
            if seen.id:
                found[step.name] = seen
    if look is not None:
        found.setdefault(look.distribution or wanted.name, look)
    return found


def _show(ready: Prepared) -> None:
    """The plan: on standard error, where the question is asked."""
    say("What changes:")
    for step in ready.steps:
        called = "  (called as plugins are)" if is_named_as_plugin(step) and step.name not in ready.looks else ""
        say(f"  {step}{called}" + ("  (Mibyan itself)" if step.name == "mibyan" else ""))
    for look in ready.looks.values():
        for line in told(look):
            say(f"  {line}")
    for line in conflicts(ready.steps, versions()):
        say(f"  conflict: {line}")
    say(f"By: {installers.shown(ready.command)}")
    if ready.installer.environment.is_uv_tool:
        say(f"`uv tool upgrade mibyan` keeps only what was named with it; so that it stays: "
            f"uv tool install mibyan --with {installers.shown(ready.order.wanted.words)}")  # fmt: skip


def _require_yes(order: Order) -> None:
    if order.yes:
        return
    if not can_ask():
        raise exits.RefusedError(
            "nothing was installed: nobody is there to be asked",
            hint="Look at what changes, then give --yes as well; --dry-run only shows it.",
        )
    if not ask_yes_no("Install it?"):
        raise exits.RefusedError("nothing was installed: you didn't say yes")


def _nothing_to_do(invocation: Invocation, ready: Prepared, before: Sequence[dict[str, Any]]) -> int:
    name = ready.order.wanted.name or ready.order.wanted.spec
    say(f"{name} is installed already: nothing changes.{_otherwise(ready.order)}")
    from mibyan.plugins.sources.ids import distribution_id

    told_of = [one for one in before if one["id"] == distribution_id(name)]
    tell_new(told_of, before, before)
    return _answer(invocation, ready, {"installed": False, "plugins": told_of, "problems": []})


def _otherwise(order: Order) -> str:
    """What would change something."""
    if order.wanted.kind == "wheel":
        return " To put in this very file all the same: … -- --force-reinstall --no-deps"
    return "" if order.upgrade else " --upgrade takes the newest version that fits."


def _told(invocation: Invocation, ready: Prepared, before: Sequence[dict[str, Any]]) -> int:
    """Look afresh, in a new process, and tell what has appeared; 1 if no plugin has."""
    after = fresh_look(invocation)
    new = differences(before, after["plugins"], [step.name for step in ready.steps])
    problems = [
        one for one in after["problems"] if one["subject"].removeprefix("plugin:") in {each["id"] for each in new}
    ]
    tell_new(new, after["plugins"], before)
    answer = {"installed": True, "plugins": new, "problems": problems}
    if not new:
        names = ", ".join(step.name for step in ready.steps if not step.was) or ready.order.wanted.spec
        say(f"Installed, and no plugin has appeared: {names} has no entry point in the group 'mibyan.plugins'.")
        say(f"To remove it: {installers.shown(ready.installer.uninstall(ready.order.wanted.name or names))}")
    code = _answer(invocation, ready, answer)
    return code if new else exits.FAILED


def _answer(invocation: Invocation, ready: Prepared, more: Mapping[str, Any]) -> int:
    if invocation.options.as_json:
        invocation.out.document({**ready.to_dict(), **more})
    return exits.OK


def failed(invocation: Invocation, error: MibyanError, advice: str = "") -> int:
    """Tell that an installer has failed; the exit code."""
    if invocation.options.as_json:
        invocation.out.document({"error": error.message, "hint": error.hint or advice or None})
    say(f"mibyan: error: {error}")
    for line in filter(None, (error.hint, advice)):
        say(line)
    return exits.FAILED


def _explained(order: Order, said: str) -> str:
    """What to try when what is wanted doesn't go with this Mibyan, or nothing was found under the name that was understood."""
    from mibyan.plugins.sources.ids import PREFIX

    own = versions().get("mibyan", "")
    if own and f"mibyan=={own}" in said:
        return f"Mibyan itself is never changed here, and this is {own}: upgrade it first, or take another version of the plugin."
    lacking = ("No matching distribution", "was not found in", "no versions of", "No solution found")
    if order.wanted.kind != "name" or not any(words in said for words in lacking):
        return ""
    bare = order.wanted.spec.removeprefix(PREFIX)
    return f"If the distribution isn't called so: mibyan plugins install --exact {bare!r}, or give its path or URL."
