"""Just answer: nothing has to be looked at, and nothing may be called."""

from hermes.providers.embedded.tasks.task import Task, all_of, no_calls, says


def _task(name: str, request: str, pattern: str) -> Task:
    return Task(
        id=f"answer-{name}",
        kind="answer",
        request=request,
        check=all_of(no_calls, says(pattern)),
    )


ANSWERING: tuple[Task, ...] = (
    _task("capital", "What is the capital of Italy?", r"\brome\b"),
    _task("sum", "What is 17 + 25?", r"\b42\b"),
    _task("translate", "How do you say 'good morning' in Spanish?", r"buenos d[ií]as"),
    _task("opposite", "What is the opposite of hot?", r"\bcold\b"),
    _task("author", "Who wrote Romeo and Juliet?", "shakespeare"),
    _task("days", "How many days does a week have?", r"\b(7|seven)\b"),
    _task("html", "What does HTML stand for?", r"hyper\s?text mark-?up language"),
    _task(
        "python-len",
        "In Python, which built-in function gives the length of a list?",
        r"\blen\b",
    ),
    _task(
        "git",
        "Explain in one sentence what version control is for.",
        r"change|version|track|histor",
    ),
    _task(
        "thanks", "Thank you, that was helpful!", r"welcome|glad|pleasure|happy|anytime"
    ),
    _task("planet", "Which planet do we live on?", r"\bearth\b"),
    _task("poem", "Write a two-line poem about rain.", r"rain|drop|sky|cloud|wet|fall"),
)
