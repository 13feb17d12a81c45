"""The task set: large enough, of three kinds, and judged by outcomes."""

import msgspec
from tests.fakes.simple_tools import FolderTools

from hermes.errors import ModelError
from hermes.providers.embedded.tasks import TASKS, Task, TaskResult, run_tasks, score
from hermes.providers.embedded.tasks.task import lines_are
from hermes.testing import Reply, ScriptedModel


async def run(model: ScriptedModel, *tasks: Task) -> list[TaskResult]:
    return [result async for result in run_tasks(model, FolderTools(), tasks)]


def by_id(name: str) -> Task:
    return next(task for task in TASKS if task.id == name)


def call(name: str, **arguments: object) -> Reply:
    return Reply(calls=((name, msgspec.json.encode(arguments).decode()),))


def test_there_are_at_least_thirty_of_three_kinds() -> None:
    kinds = [task.kind for task in TASKS]
    assert len(TASKS) >= 30
    assert min(kinds.count(kind) for kind in ("choose", "finish", "answer")) >= 8
    assert len({task.id for task in TASKS}) == len(TASKS)


async def test_a_model_that_only_claims_success_fails_most() -> None:
    results = await run(
        ScriptedModel(*["I have done it, all is well."] * len(TASKS)), *TASKS
    )
    passed = {result.task.id for result in results if result.passed}
    assert passed == {"choose-nothing"}
    assert score(results).by_kind["finish"][0] == 0


async def test_what_the_folder_holds_decides() -> None:
    right = call("edit_file", path="server.conf", old_text="8080", new_text="9000")
    wrong = call("edit_file", path="server.conf", old_text="8080", new_text="9001")
    task = by_id("finish-config")
    first, second = await run(ScriptedModel(right, "done", wrong, "done"), task, task)
    assert first.passed
    assert "9001" in second.problem
    assert score([first, second]).percent == 50.0


async def test_choosing_ends_with_the_choice() -> None:
    model = ScriptedModel(
        call("list_files", path="."), call("list_files", path="lib"), "never asked"
    )
    (result,) = await run(model, by_id("choose-list"))
    assert result.passed
    assert model.left == 1


async def test_a_model_that_fails_fails_the_task_and_not_the_run() -> None:
    model = ScriptedModel(
        Reply(error=ModelError("no power", reason="server")), "You're welcome!"
    )
    first, second = await run(model, by_id("answer-thanks"), by_id("answer-thanks"))
    assert first.problem == "the model failed: no power"
    assert second.passed


async def test_endless_calling_is_stopped() -> None:
    task = Task(
        id="t", kind="finish", request="q", check=lines_are("x", "y"), max_calls=3
    )
    model = ScriptedModel(*[call("list_files", path=".")] * 4)
    (result,) = await run(model, task)
    assert (len(result.calls), model.left) == (3, 1)
