"""What of a batch may go on, whatever takes how long: driven without threads, as badly as Hypothesis can (dispatch.P1 to P3)."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mibyan.dispatch.call import Call
from mibyan.dispatch.many_batch import Batch
from mibyan.dispatch.many_gates import AGAIN, GO, Gates
from mibyan.dispatch.many_members import Member, Section
from mibyan.dispatch.resources import resolve
from mibyan.dispatch.resources_needs import Need
from mibyan.dispatch.session import Session
from mibyan.tools.entry import ToolEntry
from mibyan.tools.owner import Owner
from mibyan.tools.results import ToolResult

from .world import KNOTS, STYLES, Operation, batches, build, chosen, state, styles


@dataclass
class Actor:
    """One call: what it does, whether hooks and a person have a say, and the steps that its section has left."""

    operation: Operation
    hooked: bool
    asks: bool
    left: list[str] = field(default_factory=list)


class Play:
    """A batch, driven by choices."""

    def __init__(self, root: Path, actors: list[Actor], workers: int) -> None:
        self.root = root
        self.actors = actors
        self.workers = workers
        session = Session("s")
        self.members = [self._member(index, actor, session) for index, actor in enumerate(actors)]
        self.batch = Batch(self.members, workers, None)
        self.results = [""] * len(actors)
        self.happened: list[tuple[str, int]] = []

    def _member(self, index: int, actor: Actor, session: Session) -> Member:
        entry = ToolEntry("t", "t", {}, None, Owner("host", "host"), read_only=actor.operation.kind in {"read", "list"})
        call = Call("t", None, session, entry=entry)
        return Member(index, call, Gates(call), None, may_ask=actor.asks)

    def run(self, choose: Any) -> None:
        while not self.batch.is_over:
            busy = [index for index, actor in enumerate(self.actors) if actor.left]
            choices = [(index, self.actors[index].left[0]) for index in busy] + (
                [] if self._is_waiting else [(-1, "begin")]
            )
            index, _ = choose(choices)
            if index >= 0:
                self._go_on(self.members[index], self.actors[index])
                self._is_waiting = False
            else:
                section = self.batch.next()
                self._is_waiting = section is None
                assert section is not None or busy, "nothing runs, and nothing may"
                if section is not None:
                    self._begin(section)

    #: Whether the batch said that nothing may begin before something has ended.
    _is_waiting = False

    def _begin(self, section: Section) -> None:
        member, actor = section.member, self.actors[section.member.index]
        assert not actor.left
        match member.place, section.outcome:
            case None, None:
                actor.left = ["find", "stand hooks"] if actor.hooked else ["name", *self._towards(actor)]
            case "hooks", _:
                actor.left = ["hook", "name", *self._towards(actor)]
            case "approval", _:
                actor.left = ["ask", "stand handler"]
            case "handler", again if again is AGAIN:
                actor.left = ["name", "stand handler"]
            case "handler", go if go is GO:
                actor.left = ["act", "end"]
        running = [each for each in self.members if each.running and self.actors[each.index].left[-1:] != ["ask"]]
        assert len([each for each in running if each.place != "approval"]) <= self.workers

    def _towards(self, actor: Actor) -> list[str]:
        return ["stand approval" if actor.asks else "stand handler"]

    def _go_on(self, member: Member, actor: Actor) -> None:
        step = actor.left.pop(0)
        self.happened.append((step, member.index))
        if step == "name":
            operation = actor.operation
            member.gates.need = Need("named", resources=resolve(operation.reads, operation.writes, str(self.root)))
        elif step == "act":
            self.results[member.index] = actor.operation.run(self.root)
        elif step == "end":
            self.batch.answered(member, ToolResult(None, "t", "ok", ""))
        elif step.startswith("stand"):
            self.batch.came_to(member, step.removeprefix("stand "))  # type: ignore[arg-type]


def actors(operations: list[Operation]) -> st.SearchStrategy[list[Actor]]:
    """Somebody for each; half of the batches have neither hooks nor questions."""
    said = st.one_of(st.just(False), st.booleans())
    return st.tuples(*(st.builds(Actor, st.just(operation), said, said) for operation in operations)).map(list)


@settings(max_examples=300)
@given(batch=batches.flatmap(actors), workers=st.integers(1, 4), style=styles, data=st.data())
def test_dispatch_P1_whatever_takes_how_long(tmp_path_factory, batch, workers, style, data):
    """dispatch.P1 to P3: the outcome is the sequence's; hooks and questions come in order, questions before effects."""
    root = tmp_path_factory.getbasetemp() / "batch" / "tree"
    play = played(root, batch, workers, lambda choices: chosen(style, choices, data))
    for step in ("hook", "ask"):
        order = [index for what, index in play.happened if what == step]
        assert order == sorted(order)
    effects = [at for at, (what, index) in enumerate(play.happened)
               if what == "act" and batch[index].operation.kind not in {"read", "list"}]  # fmt: skip
    questions = [at for at, (what, _) in enumerate(play.happened) if what == "ask"]
    assert not effects or not questions or max(questions) < min(effects)


@pytest.mark.parametrize("batch", KNOTS)
@pytest.mark.parametrize("style", STYLES)
def test_dispatch_P2_paths_that_move_meanwhile(tmp_path, batch, style):
    """dispatch.P2: what a call says that it touches counts as long as nothing has moved since."""
    actors = [Actor(operation, hooked=False, asks=False) for operation in batch]
    played(tmp_path / "tree", actors, len(actors), lambda choices: chosen(style, choices))


def played(root, batch, workers, choose) -> Play:
    """Play a batch; its results and the state of the tree are those of the sequence."""
    build(root)
    expected = [actor.operation.run(root) for actor in batch]
    expected_state = state(root)
    build(root)
    play = Play(root, batch, workers)
    play.run(choose)
    assert play.results == expected
    assert state(root) == expected_state
    return play
