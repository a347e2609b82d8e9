"""The table that people read, and the JSON document that programs read."""

from __future__ import annotations

import os
import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import mibyan
from benchmarks.harness import interpreter

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks.figures import Figure

_HEAD = ("FIGURE", "BESIDE", "FLOOR", "OURS", "RATIO", "TARGET", "")


def machine() -> dict[str, Any]:
    """What the figures were measured on."""
    return {
        "python": interpreter(),
        "mibyan": mibyan.__version__,
        "pydantic-core": _version("pydantic-core"),
        "jsonschema-rs": _version("jsonschema-rs"),
        "system": f"{platform.system()} {platform.release()}",
        "processor": _processor(),
        "cores": os.cpu_count(),
        "load": round(os.getloadavg()[0], 2),
    }


def _version(distribution: str) -> str:
    try:
        return version(distribution)
    except PackageNotFoundError:
        return "unknown"


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def table(figures: Sequence[Figure]) -> str:
    """The figures in columns, with a heading for each group."""
    rows = [_HEAD, *(_row(figure) for figure in figures)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(_HEAD))]
    lines = [_line(_HEAD, widths)]
    group = ""
    for figure, row in zip(figures, rows[1:], strict=True):
        if figure.group != group:
            group = figure.group
            lines.append(f"-- {group}")
        lines.append(_line(row, widths))
    return "\n".join(lines)


def markdown(figures: Sequence[Figure], where: dict[str, Any]) -> str:
    """The figures and the machine as a page of the documentation has them."""
    lines = ["| figure | beside | floor | ours | ratio | target | |", "| --- | --- | --- | --- | --- | --- | --- |"]
    group = ""
    for figure in figures:
        if figure.group != group:
            group = figure.group
            lines.append(f"| **{group}** | | | | | | |")
        lines.append("| " + " | ".join(_row(figure)).replace("<=", "≤").replace(">=", "≥") + " |")
    machine_line = ", ".join(f"{name} {value}" for name, value in where.items())
    return "\n".join([*lines, "", f"Measured on: {machine_line}."])


def _line(row: Sequence[str], widths: Sequence[int]) -> str:
    cells = [cell.ljust(width) if column < 2 else cell.rjust(width)
             for column, (cell, width) in enumerate(zip(row, widths, strict=True))]  # fmt: skip
    return "  ".join(cells).rstrip()


def _row(figure: Figure) -> tuple[str, ...]:
    return (
        figure.name, figure.floor_name, f"{number(figure.floor)} {figure.unit}", f"{number(figure.ours)} {figure.unit}",
        _beside(figure), _target(figure), figure.verdict,
    )  # fmt: skip


def _beside(figure: Figure) -> str:
    """The ratio; where the target is about what ours takes more, that."""
    if figure.subject == "more":
        return f"+{number(figure.samples.median('more'))} {figure.unit}"
    return f"{number(figure.ratio)} x"


def _target(figure: Figure) -> str:
    target = figure.target
    if target is None:
        return ""
    sign = ">=" if target.at_least else "<="
    unit = "x" if target.subject == "ratio" else figure.unit
    more = " more" if target.subject == "more" else ""
    aim = f" (aim {target.aim:g})" if target.aim is not None else ""
    return f"{sign} {target.bound:g} {unit}{more}{aim}"


def number(value: float) -> str:
    """Three significant digits, never in scientific notation."""
    size = abs(value)
    return f"{value:.0f}" if size >= 100 else f"{value:.1f}" if size >= 10 else f"{value:.2f}"
