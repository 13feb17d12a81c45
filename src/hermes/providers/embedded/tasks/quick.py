"""The quick check: does the model answer, and does it call a tool and use the result?"""

from hermes.providers.embedded.tasks.task import Task, all_of, calls, no_calls, says

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
