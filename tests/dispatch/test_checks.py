"""What a host gives a call: wrong values are told in a sentence."""

from __future__ import annotations

from typing import Any

import pytest

from mibyan.dispatch.checks import read_seconds


@pytest.mark.parametrize(
    "timeout",
    [0, -1, -0.5, float("nan"), float("inf"), 10**5000, -(10**5000)],
    ids=["0", "-1", "-0.5", "nan", "inf", "huge", "-huge"],
)
def test_seconds_that_are_none(timeout: Any) -> None:
    """A number that can't be a time-out, however large, is a ValueError of few words."""
    with pytest.raises(ValueError, match=r"^timeout must be more than 0 seconds") as caught:
        read_seconds(timeout)
    assert len(str(caught.value)) < 100


@pytest.mark.parametrize(("timeout", "seconds"), [(None, None), (1, 1.0), (0.25, 0.25), (10**9, 1e9)])
def test_seconds(timeout: Any, seconds: float | None) -> None:
    """Every positive number is a time-out."""
    assert read_seconds(timeout) == seconds
