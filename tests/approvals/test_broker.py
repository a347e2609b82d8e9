"""Who may say yes: the broker between a question and a person."""

from __future__ import annotations

import asyncio
import json
import threading

import pytest

from mibyan import Ask, Runtime
from mibyan.approvals import ANSWERS, Approvals
from mibyan.tools.results import ToolCall

SOON = 20.0


@pytest.mark.parametrize("answer", ANSWERS)
def test_each_answer(broker, request_for, answer):
    """`once`, `session` and `always` grant, `deny` denies; each is told as what it was."""
    broker.notify(lambda request: broker.resolve(request.id, answer))
    approval = broker.decide(request_for(broker))
    assert (approval.granted, approval.how) == (answer != "deny", answer)
    assert broker.pending() == []


@pytest.mark.parametrize("answer", ["yes", "ONCE", "", None, True, 1, object(), ["once"], b"once"])
def test_anything_else_is_a_denial(broker, request_for, answer):
    """api: an answer that isn't one of the four is a denial, and `resolve` never raises."""
    broker.notify(lambda request: broker.resolve(request.id, answer))
    assert not broker.decide(request_for(broker)).granted


@pytest.mark.parametrize("request_id", ["nope", "", None, 5, object(), []])
def test_an_unknown_question_has_no_answer(broker, request_id):
    """api: `resolve` says whether a question was waiting, whatever it is given."""
    assert broker.resolve(request_id, "once") is False


def test_only_the_first_answer_counts(broker, request_for):
    """A question is answered once; later answers come too late."""
    told = []
    broker.notify(lambda request: told.extend(broker.resolve(request.id, answer) for answer in ("deny", "always")))
    question = request_for(broker)
    assert not broker.decide(question).granted
    assert told == [True, False]
    assert broker.resolve(question.request.id, "once") is False


def test_without_a_channel_it_is_denied(broker, request_for, log):
    """api: a runtime has no channel until its host sets one: denied, with what would change it, and a record."""
    approval = broker.decide(request_for(broker))
    assert (approval.granted, approval.how) == (False, "no_channel")
    assert "notify" in approval.message
    assert [decision.kind for decision in log] == ["denied"]


def test_silence_is_a_denial_of_its_own_kind(request_for):
    """A time-out is told apart from a denial and says that silence isn't consent."""
    broker = Approvals(0.05)
    broker.notify(lambda request: None)
    approval = broker.decide(request_for(broker))
    assert (approval.granted, approval.how) == (False, "timeout")
    assert "silence isn't consent" in approval.message


@pytest.mark.parametrize("error", [ValueError, SystemExit, GeneratorExit, asyncio.CancelledError, BaseException])
def test_a_channel_that_fails_denies(broker, request_for, caplog, error):
    """A channel that raises is a denial with a WARNING; the exception goes no further."""

    def channel(request):
        raise error

    broker.notify(channel)
    assert not broker.decide(request_for(broker)).granted
    assert "channel failed" in caplog.text


def test_an_interrupt_in_the_channel_leaves(broker, request_for):
    """KeyboardInterrupt leaves, and the question isn't pending any more."""

    def channel(request):
        raise KeyboardInterrupt

    broker.notify(channel)
    with pytest.raises(KeyboardInterrupt):
        broker.decide(request_for(broker))
    assert broker.pending() == []


@pytest.mark.parametrize("channel", [5, "channel", object()])
def test_a_channel_is_callable(broker, channel):
    """`notify` takes a callable or `None`."""
    with pytest.raises(TypeError, match="notify takes a callable"):
        broker.notify(channel)


def test_several_questions_wait_at_once(broker, request_for):
    """Several may be pending; `pending(session)` gives those of one session, oldest first; any thread answers."""
    asked, results = threading.Semaphore(0), {}
    broker.notify(lambda request: asked.release())
    questions = [request_for(broker, session) for session in ("a", "b", "a")]
    threads = []
    for index, question in enumerate(questions):
        threads.append(threading.Thread(target=lambda i=index, r=question: results.update({i: broker.decide(r).how})))
        threads[-1].start()
        assert asked.acquire(timeout=SOON)
    requests = broker.pending()
    assert [request.id for request in requests] == [question.request.id for question in questions]
    assert broker.pending("a") == [requests[0], requests[2]]
    for request, answer in zip(requests, ("once", "deny", "always"), strict=True):
        assert broker.resolve(request.id, answer)
    for thread in threads:
        thread.join(SOON)
    assert results == {0: "once", 1: "deny", 2: "always"}


@pytest.mark.parametrize("end", ["close", "unregister"])
def test_who_waits_is_denied_when_the_channel_goes(broker, request_for, end):
    """Taking the channel away, and closing, deny what is waiting; after closing everything is denied."""
    asked, results = threading.Event(), []
    broker.notify(lambda request: asked.set())
    thread = threading.Thread(target=lambda: results.append(broker.decide(request_for(broker)).how))
    thread.start()
    assert asked.wait(SOON)
    broker.close() if end == "close" else broker.notify(None)
    thread.join(SOON)
    assert results == ["deny"]
    assert not broker.decide(request_for(broker)).granted


def test_a_person_sees_what_would_be_done(broker, request_for):
    """What hides is made visible: bidirectional and control characters are escapes; ids differ."""
    first = request_for(broker, args={"command": "rm\u202e x\x1b[2J"}, reason="a\u200bb").request
    assert (first.text, first.reason) == ("rm\\u202e x\\x1b[2J", "a\\u200bb")
    second = request_for(broker, args={"n": 1, "command": "ls"}).request
    assert json.loads(second.text) == {"n": 1, "command": "ls"}
    assert first.id != second.id


@pytest.fixture
def rt(tmp_path):
    runtime = Runtime(home=tmp_path)
    runtime._parts._loaded = True
    schema = {"description": "", "parameters": {"type": "object", "properties": {}}}
    runtime.registry.register("x", "t", schema, lambda args: "ok", approval=lambda args, context: Ask("sure?"))
    yield runtime
    runtime.close()


FACES = {
    "inline": lambda rt: rt.execute(ToolCall("x")),
    "guarded": lambda rt: rt.execute(ToolCall("x"), timeout=SOON),
    "awaited": lambda rt: asyncio.run(rt.aexecute(ToolCall("x"))),
}


@pytest.mark.parametrize("face", FACES)
@pytest.mark.parametrize(("answer", "status"), [("once", "ok"), ("deny", "denied"), ("garbage", "denied")])
@pytest.mark.parametrize("form", ["sync", "async"])
def test_a_channel_sync_or_async_on_every_face(rt, face, answer, status, form):
    """api: the channel is sync or async, on every face; the trace says how it was answered."""

    async def channel(request):
        await asyncio.sleep(0)
        rt.approvals.resolve(request.id, answer)

    rt.approvals.notify(channel if form == "async" else lambda request: rt.approvals.resolve(request.id, answer))
    result = FACES[face](rt)
    assert result.status == status
    (step,) = [step for step in result.trace if step["step"] == "approval"]
    assert step["granted"] == (status == "ok")
    if status == "denied":
        assert "Don't retry" in result.error


@pytest.mark.parametrize("face", ["guarded", "awaited"])
def test_a_channel_that_never_comes_back(tmp_path, face):
    """A channel that hangs is silence: the call is denied when nobody waits any more."""
    release = threading.Event()
    with Runtime(home=tmp_path, config={"approvals": {"timeout": 1}}) as rt:
        rt._parts._loaded = True
        rt.registry.register("x", "t", {"description": ""}, lambda args: "ok", approval=lambda args, context: Ask("?"))
        rt.approvals.notify(lambda request: release.wait(SOON))
        result = FACES[face](rt)
        release.set()
    assert (result.status, "silence isn't consent" in result.error) == ("denied", True)


def test_an_interrupted_call_asks_no_more(rt):
    """When the call is over, its question isn't pending any more."""
    asked, box = threading.Event(), []
    rt.approvals.notify(lambda request: asked.set())
    session = rt.session()
    thread = threading.Thread(target=lambda: box.append(rt.execute(ToolCall("x"), session=session, timeout=SOON)))
    thread.start()
    assert asked.wait(SOON)
    (request,) = rt.approvals.pending(session.id)
    session.interrupt()
    thread.join(SOON)
    assert box[0].status == "cancelled"
    assert rt.approvals.resolve(request.id, "once") is False
