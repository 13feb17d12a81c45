"""Choose a tool: the right one, with the right arguments, at the first step."""

from hermes.providers.embedded.tasks.task import Task, calls, no_calls

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
