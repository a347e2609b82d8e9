"""Learning a plugin: what it has registered as plain data, or the sentence why that can't be kept (plugins.M4)."""

from __future__ import annotations

import marshal
import os
import re
import time
from types import MethodType
from typing import TYPE_CHECKING, Any

from mibyan.plugins.learned import Conditions, Learned, module_place
from mibyan.plugins.policies import is_policy
from mibyan.plugins.sources.files import read_bytes
from mibyan.records import as_dict
from mibyan.schema.frozen import thaw
from mibyan.text import describe_exception, one_line
from mibyan.tools.function import function_of
from mibyan.tools.origin import place_of
from mibyan.tools.registration import OPTIONS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from mibyan.plugins.candidate import Candidate
    from mibyan.plugins.contents import File
    from mibyan.plugins.ledger import Ledger, Registered
    from mibyan.plugins.literals import Named
    from mibyan.plugins.services import LoaderServices
    from mibyan.plugins.transaction import Transaction
    from mibyan.tools.entry import ToolEntry

#: Bytes of Python sources that are looked through.
SOURCES_LIMIT = 2 * 1024 * 1024
#: Names in them that could be variables; more are no program's own words, and they are compared at each start.
NAMES_LIMIT = 20_000

#: What the names of variables have whose values are secret, and how long such a value is at least.
_SECRET = re.compile(r"KEY|TOKEN|SECRET|PASSW|CREDENTIAL|AUTH", re.IGNORECASE)
_LONG = 6

#: The hooks that the loader itself calls.
_OWN_HOOKS = frozenset({"mibyan_register", "mibyan_unload"})


class UnlearnableError(Exception):
    """What a plugin has registered can't be kept, and why, in a few words that go on from "it isn't learned: "."""


def require_learnable(candidate: Candidate) -> None:
    """Raise if a plugin is never learned, whatever it registers.

    Raises:
        UnlearnableError: It isn't.
    """
    if candidate.editable:
        raise UnlearnableError("it is an editable install, whose code may change at any time")
    if is_policy(candidate):
        raise UnlearnableError("it is a policy, and what it forbids mustn't hang on what was kept of it")


def conditions(
    content: str,
    config: Mapping[str, Any],
    files: Iterable[File],
    environ: Mapping[str, str],
    added: Iterable[str] = (),
) -> Conditions:
    """What a plugin's registration depends on, as it is now.

    Args:
        content: Its content digest.
        config: Its section of the configuration.
        files: The files that make it up.
        environ: The environment as it was before it was imported.
        added: What it added to `sys.path`.

    Raises:
        UnlearnableError: Its sources can't be looked through, or they find modules in places of their own making.
    """
    paths = frozenset(path for path, status in files if status is not None)
    named = named_in_files(sorted(paths))
    own = {name for name in named.modules if module_place(name) in paths}
    folders = tuple(f"{folder.rstrip(os.sep)}{os.sep}" for folder in added)
    for name in sorted(named.modules - own):
        if folders and module_place(name).startswith(folders):
            raise UnlearnableError(f"it imports {name!r} from a folder that it adds to sys.path itself")
    return Conditions.of(content, config, named, environ, named.modules - own)


def learned(
    found: Conditions, candidate: Candidate, ledger: Ledger, services: LoaderServices, running: Transaction
) -> Learned:
    """What a plugin's code has registered just now, as plain data.

    Args:
        found: What it depends on.
        candidate: The plugin.
        ledger: Its ledger.
        services: The runtime's parts.
        running: The transaction that its import was.

    Raises:
        UnlearnableError: It can't be kept.
    """
    _require_nothing_else(ledger, services, running)
    numbers: dict[tuple[int, int], int] = {}
    acts = tuple(act_data(act, numbers) for act in ledger.acts or ())
    hooks = tuple(name for name in services.hooks.names_of(ledger.owner) if name not in _OWN_HOOKS)
    told = tuple(
        as_dict(one)
        for one in services.log
        if one.plugin_id == candidate.id and one.kind in {"unknown", "warning"} and one.rule != "plugins.S3"
    )
    require_no_secret((acts, told), found.variables, services, running.before.environ)
    made = Learned(found, acts, hooks, told, time.time())
    try:
        marshal.dumps(made.to_data())
    except ValueError:
        raise UnlearnableError("it registers something that isn't plain data") from None
    return made


# What it registered -----------------------------------------------------------------------------------------------


def act_data(act: Registered, numbers: dict[tuple[int, int], int]) -> dict[str, Any]:
    """One registration as plain data.

    Args:
        act: The registration.
        numbers: A number for each function that is kept as "the plugin's code has it": two tools that share a check
            have the same number for it.

    Raises:
        UnlearnableError: A schema can't be made.
    """
    data: dict[str, Any] = {"kind": act.kind, "name": act.name}
    match act.kind:
        case "tool":
            entry, override = act.value
            return {**data, **_tool_data(entry, override=override, numbers=numbers)}
        case "alias":
            return {**data, "toolset": act.value}
        case "toolset":
            tools, includes, description = act.value
            return {**data, "tools": tools, "includes": includes, "description": description}
        case "command":
            description, args_hint = act.value
            return {**data, "description": description, "args_hint": args_hint}
    return data


def _tool_data(entry: ToolEntry, *, override: bool, numbers: dict[tuple[int, int], int]) -> dict[str, Any]:
    try:
        schema = thaw(entry.schema)
    except Exception as error:
        why = one_line(describe_exception(error), 200)
        raise UnlearnableError(f"the schema of its tool {entry.name!r} can't be made ({why})") from error
    function = function_of(entry)
    given = {key: getattr(entry, key) for key in OPTIONS}
    options = {key: value for key, value in given.items() if callable(value) or value != OPTIONS[key]}
    code = {key: value for key, value in {**options, "check_fn": entry.check_fn}.items() if callable(value)}
    return {
        "toolset": entry.toolset,
        "schema": schema,
        "made_of": None if function is None else function.described.made_of,
        "override": override,
        "description": entry.description,
        "emoji": entry.emoji,
        "is_async": entry.is_async,
        "requires_env": entry.requires_env,
        "origin": place_of(entry),
        "flags": {key: value for key, value in options.items() if not callable(value)},
        "code": {key: numbers.setdefault(_identity(value), len(numbers)) for key, value in sorted(code.items())},
    }


def require_no_secret(
    data: Any, variables: Iterable[str], services: LoaderServices, environ: Mapping[str, str]
) -> None:
    """Raise if what would be kept holds a secret: a plugin can write one into a description.

    Args:
        data: What would be kept.
        variables: Names that the plugin's sources mention.
        services: The runtime's parts.
        environ: The environment in which it registered.

    Raises:
        UnlearnableError: It does.
    """
    import json

    text = json.dumps(data, ensure_ascii=False, default=repr)
    names = [name for name in variables if name in environ and _SECRET.search(name)]
    told = [name for name in names if len(environ[name]) >= _LONG and environ[name] in text]
    if told:
        raise UnlearnableError(f"the value of the variable {told[0]} stands in what it registers")
    if services.clean(text) != text:
        raise UnlearnableError("a secret stands in what it registers")


def _identity(function: Any) -> tuple[int, int]:
    if type(function) is MethodType:
        return id(function.__func__), id(function.__self__)
    return id(function), 0


def _require_nothing_else(ledger: Ledger, services: LoaderServices, running: Transaction) -> None:
    """Raise if the plugin has done something that an import at first use would leave out, or do too late.

    Raises:
        UnlearnableError: It has.
    """
    if ledger.looked_at:
        raise UnlearnableError(f"it looked at {ledger.looked_at} while it registered, of which others have a part")
    threads = sorted(one.name for one in running.before.new_threads() if not one.name.startswith("mibyan-"))
    if threads:
        raise UnlearnableError(f"it started threads that go on: {one_line(', '.join(threads), 200)}")
    changes = running.before.changes()
    if changes:
        raise UnlearnableError(f"its import changes the process: {one_line(', '.join(changes), 200)}")
    held = {name for name, entry in services.store.snapshot.entries.items() if entry.owner is ledger.owner}
    missed = sorted(held - {act.name for act in ledger.acts or () if act.kind == "tool"})
    if missed:
        raise UnlearnableError(f"it registered {missed[0]!r} past its own registry")


# What it depends on -----------------------------------------------------------------------------------------------


def named_in_files(files: Iterable[str]) -> Named:
    """What the Python sources among some files name.

    Raises:
        UnlearnableError: One can't be read, or there are none, or too many.
    """
    from mibyan.plugins.literals import Named, named_in

    whole, size, seen = Named(), 0, False
    for path in files:
        for source in _sources(path):
            seen, size = True, size + len(source)
            if size > SOURCES_LIMIT:
                raise UnlearnableError(f"it has more than {SOURCES_LIMIT:,} bytes of sources to look through")
            try:
                whole |= named_in(source)
            except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
                raise UnlearnableError(f"{path} can't be read: {one_line(describe_exception(error), 200)}") from error
    if not seen:
        raise UnlearnableError("its sources aren't there to be looked through")
    if len(whole.variables) > NAMES_LIMIT:
        raise UnlearnableError(f"its sources have more than {NAMES_LIMIT:,} words that could be variables' names")
    return whole


def _sources(path: str) -> Iterator[bytes]:
    """The Python sources that a file is, or that an archive holds.

    Raises:
        UnlearnableError: It can't be read.
    """
    try:
        if path.endswith((".py", ".pyw")):
            yield read_bytes(path)
        elif path.endswith((".zip", ".whl", ".egg", ".pyz")):
            from zipfile import ZipFile

            with ZipFile(path) as archive:
                yield from [archive.read(name) for name in archive.namelist() if name.endswith(".py")]
    except Exception as error:  # an archive may be broken in any way
        raise UnlearnableError(f"{path} can't be read: {one_line(describe_exception(error), 200)}") from error


# Drift ------------------------------------------------------------------------------------------------------------


def differences(old: Learned, new: Learned) -> list[str]:
    """What differs between two things that one plugin registered, in a few words each."""
    kept, came = _named_acts(old), _named_acts(new)
    told = [f"no longer has {what}" for what in kept if what not in came]
    told += [f"now has {what}" for what in came if what not in kept]
    told += [f"has another definition of {what}" for what, data in came.items() if what in kept and kept[what] != data]
    told += [f"no longer has the hook {name!r}" for name in old.hooks if name not in new.hooks]
    told += [f"now has the hook {name!r}" for name in new.hooks if name not in old.hooks]
    if not told and old.registered() != new.registered():
        told.append("registers in another order")
    return told


def _named_acts(found: Learned) -> dict[str, list[dict[str, Any]]]:
    acts: dict[str, list[dict[str, Any]]] = {}
    for act in found.registered():
        acts.setdefault(f"the {act.get('kind')} {act.get('name')!r}", []).append(act)
    return acts
