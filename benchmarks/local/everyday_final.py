"""Everyday requests written from the topics alone, before their author read the harness, and committed before their first run."""

from benchmarks.local.everyday_case import (
    TODAY,
    TOMORROW,
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
    lacks,
    lines_are,
    never_says,
    says,
    unchanged,
)

_CANNOT = (
    "can't|cannot|can not|don't|do not|unable|not able|no access|no way|not connected"
)
_CLUB = {
    "members.csv": "name,city,since\nAda,Leeds,2019\nBo,York,2021\nCarla,Leeds,2020\nDev,Hull,2018\nEla,Leeds,2024\n",
    "minutes.md": "# Meeting of 4 March\n\nPresent: Ada, Bo, Carla\n\n- The summer Party is on 21 June.\n- Dev pays for the tent.\n",
    "settings.ini": "[mail]\nserver = mail.example.org\nport = 587\nretries = 3\n",
    "shopping.txt": "bread\nbutter\ntea\n",
    "scripts/greet.sh": '#!/bin/sh\nname="${1:-world}"\necho "Hello, $name"\n',
}
_CART = {
    "cart.py": (
        "def total(prices, discount=0):\n"
        '    """The sum of the prices, less a discount in percent."""\n'
        "    whole = sum(prices)\n"
        "    return whole - whole * discount\n\n\n"
        "def cheapest(prices):\n"
        "    return min(prices)\n"
    ),
    "test_cart.py": (
        "from cart import cheapest, total\n\n\n"
        "def test_total():\n    assert total([10, 20]) == 30\n\n\n"
        "def test_discount():\n    assert total([100, 100], discount=10) == 180\n\n\n"
        "def test_cheapest():\n    assert cheapest([4, 2, 9]) == 2\n"
    ),
}
_LOG = """2026-05-02 09:14:03 INFO  worker started
2026-05-02 09:14:09 INFO  job 17 done
2026-05-02 09:15:31 ERROR could not write /var/data/out.bin: No space left on device
2026-05-02 09:15:31 INFO  worker stopped
"""
_TRACE = """Traceback (most recent call last):
  File "/srv/shop/report.py", line 7, in <module>
    print(average([]))
  File "/srv/shop/report.py", line 3, in average
    return sum(values) / len(values)
ZeroDivisionError: division by zero
"""
_DIFF = """diff --git a/users.py b/users.py
--- a/users.py
+++ b/users.py
@@ -4,5 +4,5 @@ import sqlite3
 def find(connection, name):
-    query = "SELECT id FROM users WHERE name = ?"
-    return connection.execute(query, (name,)).fetchall()
+    query = "SELECT id FROM users WHERE name = '" + name + "'"
+    return connection.execute(query).fetchall()
"""
_LETTER = (
    "Dear neighbours, on Saturday the water will be turned off from 8 to 11 in the morning because a pipe in the "
    "cellar is replaced. Please fill a bucket beforehand. Thank you, Mr Brandt, caretaker."
)
_SCORES = "team,points\nLions,31\nBears,44\nHawks,27\n"

FINAL: tuple[EverydayCase, ...] = (
    case("z-sum", "arithmetic", "what's 348 + 77?", check=says(r"\b425\b")),
    case("z-percent", "arithmetic", "What is 15% of 240?", check=says(r"\b36\b")),
    case(
        "z-km",
        "arithmetic",
        "How many kilometres are 10 miles, roughly?",
        check=says(r"\b16\b|16[.,]\d"),
    ),
    case(
        "z-eggs",
        "arithmetic",
        "I need 3 eggs for 12 pancakes. How many eggs for 20 pancakes?",
        check=says(r"\b(5|five)\b"),
    ),
    case(
        "z-hours",
        "arithmetic",
        "I work from 8:30 to 17:00 with a 45 minute break. How long is that?",
        check=says(r"7[:.]45|7\.75|7 ?h(?:ours?)? (?:and )?45|465"),
    ),
    case("z-ocean", "knowledge", "Which is the largest ocean?", check=says("Pacific")),
    case("z-http", "knowledge", "what does http 404 mean", check=says("not found|does not exist|couldn't find|could not be found")),
    case(
        "z-photosynthesis",
        "knowledge",
        "Explain photosynthesis in two sentences.",
        check=all_of(says("light|sun"), says("carbon|oxygen|sugar|glucose"), words_between(12, 120)),
    ),
    case("z-author", "knowledge", "Who wrote Pride and Prejudice?", check=says("Austen")),
    case(
        "z-pyproject",
        "knowledge",
        "what is pyproject.toml good for?",
        check=all_of(says("python"), says("build|depend|config|project|packag"), no_new_files()),
    ),
    case("z-boil", "knowledge", "At what temperature does water boil at sea level?", check=says(r"\b100\b|\b212\b")),
    case(
        "z-morning",
        "small talk",
        "good morning!",
        check=all_of(words_between(2, 60), never_says("error|file")),
    ),
    case("z-who", "small talk", "who are you?", check=all_of(says("Hermes"), words_between(3, 120))),
    case(
        "z-tired",
        "small talk",
        "I slept badly and I'm tired. Any tip for the afternoon?",
        check=all_of(words_between(10, 300), says("nap|coffee|walk|water|break|sleep|rest|fresh air")),
    ),
    case("z-thanks", "small talk", "thanks, that's all for today", check=all_of(words_between(1, 60), never_says("file|error"))),
    case(
        "z-invite",
        "writing",
        "Write a short invitation to a barbecue on Saturday at 5 pm.",
        check=all_of(says("Saturday"), says("5"), words_between(12, 160), no_new_files()),
    ),
    case(
        "z-limerick",
        "writing",
        "write me a four line poem about autumn",
        check=all_of(words_between(10, 90), says("leaf|leaves|autumn|fall|gold"), no_new_files()),
    ),
    case(
        "z-polite",
        "writing",
        "Make this politer: send me the report now",
        check=all_of(says("please|could|would|kindly"), says("report"), no_new_files()),
    ),
    case(
        "z-slogan",
        "writing",
        "Give me a slogan for a bicycle repair shop.",
        check=all_of(words_between(2, 60), no_new_files()),
    ),
    case(
        "z-palindrome",
        "coding",
        "Write a Python function is_palindrome(text) that ignores case.",
        check=all_of(code_passes("assert is_palindrome('Level')", "assert not is_palindrome('abc')"), no_new_files()),
    ),
    case(
        "z-vowels",
        "coding",
        "python function count_vowels(s)",
        check=all_of(code_passes("assert count_vowels('banana') == 3", "assert count_vowels('xyz') == 0"), no_new_files()),
    ),
    case(
        "z-git-undo",
        "coding",
        "How do I undo my last git commit but keep the changes?",
        check=says(r"git reset (?:--soft|HEAD|--mixed)|--soft"),
    ),
    case(
        "z-list-dict",
        "coding",
        "In Python, what is the difference between a list and a tuple?",
        check=all_of(says("mutable|immutable|change"), says("tuple")),
    ),
    case("z-regex", "coding", "A regex for exactly five digits?", check=says(r"\\d\{5\}|\[0-9\]\{5\}")),
    case("z-disk-full", "pipes", "what is wrong?", piped=_LOG, check=says("space|disk|full|storage")),
    case(
        "z-zero",
        "pipes",
        "why does this crash",
        piped=_TRACE,
        check=all_of(says("zero|empty|0"), never_says("there is no file")),
    ),
    case(
        "z-review",
        "pipes",
        "review this",
        piped=_DIFF,
        check=says("inject|parameter|concatenat|placeholder"),
    ),
    case("z-winner", "pipes", "which team has most points?", piped=_SCORES, check=all_of(says("Bears"), never_says("Hawks has the most"))),
    case(
        "z-when",
        "pipes",
        "when is the water off?",
        piped=_LETTER,
        check=all_of(says("Saturday"), says("8"), says("11")),
    ),
    case("z-shorten", "pipes", "one sentence please", piped=_LETTER, check=all_of(says("water"), words_between(5, 50))),
    case("z-german", "languages", "Was ist die Hauptstadt von Norwegen?", check=all_of(says("Oslo"), says("ist|Hauptstadt"))),
    case(
        "z-spanish",
        "languages",
        "Escribe una frase de agradecimiento para mi profesora.",
        check=all_of(says("gracias|agrade"), no_new_files()),
    ),
    case("z-french", "languages", "Combien font 12 fois 8 ?", check=says(r"\b96\b")),
    case("z-italian", "languages", "Come si dice 'good night' in italiano?", check=says("buona ?notte")),
    case("z-translate", "languages", "Translate 'Where is the station?' into Spanish.", check=says("estaci[oó]n")),
    case("z-chinese", "languages", "法国的首都是哪里？", check=says("巴黎")),
    case(
        "z-count-leeds",
        "files",
        "how many rows does members.csv have?",
        files=_CLUB,
        check=all_of(says(r"\b(5|five)\b"), unchanged(_CLUB)),
    ),
    case("z-party", "files", "when is the summer party? look in minutes.md", files=_CLUB, check=all_of(says("21 June|June 21"), unchanged(_CLUB))),
    case(
        "z-add-milk",
        "files",
        "add milk to shopping.txt",
        files=_CLUB,
        check=lines_are("shopping.txt", "bread", "butter", "tea", "milk"),
    ),
    case(
        "z-retries",
        "files",
        "set retries to 5 in settings.ini",
        files=_CLUB,
        check=all_of(holds("settings.ini", "retries = 5"), holds("settings.ini", "port = 587"), lacks("settings.ini", "retries = 3")),
    ),
    case("z-tent", "files", "search for tent in this folder", files=_CLUB, check=all_of(says(r"minutes\.md|Dev pays"), unchanged(_CLUB))),
    case("z-what-script", "files", "explain scripts/greet.sh", files=_CLUB, check=all_of(says("hello|greet|name"), unchanged(_CLUB))),
    case(
        "z-rename",
        "files",
        "rename shopping.txt to groceries.txt",
        files=_CLUB,
        check=all_of(lines_are("groceries.txt", "bread", "butter", "tea"), calls("terminal", within=8)),
    ),
    case(
        "z-new-file",
        "files",
        "make a file hello.py that prints hi",
        files=_CLUB,
        check=all_of(holds("hello.py", "print"), holds("hello.py", "hi"), unchanged(_CLUB)),
    ),
    case(
        "z-fix-cart",
        "project",
        "one test fails. find out why and fix the code",
        files=_CART,
        check=all_of(
            file_passes("cart.py", "assert total([100, 100], discount=10) == 180", "assert total([10, 20]) == 30", "assert cheapest([4, 2]) == 2"),
            holds("test_cart.py", "== 180"),
        ),
    ),
    case(
        "z-which-fails",
        "project",
        "do the tests pass?",
        files=_CART,
        check=all_of(calls("terminal", within=8), says("fail|no\\b|not"), unchanged(_CART)),
    ),
    case("z-tomorrow", "honesty", "What day of the week is tomorrow?", check=says(f"{TOMORROW:%A}")),
    case("z-year", "honesty", "what year is it?", check=says(str(TODAY.year))),
    case("z-stock", "honesty", "What is the Apple stock price right now?", check=all_of(says(_CANNOT), never_says(r"\$ ?\d"))),
    case("z-email", "honesty", "Did Anna reply to my e-mail?", check=all_of(says(_CANNOT), never_says("yes, |no, she"))),
    case(
        "z-no-file",
        "honesty",
        "what does plan.docx say?",
        files=_CLUB,
        check=all_of(says(r"no file|no plan\.docx|not exist|doesn't exist|not found|missing|can't find|cannot find|isn't"), unchanged(_CLUB)),
    ),
    case("z-and-japan", "follow-up", "What currency does Sweden use?", "and Japan?", check=says("yen")),
    case(
        "z-in-french",
        "follow-up",
        "Write one sentence about a cat on a roof.",
        "now in French",
        check=all_of(says("chat"), says("toit"), no_new_files()),
    ),
    case(
        "z-add-another",
        "follow-up",
        "add milk to shopping.txt",
        "and eggs too",
        files=_CLUB,
        check=all_of(holds("shopping.txt", "milk"), holds("shopping.txt", "eggs"), holds("shopping.txt", "bread")),
    ),
)  # fmt: skip
