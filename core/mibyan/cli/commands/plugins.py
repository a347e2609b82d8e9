"""`mibyan plugins`: what was found, and what the operator wants of it. No plugin is imported, but for `list --load` and `manifest`."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from mibyan.cli import exits
from mibyan.cli.asking import ask_yes_no, can_ask
from mibyan.cli.declaring import argument, group, option
from mibyan.cli.loaded import check_named_plugins, loaded
from mibyan.cli.output import say
from mibyan.cli.pluginview import Found, details, off, print_details, print_list
from mibyan.cli.strictness import unready
from mibyan.text import one_line

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from mibyan.cli.invocation import Invocation
    from mibyan.config.load import LoadedConfig
    from mibyan.plugins.manage import TrustRequest
    from mibyan.plugins.state import PluginRecord


@group("plugins")
def plugins() -> None:
    """Plugins: what was found, and what is wanted of it."""


def _seconds(value: str | None) -> float | None:
    from mibyan.cli.arguments import read_seconds

    return read_seconds(value)


@contextmanager
def _found(invocation: Invocation, *, load: bool = False) -> Iterator[Found]:
    """The plugins that were found; none is loaded, or all with `load`. The configuration may be broken: then all are off."""
    config, broken = invocation.config_or_defaults()
    with invocation.runtime(config) as runtime:
        load = load and broken is None
        if load:
            loaded(invocation, runtime)
            from mibyan.plugins.manage import import_learned

            import_learned(runtime.plugins)
            runtime.plugins.keep_outcomes(afresh=True)
        records: Sequence[PluginRecord] = runtime.plugins.survey()
        check_named_plugins(invocation, runtime.plugins.notes)
        yield Found(runtime, records if broken is None else [off(record) for record in records], loaded=load)


@plugins.command("list")
@option("--load", help="Load them now, and tell what became of each.")
def list_plugins(invocation: Invocation, load: bool) -> int:  # noqa: FBT001 - it comes by name
    """List the plugins: what each offers, or why it doesn't.

    Without --load none is imported: then each is as its last load left it, at that time. One that wasn't loaded since it
    changed is `found`, with what its manifest says. With --json: {"plugins": [{id source version state reason hint decided_by origin
    tools hooks overrides import_ms schema_tokens loaded_at}], "problems": [...]}.
    """
    with _found(invocation, load=load) as found:
        objects, problems = found.objects(), found.problems()
        if invocation.options.as_json:
            invocation.out.document({"plugins": objects, "problems": problems})
        else:
            print_list(invocation.out, objects, problems)
        objections = unready(found.records, loaded=found.loaded) if invocation.options.strict else []
        for objection in objections:
            say(f"mibyan: strict: {objection}")
        return exits.REFUSED if objections else exits.OK


@plugins.command("show")
@argument("plugin_id", metavar="ID", choices="plugins")
def show(invocation: Invocation, plugin_id: str) -> int:
    """Show one plugin: its state and why, origin, manifest.

    With --json: the object of `plugins list` with its manifest.
    """
    from mibyan.plugins.manage import find_record

    with _found(invocation) as found:
        told = details(find_record(plugin_id, found.records))
        if invocation.options.as_json:
            invocation.out.document(told)
        else:
            print_details(invocation.out, told)
        return exits.OK


@plugins.command("enable")
@argument("plugin_id", metavar="ID", choices="disabled_plugins")
def enable(invocation: Invocation, plugin_id: str) -> int:
    """Turn a plugin on.

    Takes it from plugins.disabled, or adds it to plugins.enabled where autoload is off.
    """
    from mibyan.plugins import manage

    with _found(invocation) as found:
        return _done(invocation, plugin_id, manage.enable(plugin_id, found.records, _editable(invocation)))


@plugins.command("disable")
@argument("plugin_id", metavar="ID", choices="enabled_plugins")
def disable(invocation: Invocation, plugin_id: str) -> int:
    """Turn a plugin off.

    Adds it to plugins.disabled, which wins over everything.
    """
    from mibyan.plugins import manage

    with _found(invocation) as found:
        return _done(invocation, plugin_id, manage.disable(plugin_id, found.records, _editable(invocation)))


@plugins.command("trust")
@argument("plugin_id", metavar="ID", choices="trusted_words")
@option("--yes", help="Don't ask; what is trusted is shown all the same.")
def trust(invocation: Invocation, plugin_id: str, yes: bool) -> int:  # noqa: FBT001 - it comes by name
    """Trust a plugin of the project, or its project-tools.

    project-tools is all of the project's tools folder. Shows the files, what the manifest says it does to the machine, and the tools; asks; then keeps a digest of every
    file. One changed byte or one added file, and it is untrusted again.
    """
    from mibyan.plugins import manage

    with _found(invocation) as found:
        request = manage.trust_request(plugin_id, found.records, invocation.home, invocation.project)
        _show_request(request)
        if request.trusted:
            return _done(invocation, request.id, f"{request.id} is trusted already, exactly as it is.")
        if not yes:
            _ask_for_trust(request)
        said = manage.trust(request, invocation.home, invocation.project or request.root)
        return _done(invocation, request.id, said)


@plugins.command("untrust")
@argument("plugin_id", metavar="ID", choices="trusted_words")
def untrust(invocation: Invocation, plugin_id: str) -> int:
    """Take the trust in a plugin of the project back."""
    from mibyan.plugins import manage

    with _found(invocation) as found:
        said = manage.untrust(plugin_id, found.records, invocation.home, invocation.project)
        return _done(invocation, plugin_id, said)


@plugins.command("manifest")
@argument("words", rest=True, metavar="[PATH]")
@option("--write", help="Write it into the manifest's file.")
@option("--check", help="Show what differs from the file; ends with 1 if anything does.")
@option("--schema", help="Print the JSON Schema of manifests; no PATH is needed.")
@option("--timeout", metavar="SECONDS", help="Seconds for loading the plugin; 60 if not given.", convert=_seconds)
def manifest(
    invocation: Invocation, words: Sequence[str], write: bool, check: bool, schema: bool, timeout: float | None  # noqa: FBT001 - they come by name
) -> int:  # fmt: skip
    """Freeze a plugin: take what its code registers into its manifest.

    PATH is a plugin's folder, or a project whose pyproject.toml has an entry point in mibyan.plugins. The plugin's code is run for it, in a
    process of its own with an empty home. Without an option the manifest is printed as it would be written: tools, toolsets,
    hooks, commands, skills and overrides are the code's, all else stays the author's. What can't be frozen is said on standard error.
    Ends with 1 if the plugin can't be loaded. With --json: {"path" "written" "manifest" "notes": [{tool text}]}, with --check {"path" "differs" "differences": [{what diff}] "notes"}.
    """
    from mibyan.cli import manifesting

    return manifesting.run(invocation, words, write=write, check=check, schema=schema, timeout=timeout)


def _done(invocation: Invocation, plugin_id: str, said: str) -> int:
    """Tell what has changed."""
    if invocation.options.as_json:
        invocation.out.document({"id": plugin_id, "message": said})
    else:
        say(said)
    return exits.OK


def _editable(invocation: Invocation) -> LoadedConfig:
    """The configuration to edit; of one with problems at least what it says about which plugins are on.

    Raises:
        ConfigError: That can't be told.
    """
    from mibyan.cli.salvage import salvaged
    from mibyan.errors import ConfigError

    try:
        return invocation.config
    except ConfigError:
        return salvaged(invocation.home)


def _show_request(request: TrustRequest) -> None:
    """What is about to be trusted: on standard error, where the question is asked."""
    say(f"{request.id}, in {request.root} (SHA-256 of all: {request.digest.digest[:16]}…)")
    say(f"Files ({len(request.digest.files)}, {request.digest.size:,} bytes):")
    for name, digest in request.digest.files.items():
        say(f"    {digest[:12]}  {one_line(name, 500)}")
    say("What it says it does to the machine: " + (_listed(request.permissions) or "nothing is said"))
    say(
        "Tools: "
        + (_listed(request.tools) or "its manifest defines none; what it registers is known once it is loaded")
    )


def _listed(words: Sequence[str]) -> str:
    return ", ".join(one_line(word, 200) for word in words)


def _ask_for_trust(request: TrustRequest) -> None:
    """Raise unless a person says yes.

    Raises:
        RefusedError: They don't, or there is none.
    """
    if not can_ask():
        raise exits.RefusedError(
            f"{request.id} isn't trusted: nobody is there to be asked",
            hint=f"Look at the files, then: mibyan plugins trust {request.id} --yes",
        )
    if not ask_yes_no(f"Trust {request.id}, these very files?"):
        raise exits.RefusedError(f"{request.id} isn't trusted: you didn't say yes")
