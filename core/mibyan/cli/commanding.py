"""Runs and lists the commands of plugins, for `mibyan command`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mibyan.cli import exits
from mibyan.cli.loaded import enforce_strictness, loaded
from mibyan.cli.output import say
from mibyan.errors import PluginError
from mibyan.plugins.state import standing
from mibyan.text import bounded, describe_exception, did_you_mean, one_line, suggest

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from mibyan.cli.invocation import Invocation
    from mibyan.plugins.foreseen import ForeseenCommand
    from mibyan.plugins.offers import Offer
    from mibyan.runtime import Runtime

#: Characters of what an exception says.
_ERROR_LIMIT = 2_000
#: Names that an error lists.
_MOST = 40
#: What `shlex.split` would take apart or away.
_SPECIAL = frozenset(" \t\r\n'\"\\")


def joined(words: Sequence[str]) -> str:
    """Words as one text: a single one as it is, several so that `shlex.split` gives them back."""
    import shlex

    if len(words) == 1:
        return words[0]
    return " ".join(shlex.quote(word) if not word or _SPECIAL & set(word) else word for word in words)


# Running -------------------------------------------------------------------------------------------------------------


def run_command(invocation: Invocation, name: str, text: str) -> int:
    """Run a plugin's command and print what it gives; the exit code.

    Raises:
        UsageError: There is no such command.
        RefusedError: Its plugin can't be used.
        KeyboardInterrupt: It came meanwhile.
    """
    with invocation.runtime() as runtime:
        loaded(invocation, runtime)
        enforce_strictness(invocation, runtime)
        offer = _offer(runtime, name)
        try:
            result = runtime.plugins.run_command(name, text)
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            return _told_failure(invocation, runtime, offer, error)
        told = plain(runtime, result)
        if invocation.options.as_json:
            invocation.out.document({"command": name, "plugin": offer.owner.id, "status": "ok", "result": told})
        elif isinstance(told, str):
            invocation.out.line(told)
        elif told is not None:
            invocation.out.document(told)
        return exits.OK


def plain(runtime: Runtime, result: Any) -> Any:
    """What a command gave as JSON types, without secrets."""
    from mibyan.schema.jsontext import to_data

    clean = runtime._parts.clean
    if isinstance(result, str):
        return clean(result)
    data = to_data(result)
    return _cleaned(data, clean)


def _cleaned(data: Any, clean: Any) -> Any:
    match data:
        case str():
            return clean(data)
        case dict():
            return {clean(key): _cleaned(value, clean) for key, value in data.items()}
        case list():
            return [_cleaned(value, clean) for value in data]
    return data


def _offer(runtime: Runtime, name: str) -> Offer:
    """The command of a name, its plugin imported.

    Raises:
        UsageError: There is none.
        RefusedError: Its plugin can't be used.
    """
    offers = runtime.plugins.offers
    if name not in offers.commands:
        _refuse_unusable(runtime, name)
        raise exits.UsageError(unknown(name, offers.commands), "mibyan command")
    try:
        return offers.command(name)
    except PluginError as error:
        raise exits.RefusedError(str(error)) from error


def _refuse_unusable(runtime: Runtime, name: str) -> None:
    """Raise if a plugin that can't be used announces the command.

    Raises:
        RefusedError: One does.
    """
    for record in runtime.plugins.all_records():
        manifest = record.candidate.manifest
        if not record.is_usable and manifest and any(command.name == name for command in manifest.commands):
            raise exits.RefusedError(
                f"{one_line(name, 60)} is a command of plugin {record.id}, which {standing(record.state, record.reason)}",
                hint=record.hint,
            )


def unknown(name: str, names: Iterable[str]) -> str:
    """The sentence about a command that there isn't."""
    known = sorted(names)
    meant = suggest(name, known)
    listed = ", ".join(one_line(one, 60) for one in known[:_MOST]) + (", …" if len(known) > _MOST else "")
    there_are = f"; there are {listed}" if known else ", and no other"
    return f"no plugin has a command {one_line(name, 60)!r}{did_you_mean(meant)}{there_are}"


def _told_failure(invocation: Invocation, runtime: Runtime, offer: Offer, error: BaseException) -> int:
    raised = runtime._parts.clean(describe_exception(error))
    tell_raised(invocation, f"plugin {offer.owner.id!r}: its command {one_line(offer.name, 60)!r}", raised)
    if invocation.options.as_json:
        kind, _, message = raised.partition(": ")
        invocation.out.document({
            "command": offer.name, "plugin": offer.owner.id, "status": "error", "result": None,
            "error": bounded(message or kind, _ERROR_LIMIT), "error_type": kind,
        })  # fmt: skip
    return exits.FAILED


def tell_raised(invocation: Invocation, what: str, raised: str) -> None:
    """Say what a plugin's code raised, on one line; with `--debug` where, too. To be called where it was caught."""
    if invocation.options.debug:
        import traceback

        say(traceback.format_exc(), end="")
    say(f"mibyan: error: {what} raised {one_line(raised, _ERROR_LIMIT)}")


# Listing -------------------------------------------------------------------------------------------------------------


def list_commands(invocation: Invocation) -> int:
    """Print the commands that plugins are known to have; nothing is imported."""
    found = invocation.foreseen
    rows = [found.commands[name] for name in sorted(found.commands)]
    if invocation.options.as_json:
        invocation.out.document({"commands": [_row(one) for one in rows], "untold": sorted(found.untold)})
    else:
        _print(invocation, rows, sorted(found.untold))
    return exits.OK


def _row(one: ForeseenCommand) -> dict[str, str]:
    return {"name": one.name, "plugin": one.plugin.id, "description": one.description, "args_hint": one.args_hint}


def _print(invocation: Invocation, rows: Sequence[ForeseenCommand], untold: Sequence[str]) -> None:
    from mibyan.cli.tables import Column, show_table

    columns = (Column("NAME"), Column("ARGUMENTS"), Column("PLUGIN"), Column("DESCRIPTION"))
    show_table(invocation.out, columns, [(one.name, one.args_hint, one.plugin.id, one.description) for one in rows])
    if untold:
        ids = ", ".join(one_line(one, 60) for one in untold[:_MOST])
        say(f"mibyan: these plugins tell their commands only when they are imported: {ids}")
