"""Choose a tool and its arguments, or see that no tool is needed and just answer."""

from hermes.providers.embedded.tasks.task import Task, all_of, calls, no_calls, says

_SHOP = {
    "prices.csv": "item,price\ntea,3\njam,4\n",
    "notes.md": "# Notes\ncall Ana\n",
    "lib/tax.py": "RATE = 0.2\n",
}

CHOOSING: tuple[Task, ...] = (
    Task(
        id="choose-read",
        kind="choose",
        request="Show me what notes.md contains.",
        files=_SHOP,
        check=calls("read_file", path=r"notes\.md$"),
    ),
    Task(
        id="choose-read-nested",
        kind="choose",
        request="What is the value of RATE in lib/tax.py?",
        files=_SHOP,
        check=calls("read_file", path=r"lib/tax\.py$"),
    ),
    Task(
        id="choose-list",
        kind="choose",
        request="What files do I have in this directory?",
        files=_SHOP,
        check=calls("list_files"),
    ),
    Task(
        id="choose-list-folder",
        kind="choose",
        request="List everything inside lib",
        files=_SHOP,
        check=calls("list_files", path=r"lib/?$"),
    ),
    Task(
        id="choose-search",
        kind="choose",
        request="Search all files for the word Ana.",
        files=_SHOP,
        check=calls("search_files", pattern="Ana"),
    ),
    Task(
        id="choose-search-code",
        kind="choose",
        request="In which file is compute_total defined?",
        files=_SHOP,
        check=calls("search_files", pattern="compute_total"),
    ),
    Task(
        id="choose-command",
        kind="choose",
        request="Run git status for me.",
        files=_SHOP,
        check=calls("terminal", command=r"git status"),
    ),
    Task(
        id="choose-command-date",
        kind="choose",
        request="Use the shell to print today's date.",
        files=_SHOP,
        check=calls("terminal", command=r"^date"),
    ),
    Task(
        id="choose-todo",
        kind="choose",
        request="Add 'buy stamps' to my to-do list.",
        files=_SHOP,
        check=calls("todo", items="buy stamps"),
    ),
    Task(
        id="choose-write",
        kind="choose",
        request="Create a file called motto.txt with the text: slow and steady",
        files=_SHOP,
        check=calls(
            "write_file", within=2, path=r"motto\.txt$", content="slow and steady"
        ),
    ),
    Task(
        id="choose-edit-looks-first",
        kind="choose",
        request="In prices.csv the price of jam should be 5.",
        files=_SHOP,
        check=calls("read_file", path=r"prices\.csv$"),
    ),
    Task(
        id="choose-nothing",
        kind="choose",
        request="Good evening! How are you today?",
        files=_SHOP,
        check=no_calls,
    ),
)


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
