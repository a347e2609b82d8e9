"""`Figure`: what was measured, beside its floor and its target."""

from __future__ import annotations

import math
import statistics
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from collections.abc import Sequence

#: What a target is about: ours divided by the floor, ours itself, or what ours takes more than the floor.
Subject = Literal["ratio", "ours", "more"]


@dataclass(frozen=True, slots=True)
class Target:
    """What a figure should be.

    Args:
        bound: The limit.
        aim: What would be better still.
        subject: What the limit is about.
        at_least: Whether more is better.
    """

    bound: float
    aim: float | None = None
    subject: Subject = "ratio"
    at_least: bool = False

    def allows(self, value: float) -> bool:
        """Whether `value` is within the limit."""
        return value >= self.bound if self.at_least else value <= self.bound


@dataclass(frozen=True, slots=True)
class Samples:
    """Measurements in pairs: each of ours has the floor that was measured right beside it."""

    floor: Sequence[float]
    ours: Sequence[float]

    def values(self, subject: Subject) -> list[float]:
        """What a target judges, pair by pair."""
        if subject == "ours":
            return list(self.ours)
        if subject == "more":
            return [ours - floor for floor, ours in zip(self.floor, self.ours, strict=True)]
        return [ours / floor if floor else math.nan for floor, ours in zip(self.floor, self.ours, strict=True)]

    def median(self, subject: Subject) -> float:
        """The median of what a target judges."""
        return statistics.median(self.values(subject))

    def spread(self, subject: Subject) -> tuple[float, float]:
        """The first and the third quartile of what a target judges."""
        values = self.values(subject)
        if len(values) == 1:
            return values[0], values[0]
        first, _, third = statistics.quantiles(values, n=4, method="inclusive")
        return first, third


@dataclass(frozen=True, slots=True)
class Figure:
    """A line of the table.

    Args:
        group: The group that measured it.
        name: What was measured.
        floor_name: What stands beside it.
        unit: The unit of both.
        samples: The measurements.
        target: What it should be, if the project says so.
    """

    group: str
    name: str
    floor_name: str
    unit: str
    samples: Samples
    target: Target | None = None

    @property
    def floor(self) -> float:
        """The floor's median."""
        return statistics.median(self.samples.floor)

    @property
    def ours(self) -> float:
        """Our median."""
        return statistics.median(self.samples.ours)

    @property
    def ratio(self) -> float:
        """The median of the ratios, pair by pair."""
        return self.samples.median("ratio")

    @property
    def subject(self) -> Subject:
        """What is judged."""
        return self.target.subject if self.target else "ratio"

    @property
    def verdict(self) -> str:
        """`ok`, `over`, or nothing where there is no target."""
        if self.target is None:
            return ""
        return "ok" if self.target.allows(self.samples.median(self.target.subject)) else "over"

    def to_dict(self) -> dict[str, Any]:
        """The figure as JSON has it."""
        target = self.target
        return {
            "group": self.group, "name": self.name, "unit": self.unit, "floor_name": self.floor_name,
            "floor": self.floor, "ours": self.ours, "ratio": self.ratio, "more": self.samples.median("more"),
            "pairs": len(self.samples.ours), "spread": self.samples.spread(self.subject), "subject": self.subject,
            "target": target.bound if target else None, "aim": target.aim if target else None,
            "at_least": bool(target and target.at_least), "verdict": self.verdict,
        }  # fmt: skip
