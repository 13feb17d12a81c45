"""The tasks of `hermes model test`: a fixed set in three kinds, run against any model in a throwaway folder."""

from hermes.providers.embedded.tasks.choosing import ANSWERING, CHOOSING
from hermes.providers.embedded.tasks.finishing import FINISHING
from hermes.providers.embedded.tasks.quick import QUICK
from hermes.providers.embedded.tasks.run import (
    MODEL_FAILED,
    Score,
    TaskResult,
    ToolRunner,
    run_tasks,
    score,
)
from hermes.providers.embedded.tasks.task import Kind, Task, TaskOutcome

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
