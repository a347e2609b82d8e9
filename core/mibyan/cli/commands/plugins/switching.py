"""`mibyan plugins enable` and `disable`: what the operator wants of the plugins. None is imported."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mibyan.cli.commands.plugins.group import done, found_plugins, plugins
from mibyan.cli.declaring import argument

if TYPE_CHECKING:
    from mibyan.cli.invocation import Invocation
    from mibyan.config.load import LoadedConfig


@plugins.command("enable")
@argument("plugin_id", metavar="ID", choices="disabled_plugins")
def enable(invocation: Invocation, plugin_id: str) -> int:
    """Turn a plugin on.

    Takes it from plugins.disabled, or adds it to plugins.enabled where autoload is off. One that is in quarantine, because a
    process died of its import, is released.
    """
    from mibyan.plugins import manage

    with found_plugins(invocation) as found:
        said = manage.enable(plugin_id, found.records, editable_config(invocation), invocation.home)
        return done(invocation, plugin_id, said)


@plugins.command("disable")
@argument("plugin_id", metavar="ID", choices="enabled_plugins")
def disable(invocation: Invocation, plugin_id: str) -> int:
    """Turn a plugin off.

    Adds it to plugins.disabled, which wins over everything.
    """
    from mibyan.plugins import manage

    with found_plugins(invocation) as found:
        return done(invocation, plugin_id, manage.disable(plugin_id, found.records, editable_config(invocation)))


def editable_config(invocation: Invocation) -> LoadedConfig:
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
