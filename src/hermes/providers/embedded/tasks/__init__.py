"""The tasks of `hermes model test`: a fixed set in three kinds, run against any model in a throwaway folder."""

from hermes.providers.embedded.tasks.choosing import ANSWERING, CHOOSING
from hermes.providers.embedded.tasks.finishing import FINISHING
from hermes.providers.embedded.tasks.run import (
    MODEL_FAILED,
    Score,
    TaskResult,
    ToolRunner,
    run_tasks,
    score,
)
from hermes.providers.embedded.tasks.task import (
    Kind,
    Task,
    TaskOutcome,
    all_of,
    calls,
    no_calls,
    says,
)

TASKS: tuple[Task, ...] = (*CHOOSING, *FINISHING, *ANSWERING)

__all__ = [
    "MODEL_FAILED",
    "QUICK",
    "TASKS",
    "Kind",
    "Score",
    "Task",
    "TaskOutcome",
    "TaskResult",
    "ToolRunner",
    "run_tasks",
    "score",
]
QUICK: tuple[Task, ...] = (
    Task(
        id="answers a question",
        kind="answer",
        request="What is 2 + 2? Answer with the number.",
        check=all_of(no_calls, says(r"\b(4|four)\b")),
    ),
    Task(
        id="calls a tool and uses the result",
        kind="finish",
        request="What does notes.md say?",
        files={"notes.md": "Call Ana about the blue bicycle.\n"},
        check=all_of(calls("read_file", 3, path=r"notes\.md$"), says("ana|bicycle")),
        max_calls=3,
    ),
)
