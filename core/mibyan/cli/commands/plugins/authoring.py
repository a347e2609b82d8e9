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
