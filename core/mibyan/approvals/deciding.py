"""`Deciding`: what decides without a person, put together: policy, allowlist, sessions' grants, the model of mode smart."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mibyan.approvals.allowlist import KEY, Allowlist
from mibyan.approvals.grants import SessionGrants, lasting_entries, session_grants
from mibyan.approvals.policy import ApprovalPolicy, PolicySettings
from mibyan.errors import MibyanError
from mibyan.text import describe_exception, one_line

if TYPE_CHECKING:
    from collections.abc import Callable

    from mibyan.approvals.requests import Question
    from mibyan.approvals.smart import SmartModel
    from mibyan.config.load import LoadedConfig

log = logging.getLogger("mibyan.approvals")


class Deciding:
    """What a runtime's approvals stand on; imported when something first needs approval.

    Args:
        config: The operator's words; `None`: the defaults, and no file.
        clean: Takes secrets out of a text.
    """

    def __init__(self, config: LoadedConfig | None = None, clean: Callable[[str], str] = str) -> None:
        self.grants = SessionGrants()
        self.model: SmartModel | None = None
        if config is None:
            self.allowlist = Allowlist(Path(), fixed=())
            self.policy = ApprovalPolicy(allowlist=self.allowlist, grants=self.grants, clean=clean)
            return
        said = config.settings.approvals
        place = config.lines.get(KEY, "")
        by_code = place != "" and not place.startswith("config.yaml")
        fixed = config.settings.command_allowlist if by_code else None
        self.allowlist = Allowlist(config.path, fixed=fixed)
        deny = tuple((glob, config.line_of(("approvals", "deny", number)) or "approvals.deny")
                     for number, glob in enumerate(said.deny))  # fmt: skip
        self.policy = ApprovalPolicy(
            PolicySettings(said.mode, deny), allowlist=self.allowlist, grants=self.grants, timeout=said.timeout, clean=clean,
        )  # fmt: skip
        if said.mode == "smart":
            self.model = _model(said, clean)

    def after_fork(self) -> None:
        """In a child process: the grants stay, each process goes on with its own."""
        self.grants.after_fork()
        self.allowlist.after_fork()

    def keep(self, question: Question, answer: str, glob: str | None) -> None:
        """Keep a grant: for the session, or for good. One that can't be written holds for the session."""
        entries = (glob,) if glob else lasting_entries(question.findings, question.command)
        if answer == "always" and entries and not self.allowlist.is_fixed:
            try:
                self.allowlist.add(*entries, *_asked(question) if glob else ())
                return
            except (MibyanError, OSError) as error:
                why = error.message if isinstance(error, MibyanError) else describe_exception(error)
                log.warning(
                    "What was allowed for good can't be written, it holds for the session: %s", one_line(why, 500)
                )
        if question.session is not None:
            self.grants.add(question.session, session_grants(question.findings, question.command))


def _asked(question: Question) -> tuple[str, ...]:
    """What hooks asked beside the command: a glob of commands doesn't cover that."""
    return tuple(finding.id for finding in question.findings if ":" in finding.id)


def _model(said: Any, clean: Callable[[str], str]) -> SmartModel | None:
    """The model of mode smart, if the operator says where it is."""
    from mibyan.approvals.smart import SmartModel, SmartSettings

    if said.smart_model is None or said.smart_base_url is None:
        log.warning("approvals.mode is smart, but smart_model or smart_base_url is missing: a person is asked.")
        return None
    found = SmartSettings(said.smart_model, said.smart_base_url, said.smart_api_key_env, said.smart_timeout)
    return SmartModel(found, clean)
