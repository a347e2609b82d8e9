"""`mibyan.dispatch.plan`: what a handler accepts is told without `inspect` exactly as with it."""

from __future__ import annotations

import functools
import inspect
from typing import Any

import pytest

from mibyan.dispatch.plan import accepted_keywords


def wrapped(args, session=None, *, task_id=None):
    pass


@functools.wraps(wrapped)
def wrapper(*args, **kwargs):
    pass


def signed(*args, **kwargs):
    pass


signed.__signature__ = inspect.signature(wrapped)


class Handler:
    def __call__(self, args, task_id):
        pass

    def method(self, args, session_id):
        pass


HANDLERS: list[Any] = [
    lambda: None,
    lambda args: None,
    lambda args, **context: None,
    lambda args, task_id, session=None: None,
    lambda args, *more, task_id, session=None: None,
    lambda args, session_id, /, task_id: None,
    lambda args, /, task_id, *, session: None,
    lambda *args: None,
    lambda *args, task_id: None,
    lambda *, args, task_id: None,
    lambda **context: None,
    lambda args, *, task_id, **context: None,
    wrapped,
    wrapper,
    signed,
    functools.partial(wrapped, task_id=1),
    Handler(),
    Handler().method,
    len,
    dict,
]


@pytest.mark.parametrize("handler", HANDLERS, ids=lambda one: getattr(one, "__name__", type(one).__name__))
def test_what_is_accepted_is_what_the_signature_says(handler: Any) -> None:
    try:
        parameters = list(inspect.signature(handler).parameters.values())
    except (TypeError, ValueError):
        assert accepted_keywords(handler) == ()
        return
    wanted: Any = tuple(p.name for p in parameters[1:] if p.kind in {p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY})
    if any(p.kind is p.VAR_KEYWORD for p in parameters):
        wanted = None
    assert accepted_keywords(handler) == wanted
