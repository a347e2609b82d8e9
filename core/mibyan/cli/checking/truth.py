"""Whether a frozen manifest says what the code does (plugins.M4)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mibyan.cli.freezing import Interpreter, freeze
from mibyan.errors import MibyanError, PluginError
from mibyan.plugins.manifest_edit import differences, merged
from mibyan.plugins.sources.authored import find_authored

if TYPE_CHECKING:
    from mibyan.cli.checking.checks import Checklist
    from mibyan.cli.checking.environment import Environment
    from mibyan.cli.checking.examination import Wishes
    from mibyan.cli.checking.facts import Facts

#: Differences that are told one by one.
_MOST = 5


def judge_frozen(facts: Facts, environment: Environment, found: Checklist, wishes: Wishes, mend: str) -> None:
    """Compare what a plugin's manifest says with what its code registers in an environment.

    Args:
        facts: The folder, or the unpacked wheel.
        environment: Where its code finds what it needs.
        found: Takes what comes of it.
        wishes: How long it may take, and with which settings.
        mend: The command that mends it.
    """
    try:
        authored = find_authored(facts.root)
        if authored.text is None:
            found.skip(["frozen"], "there is no manifest")
            return
        if "tools" not in authored.data:
            found.warn("frozen", "its tools aren't frozen: until it has run once nobody knows them, and an editable install is imported at each start",
                       mend, facts.origin)  # fmt: skip
            return
        frozen = freeze(authored, timeout=wishes.timeout, by=Interpreter(str(environment.python), wishes.settings))
        told = list(differences(authored.data, merged(authored.data, frozen.keys)))
    except PluginError as error:
        found.fail("frozen", error.message, error.hint)
        return
    except MibyanError as error:
        found.fail("frozen", error.message, error.hint or mend)
        return
    where = facts.shown(authored.path)
    for what, _ in told[:_MOST]:
        found.fail("frozen", f"{what}: the manifest isn't what the code says", mend, where)
    for text in frozen.only:
        found.warn("frozen", text, f"{mend} --prune, if it is stale", where)
    found.ok("frozen", "the manifest is what the code says")
