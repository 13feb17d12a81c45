"""Programs that copy, move, remove or change files. Their effect depends on which files those are."""

import re
from collections.abc import Callable

from hermes.tools.policy.effects import EFFECTS, READ, WORK, Effect, asks
from hermes.tools.policy.file_effects import (
    FILE_EFFECTS,
    empty_files,
    is_expendable,
    read_files,
    replace_files,
    write_files,
)
from hermes.tools.policy.paths import is_device, is_elsewhere, is_endless, is_outside
from hermes.tools.policy.pipelines import is_without_end, printed, prints_nothing
from hermes.tools.policy.program_call import ProgramCall
from hermes.tools.policy.shell_words import Word

_WRITES_WITHOUT_END = asks("it writes without stopping")
_EMPTIES_FILES = asks("it empties files")


def judge_files(call: ProgramCall) -> list[Effect]:
    """Judges a program whose table entry says what it does to the files it names."""
    entry, context = call.program, call.context
    if not set(call.options).isdisjoint(entry.reads_with.split()):
        return [READ]
    files, targets = call.operands[entry.skip :], call.values_of(*entry.outputs.split())
    if entry.target:
        files, targets = _sources_and_target(call)
    found = [WORK if entry.operands == "text" else READ]
    if entry.operands != "text":
        found.append(FILE_EFFECTS[entry.operands](files, context))
    if targets and any(_is_blank_or_endless(word.text) for word in files):
        return [*found, empty_files(targets, context)]
    for word in targets:
        role = "write" if word in files else entry.target or "replace"
        found.append(FILE_EFFECTS[role]([word], context))
    return found


def _sources_and_target(call: ProgramCall) -> tuple[list[Word], list[Word]]:
    """The files that are copied or moved, and their target."""
    target = call.values_of("-t", "--target-directory")
    if target:
        return call.operands, target
    return call.operands[:-1], call.operands[-1:]


def _is_blank_or_endless(text: str) -> bool:
    return text == "/dev/null" or is_endless(text)


def _mv(call: ProgramCall) -> list[Effect]:
    sources, target = _sources_and_target(call)
    if not sources:
        return [WORK]
    context = call.context
    leaves = any(is_outside(context, word) for word in target)
    if leaves and not all(is_expendable(context, word) for word in sources):
        return [asks("it moves files out of the workspace", "machine")]
    return [write_files([*sources, *target], context), replace_files(target, context)]


def _ln(call: ProgramCall) -> list[Effect]:
    sources, target = _sources_and_target(call)
    if not sources:
        sources, target = target, sources
    found = [write_files(target, call.context)]
    for word in sources:
        if call.context.guard.secret(call.context.paths(word)):
            found.append(asks("it creates a link to a file that holds secrets"))
        elif word.text.startswith(("/", "~", "$")) and is_elsewhere(call.context, word):
            found.append(asks("it creates a link to a path outside the workspace"))
    return found


def _tee(call: ProgramCall) -> list[Effect]:
    """`tee` and `sponge`: the files they write. Records the text they write, if it is known."""
    command, files = call.command, call.operands
    content = printed(command.upstream) if command.upstream else command.given
    call.judge.note_written(files, content)
    if is_without_end(command):
        return [_WRITES_WITHOUT_END]
    blank = content is not None and content.known and not content.text.strip()
    if blank or (command.upstream and prints_nothing(command.upstream[-1])):
        return [empty_files(files, call.context)]
    if call.has("-a", "--append"):
        return [write_files(files, call.context)]
    return [replace_files(files, call.context)]


def _chmod(call: ProgramCall) -> list[Effect]:
    if not call.operands:
        return [WORK]
    if call.has("--reference"):
        return [write_files(call.operands, call.context)]
    first = call.texts[0]
    mode = first if re.match(r"-[rwx]", first) else call.operands[0].text
    if _opens_to_all(mode):
        return [
            asks(
                "it lets everyone change a file, or run it with another user's permissions",
                "machine",
            )
        ]
    takes_away = call.has("-R", "--recursive") and re.search(r"-[rwx]", mode)
    if takes_away or re.fullmatch(r"0{1,4}|[0-3]00", mode):
        return [asks("it removes permissions on files")]
    return [write_files(call.operands[1:], call.context)]


def _opens_to_all(mode: str) -> bool:
    """Whether a mode lets everybody write, or sets the setuid, setgid or sticky bit."""
    if re.fullmatch(r"[0-7]{3,5}", mode):
        sets_special_bit = len(mode) >= 4 and mode[-4] != "0"
        return bool(int(mode[-1]) & 2) or sets_special_bit
    for_all = r"(^|,)[ugoa]*[oa][ugoa]*[+=][rxXst]*w|(^|,)[+=][rx]*w|[+=][rwxX]*s"
    return bool(re.search(for_all, mode))


def _dd(call: ProgramCall) -> list[Effect]:
    """`dd`: its operands are `if=FILE`, `of=FILE` and so on."""
    given: dict[str, Word] = {}
    for word in call.words[1:]:
        name, _, value = word.text.partition("=")
        given[name] = Word(value, word.known)
    source, target = given.get("if", Word("")), [*filter(None, [given.get("of")])]
    found = [WORK, read_files([source], call.context)]
    if is_device(source.text):
        found.append(EFFECTS["devices"])
    if is_endless(source.text) and target and "count" not in given:
        found.append(_WRITES_WITHOUT_END)
    change = empty_files if _is_blank_or_endless(source.text) else replace_files
    return [*found, change(target, call.context)]


def _tar(call: ProgramCall) -> list[Effect]:
    """`tar`: its first word may hold bundled options without a dash."""
    first = next(iter(call.texts), "")
    letters = _tar_letters(call.texts)
    if "P" in letters:
        return [asks("it writes files wherever the archive says", "machine")]
    creates = "c" in letters or call.has("--create")
    lists = "t" in letters or call.has("--list")
    if lists and not creates and "x" not in letters:
        return [READ]
    files = [word for word in call.operands if word.text != first]
    made = call.values_of("-C", "--directory", "--one-top-level")
    if creates:
        made = call.values_of("--file") or files[: letters.count("f")]
    return [write_files(made, call.context), read_files(files, call.context)]


def _tar_letters(texts: list[str]) -> str:
    """The letters of all short options, including those in a first word without a dash."""
    words = [text for text in texts if re.fullmatch(r"-[a-zA-Z]+", text)]
    if texts and not texts[0].startswith("-"):
        words.append(texts[0])
    return "".join(words)


def _sed(call: ProgramCall) -> list[Effect]:
    in_place = any(re.match(r"-[a-zA-Z]*i|--in-place", text) for text in call.texts)
    scripts, files = call.values_of("-e", "--expression"), call.operands
    if not scripts:
        scripts, files = files[:1], files[1:]
    found = [write_files(files, call.context) if in_place else READ]
    for script in scripts:
        if script.known:
            found += _sed_script(script.text, call, in_place=in_place)
    return [*found, read_files(files, call.context)]


def _sed_script(script: str, call: ProgramCall, *, in_place: bool) -> list[Effect]:
    deletes_all = r"\s*(1,\$|/\.?\*?/)?\s*d\s*|s(.)\.\*\2\2g?"
    if in_place and re.fullmatch(deletes_all, script):
        return [_EMPTIES_FILES]
    if any(_runs_program(part) for part in re.split(r"[;\n]", script)):
        return [EFFECTS["runs"]]
    output = r"(?:(?:^|[;}\n]|[gpI0-9/])\s*w\s+|(?:^|[;}\n])\s*w(?=/))(\S+)\s*$"
    target = re.search(output, script)
    if target:
        return [write_files([Word(target[1])], call.context)]
    return []


def _runs_program(command: str) -> bool:
    """Whether a sed command, or a flag of one, runs a program."""
    address = r"(\d+|\$|/[^/]*/)"
    bare = re.sub(rf"^\s*{address}?(,{address})?\s*!?\s*\{{?\s*", "", command)
    if re.match(r"e(\s|$)", bare):
        return True
    substitution = re.match(r"s(\W)(?:\\.|(?!\1).)*\1(?:\\.|(?!\1).)*\1(\w*)", bare)
    return substitution is not None and "e" in substitution[2]


def _awk(call: ProgramCall) -> list[Effect]:
    scripts = call.values_of("-e", "--source") or call.operands[:1]
    script = "\n".join(word.text for word in scripts)
    files = [word for word in call.operands if word not in scripts]
    runs = r"\bsystem\s*\(|\|&?\s*getline|\|&?\s*\"|\"\s*\|&?\s*getline|/inet/"
    if re.search(runs, script):
        return [EFFECTS["runs"]]
    outputs = [Word(text) for text in re.findall(r">>?\s*\"([^\"]+)\"", script)]
    found = [write_files(outputs, call.context) if outputs else READ]
    if any(word.text == "inplace" for word in call.values_of("-i", "--include")):
        found.append(write_files(files, call.context))
        prints_lines = r"\$|\bprint\s*[;}]|(^|[;}])\s*1\s*$|/\s*$"
        if not re.search(prints_lines, script):
            found.append(_EMPTIES_FILES)
    return [*found, read_files(files, call.context)]


def _kill(call: ProgramCall) -> list[Effect]:
    texts = call.texts
    if not texts or "-0" in texts or texts[0] in ("-l", "-L", "--list"):
        return [READ]
    signal = r"-(\d+|[A-Z0-9]+|s|n)|--|[A-Z]{3,}"
    targets = [text for text in texts if not re.fullmatch(signal, text)]
    own = r"%.*|\$!|\$\{?(?!PPID)\w*(pid|PID)\w*\}?"
    if targets and all(re.fullmatch(own, text) for text in targets):
        return [WORK]
    return [EFFECTS["processes"]]


FILE_JUDGES: dict[str, Callable[[ProgramCall], list[Effect]]] = {
    "awk": _awk,
    "chmod": _chmod,
    "dd": _dd,
    "kill": _kill,
    "ln": _ln,
    "mv": _mv,
    "sed": _sed,
    "tar": _tar,
    "tee": _tee,
}
"""Judges for programs whose effect depends on more than their files."""
