"""The group `mibyan plugins`, and what its commands share."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from mibyan.cli import exits
from mibyan.cli.declaring import group
from mibyan.cli.loaded import check_named_plugins, loaded
from mibyan.cli.output import say
from mibyan.cli.pluginview import Found, off

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from mibyan.cli.invocation import Invocation
    from mibyan.plugins.state import PluginRecord


@group("plugins")
def plugins() -> None:
    """Plugins: what was found, and what is wanted of it."""


@contextmanager
def found_plugins(invocation: Invocation, *, load: bool = False) -> Iterator[Found]:
    """The plugins that were found; none is loaded, or all with `load`. The configuration may be broken: then all are off."""
    config, broken = invocation.config_or_defaults()
    unlocked = invocation.lock_problem() if broken is None else None
    broken = broken or unlocked
    with invocation.runtime(config, locked=False if broken else None) as runtime:
        load = load and broken is None
        if load:
            loaded(invocation, runtime)
            from mibyan.plugins.manage import import_learned

            import_learned(runtime.plugins)
            runtime.plugins.keep_outcomes(afresh=True)
        records: Sequence[PluginRecord] = runtime.plugins.survey()
        check_named_plugins(invocation, runtime.plugins.notes)
        yield Found(runtime, records if broken is None else [off(record) for record in records], loaded=load)


def done(invocation: Invocation, plugin_id: str, said: str) -> int:
    """Tell what has changed."""
    if invocation.options.as_json:
        invocation.out.document({"id": plugin_id, "message": said})
    else:
        say(said)
    return exits.OK
