"""What authors of plugins do with `mibyan plugins`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mibyan.cli.commands.plugins.group import plugins
from mibyan.cli.declaring import argument, option

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mibyan.cli.invocation import Invocation


def _seconds(value: str | None) -> float | None:
    from mibyan.cli.arguments import read_seconds

    return read_seconds(value)


@plugins.command("new")
@argument("words", rest=True, metavar="[DIR]", choices="directories")
@option("--no-input", help="Ask nothing: take --field and the defaults.")
@option(
    "--field",
    "fields",
    metavar="KEY=VALUE",
    multiple=True,
    help="Say slug, description, author_name or author_email. May be repeated.",
)
def new(invocation: Invocation, words: Sequence[str], no_input: bool, fields: Sequence[str]) -> int:  # noqa: FBT001 - they come by name
    """Make a plugin's project, from which a wheel can be built at once.

    It becomes the folder mibyan-plugin-SLUG in DIR, or in the working directory: a typed tool, a frozen manifest, tests, and workflows that
    check and publish. What isn't said with --field is asked for on a terminal. Nothing that is there is changed, and what can't be
    finished leaves nothing. Ends with 2 if a name or a text can't be used. With --json: {"path" "id" "distribution" "module" "tool" "files"}.
    """
    from mibyan.cli.scaffold import scaffolding

    return scaffolding.run(invocation, words, fields=fields, no_input=no_input)


@plugins.command("manifest")
@argument("words", rest=True, metavar="[PATH]")
@option("--write", help="Write it into the manifest's file.")
@option("--check", help="Show what differs from the file; ends with 1 if anything does.")
@option("--schema", help="Print the JSON Schema of manifests; no PATH is needed.")
@option("--prune", help="Leave out toolsets and commands that only the file has.")
@option(
    "--config",
    metavar="FILE",
    help="The plugin's own settings, YAML or JSON; the defaults of its config_schema if not given.",
)
@option("--timeout", metavar="SECONDS", help="Seconds for loading the plugin; 60 if not given.", convert=_seconds)
def manifest(
    invocation: Invocation, words: Sequence[str], write: bool, check: bool, schema: bool, prune: bool, config: str | None,  # noqa: FBT001 - they come by name
    timeout: float | None,
) -> int:  # fmt: skip
    """Freeze a plugin: take what its code registers into its manifest.

    PATH is a plugin's folder, a project whose pyproject.toml has an entry point in mibyan.plugins, or (not with --write) a wheel. The plugin's code is run for it, in a
    process of its own with an empty home. Without an option the manifest is printed as it would be written: tools, toolsets,
    hooks, commands, skills and overrides are the code's, all else stays the author's. What can't be frozen is said on standard error, and so
    are toolsets and commands that only the file has: an author may mean them, or they are stale.
    Ends with 1 if the plugin can't be loaded. With --json: {"path" "written" "manifest" "notes": [{tool text}]}, with --check {"path" "differs" "differences": [{what diff}] "notes"}.
    """
    from mibyan.cli import manifesting

    return manifesting.run(
        invocation, words, write=write, check=check, schema=schema, prune=prune, config=config, timeout=timeout
    )


@plugins.command("check")
@argument("path", metavar="PATH")
@option("--static", help="Run none of its code: for a stranger's wheel.")
@option("--offline", help="Ask no index for what it needs.")
@option("--skip", metavar="CHECK", multiple=True, help="Leave a check out, or all of a kind: import. May be repeated.")
@option(
    "--config",
    metavar="FILE",
    help="The plugin's own settings, YAML or JSON; the defaults of its config_schema if not given.",
)
@option("--timeout", metavar="SECONDS", help="Seconds for each step; 120 if not given.", convert=_seconds)
def check(
    invocation: Invocation, path: str, static: bool, offline: bool, skip: Sequence[str], config: str | None,  # noqa: FBT001 - they come by name
    timeout: float | None,
) -> int:  # fmt: skip
    """Check whether a plugin is fit to be published.

    PATH is a folder with a plugin.yaml, a project with a pyproject.toml, an sdist or a wheel. First its files are looked at; then, in
    a fresh virtual environment with this Mibyan in it, it is built, installed, loaded and unloaded, in processes of their own
    with an empty home. All of that is removed again. Each check that fails says how to mend it. Ends with 1 if one fails, with 2
    if there is no plugin. With --json: {"path" "plugin" "checks": [{id status rule text fix origin}] "ok"}; a status is ok, warn,
    fail or skipped.
    """
    from mibyan.cli.checking import command

    return command.run(invocation, path, static=static, offline=offline, skip=skip, config=config, timeout=timeout)
