"""The loop, with a scripted model and a journal in memory."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any, ClassVar

import msgspec
import pytest

from hermes.core.budget import Cap, TurnBudget
from hermes.core.calls import CallRunner
from hermes.core.history import ConversationHistory
from hermes.core.ports import Effect, PolicyDecision, Tool, ToolContext
from hermes.core.turn import NativeRuntime, Turn, with_unique_ids
from hermes.errors import ModelError, ToolFailed
from hermes.schema.event_base import Event
from hermes.schema.events import (
    ApprovalAnswered,
    ApprovalRequested,
    MessageDelta,
    ModelRetried,
    QuestionAnswered,
    QuestionAsked,
    ReplyRejected,
    Steered,
    ToolStarted,
    TurnEnded,
    TurnStarted,
)
from hermes.schema.messages import (
    AssistantMessage,
    ToolCall,
    ToolFinished,
    Usage,
    UserMessage,
)
from hermes.schema.model import (
    ModelEvent,
    ModelRequest,
    ReplyFinished,
    Retrying,
    TextDelta,
)
from hermes.schema.tool_spec import ToolResult, ToolSpec
from hermes.testing import Reply, ScriptedModel

_SCHEMA = {
    "type": "object",
    "properties": {"text": {"type": "string"}},
    "required": ["text"],
}


class MemoryJournal:
    """Keeps rows in a list; `shown` holds transient events."""

    def __init__(self) -> None:
        self.rows: list[Event] = []
        self.shown: list[Event] = []
        self.history = ConversationHistory()

    async def record(self, *events: Event) -> tuple[int, ...]:
        await asyncio.sleep(0)
        for event in events:
            self.rows.append(event)
            self.history.add(len(self.rows), event, "turn")
        return tuple(range(len(self.rows) - len(events) + 1, len(self.rows) + 1))

    def note(self, *events: Event) -> None:
        for event in events:
            self.rows.append(event)
            self.history.add(len(self.rows), event, "turn")

    async def flush(self) -> None:
        await asyncio.sleep(0)

    async def nothing_under_way(self) -> None:
        await asyncio.sleep(0)

    def show(self, event: Event) -> None:
        self.shown.append(event)

    def of(self, kind: type[Event]) -> list[Any]:
        return [row for row in self.rows if isinstance(row, kind)]


class SayTool:
    """Returns what it is given; `hang` waits forever, `fail` fails, `crash` raises."""

    effect: Effect = "read"

    def __init__(self, name: str = "say") -> None:
        self.spec = ToolSpec(name=name, description="says", parameters=_SCHEMA)
        self.ran: list[str] = []
        self.hanging = asyncio.Event()

    def paths(self, arguments: Mapping[str, Any], cwd: Path) -> tuple[Path, ...]:
        return ()

    async def run(
        self, arguments: Mapping[str, Any], context: ToolContext
    ) -> ToolResult:
        text = arguments["text"]
        self.ran.append(text)
        if text == "hang":
            self.hanging.set()
            await asyncio.Event().wait()
        if text == "fail":
            raise ToolFailed("it did not work", hint="Try again.")
        if text == "crash":
            raise RuntimeError("bug")
        if text == "bytes":
            return ToolResult(text="caf\udce9")
        context.show(f"saying {text}")
        return ToolResult(text=text)


class FixedPolicy:
    def __init__(self, verdict: str = "allow") -> None:
        self._decision = PolicyDecision(verdict, "say something", "because")  # type: ignore[arg-type]
        self.remembered: list[str] = []

    def judge(
        self, tool: Tool, arguments: Mapping[str, Any], cwd: Path
    ) -> PolicyDecision:
        return self._decision

    def remember(self, request: ApprovalRequested, rule: str = "") -> None:
        self.remembered.append(request.shape)


class FixedApprovals:
    def __init__(self, answer: str = "once", by: str = "test") -> None:
        self.asked: list[ApprovalRequested] = []
        self._answer, self._by = answer, by

    async def ask(self, request: ApprovalRequested) -> ApprovalAnswered:
        self.asked.append(request)
        return ApprovalAnswered(
            call_id=request.call_id,
            answer=self._answer,  # type: ignore[arg-type]
            by=self._by,
        )

    async def question(self, request: QuestionAsked) -> QuestionAnswered:
        return QuestionAnswered(call_id=request.call_id, text="blue", by=self._by)


class Bench:
    """A turn ready to run."""

    def __init__(
        self,
        model: Any,
        *,
        policy: str = "allow",
        approvals: FixedApprovals | None = None,
        **options: Any,
    ) -> None:
        self.tool = SayTool()
        self.approvals = approvals or FixedApprovals()
        self.journal = MemoryJournal()
        self.budget = options.pop("budget", TurnBudget())
        runner = CallRunner({"say": self.tool}, FixedPolicy(policy), self.approvals)
        self.runtime = NativeRuntime(
            model,
            runner,
            max_steps=options.pop("max_steps", 50),
            context=options.pop("context", None),
        )
        self.turn = Turn(
            session="s",
            cwd=Path("/"),
            journal=self.journal,
            history=self.journal.history,
            budget=self.budget,
        )

    async def run(self, text: str = "hello") -> TurnEnded:
        await self.journal.record(UserMessage(text=text), TurnStarted(inputs=(1,)))
        async with asyncio.timeout(20):
            ended = await self.runtime.run(self.turn)
        await self.journal.record(
            *self.journal.history.unfinished("Stopped while running.")
        )
        return ended

    @property
    def results(self) -> list[str]:
        return [row.text for row in self.journal.of(ToolFinished)]


def _say(text: str) -> Reply:
    return Reply(calls=(("say", f'{{"text": "{text}"}}'),))


async def test_an_answer_ends_the_turn_and_was_streamed() -> None:
    bench = Bench(ScriptedModel("hello to you too"))
    ended = await bench.run()
    assert ended.reason == "done"
    assert (
        "".join(
            row.text for row in bench.journal.shown if isinstance(row, MessageDelta)
        )
        == "hello to you too"
    )
    assert bench.journal.of(AssistantMessage)[0].text == "hello to you too"


async def test_a_call_is_on_disk_before_it_runs_and_its_result_goes_back_to_the_model() -> (
    None
):
    model = ScriptedModel(_say("hi"), "done")
    bench = Bench(model)
    ended = await bench.run()
    assert ended.reason == "done"
    kinds = [type(row) for row in bench.journal.rows[2:]]
    assert kinds == [AssistantMessage, ToolStarted, ToolFinished, AssistantMessage]
    assert model.requests[1].messages[-1].text == "hi"


async def test_results_come_in_the_order_of_the_calls() -> None:
    calls = tuple(("say", f'{{"text": "{n}"}}') for n in range(60))
    bench = Bench(ScriptedModel(Reply(calls=calls), "done"))
    await bench.run()
    assert bench.results == [str(n) for n in range(60)]


async def test_a_failing_tool_tells_the_model_why() -> None:
    bench = Bench(ScriptedModel(_say("fail"), _say("crash"), "done"))
    assert (await bench.run()).reason == "done"
    assert bench.results == [
        "it did not work. Try again.",
        "The tool failed: RuntimeError: bug",
    ]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ('{"text": "hi"', "not valid JSON"),
        ("[]", "must be a JSON object"),
        ("{}", "missing argument: text"),
        ('{"text": "hi", "extra": 1}', "unknown argument: extra"),
    ],
)
async def test_a_call_with_broken_arguments_is_never_run(
    arguments: str, message: str
) -> None:
    bench = Bench(ScriptedModel(Reply(calls=(("say", arguments),)), "sorry"))
    assert (await bench.run()).reason == "done"
    assert bench.tool.ran == []
    assert message in bench.results[0]
    assert bench.journal.of(ReplyRejected)[0].reason == "bad_arguments"


async def test_broken_arguments_again_and_again_end_the_turn() -> None:
    bench = Bench(ScriptedModel(*[Reply(calls=(("say", "{"),))] * 10))
    ended = await bench.run()
    assert ended.reason == "failed"
    assert len(bench.journal.of(AssistantMessage)) == 4


async def test_an_unknown_tool_is_answered_with_the_tools_there_are() -> None:
    bench = Bench(ScriptedModel(Reply(calls=(("shout", "{}"),)), "sorry"))
    assert (await bench.run()).reason == "done"
    assert "there is no tool 'shout'. There are: say" in bench.results[0]


async def test_the_same_call_forever_is_stopped_within_ten() -> None:
    bench = Bench(ScriptedModel(*[_say("again")] * 30))
    ended = await bench.run()
    assert ended.reason == "failed"
    assert len(bench.tool.ran) < 10
    assert bench.journal.of(ReplyRejected)[-1].reason == "looping"


async def test_empty_replies_are_asked_again_and_then_reported() -> None:
    bench = Bench(ScriptedModel(Reply(), Reply(reasoning="hm"), "there"))
    assert (await bench.run()).reason == "done"
    worse = Bench(ScriptedModel(*[Reply()] * 5))
    ended = await worse.run()
    assert ended.reason == "failed"
    assert "3 times in a row" in ended.detail


async def test_a_reply_that_was_cut_off_is_continued() -> None:
    model = Streams(
        [ReplyFinished(AssistantMessage(text="first half and", finish="length"))],
        [_done("the rest.")],
    )
    bench = Bench(model)
    assert (await bench.run()).reason == "done"
    assert bench.journal.of(UserMessage)[-1].origin == "hermes"
    assert model.requests[1].messages[-1] == bench.journal.of(UserMessage)[-1]


@pytest.mark.parametrize("ending", ["whole.", "好的。", "done 🎉", "x ^"])
async def test_a_reply_that_hit_the_limit_at_a_natural_end_is_whole(
    ending: str,
) -> None:
    bench = Bench(
        Streams([ReplyFinished(AssistantMessage(text=ending, finish="length"))])
    )
    assert (await bench.run()).reason == "done"


async def test_a_call_that_was_cut_off_is_never_run() -> None:
    call = ToolCall(id="c", name="say", arguments='{"text": "hi"}')
    cut = [ReplyFinished(AssistantMessage(tool_calls=(call,), finish="length"))]
    bench = Bench(Streams(cut, [_done("ok.")]))
    assert (await bench.run()).reason == "done"
    assert bench.tool.ran == []
    assert "cut off" in bench.results[0]


async def test_a_refusal_ends_the_turn_as_refused() -> None:
    bench = Bench(
        Streams([ReplyFinished(AssistantMessage(text="I won't.", finish="refused"))])
    )
    assert (await bench.run()).reason == "refused"


async def test_a_refusal_with_calls_leaves_none_open() -> None:
    call = ToolCall(id="c", name="say", arguments='{"text": "hi"}')
    bench = Bench(
        Streams(
            [
                ReplyFinished(
                    AssistantMessage(
                        text="I won't.", tool_calls=(call,), finish="refused"
                    )
                )
            ]
        )
    )
    assert (await bench.run()).reason == "refused"
    assert (bench.tool.ran, len(bench.results)) == ([], 1)


async def test_calls_with_the_same_id_or_none_each_get_their_result() -> None:
    calls = tuple(
        ToolCall(id=name, name="say", arguments=f'{{"text": "{n}"}}')
        for n, name in enumerate(["x", "x", ""])
    )
    model = Streams(
        [ReplyFinished(AssistantMessage(tool_calls=calls, finish="tool_calls"))],
        [_done("ok.")],
    )
    bench = Bench(model)
    await bench.run()
    assert bench.results == ["0", "1", "2"]
    assert (
        len({call.id for call in bench.journal.of(AssistantMessage)[0].tool_calls}) == 3
    )


async def test_a_result_that_is_not_text_is_shown_by_its_codes() -> None:
    bench = Bench(ScriptedModel(_say("bytes"), "ok"))
    await bench.run()
    assert bench.results == ["caf\\udce9"]


async def test_a_failed_model_ends_the_turn_with_its_words() -> None:
    bench = Bench(
        ScriptedModel(
            Reply(
                text="part",
                error=ModelError("no credit", hint="Pay.", reason="billing"),
            )
        )
    )
    ended = await bench.run()
    assert (ended.reason, ended.detail) == ("failed", "no credit. Pay.")
    assert bench.journal.of(AssistantMessage) == []


async def test_a_retry_voids_what_was_streamed() -> None:
    retry = Retrying("server", "500", 2, 0.1, "p", "m")
    bench = Bench(
        Streams([TextDelta("par"), retry, TextDelta("whole."), _done("whole.")])
    )
    assert (await bench.run()).reason == "done"
    assert bench.journal.of(ModelRetried)[0].reason == "server"
    assert bench.journal.of(AssistantMessage)[0].text == "whole."


async def test_an_interrupt_while_streaming_keeps_what_was_streamed() -> None:
    model = Streams([TextDelta("so far"), None])
    bench = Bench(model)
    running = asyncio.ensure_future(bench.run())
    await model.stuck.wait()
    bench.turn.interrupt()
    ended = await running
    assert ended.reason == "interrupted"
    reply = bench.journal.of(AssistantMessage)[0]
    assert (reply.text, reply.finish) == ("so far", "interrupted")
    assert model.closed


async def test_an_interrupt_while_tools_run_gives_every_call_a_result() -> None:
    calls = (("say", '{"text": "quick"}'), ("say", '{"text": "hang"}'))
    bench = Bench(ScriptedModel(Reply(calls=calls)))
    running = asyncio.ensure_future(bench.run())
    await asyncio.wait_for(bench.tool.hanging.wait(), 10)
    bench.turn.interrupt()
    assert (await running).reason == "interrupted"
    assert len(bench.results) == 2
    assert bench.results[1].startswith("Stopped while running")
    assert bench.journal.history.open_calls == {}


async def test_a_steer_goes_into_the_running_turn() -> None:
    model = ScriptedModel(_say("one"), "answer", "answer to the steer")
    bench = Bench(model)
    await bench.journal.record(UserMessage(text="hello"), TurnStarted(inputs=(1,)))
    await bench.journal.record(UserMessage(text="also this", delivery="steer"))
    assert (await bench.runtime.run(bench.turn)).reason == "done"
    assert bench.journal.of(Steered)[0].inputs == (3,)
    assert model.requests[0].messages[-1].text == "also this"


async def test_what_needs_approval_is_asked_and_runs_only_when_allowed() -> None:
    allowed = Bench(ScriptedModel(_say("hi"), "done"), policy="ask")
    await allowed.run()
    assert allowed.approvals.asked[0].summary == "say something"
    assert allowed.tool.ran == ["hi"]
    denied = Bench(
        ScriptedModel(_say("hi"), "ok"),
        policy="ask",
        approvals=FixedApprovals("deny", "nobody"),
    )
    await denied.run()
    assert denied.tool.ran == []
    assert "nobody could be asked" in denied.results[0]


async def test_what_is_forbidden_is_not_even_asked() -> None:
    bench = Bench(ScriptedModel(_say("hi"), "ok"), policy="forbid")
    await bench.run()
    assert (bench.tool.ran, bench.approvals.asked) == ([], [])
    assert "forbidden by policy: because" in bench.results[0]


async def test_a_cap_stops_the_turn_before_it_is_passed() -> None:
    usage = Usage(input_tokens=400, output_tokens=50)
    replies = [
        Reply(calls=(("say", f'{{"text": "{n}"}}'),), usage=usage) for n in range(10)
    ]
    bench = Bench(
        ScriptedModel(*replies), budget=TurnBudget([Cap("turn", "tokens", 1000)])
    )
    ended = await bench.run()
    assert ended.reason == "budget"
    assert "Raise budget.per_turn" in ended.detail
    assert bench.budget.used.input_tokens <= 1000


async def test_the_number_of_steps_is_bounded() -> None:
    replies = [Reply(calls=(("say", f'{{"text": "{n}"}}'),)) for n in range(10)]
    bench = Bench(ScriptedModel(*replies), max_steps=3)
    ended = await bench.run()
    stopped = "stopped after 3 steps (budget.max_steps). Calls made: say (3). Say “go on” to continue."
    assert (ended.reason, ended.detail) == ("budget", stopped)
    assert bench.tool.ran == ["0", "1", "2"]
    assert bench.results[-1] == "Not run: the turn had no steps left."


async def test_at_the_last_step_the_model_says_what_was_done_and_what_is_left() -> None:
    model = ScriptedModel(_say("1"), _say("2"), "I said 1 and 2; 3 is left.")
    bench = Bench(model, max_steps=2)
    ended = await bench.run()
    assert (ended.reason, ended.detail) == (
        "budget",
        "stopped after 2 steps (budget.max_steps). Say “go on” to continue.",
    )
    assert bench.journal.of(AssistantMessage)[-1].text == "I said 1 and 2; 3 is left."
    assert "what is left to do" in model.requests[-1].messages[-1].text


async def test_without_an_answer_at_the_last_step_the_calls_are_listed() -> None:
    bench = Bench(
        ScriptedModel(_say("1"), Reply(error=ModelError("gone", reason="network"))),
        max_steps=1,
    )
    ended = await bench.run()
    assert (
        ended.detail
        == "stopped after 1 step (budget.max_steps). Calls made: say. Say “go on” to continue."
    )


async def test_each_request_begins_with_the_one_before() -> None:
    model = ScriptedModel(_say("1"), _say("2"), Reply(), "done")
    await Bench(model).run()
    for one, two in zip(model.requests, model.requests[1:], strict=False):
        assert two.messages[: len(one.messages)] == one.messages
        assert (two.system, two.tools) == (one.system, one.tools)


def _done(text: str) -> ReplyFinished:
    return ReplyFinished(AssistantMessage(text=text))


class Streams:
    """A model that yields exactly these events; None hangs until it is closed."""

    provider = "streams"
    name = "streams"

    def __init__(self, *streams: list[Any]) -> None:
        self._streams = list(streams)
        self.requests: list[ModelRequest] = []
        self.stuck = asyncio.Event()
        self.closed = False

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        self.requests.append(request)
        try:
            for event in self._streams.pop(0):
                if event is None:
                    self.stuck.set()
                    await asyncio.Event().wait()
                yield event
        finally:
            self.closed = True


async def test_ids_that_a_service_uses_again_are_told_apart() -> None:
    again = AssistantMessage(
        tool_calls=(ToolCall(id="c", name="say", arguments="{}"),) * 2
    )
    assert [call.id for call in with_unique_ids(again, {"c"}).tool_calls] == [
        "c-1",
        "c-2",
    ]
    assert (
        with_unique_ids(again.__class__(tool_calls=again.tool_calls[:1]))
        .tool_calls[0]
        .id
        == "c"
    )
    nameless = AssistantMessage(
        tool_calls=(ToolCall(id="", name="say", arguments="{}"),)
    )
    assert with_unique_ids(nameless, {"call-1"}).tool_calls[0].id == "call-2"


async def test_what_was_approved_but_is_forbidden_by_now_does_not_run() -> None:
    class Tightening:
        verdicts: ClassVar[list[str]] = ["ask", "forbid"]

        def judge(
            self, tool: Tool, arguments: Mapping[str, Any], cwd: Path
        ) -> PolicyDecision:
            return PolicyDecision(self.verdicts.pop(0), "say something")  # type: ignore[arg-type]

        def remember(self, request: ApprovalRequested, rule: str = "") -> None:
            raise AssertionError(request)

    bench = Bench(ScriptedModel(Reply(calls=(("say", '{"text": "hi"}'),)), "ok"))
    bench.runtime = NativeRuntime(
        bench.runtime._model,
        CallRunner({"say": bench.tool}, Tightening(), bench.approvals),
        max_steps=9,
    )
    await bench.run()
    assert bench.tool.ran == []
    assert "has changed since it was approved" in bench.journal.of(ToolFinished)[0].text


@pytest.mark.parametrize(
    "good", [0, 1], ids=["before it is asked", "after it was approved"]
)
async def test_a_policy_that_fails_means_no_and_the_turn_goes_on(good: int) -> None:
    class Failing:
        verdicts: ClassVar[list[PolicyDecision]] = [
            PolicyDecision("ask", "say something")
        ] * good

        def judge(
            self, tool: Tool, arguments: Mapping[str, Any], cwd: Path
        ) -> PolicyDecision:
            return self.verdicts.pop()

        def remember(self, request: ApprovalRequested, rule: str = "") -> None:
            raise AssertionError(request)

    bench = Bench(ScriptedModel(Reply(calls=(("say", '{"text": "hi"}'),)), "ok"))
    bench.runtime = NativeRuntime(
        bench.runtime._model,
        CallRunner({"say": bench.tool}, Failing(), bench.approvals),
        max_steps=9,
    )
    assert (await bench.run()).reason == "done"
    assert bench.tool.ran == []
    assert bench.journal.of(ToolFinished)[0].text.startswith("Not run: ")


async def test_an_answer_that_cannot_be_remembered_is_for_once() -> None:
    policy = FixedPolicy("ask")
    policy._decision = msgspec.structs.replace(policy._decision, memorable=False)
    bench = Bench(
        ScriptedModel(Reply(calls=(("say", '{"text": "hi"}'),)), "ok"),
        approvals=FixedApprovals("always"),
    )
    bench.runtime = NativeRuntime(
        bench.runtime._model,
        CallRunner({"say": bench.tool}, policy, bench.approvals),
        max_steps=9,
    )
    await bench.run()
    assert bench.tool.ran == ["hi"]
    assert policy.remembered == []
    assert not bench.approvals.asked[0].memorable
