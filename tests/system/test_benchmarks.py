"""The benchmarks run: every figure is measured once, whatever it says."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

pytestmark = [pytest.mark.system, pytest.mark.timeout(300)]

GROUPS = ["calls", "registration", "definitions", "concurrency", "deadlines", "finding", "scripts", "start"]


def measured(tmp_path: Path, *words: str) -> tuple[subprocess.CompletedProcess[str], dict]:
    """What `python -m benchmarks` prints, and the document that it writes."""
    out = tmp_path / "figures.json"
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks", "--smoke", "--json", out, *words], cwd=ROOT, capture_output=True, text=True
    )
    return done, json.loads(out.read_text()) if out.exists() else {}


@pytest.mark.parametrize("group", GROUPS)
def test_every_figure_of_a_group_is_measured(group: str, tmp_path: Path) -> None:
    """One pair of each: what is measured does its work; the table, the document and the reference have it."""
    done, document = measured(tmp_path, group)
    assert done.returncode == 0, done.stderr
    figures = document["figures"]
    assert {figure["group"] for figure in figures} == {group}
    assert all(figure["floor"] > 0 and figure["ours"] > 0 for figure in figures)
    assert [figure["name"] for figure in figures if figure["name"] not in done.stdout] == []
    assert {figure["verdict"] for figure in figures} <= {"ok", "over", ""}
    page = (ROOT / "docs" / "reference" / "figures.md").read_text(encoding="utf-8")
    assert [figure["name"] for figure in figures if f"| {figure['name']} |" not in page] == []


def test_an_unknown_group_is_told(tmp_path: Path) -> None:
    """The groups there are stand in the message."""
    done, document = measured(tmp_path, "nonsense")
    assert (done.returncode, document) == (2, {})
    assert "nonsense" in done.stderr
    assert all(group in done.stderr for group in GROUPS)


def test_peers_are_chosen_by_name(tmp_path: Path) -> None:
    """A peer that there is no adapter for is told, with those there are."""
    done, document = measured(tmp_path, "--peers", "hermes,nobody")
    assert (done.returncode, document) == (2, {})
    assert "nobody" in done.stderr
    assert "hermes" in done.stderr


WORKER = """
import sys
from pathlib import Path
from benchmarks.peers.worker import Worker
try:
    with Worker(Path(sys.executable), Path(sys.argv[1]), "any") as worker:
        print(worker() > 0)
except RuntimeError as error:
    print(error)
"""


@pytest.mark.parametrize(
    ("adapter", "says"),
    [
        ("def make(variant, arguments, schema):\n    return lambda: arguments['path']", "True"),
        ("def make(variant, arguments, schema):\n    async def f(): return arguments\n    return f", "True"),
        ("def make(variant, arguments, schema):\n    return lambda: 'an error, quickly'", "an error, quickly"),
        ("import nothing_of_that_name", "nothing_of_that_name"),
    ],
    ids=["sync", "async", "wrong answer", "not importable"],
)
def test_a_peer_is_measured_in_a_process_of_its_own(adapter: str, says: str, tmp_path: Path) -> None:
    """A peer's call is timed where the peer lives; one that doesn't do its work is told instead."""
    (tmp_path / "peer.py").write_text(adapter)
    done = subprocess.run(
        [sys.executable, "-c", WORKER, tmp_path / "peer.py"], cwd=ROOT, capture_output=True, text=True
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert says in done.stdout
