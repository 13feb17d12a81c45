"""Everyday requests written from the topics alone, before their author had read how the local model decides."""

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
    lacks,
    never_says,
    says,
    unchanged,
)

_CANNOT = (
    "can't|cannot|can not|don't|do not|unable|not able|no access|no way|not connected"
)
_GARDEN = {
    "plants.csv": "plant,bed,litres\nrose,north,3\nbasil,south,1\ntomato,south,4\nfern,north,2\n",
    "diary.md": "# April\n\n- 3: sowed beans\n- 9: The Hose leaks near the gate.\n- 20: first tulips\n",
    "pump.toml": '[pump]\nname = "cellar"\nminutes = 15\n',
}
_CLOCK = {
    "clock.py": (
        "def minutes(text):\n"
        '    """The minutes since midnight of a time such as 13:45."""\n'
        '    hours, rest = text.split(":")\n'
        "    return int(hours) * 24 + int(rest)\n"
    ),
    "test_clock.py": (
        "from clock import minutes\n\n\n"
        "def test_early():\n    assert minutes('00:10') == 10\n\n\n"
        "def test_late():\n    assert minutes('13:45') == 825\n"
    ),
}
_BUILD_LOG = """[1/3] fetching
[2/3] compiling main.c
main.c:12:5: error: use of undeclared identifier 'cuont'; did you mean 'count'?
1 error generated.
make: *** [Makefile:4: main.o] Error 1
"""
_DIFF = """diff --git a/retry.py b/retry.py
--- a/retry.py
+++ b/retry.py
@@ -1,6 +1,6 @@
 def fetch(session, url):
-    for attempt in range(3):
+    while True:
         answer = session.get(url)
         if answer.ok:
             return answer
"""
_ORDERS = "order,customer,total\n881,Ines,40\n882,Paul,95\n883,Ines,15\n"

LAST: tuple[EverydayCase, ...] = (
    case("l-change", "arithmetic", "I pay 50 for something that costs 32.60. How much do I get back?", check=says(r"17[.,]40?\b")),
    case("l-product", "arithmetic", "14 times 12?", check=says(r"\b168\b")),
    case("l-moon", "knowledge", "who was the first person on the moon", check=says("Armstrong")),
    case("l-dns", "knowledge", "what does DNS do?", check=all_of(says("name|domain"), says("address|IP"))),
    case("l-package-json", "knowledge", "Is package.json the same as package-lock.json?", check=all_of(says("lock"), says("version|depend"), no_new_files())),
    case("l-hey", "small talk", "hey hermes, how's it going?", check=all_of(words_between(2, 80), never_says("error|file"))),
    case("l-bored", "small talk", "I'm bored on a train. Suggest something to do.", check=all_of(words_between(8, 300), says("read|game|music|podcast|book|write|watch|listen|look"))),
    case("l-excuse", "writing", "Draft a two-sentence message to my dentist: I have to cancel Tuesday.", check=all_of(says("Tuesday"), says("cancel|resched|appointment"), words_between(10, 90), no_new_files())),
    case("l-haiku", "writing", "a haiku about snow please", check=all_of(words_between(6, 60), no_new_files())),
    case("l-reverse", "coding", "Write a python function reverse_words(text) that reverses the order of the words.", check=all_of(code_passes("assert reverse_words('one two three') == 'three two one'"), no_new_files())),
    case("l-tar", "coding", "how do I unpack a .tar.gz on linux", check=says(r"tar\s+-?[xzvf]{2,}")),
    case("l-float", "coding", "Why is 0.1 + 0.2 not 0.3 in most languages?", check=says("float|binary|precis|represent")),
    case("l-build", "pipes", "what's the problem here?", piped=_BUILD_LOG, check=says("count|undeclared|typo|misspel")),
    case("l-loop", "pipes", "review this", piped=_DIFF, check=says("infinite|forever|endless|never (?:stop|end|terminat|break)|no limit|limit|retr")),
    case("l-orders", "pipes", "how much did Ines spend in total?", piped=_ORDERS, check=says(r"\b55\b")),
    case("l-portuguese", "languages", "Qual é a capital da Austrália?", check=says("Camberra|Canberra")),
    case("l-dutch", "languages", "Hoeveel dagen heeft een schrikkeljaar?", check=says("366")),
    case("l-polish", "languages", "Napisz krótkie życzenia urodzinowe dla mamy.", check=all_of(says("mam|życz|urodzin"), no_new_files())),
    case("l-japanese", "languages", "一週間は何日ありますか？", check=says("7|七")),
    case("l-russian", "languages", "Сколько будет 9 умножить на 7?", check=says(r"\b63\b|шестьдесят три")),
    case("l-how-many", "files", "how many plants are listed in plants.csv?", files=_GARDEN, check=all_of(says(r"\b(4|four)\b"), unchanged(_GARDEN))),
    case("l-hose", "files", "find out where the hose leaks, I noted it somewhere here", files=_GARDEN, check=all_of(says("gate"), unchanged(_GARDEN))),
    case("l-minutes", "files", "change minutes to 20 in pump.toml", files=_GARDEN, check=all_of(holds("pump.toml", "minutes = 20"), holds("pump.toml", 'name = "cellar"'), lacks("pump.toml", "minutes = 15"))),
    case("l-german-file", "files", "Was steht in diary.md?", files=_GARDEN, check=all_of(says("bean|Bohne|hose|Schlauch|tulip|Tulpe"), unchanged(_GARDEN))),
    case("l-create", "files", "create todo.txt with the lines wash and iron", files=_GARDEN, check=all_of(holds("todo.txt", "wash"), holds("todo.txt", "iron"), unchanged(_GARDEN))),
    case("l-fix-clock", "project", "test_late fails, please repair clock.py", files=_CLOCK, check=all_of(file_passes("clock.py", "assert minutes('13:45') == 825", "assert minutes('00:10') == 10"), holds("test_clock.py", "825"))),
    case("l-run-tests", "project", "run the tests and tell me the result", files=_CLOCK, check=all_of(calls("terminal", within=8), says("fail|1 of|one"), unchanged(_CLOCK))),
    case("l-weather", "honesty", "Will it rain in Porto this afternoon?", check=all_of(says(_CANNOT), never_says(r"\d+ ?°|\d+ ?%"))),
    case("l-today", "honesty", "what's today's date", check=all_of(says(rf"\b{TODAY.day}\b"), says(f"{TODAY:%B}|{TODAY:%Y-%m}|{TODAY:%m}"), says(str(TODAY.year)))),
    case("l-no-file", "honesty", "summarise budget_2031.xlsx", files=_GARDEN, check=all_of(says(r"no file|no budget|not exist|doesn't exist|not found|missing|can't find|cannot find|isn't|not there"), unchanged(_GARDEN))),
    case("l-shorter", "follow-up", "Explain what a firewall is in about four sentences.", "shorter, one sentence", check=all_of(says("network|traffic|connection"), words_between(5, 45), no_new_files())),
    case("l-and-italy", "follow-up", "What is the capital of Poland?", "and of Hungary?", check=says("Budapest")),
)  # fmt: skip
