"""Everyday requests that were written before the work on prompts began and are run only to report: never tune on them."""

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
    lines_are,
    never_says,
    says,
    unchanged,
)

_HOUSE = {
    "guests.txt": "Anna\nBoris\nCarla\nDavid\nElena\n",
    "expenses.csv": "date,what,amount\n2026-01-03,rent,800\n2026-01-05,food,120\n2026-01-09,train,60\n2026-01-20,food,95\n",
    "config.ini": "[server]\nhost = localhost\nport = 8080\ndebug = true\n",
    "notes/meeting.md": "# Meeting\n\n- Budget is 5000 euros\n- Next date: 12 March\n- Owner: Priya\n",
    "README.md": "# Weather station\n\nReads a sensor every minute and stores the values in SQLite.\n",
}
_PROJECT = {
    "cart.py": "def total(prices):\n    result = 0\n    for price in prices:\n        result = price\n    return result\n",
    "test_cart.py": "from cart import total\n\n\ndef test_total():\n    assert total([1, 2, 3]) == 6\n",
}
_LEAP = {
    "dates.py": 'def is_even(n):\n    """True for even numbers."""\n    return n % 2 == 1\n\n\ndef weekday_name(n):\n    return ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"][n]\n',
    "test_dates.py": "from dates import is_even\n\n\ndef test_even():\n    assert is_even(4)\n    assert not is_even(5)\n",
}
_TRACE = """Traceback (most recent call last):
  File "/srv/app/main.py", line 31, in <module>
    run()
  File "/srv/app/main.py", line 22, in run
    price = item["price"] * quantity
KeyError: 'price'
"""
_DIFF = """diff --git a/pay.py b/pay.py
--- a/pay.py
+++ b/pay.py
@@ -3,7 +3,7 @@ def average(values):
     total = 0
     for value in values:
         total += value
-    return total / max(len(values), 1)
+    return total / len(values)
"""
_NGINX = """2026/11/12 09:14:02 [notice] 1#1: start worker process 31
2026/11/12 09:14:07 [error] 31#31: *1 connect() failed (111: Connection refused) while connecting to upstream, client: 10.0.0.9, server: shop.example, request: "GET / HTTP/1.1", upstream: "http://127.0.0.1:3000/"
2026/11/12 09:14:08 [error] 31#31: *2 connect() failed (111: Connection refused) while connecting to upstream, client: 10.0.0.9, server: shop.example, request: "GET /favicon.ico HTTP/1.1", upstream: "http://127.0.0.1:3000/"
"""
_LETTER = (
    "Dear all, the office will be closed on Friday 20 November because the heating is being replaced. "
    "Please work from home on that day. The building opens again on Monday at 7 a.m. If you need anything from your "
    "desk, collect it by Thursday evening. Thank you for your patience. Regards, Martha from facilities."
)

UNSEEN: tuple[EverydayCase, ...] = (
    # arithmetic
    case("u-sum", "arithmetic", "what is 348 + 277?", check=says(r"\b625\b")),
    case(
        "u-product", "arithmetic", "How much is 46 times 58?", check=says(r"2[,. ]?668")
    ),
    case("u-percent", "arithmetic", "What's 18% of 250?", check=says(r"\b45\b")),
    case("u-division", "arithmetic", "divide 1001 by 7", check=says(r"\b143\b")),
    case(
        "u-word-problem",
        "arithmetic",
        "I buy 3 notebooks for 4 euros each and a pen for 2 euros. How much do I pay?",
        check=says(r"\b14\b"),
    ),
    case(
        "u-convert",
        "arithmetic",
        "how many minutes are 3.5 hours?",
        check=says(r"\b210\b"),
    ),
    # knowledge
    case(
        "u-capital",
        "knowledge",
        "What is the capital of Portugal?",
        check=says("Lisbon"),
    ),
    case(
        "u-django",
        "knowledge",
        "what is asp.net?",
        check=all_of(says("microsoft|web"), words_between(6, 250)),
    ),
    case(
        "u-water",
        "knowledge",
        "At what temperature does water boil at sea level?",
        check=says(r"\b(100|212)\b"),
    ),
    case(
        "u-author",
        "knowledge",
        "Who wrote Romeo and Juliet?",
        check=says("Shakespeare"),
    ),
    case(
        "u-planets",
        "knowledge",
        "Which planet is the largest in our solar system?",
        check=says("Jupiter"),
    ),
    case(
        "u-photosynthesis",
        "knowledge",
        "Explain photosynthesis in two sentences.",
        check=all_of(
            says("light|sun"),
            says("carbon dioxide|CO2|CO₂|oxygen"),
            words_between(12, 120),
        ),
    ),
    case(
        "u-http",
        "knowledge",
        "what does HTTP status 404 mean?",
        check=says("not (be )?found|exist"),
    ),
    case(
        "u-difference",
        "knowledge",
        "What's the difference between RAM and a hard disk?",
        check=all_of(says("memory"), says("stor"), words_between(15, 350)),
    ),
    # small talk
    case(
        "u-hello",
        "small talk",
        "Good morning!",
        check=all_of(words_between(1, 60), never_says("error")),
    ),
    case(
        "u-who",
        "small talk",
        "what are you?",
        check=all_of(says("Hermes"), never_says("Qwen|Alibaba|OpenAI")),
    ),
    case(
        "u-can",
        "small talk",
        "What can you help me with?",
        check=all_of(
            says("file|question|writ|code|command|task"), words_between(8, 250)
        ),
    ),
    case(
        "u-thanks",
        "small talk",
        "thank you so much",
        check=all_of(says("welcome|glad|happy|pleasure|anytime"), words_between(1, 60)),
    ),
    case("u-joke", "small talk", "tell me a joke", check=words_between(6, 120)),
    # writing
    case(
        "u-haiku",
        "writing",
        "Write a haiku about autumn leaves",
        check=all_of(
            says("leav|leaf|autumn|fall"), words_between(6, 50), no_new_files()
        ),
    ),
    case(
        "u-mail",
        "writing",
        "Write a short e-mail to my landlord: the kitchen tap is leaking.",
        check=all_of(
            says("tap|faucet"), says("leak"), words_between(25, 220), no_new_files()
        ),
    ),
    case(
        "u-birthday",
        "writing",
        "write a birthday message for my sister Lena",
        check=all_of(
            says("birthday"), says("Lena"), words_between(6, 150), no_new_files()
        ),
    ),
    case(
        "u-rewrite",
        "writing",
        "Make this sentence more polite: Send me the report now.",
        check=all_of(
            says("please|could you|would you|appreciate|kindly"),
            says("report"),
            words_between(4, 80),
        ),
    ),
    case(
        "u-title",
        "writing",
        "Give me three titles for a blog post about growing tomatoes on a balcony",
        check=all_of(says("tomato"), words_between(6, 120), no_new_files()),
    ),
    case(
        "u-product-text",
        "writing",
        "Write two sentences that advertise a hand-made wooden chair.",
        check=all_of(says("chair"), words_between(10, 110), no_new_files()),
    ),
    # coding
    case(
        "u-reverse",
        "coding",
        "Write a Python function is_palindrome(text) that ignores case.",
        check=all_of(
            code_passes(
                "assert is_palindrome('Anna')", "assert not is_palindrome('Hermes')"
            ),
            no_new_files(),
        ),
    ),
    case(
        "u-fizz",
        "coding",
        "write a python function factorial(n)",
        check=all_of(
            code_passes("assert factorial(5) == 120", "assert factorial(0) == 1"),
            no_new_files(),
        ),
    ),
    case(
        "u-git",
        "coding",
        "how do I undo the last git commit but keep my changes?",
        check=says(r"git reset (--soft|--mixed|HEAD)|git reset\b.*HEAD"),
    ),
    case(
        "u-sort-dict",
        "coding",
        "In Python, how do I sort a list of dicts by the key 'age'?",
        check=all_of(says(r"sort(ed)?\("), says("lambda|itemgetter")),
    ),
    case(
        "u-sql",
        "coding",
        "SQL query for the five newest rows of table orders by created_at",
        check=all_of(
            says("order by"), says("desc"), says("limit 5|top 5|fetch first 5")
        ),
    ),
    case(
        "u-bash",
        "coding",
        "bash one-liner to count the files in a directory",
        check=all_of(says(r"ls|find"), says("wc -l")),
    ),
    # pipes
    case(
        "u-pipe-trace",
        "pipes",
        "what is wrong here?",
        piped=_TRACE,
        check=all_of(says("KeyError|key"), says("price"), words_between(6, 300)),
    ),
    case(
        "u-pipe-diff",
        "pipes",
        "review this",
        piped=_DIFF,
        check=all_of(
            says("zero|empty|division|ZeroDivision|len"),
            words_between(8, 350),
            no_new_files(),
        ),
    ),
    case(
        "u-pipe-nginx",
        "pipes",
        "why does this fail?",
        piped=_NGINX,
        check=says("refused|3000|upstream|not running|backend"),
    ),
    case(
        "u-pipe-summary",
        "pipes",
        "summarize in one sentence",
        piped=_LETTER,
        check=all_of(
            says("closed"),
            says("Friday|20 Nov|November 20|heating"),
            words_between(6, 70),
        ),
    ),
    case(
        "u-pipe-csv",
        "pipes",
        "which city has the most inhabitants?",
        piped="city,inhabitants\nBern,134000\nGraz,292000\nPorto,231000\n",
        check=says("Graz"),
    ),
    case(
        "u-pipe-translate",
        "pipes",
        "translate to German",
        piped="The train leaves at noon.\n",
        check=all_of(says("Zug"), says("Mittag|12 Uhr|mittags")),
    ),
    # languages
    case(
        "u-german",
        "languages",
        "Was ist die Hauptstadt von Italien?",
        check=all_of(says(r"\bRom\b|Roma?\b"), words_between(1, 60)),
    ),
    case(
        "u-french",
        "languages",
        "Bonjour, comment vas-tu ?",
        check=all_of(says("bonjour|salut|merci|je |vais|bien"), words_between(2, 80)),
    ),
    case(
        "u-spanish",
        "languages",
        "¿Cuántos días tiene una semana?",
        check=says("siete|7"),
    ),
    case(
        "u-german-write",
        "languages",
        "Schreib mir einen kurzen Geburtstagsgruß für Oma",
        check=all_of(
            says("Geburtstag"),
            says("Oma|Großmutter|liebe"),
            words_between(5, 150),
            no_new_files(),
        ),
    ),
    case(
        "u-to-spanish",
        "languages",
        "How do you say 'good night' in Spanish?",
        check=says("buenas noches"),
    ),
    case(
        "u-italian",
        "languages",
        "Qual è la capitale della Francia?",
        check=says("Parigi"),
    ),
    # files
    case(
        "u-read",
        "files",
        "who is on the guest list in guests.txt?",
        files=_HOUSE,
        check=all_of(says("Anna"), says("Elena"), unchanged(_HOUSE)),
    ),
    case(
        "u-list",
        "files",
        "what's in this folder?",
        files=_HOUSE,
        check=all_of(says(r"guests\.txt"), says(r"expenses\.csv"), unchanged(_HOUSE)),
    ),
    case(
        "u-count-lines",
        "files",
        "How many lines does guests.txt have?",
        files=_HOUSE,
        check=says(r"\b(5|five)\b"),
    ),
    case(
        "u-count-rows",
        "files",
        "how many expenses are in expenses.csv?",
        files=_HOUSE,
        check=says(r"\b(4|four)\b"),
    ),
    case(
        "u-find-word",
        "files",
        "which file mentions priya?",
        files=_HOUSE,
        check=says(r"meeting\.md"),
    ),
    case(
        "u-sum-column",
        "files",
        "what is the total amount in expenses.csv?",
        files=_HOUSE,
        check=says(r"1[,. ]?075"),
    ),
    case(
        "u-change",
        "files",
        "change the port in config.ini to 9090",
        files=_HOUSE,
        check=all_of(
            holds("config.ini", "port = 9090"),
            lacks("config.ini", "8080"),
            holds("config.ini", "debug = true"),
        ),
    ),
    case(
        "u-append",
        "files",
        "add Felix to guests.txt",
        files=_HOUSE,
        check=lines_are(
            "guests.txt", "Anna", "Boris", "Carla", "David", "Elena", "Felix"
        ),
    ),
    case(
        "u-create",
        "files",
        "create a file todo.txt with the lines buy milk and call mum",
        files=_HOUSE,
        check=all_of(holds("todo.txt", "buy milk"), holds("todo.txt", "call mum")),
    ),
    case(
        "u-summarise-file",
        "files",
        "what does this project do? look at the readme",
        files=_HOUSE,
        check=all_of(says("sensor|weather"), unchanged(_HOUSE)),
    ),
    case(
        "u-nested",
        "files",
        "When is the next date according to notes/meeting.md?",
        files=_HOUSE,
        check=says("12 March|March 12"),
    ),
    case(
        "u-rename",
        "files",
        "rename guests.txt to people.txt",
        files=_HOUSE,
        check=all_of(holds("people.txt", "Carla"), lacks("guests.txt", "Carla")),
    ),
    # project
    case(
        "u-fix-test",
        "project",
        "the test in test_cart.py fails, please fix cart.py",
        files=_PROJECT,
        check=all_of(
            file_passes(
                "cart.py", "assert total([1, 2, 3]) == 6", "assert total([]) == 0"
            ),
            holds("test_cart.py", "== 6"),
        ),
    ),
    case(
        "u-find-bug",
        "project",
        "is_even in dates.py is wrong. Fix it.",
        files=_LEAP,
        check=file_passes(
            "dates.py",
            "assert is_even(4) and not is_even(5)",
            "assert weekday_name(0) == 'Mon'",
        ),
    ),
    case(
        "u-explain-code",
        "project",
        "what does cart.py do?",
        files=_PROJECT,
        check=all_of(says("price|total|sum"), unchanged(_PROJECT)),
    ),
    case(
        "u-run-tests",
        "project",
        "run the tests",
        files=_PROJECT,
        check=all_of(
            calls("terminal", 3, command="pytest|unittest|test"), says("fail|error|1")
        ),
    ),
    # honesty
    case(
        "u-weather",
        "honesty",
        "What's the weather like in Hamburg right now?",
        check=all_of(
            says(
                r"can(?:no|')t|can not|not able|unable|don't have|do not have|no access|no internet"
            ),
            never_says(r"\d+ ?°"),
        ),
    ),
    case(
        "u-date",
        "honesty",
        "what's the date today?",
        check=all_of(
            says(str(TODAY.day)),
            says(f"{TODAY:%B}|{TODAY:%m}"),
            says(str(TODAY.year)),
        ),
    ),
    case(
        "u-weekday",
        "honesty",
        "Which day of the week is it?",
        check=says(f"{TODAY:%A}"),
    ),
    case(
        "u-missing",
        "honesty",
        "what does recipe.txt say?",
        files=_HOUSE,
        check=all_of(
            says(r"no (file|recipe)|not (exist|find|found|there)|doesn't exist|isn't"),
            unchanged(_HOUSE),
        ),
    ),
    case(
        "u-news",
        "honesty",
        "what did the stock market do this morning?",
        check=all_of(
            says(
                r"can(?:no|')t|can not|not able|unable|don't have|do not have|no access|real-time|up-to-date"
            ),
            never_says(r"\d+(\.\d+)? ?(%|percent|points)"),
        ),
    ),
    case(
        "u-missing-change",
        "honesty",
        "replace red by blue in colors.css",
        files=_HOUSE,
        check=all_of(
            says(
                r"no (file|such)|not (exist|find|found|there)|doesn't exist|isn't|no colors"
            ),
            never_says(r"^(I|The).{0,20}(replaced|changed)"),
            unchanged(_HOUSE),
        ),
    ),
    # follow-up
    case(
        "u-follow-capital",
        "follow-up",
        "What is the capital of Spain?",
        "and of Norway?",
        check=says("Oslo"),
    ),
    case(
        "u-follow-shorter",
        "follow-up",
        "Write a short paragraph about the sea.",
        "make it shorter",
        check=all_of(
            says("sea|ocean|wave|water"), words_between(3, 60), no_new_files()
        ),
    ),
    case(
        "u-follow-language",
        "follow-up",
        "Translate 'thank you' to French",
        "and to Italian?",
        check=says("grazie"),
    ),
    case(
        "u-follow-file",
        "follow-up",
        "what is in guests.txt?",
        "add Gina to it",
        files=_HOUSE,
        check=all_of(holds("guests.txt", "Gina"), holds("guests.txt", "Elena")),
    ),
)
