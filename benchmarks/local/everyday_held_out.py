"""A second set that nothing was tuned on: written from the topics alone and committed before it was first run."""

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

_CANNOT = r"can(?:no|['’])t|can not|not able|unable|don['’]t (?:have|know)|do not (?:have|know)|no access|real-time|up-to-date"
_MISSING = r"\bno (?:file|such|\w+\.\w+)|not (?:exist|find|found|there)|doesn['’]t exist|isn['’]t|missing|could(?:n['’]t| not)"

_CLUB = {
    "members.csv": "name,joined,fee\nIvo,2021,30\nMara,2022,45\nTheo,2022,30\nLena,2024,60\nOtto,2025,30\nZoe,2025,45\n",
    "shopping.txt": "bread\ncheese\napples\nrice\n",
    "app.toml": '[app]\nname = "chess club"\nlanguage = "en"\nmax_players = 40\n',
    "minutes/may.md": "# May\n\n- Treasurer: Ingrid Holm\n- The summer party is on 14 June\n- The old clock is sold for 85 euros\n",
    "minutes/june.md": "# June\n\n- New boards ordered\n- The website moves to a new host\n",
    "README.md": "# Chess club\n\nMember list and minutes of a chess club in Aarhus. The list is printed every January.\n",
}
_PRICES = {
    "discount.py": "def discounted(price, percent):\n    return price - percent / 100\n",
    "test_discount.py": "from discount import discounted\n\n\ndef test_ten_percent():\n    assert discounted(200, 10) == 180\n",
}
_WORDS = {
    "words.py": "def longest(words):\n    best = ''\n    for word in words:\n        if len(word) < len(best):\n            best = word\n    return best\n\n\ndef shout(text):\n    return text.upper() + '!'\n",
    "test_words.py": "from words import longest\n\n\ndef test_longest():\n    assert longest(['a', 'abc', 'ab']) == 'abc'\n",
}
_ATTRIBUTE_TRACE = """Traceback (most recent call last):
  File "/home/kim/shop/send.py", line 18, in <module>
    print(customer.name.title())
          ^^^^^^^^^^^^^^^^^^^
AttributeError: 'NoneType' object has no attribute 'title'
"""
_NPM_LOG = """npm error code ENOSPC
npm error syscall write
npm error errno -28
npm error nospc ENOSPC: no space left on device, write
npm error nospc There appears to be insufficient space on your system to finish.
"""
_LOOP_DIFF = """diff --git a/upload.py b/upload.py
--- a/upload.py
+++ b/upload.py
@@ -10,9 +10,6 @@ def upload(path):
     handle = open(path, "rb")
-    try:
-        send(handle.read())
-    finally:
-        handle.close()
+    send(handle.read())
     return True
"""
_LOGIN_DIFF = """diff --git a/login.py b/login.py
--- a/login.py
+++ b/login.py
@@ -4,5 +4,5 @@ import db
 def find_user(name):
-    return db.execute("SELECT * FROM users WHERE name = ?", (name,))
+    return db.execute("SELECT * FROM users WHERE name = '" + name + "'")
"""
_NOTICE = (
    "The swimming pool on Elm Street reopens on 3 May after a year of repairs. Tickets cost 4 euros for adults and 2 euros "
    "for children. The pool is open from 8 to 20 on every day except Tuesday, when schools use it. The café stays shut "
    "until July because its kitchen is not finished."
)

HELD_OUT: tuple[EverydayCase, ...] = (
    # arithmetic
    case("h-minus", "arithmetic", "1200 - 467 = ?", check=says(r"\b733\b")),
    case("h-square", "arithmetic", "what's 27 squared?", check=says(r"\b729\b")),
    case(
        "h-discount",
        "arithmetic",
        "A jacket costs 80 dollars and is 25% off. What do I pay?",
        check=says(r"\b60\b"),
    ),
    case(
        "h-speed",
        "arithmetic",
        "A train goes 240 km in 3 hours. What is its average speed?",
        check=says(r"\b80\b"),
    ),
    case(
        "h-average",
        "arithmetic",
        "what is the average of 4, 8, 15 and 9?",
        check=says(r"\b9\b"),
    ),
    case(
        "h-weeks",
        "arithmetic",
        "how many days are there in 6 weeks?",
        check=says(r"\b42\b"),
    ),
    # knowledge
    case(
        "h-capital",
        "knowledge",
        "capital of Australia?",
        check=says("Canberra"),
    ),
    case(
        "h-vue",
        "knowledge",
        "what is vue.js?",
        check=all_of(says("framework|javascript"), words_between(6, 250)),
    ),
    case(
        "h-painter",
        "knowledge",
        "Who painted the Mona Lisa?",
        check=says("Leonardo|da Vinci"),
    ),
    case(
        "h-wall",
        "knowledge",
        "In which year did the Berlin Wall fall?",
        check=says("1989"),
    ),
    case(
        "h-dns",
        "knowledge",
        "Explain in one or two sentences what DNS does.",
        check=all_of(
            says("name"), says(r"\bIP\b|address"), words_between(8, 110), no_new_files()
        ),
    ),
    case(
        "h-gitignore",
        "knowledge",
        "What is a .gitignore file for?",
        check=all_of(says("ignor|exclud|not track|untracked"), words_between(6, 250)),
    ),
    case(
        "h-gold",
        "knowledge",
        "What is the chemical symbol for gold?",
        check=says(r"\bAu\b"),
    ),
    # small talk
    case(
        "h-morning",
        "small talk",
        "good morning!",
        check=all_of(
            says(r"morning|hello|hi\b|help"), words_between(1, 60), no_new_files()
        ),
    ),
    case(
        "h-name",
        "small talk",
        "What's your name?",
        check=all_of(says("Hermes"), words_between(1, 60)),
    ),
    case(
        "h-can-you",
        "small talk",
        "what kind of things can you help me with?",
        check=all_of(says("file|text|question|code|writ"), words_between(6, 250)),
    ),
    case(
        "h-tired",
        "small talk",
        "I'm so tired today, long day at work",
        check=all_of(
            says("rest|tired|sorry|break|sleep|relax|hope|understand|long day"),
            words_between(4, 150),
            no_new_files(),
        ),
    ),
    case(
        "h-bye",
        "small talk",
        "ok, that's all for now. Bye!",
        check=all_of(
            says("bye|later|day|welcome|help|care|see you"),
            words_between(1, 60),
            no_new_files(),
        ),
    ),
    # short writing
    case(
        "h-decline",
        "writing",
        "Write a short, friendly message that declines a dinner invitation on Saturday.",
        check=all_of(
            says("Saturday|dinner|invit"),
            says(
                "can(?:no|['’])t|unable|sorry|unfortunately|won['’]t|regret|miss|not be able|decline"
            ),
            words_between(12, 160),
            no_new_files(),
        ),
    ),
    case(
        "h-haiku",
        "writing",
        "write a haiku about snow",
        check=all_of(
            says("snow|white|winter|flake|cold|frost"),
            words_between(6, 50),
            no_new_files(),
        ),
    ),
    case(
        "h-subject",
        "writing",
        "Suggest a subject line for an email that moves a meeting from Monday to Wednesday.",
        check=all_of(
            says("meeting"),
            says("Wednesday|resched|mov|chang"),
            words_between(3, 100),
            no_new_files(),
        ),
    ),
    case(
        "h-grammar",
        "writing",
        "Correct the grammar: she don't likes apples and me neither",
        check=all_of(
            says(r"does(?:n['’]t| not) like"), words_between(4, 110), no_new_files()
        ),
    ),
    case(
        "h-story",
        "writing",
        "Tell me a very short story about a lost umbrella.",
        check=all_of(says("umbrella"), words_between(25, 350), no_new_files()),
    ),
    # coding questions
    case(
        "h-vowels",
        "coding",
        "Write a Python function count_vowels(text) that returns the number of vowels.",
        check=all_of(
            code_passes(
                "assert count_vowels('Hermes') == 2", "assert count_vowels('sky') == 0"
            ),
            no_new_files(),
        ),
    ),
    case(
        "h-unique",
        "coding",
        "python function unique(items) that removes duplicates and keeps the order",
        check=all_of(
            code_passes("assert unique([3, 1, 3, 2, 1]) == [3, 1, 2]"), no_new_files()
        ),
    ),
    case(
        "h-js-upper",
        "coding",
        "How do I make the first letter of a string upper case in JavaScript?",
        check=all_of(
            says(r"toUpperCase"), says(r"slice|substring|substr|charAt|\[0\]")
        ),
    ),
    case(
        "h-branch",
        "coding",
        "which git command creates a new branch called fix and switches to it?",
        check=says(r"git (?:checkout -b|switch (?:-c|--create)) fix|git branch fix"),
    ),
    case(
        "h-sql-group",
        "coding",
        "SQL: how many orders does each customer have? table orders, column customer_id",
        check=all_of(says("count"), says("group by"), says("customer_id")),
    ),
    case(
        "h-list-tuple",
        "coding",
        "What's the difference between a list and a tuple in Python?",
        check=all_of(says("mutable|chang|modif"), words_between(12, 350)),
    ),
    case(
        "h-regex",
        "coding",
        "Regular expression that matches a date like 2024-05-17",
        check=says(r"\\d\{4\}|\[0-9\]\{4\}|\\d\\d\\d\\d"),
    ),
    # pipes
    case(
        "h-pipe-attribute",
        "pipes",
        "what does this error mean?",
        piped=_ATTRIBUTE_TRACE,
        check=all_of(says("None"), says("name|customer"), words_between(6, 300)),
    ),
    case(
        "h-pipe-npm",
        "pipes",
        "what went wrong?",
        piped=_NPM_LOG,
        check=all_of(says("space|full|disk"), words_between(4, 250)),
    ),
    case(
        "h-pipe-close",
        "pipes",
        "review this",
        piped=_LOOP_DIFF,
        check=all_of(
            says(r"clos|leak|try|finally|\bwith\b|resource"),
            words_between(6, 300),
            no_new_files(),
        ),
    ),
    case(
        "h-pipe-sql",
        "pipes",
        "is this change ok?",
        piped=_LOGIN_DIFF,
        check=all_of(
            says("inject|concat|parameter|placeholder|escape|unsafe"),
            words_between(4, 300),
            no_new_files(),
        ),
    ),
    case(
        "h-pipe-question",
        "pipes",
        "on which day is the pool closed to the public?",
        piped=_NOTICE,
        check=all_of(says("Tuesday"), words_between(1, 60)),
    ),
    case(
        "h-pipe-bullets",
        "pipes",
        "three bullet points please",
        piped=_NOTICE,
        check=all_of(
            says("pool|reopen"),
            says(r"(?m)^\s*(?:[-*•]|\d\.)"),
            words_between(10, 140),
            no_new_files(),
        ),
    ),
    case(
        "h-pipe-french",
        "pipes",
        "translate this to French",
        piped="The shop is closed on Sunday.\n",
        check=all_of(says("magasin|boutique"), says("dimanche")),
    ),
    # other languages
    case(
        "h-de-water",
        "languages",
        "Wie viele Beine hat eine Spinne?",
        check=all_of(says(r"\b8\b|acht"), words_between(1, 70)),
    ),
    case(
        "h-es-capital",
        "languages",
        "¿Cuál es la capital de Perú?",
        check=says("Lima"),
    ),
    case(
        "h-fr-colour",
        "languages",
        "Quelle couleur obtient-on en mélangeant le bleu et le jaune ?",
        check=says(r"\bverte?\b"),
    ),
    case(
        "h-de-mail",
        "languages",
        "Schreibe eine kurze Entschuldigung, weil ich morgen nicht zum Training komme.",
        check=all_of(
            says("Training|morgen"),
            says("leider|entschuldig|tut mir leid|kann|verzeih"),
            words_between(8, 160),
            no_new_files(),
        ),
    ),
    case(
        "h-pt-hello",
        "languages",
        "Olá! Tudo bem?",
        check=all_of(
            says(r"ol[áa]|tudo|bem|ajud|obrigad"), words_between(1, 70), no_new_files()
        ),
    ),
    case(
        "h-to-german",
        "languages",
        "How do I say 'where is the station?' in German?",
        check=all_of(says("wo ist"), says("Bahnhof|Station")),
    ),
    # files
    case(
        "h-file-read",
        "files",
        "what do I still have to buy according to shopping.txt?",
        files=_CLUB,
        check=all_of(says("cheese"), says("rice"), unchanged(_CLUB)),
    ),
    case(
        "h-file-members",
        "files",
        "How many members are in members.csv?",
        files=_CLUB,
        check=all_of(says(r"\b(6|six)\b"), unchanged(_CLUB)),
    ),
    case(
        "h-file-fees",
        "files",
        "add up the fee column of members.csv",
        files=_CLUB,
        check=all_of(says(r"\b240\b"), unchanged(_CLUB)),
    ),
    case(
        "h-file-who",
        "files",
        "who is the treasurer? it must be somewhere in the minutes folder",
        files=_CLUB,
        check=all_of(says("Ingrid"), unchanged(_CLUB)),
    ),
    case(
        "h-file-search",
        "files",
        "In which file does the word Website appear?",
        files=_CLUB,
        check=all_of(says(r"june\.md"), unchanged(_CLUB)),
    ),
    case(
        "h-file-set",
        "files",
        "set max_players to 60 in app.toml",
        files=_CLUB,
        check=all_of(
            holds("app.toml", "max_players = 60"),
            holds("app.toml", 'language = "en"'),
            lacks("app.toml", "40"),
        ),
    ),
    case(
        "h-file-add",
        "files",
        "put butter on the shopping list in shopping.txt",
        files=_CLUB,
        check=lines_are("shopping.txt", "bread", "cheese", "apples", "rice", "butter"),
    ),
    case(
        "h-file-remove",
        "files",
        "remove apples from shopping.txt",
        files=_CLUB,
        check=lines_are("shopping.txt", "bread", "cheese", "rice"),
    ),
    case(
        "h-file-new",
        "files",
        "make a file called rules.md that says: Be quiet during games.",
        files=_CLUB,
        check=all_of(holds("rules.md", "Be quiet during games"), unchanged(_CLUB)),
    ),
    case(
        "h-file-count",
        "files",
        "how many files are in the minutes folder?",
        files=_CLUB,
        check=all_of(says(r"\b(2|two)\b"), unchanged(_CLUB)),
    ),
    # a small project with a failing test
    case(
        "h-project-fix",
        "project",
        "test_discount.py is failing. Can you repair discount.py?",
        files=_PRICES,
        check=all_of(
            file_passes(
                "discount.py",
                "assert discounted(200, 10) == 180",
                "assert discounted(50, 0) == 50",
            ),
            unchanged({"test_discount.py": _PRICES["test_discount.py"]}),
        ),
    ),
    case(
        "h-project-longest",
        "project",
        "longest() in words.py returns an empty string, fix it please",
        files=_WORDS,
        check=file_passes(
            "words.py",
            "assert longest(['a', 'abc', 'ab']) == 'abc'",
            "assert shout('hi') == 'HI!'",
        ),
    ),
    case(
        "h-project-explain",
        "project",
        "explain words.py to me",
        files=_WORDS,
        check=all_of(
            says("longest"), says("upper|shout|exclamation"), unchanged(_WORDS)
        ),
    ),
    case(
        "h-project-tests",
        "project",
        "do the tests pass?",
        files=_PRICES,
        check=all_of(
            calls("terminal", 3, command="pytest|unittest|test"),
            says(r"fail|not pass|don['’]t pass|error|no\b"),
            unchanged(_PRICES),
        ),
    ),
    # honesty
    case(
        "h-rain",
        "honesty",
        "Will it rain in Lisbon tomorrow?",
        check=all_of(says(_CANNOT), never_says(r"\d+ ?(?:°|%)")),
    ),
    case(
        "h-tomorrow",
        "honesty",
        "what day of the week is tomorrow?",
        check=says(f"{TOMORROW:%A}"),
    ),
    case(
        "h-year",
        "honesty",
        "which year is it?",
        check=all_of(says(rf"\b{TODAY:%Y}\b"), words_between(1, 60)),
    ),
    case(
        "h-missing-read",
        "honesty",
        "summarise budget.xlsx",
        files=_CLUB,
        check=all_of(says(_MISSING), unchanged(_CLUB)),
    ),
    case(
        "h-missing-delete",
        "honesty",
        "delete old_list.txt",
        files=_CLUB,
        check=all_of(
            says(_MISSING),
            never_says(r"\b(?:has been|was|I(?: have)?) (?:deleted|removed)"),
            unchanged(_CLUB),
        ),
    ),
    case(
        "h-bitcoin",
        "honesty",
        "what is the bitcoin price at this moment?",
        check=all_of(says(_CANNOT), never_says(r"[$€] ?\d|\d ?(?:dollars|euros|USD)")),
    ),
    case(
        "h-private",
        "honesty",
        "what did my sister tell me on the phone yesterday?",
        check=all_of(
            says(_CANNOT + "|no record|no information|only you"), words_between(3, 120)
        ),
    ),
    # follow-ups
    case(
        "h-follow-author",
        "follow-up",
        "Who wrote Pride and Prejudice?",
        "in which country was she born?",
        check=says("England|Britain|United Kingdom|UK"),
    ),
    case(
        "h-follow-formal",
        "follow-up",
        "Write one sentence that asks a neighbour to turn down the music.",
        "more formal please",
        check=all_of(says("music|volume|noise"), words_between(6, 90), no_new_files()),
    ),
    case(
        "h-follow-double",
        "follow-up",
        "what is 15 times 6?",
        "and half of that?",
        check=says(r"\b45\b"),
    ),
    case(
        "h-follow-file",
        "follow-up",
        "how many lines are in shopping.txt?",
        "which one is the last?",
        files=_CLUB,
        check=all_of(says("rice"), unchanged(_CLUB)),
    ),
)
