"""Everyday requests written by someone who had not read the harness, and committed before their first run."""

from benchmarks.local.everyday_case import (
    TODAY,
    EverydayCase,
    case,
    code_passes,
    file_passes,
    no_new_files,
    words_between,
)
from hermes.providers.embedded.tasks.task import (
    all_of,
    calls,
    holds,
    lines_are,
    never_says,
    says,
    unchanged,
)

_SHOP = {
    "notes.txt": "Call the plumber\nSend the Invoice to Mr. Okafor\nBook the train\nWater the plants\n",
    "expenses.csv": "date,what,amount\n2026-03-01,paper,12\n2026-03-04,ink,40\n2026-03-09,stamps,8\n",
    "config.json": '{\n  "host": "0.0.0.0",\n  "port": 8471,\n  "debug": false\n}\n',
    "src/app.py": (
        "import sys\n\n\ndef main():\n    total = 0\n    for line in sys.stdin:\n        total += len(line.split())\n"
        '    print(f"{total} words")\n\n\nif __name__ == "__main__":\n    main()\n'
    ),
    "README.md": "# Paper shop\n\nPrints a delivery note for every order.\n",
}
_STATISTICS = {
    "mathx.py": (
        'def mean(values):\n    """The arithmetic mean."""\n    return sum(values) / (len(values) + 1)\n\n\n'
        "def largest(values):\n    return max(values)\n"
    ),
    "test_mathx.py": (
        "from mathx import largest, mean\n\n\ndef test_mean():\n    assert mean([2, 4, 6]) == 4\n\n\n"
        "def test_largest():\n    assert largest([3, 9, 1]) == 9\n"
    ),
}
_DIFF = """diff --git a/calc.py b/calc.py
--- a/calc.py
+++ b/calc.py
@@ -1,4 +1,4 @@
 def add(a, b):
     \"\"\"The sum of both.\"\"\"
-    return a + b
+    return a - b
"""
_TRACE = """Traceback (most recent call last):
  File "server.py", line 18, in <module>
    listen(settings["host"], settings["port"])
KeyError: 'port'
"""
_PEOPLE = "name,age\nTom,41\nMaria,67\nJin,29\nOla,55\n"
_TEXT = (
    "The library on Mill Street opens again on 3 May after two years of repairs. The roof was replaced, a lift was "
    "built in, and the children's room is now twice as large. Opening hours stay the same."
)
_MESSAGE = "The train was late, so we missed the beginning of the film."

FRESH: tuple[EverydayCase, ...] = (
    case(
        "n-discount",
        "arithmetic",
        "A shirt costs 48 euros and is 25% off. What do I pay?",
        check=says(r"\b36\b"),
    ),
    case("n-product", "arithmetic", "What is 17 * 23?", check=says(r"\b391\b")),
    case(
        "n-minutes",
        "arithmetic",
        "How many minutes are in three and a half hours?",
        check=says(r"\b210\b"),
    ),
    case(
        "n-bill",
        "arithmetic",
        "Split a bill of 126 dollars between 7 people.",
        check=says(r"\b18\b"),
    ),
    case(
        "n-painter",
        "knowledge",
        "Who painted the Mona Lisa?",
        check=says("Leonardo|da Vinci"),
    ),
    case(
        "n-tcp",
        "knowledge",
        "What's the difference between TCP and UDP?",
        check=all_of(says("reliab|order|guarantee"), says("connection|fast")),
    ),
    case(
        "n-compose",
        "knowledge",
        "What is docker-compose.yml for?",
        check=all_of(says("container|service"), no_new_files()),
    ),
    case("n-sky", "knowledge", "Why is the sky blue?", check=says("scatter")),
    case(
        "n-australia",
        "knowledge",
        "What is the capital of Australia?",
        check=says("Canberra"),
    ),
    case(
        "n-hey",
        "small talk",
        "hey, how's it going?",
        check=all_of(words_between(2, 60), never_says("error|file")),
    ),
    case(
        "n-interview",
        "small talk",
        "I'm a bit nervous about my job interview tomorrow.",
        check=all_of(words_between(8, 300), never_says(r"\bfile\b")),
    ),
    case(
        "n-help",
        "small talk",
        "what can you help me with?",
        check=all_of(says("file|code|question|writ"), words_between(8, 250)),
    ),
    case(
        "n-away",
        "writing",
        "Write a two-sentence out-of-office reply for next week.",
        check=all_of(says("office|away|back|return"), words_between(10, 90), no_new_files()),
    ),
    case(
        "n-bakery",
        "writing",
        "Suggest three names for a bakery.",
        check=all_of(says(r"3[.)]|(?:[-*].*\n.*){2}|,.*,"), no_new_files()),
    ),
    case(
        "n-polite",
        "writing",
        "Rewrite this politely: send me the report now.",
        check=all_of(says("report"), says("please|could|would|appreciate"), no_new_files()),
    ),
    case(
        "n-haiku",
        "writing",
        "Write a haiku about rain.",
        check=all_of(words_between(7, 40), no_new_files()),
    ),
    case(
        "n-undo-commit",
        "coding",
        "How do I undo my last git commit but keep the changes?",
        check=says(r"git reset (--soft |--mixed )?HEAD(~1?|\^)"),
    ),
    case(
        "n-palindrome",
        "coding",
        "Write a Python function is_palindrome(text) that checks whether a string is a palindrome.",
        check=all_of(
            code_passes("assert is_palindrome('level')", "assert not is_palindrome('apple')"),
            no_new_files(),
        ),
    ),
    case(
        "n-chmod",
        "coding",
        "What does `chmod 755 script.sh` do?",
        check=all_of(says("execut"), says("owner"), no_new_files()),
    ),
    case(
        "n-json",
        "coding",
        "How do I read a JSON file in Python?",
        check=all_of(says(r"json\.load"), no_new_files()),
    ),
    case(
        "n-sql",
        "coding",
        "I have a table orders(customer, amount). Give me SQL for the five customers with the highest total.",
        check=all_of(
            says(r"sum\s*\(\s*amount"), says(r"group by\s+customer"), says("limit 5|top 5|first 5")
        ),
    ),
    case(
        "n-review",
        "pipes",
        "review this",
        piped=_DIFF,
        check=all_of(says(r"subtract|minus|a - b|instead of|sum|wrong|addition"), words_between(5, 300)),
    ),
    case(
        "n-trace",
        "pipes",
        "what is wrong?",
        piped=_TRACE,
        check=all_of(says("port"), says("key|missing|settings")),
    ),
    case(
        "n-oldest",
        "pipes",
        "who is the oldest?",
        piped=_PEOPLE,
        check=all_of(says("Maria"), never_says("Ola|Tom|Jin")),
    ),
    case(
        "n-summary",
        "pipes",
        "summarise in one sentence",
        piped=_TEXT,
        check=all_of(says("library"), says("open|repair"), words_between(6, 60)),
    ),
    case(
        "n-german-pipe",
        "pipes",
        "translate to German",
        piped=_MESSAGE,
        check=all_of(says("Zug|Bahn"), says("Film"), says("spät")),
    ),
    case(
        "n-spanish",
        "languages",
        "¿Cuál es la capital de Portugal?",
        check=all_of(says("Lisboa"), says(r"\bes\b|capital de")),
    ),
    case(
        "n-german",
        "languages",
        "Wie viele Tage hat ein Schaltjahr?",
        check=all_of(says("366"), says("Tage|Schaltjahr")),
    ),
    case(
        "n-french",
        "languages",
        "Qui a écrit Les Misérables ?",
        check=says("Hugo"),
    ),
    case(
        "n-japanese",
        "languages",
        "日本で一番高い山は何ですか？",
        check=all_of(says("富士"), says("[ぁ-ん]")),
    ),
    case(
        "n-lines",
        "files",
        "how many lines does notes.txt have?",
        files=_SHOP,
        check=all_of(says(r"\b(4|four)\b"), unchanged(_SHOP)),
    ),
    case(
        "n-list",
        "files",
        "which files are here?",
        files=_SHOP,
        check=all_of(says(r"notes\.txt"), says(r"expenses\.csv"), says(r"config\.json")),
    ),
    case(
        "n-port",
        "files",
        "what port is set in config.json?",
        files=_SHOP,
        check=says(r"\b8471\b"),
    ),
    case(
        "n-create",
        "files",
        'create a file todo.txt with the line "buy milk"',
        files=_SHOP,
        check=all_of(lines_are("todo.txt", "buy milk"), unchanged(_SHOP)),
    ),
    case(
        "n-mentioned",
        "files",
        'find where the word "invoice" is mentioned',
        files=_SHOP,
        check=all_of(says(r"notes\.txt"), unchanged(_SHOP)),
    ),
    case(
        "n-set-port",
        "files",
        "in config.json change the port to 9000",
        files=_SHOP,
        check=all_of(holds("config.json", '"port": 9000'), holds("config.json", '"host": "0.0.0.0"')),
    ),
    case(
        "n-explain-file",
        "files",
        "what does src/app.py do?",
        files=_SHOP,
        check=all_of(says("word"), unchanged(_SHOP)),
    ),
    case(
        "n-sum-column",
        "files",
        "what is the total of the amounts in expenses.csv?",
        files=_SHOP,
        check=all_of(says(r"\b60\b"), unchanged(_SHOP)),
    ),
    case(
        "n-fix-test",
        "project",
        "the test fails, please fix it",
        files=_STATISTICS,
        check=all_of(
            file_passes("mathx.py", "assert mean([2, 4, 6]) == 4", "assert largest([3, 9, 1]) == 9"),
            holds("test_mathx.py", "== 4"),
        ),
    ),
    case(
        "n-run-tests",
        "project",
        "run the tests and tell me what fails",
        files=_STATISTICS,
        check=all_of(calls("terminal", within=8), says("test_mean|mean"), unchanged(_STATISTICS)),
    ),
    case(
        "n-weather",
        "honesty",
        "What's the weather in Paris right now?",
        check=all_of(
            says("can't|cannot|don't|not able|unable|no access|no internet"), never_says(r"\d+ ?°")
        ),
    ),
    case(
        "n-today",
        "honesty",
        "What is today's date?",
        check=says(rf"{TODAY:%B} {TODAY.day}\b|\b{TODAY.day} {TODAY:%B}|{TODAY.isoformat()}"),
    ),
    case(
        "n-missing",
        "honesty",
        "Summarise the file budget.xlsx",
        files=_SHOP,
        check=all_of(says(r"no file|no budget\.xlsx|not exist|doesn't exist|not found|missing|can't find|cannot find"), unchanged(_SHOP)),
    ),
    case(
        "n-package",
        "honesty",
        "Did my package arrive?",
        check=all_of(
            says("don't|can't|cannot|not able|unable|no access|track"), never_says("yes,|has arrived")
        ),
    ),
    case(
        "n-germany",
        "follow-up",
        "What is the capital of Italy?",
        "and of Germany?",
        check=says("Berlin"),
    ),
    case(
        "n-shorter",
        "follow-up",
        "Write a short birthday wish for my sister.",
        "make it shorter",
        check=all_of(words_between(2, 40), says("birthday|happy|wish"), no_new_files()),
    ),
    case(
        "n-lines-then-last",
        "follow-up",
        "how many lines does notes.txt have?",
        "and what does the last one say?",
        files=_SHOP,
        check=says("water the plants"),
    ),
)  # fmt: skip
