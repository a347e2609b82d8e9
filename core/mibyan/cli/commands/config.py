"""`mibyan config`: where the configuration is, what it says, and edits that lose nothing."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

import click

from mibyan.cli import exits
from mibyan.cli.framework import Command, Group, completed
from mibyan.cli.output import say
from mibyan.errors import ConfigError, MibyanError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from mibyan.cli.invocation import Invocation
    from mibyan.config.load import LoadedConfig

_NEGATIVE: Final = re.compile(r"-\.?\d")


@click.group("config", cls=Group)
def config() -> None:
    """Read, check and edit the configuration; edits lose nothing."""


def _path(invocation: Invocation) -> Path:
    from mibyan.config.load import FILE_NAME

    return invocation.home / FILE_NAME


@config.command("path")
@click.pass_obj
def path(invocation: Invocation) -> int:
    """Print the path of the home's config.yaml.

    Whether or not it exists. With --json: {"path", "exists", "project"}; project is the path of the project's config.yaml, or null.
    """
    from mibyan.config.load import FILE_NAME
    from mibyan.paths import PROJECT_FOLDER

    own = _path(invocation)
    if not invocation.options.as_json:
        invocation.out.line(str(own))
        return exits.OK
    project = None if invocation.project is None else str(invocation.project / PROJECT_FOLDER / FILE_NAME)
    invocation.out.document({"path": str(own), "exists": own.is_file(), "project": project})
    return exits.OK


@config.command("show")
@click.pass_obj
def show(invocation: Invocation) -> int:
    """Print the configuration that counts, as YAML.

    Defaults are part of it; what is written says in which file and line. With --json: the same as one object.
    """
    loaded, _ = invocation.config_or_defaults()
    data = loaded.settings.to_data()
    if invocation.options.as_json:
        invocation.out.document(data)
    else:
        invocation.out.line("\n".join(_lines(loaded, data, ())))
    return exits.OK


def _lines(loaded: LoadedConfig, data: Mapping[str, Any], above: tuple[str, ...]) -> Iterator[str]:
    """YAML, each written key with its place as a comment."""
    from mibyan.config.render import block

    indent = "  " * len(above)
    for name, value in data.items():
        place = (*above, name)
        comment = f"  # {loaded.where(place)}" if loaded.is_written(place) else ""
        if isinstance(value, dict) and value:
            yield f"{indent}{block([name], None, 2)[0].removesuffix(' null')}{comment}"
            yield from _lines(loaded, value, place)
        else:
            first, *others = block([name], value, 2)
            yield f"{indent}{first}{comment}"
            yield from (f"{indent}{line}" for line in others)


@config.command("get")
@click.argument("key", shell_complete=completed("keys"))
@click.pass_obj
def get(invocation: Invocation, key: str) -> int:
    """Print the value that counts for KEY, such as dispatch.timeout.

    It is what is written, or the default. Text is printed as it is, everything else as YAML; with --json as JSON.
    """
    loaded, broken = invocation.config_or_defaults()
    value = loaded.value(key) if broken is None else _written_or_default(loaded, key)
    if invocation.options.as_json:
        invocation.out.document(value)
    elif isinstance(value, str):
        invocation.out.line(value)
    else:
        invocation.out.line(_yaml(value))
    return exits.OK


def _written_or_default(loaded: LoadedConfig, key: str) -> Any:
    """The value in a file that has problems elsewhere; where it can't be read at all, the default."""
    from mibyan.config import edit

    default = loaded.value(key)
    try:
        return edit.get(loaded.path, key)
    except MibyanError:
        return default


def _yaml(value: Any) -> str:
    from mibyan.config.render import block, inline

    if isinstance(value, dict) and value:
        return "\n".join(line for name, part in value.items() for line in block([name], part, 2))
    if isinstance(value, list) and value:
        return "\n".join(f"- {inline(part)}" for part in value)
    return inline(value)


class _SetCommand(Command):
    """A command whose words may be negative numbers, which otherwise would be options."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the words; no word can have a NUL, so one marks those that are numbers."""
        return super().parse_args(ctx, [f"\0{word}" if _NEGATIVE.match(word) else word for word in args])


def _unmarked(_context: click.Context, _parameter: click.Parameter, value: str) -> str:
    return value.removeprefix("\0")


@config.command("set", cls=_SetCommand)
@click.argument("key", callback=_unmarked, shell_complete=completed("keys"))
@click.argument("value", callback=_unmarked)
@click.pass_obj
def set_(invocation: Invocation, key: str, value: str) -> int:
    """Write VALUE at KEY into the home's config.yaml.

    VALUE is YAML or JSON: 5, off, [a, b], null. The file is checked before it is written, a plugin's own settings by the schema
    in its manifest; comments, order and everything else in it stay as they are. Put quotes of
    YAML's around text that would read as something else: '"5"'.
    """
    from mibyan.cli.plugin_settings import settings_check
    from mibyan.config import edit

    changed = edit.set_value(_path(invocation), key, edit.parse_value(value), check=settings_check(invocation, key))
    say(f"{_path(invocation)}: {key} {'is set' if changed else 'says so already'}.")
    return exits.OK


@config.command("unset")
@click.argument("key", shell_complete=completed("keys"))
@click.pass_obj
def unset(invocation: Invocation, key: str) -> int:
    """Remove KEY, so that its default counts again."""
    from mibyan.config import edit

    changed = edit.unset(_path(invocation), key)
    say(f"{_path(invocation)}: {key} {'is removed' if changed else 'is not written there, nothing is to be removed'}.")
    return exits.OK


@config.command("validate")
@click.pass_obj
def validate(invocation: Invocation) -> int:
    """Check config.yaml and the project's.

    Tells every problem with its line, and ends with 2 if there are any. With --json: {"valid", "problems": [{file line key message suggestion}]}.
    """
    try:
        loaded = invocation.config
    except ConfigError as error:
        if not invocation.options.as_json:
            raise
        invocation.out.document({"valid": False, "problems": _problems(error)})
        return exits.USAGE
    if invocation.options.as_json:
        invocation.out.document({"valid": True, "problems": []})
    else:
        for file in (loaded.path, loaded.project_path):
            if file is not None:
                invocation.out.line(f"{file}: {'valid' if file.exists() else 'not there; the defaults count'}")
    return exits.OK


def _problems(error: ConfigError) -> list[dict[str, Any]]:
    from mibyan.config.problems import InvalidConfigError
    from mibyan.records import as_dict

    if isinstance(error, InvalidConfigError):
        return [as_dict(problem) for problem in error.problems]
    return [{"file": error.origin, "line": None, "key": "", "message": error.message, "suggestion": None}]


@config.command("schema")
@click.pass_obj
def schema(invocation: Invocation) -> int:
    """Print the JSON Schema of config.yaml, for editors."""
    from mibyan.config.schema import json_schema

    invocation.out.document(json_schema())
    return exits.OK
