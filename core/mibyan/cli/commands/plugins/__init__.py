"""`mibyan plugins`: what was found, what the operator wants of it, and a plugin's life from its first file on."""

from __future__ import annotations

from mibyan.cli.commands.plugins import authoring, installing, listing, locking, mending, switching, trusting
from mibyan.cli.commands.plugins.group import plugins

__all__ = ["authoring", "installing", "listing", "locking", "mending", "plugins", "switching", "trusting"]

#: The order of the help: what there is, what comes and goes, what is wanted of it, what is wrong with it, what authors do.
_ORDER = (
    "list",
    "show",
    "install",
    "uninstall",
    "enable",
    "disable",
    "trust",
    "untrust",
    "lock",
    "bisect",
    "new",
    "manifest",
    "check",
)
plugins.commands = {name: plugins.commands[name] for name in _ORDER}
