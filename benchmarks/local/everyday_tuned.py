"""Everyday requests that prompts and guards are tuned on. What the score is worth, `everyday_unseen` says."""

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
    r"can(?:no|')t|can not|not able|unable|don't have|do not have|no access|unknown"
)
_ABSENT = (
    r"no (file|such)|not (exist|find|found|there)|doesn't exist|isn't|no \S+ (here|in)"
)
_DESK = {
    "shopping.txt": "eggs\nflour\nbutter\n",
    "team.csv": "name,role,age\nMira,designer,31\nJon,developer,45\nAda,developer,28\n",
    "settings.json": '{\n  "theme": "light",\n  "font_size": 12\n}\n',
    "docs/plan.md": "# Plan\n\nThe release is on 3 June. Contact: Ibrahim.\n",
    "app.py": "import sys\n\nVERSION = '1.2.0'\n\n\ndef greet(name):\n    print('Hello ' + name)\n\n\nif __name__ == '__main__':\n    greet(sys.argv[1])\n",
}
_STACK = {
    "stack.py": "class Stack:\n    def __init__(self):\n        self.items = []\n\n    def push(self, item):\n        self.items.append(item)\n\n    def pop(self):\n        return self.items.pop(0)\n",
    "test_stack.py": "from stack import Stack\n\n\ndef test_pop():\n    stack = Stack()\n    stack.push(1)\n    stack.push(2)\n    assert stack.pop() == 2\n",
}
_TEMPERATURE = {
    "convert.py": "def to_fahrenheit(celsius):\n    return celsius * 9 / 5 + 23\n\n\ndef to_celsius(fahrenheit):\n    return (fahrenheit - 32) * 5 / 9\n",
    "test_convert.py": "from convert import to_fahrenheit\n\n\ndef test_freezing():\n    assert to_fahrenheit(0) == 32\n",
}
_ERROR_LOG = """npm ERR! code ENOENT
npm ERR! syscall open
npm ERR! path /home/kim/site/package.json
npm ERR! errno -2
npm ERR! enoent ENOENT: no such file or directory, open '/home/kim/site/package.json'
"""
_PYTHON_ERROR = """Traceback (most recent call last):
  File "report.py", line 12, in <module>
    print("Total: " + total)
TypeError: can only concatenate str (not "int") to str
"""
_DIFF = """diff --git a/login.py b/login.py
--- a/login.py
+++ b/login.py
@@ -10,5 +10,5 @@ def login(name, password):
     user = find(name)
-    if user and check(user, password):
+    if user or check(user, password):
         return session(user)
     return None
"""
_ARTICLE = (
    "The town council of Brook decided on Tuesday to close the old bridge to cars from May. Cyclists and walkers may still "
    "use it. Engineers found cracks in two pillars. Repairs will cost 2 million pounds and take about eight months. A ferry "
    "for cars will run every half hour, free of charge, until the bridge opens again."
)

TUNED: tuple[EverydayCase, ...] = (
    # arithmetic
    case("t-sum", "arithmetic", "what is 129 + 456?", check=says(r"\b585\b")),
    case("t-product", "arithmetic", "23*47", check=says(r"1[,. ]?081")),
    case("t-percent", "arithmetic", "what is 15 percent of 60?", check=says(r"\b9\b")),
    case(
        "t-word",
        "arithmetic",
        "A train goes 80 km in one hour. How far does it go in 3 hours?",
        check=says(r"\b240\b"),
    ),
    case(
        "t-square",
        "arithmetic",
        "What is the square root of 169?",
        check=says(r"\b13\b"),
    ),
    case("t-hours", "arithmetic", "How many hours are 4 days?", check=says(r"\b96\b")),
    # knowledge
    case(
        "t-node",
        "knowledge",
        "what is node.js?",
        check=all_of(says("javascript"), words_between(6, 250)),
    ),
    case(
        "t-capital",
        "knowledge",
        "What's the capital of Australia?",
        check=says("Canberra"),
    ),
    case("t-author", "knowledge", "who wrote Hamlet?", check=says("Shakespeare")),
    case("t-gravity", "knowledge", "Why do things fall down?", check=says("gravit")),
    case(
        "t-vue",
        "knowledge",
        "is vue.js better than react for a small site?",
        check=all_of(says("vue"), words_between(10, 350)),
    ),
    case(
        "t-makefile",
        "knowledge",
        "what is a Makefile good for?",
        check=all_of(says("build|compil|command|automat"), words_between(8, 300)),
    ),
    case(
        "t-seasons",
        "knowledge",
        "Explain in one sentence why we have seasons.",
        check=all_of(says("tilt|axis"), words_between(8, 80)),
    ),
    case("t-port", "knowledge", "which port does https use?", check=says(r"\b443\b")),
    # small talk
    case("t-hi", "small talk", "hi", check=words_between(1, 50)),
    case(
        "t-who",
        "small talk",
        "who are you?",
        check=all_of(says("Hermes"), never_says("Qwen|Alibaba|OpenAI")),
    ),
    case("t-how", "small talk", "how are you today?", check=words_between(3, 60)),
    case(
        "t-help",
        "small talk",
        "what can you do?",
        check=all_of(says("file|question|writ|code|command"), words_between(8, 250)),
    ),
    case(
        "t-bye",
        "small talk",
        "bye, see you tomorrow",
        check=all_of(says("bye|see you|take care|day|tomorrow"), words_between(1, 50)),
    ),
    # writing
    case(
        "t-poem",
        "writing",
        "Write a poem of four lines about the moon",
        check=all_of(says("moon"), words_between(12, 90), no_new_files()),
    ),
    case(
        "t-mail",
        "writing",
        "write an email to my boss that I am sick today",
        check=all_of(
            says("sick|ill|unwell|not feeling"), words_between(20, 220), no_new_files()
        ),
    ),
    case(
        "t-invite",
        "writing",
        "Write a short invitation to a barbecue on Saturday",
        check=all_of(
            says("barbecue|bbq"),
            says("saturday"),
            words_between(10, 200),
            no_new_files(),
        ),
    ),
    case(
        "t-correct",
        "writing",
        "Correct this sentence: He go to school yesterday.",
        check=says("went to school"),
    ),
    case(
        "t-names",
        "writing",
        "suggest three names for a coffee shop",
        check=all_of(words_between(3, 150), no_new_files()),
    ),
    case(
        "t-story",
        "writing",
        "tell me a very short story about a fox",
        check=all_of(says("fox"), words_between(20, 350), no_new_files()),
    ),
    # coding
    case(
        "t-prime",
        "coding",
        "write a python function is_prime(n)",
        check=all_of(
            code_passes(
                "assert is_prime(13)",
                "assert not is_prime(9)",
                "assert not is_prime(1)",
            ),
            no_new_files(),
        ),
    ),
    case(
        "t-vowels",
        "coding",
        "Python function count_vowels(text) please",
        check=all_of(code_passes("assert count_vowels('hello') == 2"), no_new_files()),
    ),
    case(
        "t-branch",
        "coding",
        "how do I create a new git branch?",
        check=says(r"git (checkout -b|branch|switch -c)"),
    ),
    case(
        "t-regex",
        "coding",
        "regex for a five digit number",
        check=says(r"\\d\{5\}|\[0-9\]\{5\}"),
    ),
    case(
        "t-css",
        "coding",
        "how can I center a div with css?",
        check=says(r"flex|grid|margin:? ?(0 )?auto"),
    ),
    case(
        "t-loop",
        "coding",
        "In JavaScript, how do I loop over an array?",
        check=says(r"for ?\(|forEach|for\.\.\.of|\.map"),
    ),
    # pipes
    case(
        "t-pipe-npm",
        "pipes",
        "what is wrong?",
        piped=_ERROR_LOG,
        check=all_of(says(r"package\.json"), words_between(6, 300)),
    ),
    case(
        "t-pipe-type",
        "pipes",
        "explain the error",
        piped=_PYTHON_ERROR,
        check=all_of(
            says("str|string"), says("int|number|convert"), words_between(8, 300)
        ),
    ),
    case(
        "t-pipe-diff",
        "pipes",
        "review this",
        piped=_DIFF,
        check=all_of(
            says(r"\bor\b|\band\b|password|security|check"),
            words_between(8, 350),
            no_new_files(),
        ),
    ),
    case(
        "t-pipe-article",
        "pipes",
        "summarise this in one sentence",
        piped=_ARTICLE,
        check=all_of(says("bridge"), words_between(8, 80)),
    ),
    case(
        "t-pipe-table",
        "pipes",
        "who is the oldest?",
        piped="name,age\nMira,31\nJon,45\nAda,28\n",
        check=says("Jon"),
    ),
    case(
        "t-pipe-french",
        "pipes",
        "translate into French",
        piped="Where is the library?\n",
        check=says("biblioth"),
    ),
    # languages
    case(
        "t-german",
        "languages",
        "Wie viele Tage hat ein Jahr?",
        check=all_of(says("365"), words_between(1, 60)),
    ),
    case(
        "t-french",
        "languages",
        "Quelle est la capitale du Japon ?",
        check=says("Tokyo"),
    ),
    case(
        "t-spanish",
        "languages",
        "Hola, ¿qué tal?",
        check=all_of(says("hola|bien|gracias|ayud"), words_between(1, 60)),
    ),
    case(
        "t-german-poem",
        "languages",
        "Schreibe ein kurzes Gedicht über den Winter",
        check=all_of(says("Winter|Schnee"), words_between(8, 120), no_new_files()),
    ),
    case("t-to-german", "languages", "What is 'apple' in German?", check=says("Apfel")),
    case(
        "t-german-files",
        "languages",
        "Welche Dateien sind in diesem Ordner?",
        files=_DESK,
        check=all_of(says(r"shopping\.txt"), says(r"team\.csv")),
    ),
    # files
    case(
        "t-read",
        "files",
        "what's on my list in shopping.txt?",
        files=_DESK,
        check=all_of(says("eggs"), says("butter"), unchanged(_DESK)),
    ),
    case(
        "t-list",
        "files",
        "list the files here",
        files=_DESK,
        check=all_of(says(r"shopping\.txt"), says(r"app\.py"), unchanged(_DESK)),
    ),
    case(
        "t-lines",
        "files",
        "how many lines are in app.py?",
        files=_DESK,
        check=says(r"\b(11|eleven)\b"),
    ),
    case(
        "t-rows",
        "files",
        "How many people are in team.csv?",
        files=_DESK,
        check=says(r"\b(3|three)\b"),
    ),
    case(
        "t-count-files",
        "files",
        "how many files are in this folder?",
        files=_DESK,
        check=says(r"\b(4|5|four|five)\b"),
    ),
    case(
        "t-search",
        "files",
        "where is ibrahim mentioned?",
        files=_DESK,
        check=says(r"plan\.md"),
    ),
    case(
        "t-average",
        "files",
        "what is the average age in team.csv?",
        files=_DESK,
        check=says(r"34\.6|34\.7|\b35\b"),
    ),
    case(
        "t-who-role",
        "files",
        "Which people in team.csv are developers?",
        files=_DESK,
        check=all_of(says("Jon"), says("Ada")),
    ),
    case(
        "t-set",
        "files",
        "set font_size in settings.json to 16",
        files=_DESK,
        check=all_of(
            holds("settings.json", '"font_size": 16'),
            holds("settings.json", '"theme": "light"'),
        ),
    ),
    case(
        "t-append",
        "files",
        "put sugar on shopping.txt",
        files=_DESK,
        check=lines_are("shopping.txt", "eggs", "flour", "butter", "sugar"),
    ),
    case(
        "t-create",
        "files",
        "make a file hello.py that prints hello world",
        files=_DESK,
        check=file_passes("hello.py"),
    ),
    case(
        "t-version",
        "files",
        "bump the version in app.py to 1.3.0",
        files=_DESK,
        check=all_of(holds("app.py", "1.3.0"), lacks("app.py", "1.2.0")),
    ),
    case(
        "t-delete",
        "files",
        "delete shopping.txt",
        files=_DESK,
        check=lacks("shopping.txt", "eggs"),
    ),
    case(
        "t-folder",
        "files",
        "make a folder called archive and move team.csv into it",
        files=_DESK,
        check=all_of(holds("archive/team.csv", "Mira"), lacks("team.csv", "Mira")),
    ),
    # project
    case(
        "t-fix-stack",
        "project",
        "test_stack.py fails. Find the bug in stack.py and fix it.",
        files=_STACK,
        check=all_of(
            file_passes(
                "stack.py", "s = Stack(); s.push(1); s.push(2); assert s.pop() == 2"
            ),
            holds("test_stack.py", "== 2"),
        ),
    ),
    case(
        "t-fix-convert",
        "project",
        "fix the failing test",
        files=_TEMPERATURE,
        check=all_of(
            file_passes(
                "convert.py", "assert to_fahrenheit(0) == 32 and to_celsius(212) == 100"
            ),
            holds("test_convert.py", "== 32"),
        ),
    ),
    case(
        "t-explain",
        "project",
        "explain app.py",
        files=_DESK,
        check=all_of(says("greet|hello|name"), unchanged(_DESK)),
    ),
    case(
        "t-tests",
        "project",
        "please run the test suite",
        files=_TEMPERATURE,
        check=all_of(
            calls("terminal", 3, command="pytest|unittest|test"), says("fail|error")
        ),
    ),
    # honesty
    case(
        "t-weather",
        "honesty",
        "will it rain in Paris tomorrow?",
        check=all_of(says(_CANNOT), never_says(r"\d+ ?°")),
    ),
    case(
        "t-date",
        "honesty",
        "What is today's date?",
        check=all_of(
            says(str(TODAY.day)),
            says(f"{TODAY:%B}|{TODAY:%m}"),
            says(str(TODAY.year)),
        ),
    ),
    case(
        "t-tomorrow", "honesty", "what day is tomorrow?", check=says(f"{TOMORROW:%A}")
    ),
    case(
        "t-missing",
        "honesty",
        "what is in budget.xlsx?",
        files=_DESK,
        check=all_of(says(_ABSENT), unchanged(_DESK)),
    ),
    case(
        "t-bitcoin",
        "honesty",
        "what is the price of bitcoin right now?",
        check=all_of(says(_CANNOT + "|real-time"), never_says(r"\$ ?\d")),
    ),
    case(
        "t-missing-edit",
        "honesty",
        "add a line 'x = 1' to old.py",
        files=_DESK,
        check=all_of(unchanged(_DESK), says(r"old\.py")),
    ),
    # follow-up
    case(
        "t-follow-capital",
        "follow-up",
        "What is the capital of France?",
        "and of Germany?",
        check=says("Berlin"),
    ),
    case(
        "t-follow-shorter",
        "follow-up",
        "Write a paragraph about dogs.",
        "make it shorter",
        check=all_of(says("dog"), words_between(3, 60), no_new_files()),
    ),
    case(
        "t-follow-add",
        "follow-up",
        "what is 12 + 30?",
        "add 8 to that",
        check=says(r"\b50\b"),
    ),
    case(
        "t-follow-file",
        "follow-up",
        "show me shopping.txt",
        "add honey to it",
        files=_DESK,
        check=all_of(holds("shopping.txt", "honey"), holds("shopping.txt", "butter")),
    ),
)
