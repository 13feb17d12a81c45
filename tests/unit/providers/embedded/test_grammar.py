"""The grammar: whatever it allows is a line that parses back, and `replace` only names what was shown."""

import re
from collections.abc import Callable

from hypothesis import given
from hypothesis import strategies as st

from hermes.providers.embedded.conversation import SeenFile
from hermes.providers.embedded.grammar import Allowed, build
from hermes.providers.embedded.line_protocol import VERBS, Verb, parse_line, write_line

TOKEN = re.compile(
    r'\s*(?:"((?:\\.|[^"\\])*)"|\[((?:\\.|[^\]\\])*)\]|([A-Za-z][\w-]*)|([()|])|([?*+]|\{\d+,\d+\}))'
)
ESCAPE = re.compile(r'\\(n|x[0-9a-f]{2}|.)')  # fmt: skip
Draw = Callable[[st.SearchStrategy[int]], int]


def unescaped(text: str) -> str:
    def one(match: re.Match[str]) -> str:
        code = match[1]
        return (
            "\n"
            if code == "n"
            else chr(int(code[1:], 16))
            if code[0] == "x" and len(code) == 3
            else code
        )

    return ESCAPE.sub(one, text)


class Sampler:
    """Draws texts that a grammar of our subset of GBNF allows."""

    def __init__(self, grammar: str, draw: Draw) -> None:
        self.rules = dict(line.split(" ::= ", 1) for line in grammar.splitlines())
        self.draw = draw

    def sample(self, rule: str = "root") -> str:
        tokens = TOKEN.findall(self.rules[rule])
        choices, rest = self.alternatives(tokens)
        assert not rest
        return self.one_of(choices)

    def one_of(self, choices: list[list[Callable[[], str]]]) -> str:
        chosen = choices[self.draw(st.integers(0, len(choices) - 1))]
        return "".join(part() for part in chosen)

    def alternatives(
        self, tokens: list[tuple[str, ...]]
    ) -> tuple[list[list[Callable[[], str]]], list[tuple[str, ...]]]:
        choices: list[list[Callable[[], str]]] = [[]]
        while tokens:
            literal, chars, name, sign, repeat = tokens[0]
            tokens = tokens[1:]
            if sign == ")":
                break
            if sign == "|":
                choices.append([])
            elif sign == "(":
                inner, tokens = self.alternatives(tokens)
                choices[-1].append(lambda inner=inner: self.one_of(inner))
            elif repeat:
                choices[-1].append(self.repeated(choices[-1].pop(), repeat))
            elif name:
                choices[-1].append(lambda name=name: self.sample(name))
            elif chars:
                choices[-1].append(lambda chars=chars: self.char(unescaped(chars)))
            else:
                choices[-1].append(lambda literal=literal: unescaped(literal))
        return choices, tokens

    def repeated(self, part: Callable[[], str], repeat: str) -> Callable[[], str]:
        low, high = {"?": (0, 1), "*": (0, 12), "+": (1, 12)}.get(repeat) or tuple(
            map(int, repeat[1:-1].split(","))
        )
        return lambda: "".join(
            part() for _ in range(self.draw(st.integers(low, min(high, low + 12))))
        )

    def char(self, chars: str) -> str:
        assert chars.startswith("^")
        letters = [letter for letter in "ab .:=>\n\"'\\`é漢" if letter not in chars[1:]]
        return letters[self.draw(st.integers(0, len(letters) - 1))]


FILES = st.dictionaries(
    st.sampled_from(["a.txt", "b c.py", 'q"uote.md', "back\\slash"]),
    st.text("ab1 =>.\"'\\\n\té", max_size=40).map(SeenFile),
    max_size=3,
)


@given(FILES, st.sets(st.sampled_from(VERBS), min_size=1), st.data())
def test_every_allowed_line_parses_back(
    files: dict[str, SeenFile], verbs: set[Verb], data: st.DataObject
) -> None:
    chosen: frozenset[Verb] = frozenset({*verbs, "say"})
    allowed = Allowed(
        verbs=chosen, files=files, look=data.draw(st.booleans()), absent=("new.txt",)
    )
    line = Sampler(build(allowed), data.draw).sample()
    texts = {path: seen.text for path, seen in files.items()}

    action = parse_line(line, texts)

    assert action.verb in chosen
    assert parse_line(write_line(action), texts) == action
    if action.verb == "replace":
        assert action.old
        assert action.old in texts[action.path]
    if action.verb == "append":
        assert action.path in texts


def test_a_verb_that_is_not_allowed_is_not_in_the_grammar() -> None:
    rules = build(Allowed(verbs=frozenset({"read", "say"}))).splitlines()
    assert rules[0] == "root ::= read | say"
    assert not any(rule.startswith(("run ", "write ")) for rule in rules)


def test_append_and_replace_need_a_file_that_was_seen() -> None:
    allowed = Allowed(verbs=frozenset({"append", "replace", "say"}))
    assert build(allowed).splitlines()[0] == "root ::= say"


def test_a_file_seen_in_part_can_be_changed_but_not_appended_to() -> None:
    files = {"long.txt": SeenFile("one two", whole=False)}
    allowed = Allowed(verbs=frozenset({"append", "replace", "say"}), files=files)
    assert build(allowed).splitlines()[0] == "root ::= replace | say"


def test_write_can_be_bound_to_one_file() -> None:
    grammar = build(Allowed(verbs=frozenset({"write"}), only_path="new.txt"))
    assert 'write ::= "write " "new.txt" ":\\n" body' in grammar.splitlines()


def test_a_write_that_must_look_only_names_its_file() -> None:
    grammar = build(Allowed(verbs=frozenset({"write"}), look=True, absent=("new.txt",)))
    assert (
        'write ::= "write " path ":" | "write " ("new.txt") ":\\n" body'
        in grammar.splitlines()
    )


def test_replace_names_whole_lines_names_that_occur_often_and_parts_of_long_lines() -> (
    None
):
    text = 'edge = 1\n  "edge": x,\n' + "word " * 40
    words = frozenset({"word", "absent"})
    grammar = build(
        Allowed(verbs=frozenset({"replace"}), files={"f": SeenFile(text)}, words=words)
    )
    choices = next(line for line in grammar.splitlines() if line.startswith("f0 ::= "))
    assert '"edge = 1"' in choices
    assert '"\\"edge\\": x"' in choices
    assert '| "word"' in choices
    assert "absent" not in choices
    assert '| "edge"' in choices
    assert '"word" f0x2x1?' in choices
