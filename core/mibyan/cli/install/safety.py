"""What of an installer's plan would harm Mibyan, or what is installed besides (plugins.W4)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mibyan.errors import MibyanError
from mibyan.plugins.sources.ids import canonical

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from packaging.requirements import Requirement

    from mibyan.cli.install.plan import Step

_OWN = "mibyan"


def require_harmless(steps: Sequence[Step], there: Mapping[str, str]) -> None:
    """Raise if Mibyan, or something that it needs, would be removed, go back, or get a version that doesn't work with it.

    Args:
        steps: The plan.
        there: The versions of what is installed, by canonical name.

    Raises:
        MibyanError: It would; every such change is named.
    """
    changed = {step.name: step for step in steps}
    harm = [*_harm_to_itself(steps), *_unmet(_needed(changed), changed, there)]
    if harm:
        raise MibyanError(
            "nothing was installed: it would break Mibyan:\n" + "\n".join(f"    {line}" for line in harm),
            hint="Ask the plugin's author for a version that goes with this Mibyan, or upgrade Mibyan first.",
        )


def conflicts(steps: Sequence[Step], there: Mapping[str, str]) -> list[str]:
    """What somebody else needs and would no longer get, a sentence each.

    Args:
        steps: The plan.
        there: The versions of what is installed, by canonical name.
    """
    changed = {step.name: step for step in steps}
    return list(_unmet((name for name in there if name not in changed), changed, there))


def _harm_to_itself(steps: Sequence[Step]) -> Iterator[str]:
    from packaging.version import InvalidVersion, Version

    for step in steps:
        if step.name != _OWN:
            continue
        if step.removed:
            yield "mibyan itself would be removed"
            continue
        if not step.was:
            yield f"a second mibyan, {step.version}, would lie beside the one that runs this, which no installer has put there"
            continue
        try:
            older = bool(step.was and step.version) and Version(step.version) < Version(step.was)
        except InvalidVersion:
            older = True
        if older:
            yield f"mibyan itself would go from {step.was} back to {step.version}"


def _unmet(owners: Iterator[str], changed: Mapping[str, Step], there: Mapping[str, str]) -> Iterator[str]:
    """The requirements of some distributions that a plan would leave unmet, and that are met now."""
    for owner in owners:
        for requirement in _requirements(owner, changed.get(owner)):
            step = changed.get(canonical(requirement.name))
            if step is None or step.name == owner or not _counts(requirement, there):
                continue
            if step.removed:
                yield f"{owner} needs {_plain(requirement)}, and {step.name} would be removed"
            elif step.version and not requirement.specifier.contains(step.version, prereleases=True):
                yield f"{owner} needs {_plain(requirement)}, and {step.name} would be {step.version}"


def _counts(requirement: Requirement, there: Mapping[str, str]) -> bool:
    """Whether a requirement is one here: what an extra asks for counts if it is there in a version that fits."""
    if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
        return True
    version = there.get(canonical(requirement.name))
    return (
        version is not None
        and "extra" in str(requirement.marker)
        and requirement.specifier.contains(version, prereleases=True)
    )


def _plain(requirement: Requirement) -> str:
    return f"{requirement.name}{requirement.specifier}"


def _needed(changed: Mapping[str, Step]) -> Iterator[str]:
    """Mibyan and all that it needs, as it would be then."""
    left, seen = [_OWN], {_OWN}
    while left:
        owner = left.pop()
        yield owner
        for requirement in _requirements(owner, changed.get(owner)):
            name = canonical(requirement.name)
            needed = requirement.marker is None or requirement.marker.evaluate({"extra": ""})
            if needed and name not in seen:
                seen.add(name)
                left.append(name)


def _requirements(name: str, step: Step | None) -> Iterator[Requirement]:
    """What a distribution requires, extras too; nothing where that isn't known."""
    from importlib.metadata import PackageNotFoundError, requires

    from packaging.requirements import InvalidRequirement, Requirement

    try:
        texts = requires(name) or () if step is None else step.requires or ()
    except (PackageNotFoundError, OSError, ValueError):
        return
    for text in texts:
        try:
            yield Requirement(text)
        except InvalidRequirement:
            continue
