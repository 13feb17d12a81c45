"""What git does by its subcommand and options: looks, works locally, throws work away, or leaves the machine."""

import re
import shlex

from hermes.tools.policy.effects import EFFECTS, READ, WORK, Effect, asks, worst
from hermes.tools.policy.paths import PathContext
from hermes.tools.policy.shell_words import Word

_VALUES = frozenset(
    (
        "-C",
        "-c",
        "--git-dir",
        "--work-tree",
        "--namespace",
        "--exec-path",
        "--config-env",
    )
)
_LOOKS = frozenset(
    (
        *(
            "status",
            "diff",
            "log",
            "show",
            "blame",
            "annotate",
            "shortlog",
            "describe",
            "rev-parse",
            "rev-list",
            "grep",
        ),
        *(
            "ls-files",
            "ls-tree",
            "cat-file",
            "name-rev",
            "whatchanged",
            "cherry",
            "merge-base",
            "for-each-ref",
            "var",
        ),
        *(
            "show-ref",
            "version",
            "help",
            "count-objects",
            "check-ignore",
            "check-attr",
            "check-ref-format",
            "diff-tree",
        ),
        *(
            "diff-index",
            "diff-files",
            "range-diff",
            "fsck",
            "verify-commit",
            "verify-tag",
            "merge-tree",
            "show-branch",
        ),
        *(
            "hash-object",
            "get-tar-commit-id",
            "patch-id",
            "stripspace",
            "--version",
            "--help",
            "column",
        ),
    )
)
_WORKS = frozenset(
    (
        *(
            "add",
            "commit",
            "merge",
            "cherry-pick",
            "revert",
            "am",
            "apply",
            "mv",
            "init",
            "bisect",
            "notes",
            "archive",
        ),
        *(
            "format-patch",
            "rerere",
            "repack",
            "sparse-checkout",
            "stage",
            "bundle",
            "mergetool",
            "write-tree",
            "read-tree",
        ),
        *(
            "commit-tree",
            "update-index",
            "symbolic-ref",
            "pack-objects",
            "index-pack",
            "pack-refs",
            "unpack-objects",
        ),
        *(
            "request-pull",
            "maintenance",
            "commit-graph",
            "multi-pack-index",
            "submodule",
            "worktree",
            "rebase",
            "lfs",
        ),
    )
)
_LEAVES = frozenset(
    (
        "fetch",
        "pull",
        "push",
        "clone",
        "ls-remote",
        "send-email",
        "daemon",
        "instaweb",
        "svn",
        "p4",
        "http-push",
        "imap-send",
    )
)
_REWRITES = frozenset(
    (
        "filter-branch",
        "filter-repo",
        "prune",
        "replace",
        "prune-packed",
        "fast-import",
        "quiltimport",
    )
)
_HARMLESS_KEYS = (
    r"(?i)(user\.|color\.|advice\.|init\.defaultbranch|core\.(quotepath|autocrlf|eol|ignorecase|filemode|abbrev|whitespace)"
    r"|commit\.(gpgsign|verbose)|tag\.gpgsign|pull\.(rebase|ff)|push\.(default|autosetupremote)|merge\.(ff|conflictstyle)"
    r"|diff\.(algorithm|renames|context|noprefix|mnemonicprefix)|log\.|status\.|branch\.\S+\.(remote|merge)|rerere\.|fetch\.prune"
    r"|rebase\.(autostash|autosquash)|format\.|grep\.|blame\.|column\.|safe\.directory)"
)
_SHORT = {
    "branch": "DfMC",
    "tag": "df",
    "checkout": "fB",
    "switch": "fC",
    "rm": "rf",
    "worktree": "f",
    "push": "fd",
}
_LONG: dict[str, tuple[str, ...]] = {
    "branch": ("--force",),
    "tag": ("--delete", "--force"),
    "checkout": ("--force", "--ours", "--theirs"),
    "switch": ("--force", "--discard-changes", "--force-create"),
    "rm": ("--force",),
    "worktree": ("--force",),
    "push": ("--force", "--delete", "--mirror", "--prune"),
    "reset": ("--hard", "--merge", "--keep"),
    "gc": ("--prune", "--aggressive"),
    "stash": (),
    "reflog": (),
}


def judge_git(words: tuple[Word, ...], site: PathContext) -> tuple[Effect, list[str]]:
    """What a git command does, and shell texts it would run."""
    found: list[Effect] = []
    rest = list(words[1:])
    while (
        rest
        and rest[0].text.startswith("-")
        and rest[0].text not in ("--version", "--help")
    ):
        option = rest.pop(0).text
        value = (
            rest.pop(0)
            if option in _VALUES and rest
            else Word(option.partition("=")[2])
        )
        found.append(_global(option.partition("=")[0], value, site))
    if not rest:
        return worst(found), []
    if not rest[0].plain:
        return EFFECTS["runs"], []
    sub, arguments = rest[0].text, tuple(rest[1:])
    found.append(_subcommand(sub, arguments))
    inside = found[-1].level <= WORK.level and any(
        one.reach == "machine" and not one.reason for one in found
    )
    if inside and found[-1].level == WORK.level:
        found.append(asks("it changes a repository outside the workspace", "machine"))
    clean = [one for one in found if one.reason or one.reach == "workspace"]
    return worst(clean or [READ]), _texts(sub, arguments)


def _global(option: str, value: Word, site: PathContext) -> Effect:
    if option in ("-c", "--config-env"):
        if not value.plain or not re.match(_HARMLESS_KEYS, value.text):
            return asks("it makes git run other programs, or behave in another way")
    elif option in ("-C", "--git-dir", "--work-tree"):
        paths = site.paths(value)
        if not paths or not all(
            site.is_inside(path) or site.is_temporary(path) for path in paths
        ):
            return Effect(
                READ.level, reach="machine"
            )  # looking there is free, working is not
    elif option == "--exec-path" and value.text:
        return EFFECTS["runs"]
    return READ


def _subcommand(sub: str, arguments: tuple[Word, ...]) -> Effect:  # noqa: PLR0911 - a line for each group
    texts = [word.text for word in arguments]
    special = {
        "checkout": _checkout,
        "restore": _restore,
        "stash": _stash,
        "clean": _clean,
        "reset": _reset,
        "branch": _branch,
        "tag": _branch,
        "remote": _remote,
        "config": _config,
        "reflog": _reflog,
        "rm": _rm,
        "submodule": _submodule,
        "worktree": _worktree,
        "switch": _forced,
        "push": _push,
        "gc": _gc,
        "update-ref": _update_ref,
        "maintenance": _maintenance,
    }.get(sub)
    if special is not None:
        return special(sub, texts)
    if sub in ("difftool", "mergetool"):
        return EFFECTS["runs"]
    if (
        sub in _REWRITES
        or (sub == "symbolic-ref" and len(texts) > 1)
        or (sub == "read-tree" and {"--reset", "-u"} & set(texts))
    ):
        return EFFECTS["rewrites"]
    if sub in _LEAVES or any(text.startswith("--remote=") for text in texts):
        return EFFECTS["network"]
    if sub in _LOOKS:
        if any(
            text.startswith(("--output=", "--open-files-in-pager", "-O"))
            or text == "--output"
            for text in texts
        ):
            return asks("it writes a file, or runs another program")
        return READ
    if sub == "lfs" and texts[:1] not in (["ls-files"], ["status"], ["track"], ["env"]):
        return EFFECTS["network"]
    return WORK if sub in _WORKS else asks(f"it is not known what `git {sub}` does")


def _has(sub: str, texts: list[str]) -> bool:
    """Whether an option throws something away."""
    letters = _SHORT.get(sub, "")
    for text in texts:
        if text == "--":
            return False
        if text.startswith("--") and any(
            len(text) > 4 and (text.partition("=")[0] == one or one.startswith(text))
            for one in _LONG[sub]
        ):
            return True
        if letters and re.fullmatch(rf"-[a-zA-Z]*[{letters}][a-zA-Z]*", text):
            return True
    return False


def _checkout(sub: str, texts: list[str]) -> Effect:
    operands = [text for text in texts if not text.startswith("-")]
    makes = any(text in ("-b", "--orphan", "-t", "--track") for text in texts)
    paths = "--" in texts or (
        not makes and (len(operands) > 1 or any(_is_path(text) for text in operands))
    )
    return (
        EFFECTS["rewrites"]
        if paths or _has(sub, texts) or any(t.startswith("--pathspec") for t in texts)
        else WORK
    )


def _is_path(text: str) -> bool:
    return (
        text in (".", "..", "*", ":/")
        or text.startswith(("./", "../", ":"))
        or bool(re.search(r"\.[a-z]{1,4}$|/$|\*", text))
    )


def _restore(sub: str, texts: list[str]) -> Effect:  # noqa: ARG001 - one shape for all
    staged = any(re.fullmatch(r"-[a-zA-Z]*S[a-zA-Z]*|--staged", text) for text in texts)
    worktree = any(
        re.fullmatch(r"-[a-zA-Z]*W[a-zA-Z]*|--worktree", text) for text in texts
    )
    return WORK if staged and not worktree else EFFECTS["rewrites"]


def _stash(sub: str, texts: list[str]) -> Effect:  # noqa: ARG001
    action = next((text for text in texts if not text.startswith("-")), "push")
    if action in ("drop", "clear"):
        return EFFECTS["rewrites"]
    return READ if action in ("list", "show") else WORK


def _clean(sub: str, texts: list[str]) -> Effect:  # noqa: ARG001
    dry = any(re.fullmatch(r"-[a-zA-Z]*n[a-zA-Z]*|--dry-run", text) for text in texts)
    return READ if dry else EFFECTS["rewrites"]


def _reset(sub: str, texts: list[str]) -> Effect:
    return EFFECTS["rewrites"] if _has(sub, texts) else WORK


def _branch(sub: str, texts: list[str]) -> Effect:
    if _has(sub, texts):
        return EFFECTS["rewrites"]
    lists = not texts or any(
        re.fullmatch(
            r"-[arvl]+|--(list|show-current|all|contains|merged|no-merged).*", text
        )
        for text in texts
    )
    return READ if lists else WORK


def _forced(sub: str, texts: list[str]) -> Effect:
    return EFFECTS["rewrites"] if _has(sub, texts) else WORK


def _push(sub: str, texts: list[str]) -> Effect:
    forced = _has(sub, texts) or any(re.match(r"\+|:.", text) for text in texts)
    return (
        asks("it overwrites or deletes what others may have", "network")
        if forced
        else EFFECTS["network"]
    )


def _remote(sub: str, texts: list[str]) -> Effect:  # noqa: ARG001
    action = next((text for text in texts if not text.startswith("-")), "")
    if action in ("", "get-url") or (action == "show" and "-n" in texts):
        return READ
    return (
        EFFECTS["network"]
        if action in ("show", "update", "prune")
        else asks("it changes where git fetches from and sends to")
    )


def _config(sub: str, texts: list[str]) -> Effect:  # noqa: ARG001
    operands = [text for text in texts if not text.startswith("-")]
    reads = {
        "--get",
        "--get-all",
        "--list",
        "-l",
        "--get-regexp",
        "--show-origin",
        "--show-scope",
        "--get-urlmatch",
    }
    if reads & set(texts) or operands[:1] in (["get"], ["list"]):
        return READ
    if len(operands) <= 1 and not any(
        text.startswith(("--unset", "-e", "--edit", "--add", "--remove"))
        for text in texts
    ):
        return READ
    if operands[0] == "set":
        operands = operands[1:]
    outside = any(
        text in ("--global", "--system", "-f", "--file") or text.startswith("--file=")
        for text in texts
    )
    if not outside and operands and re.match(_HARMLESS_KEYS, operands[0]):
        return WORK
    return asks(
        "it changes git's configuration, which can run programs later", "machine"
    )


def _reflog(sub: str, texts: list[str]) -> Effect:  # noqa: ARG001
    return EFFECTS["rewrites"] if {"expire", "delete"} & set(texts) else READ


def _rm(sub: str, texts: list[str]) -> Effect:
    return (
        WORK
        if "--cached" in texts or "-n" in texts
        else EFFECTS["rewrites"]
        if _has(sub, texts)
        else WORK
    )


def _submodule(sub: str, texts: list[str]) -> Effect:  # noqa: ARG001
    action = next((text for text in texts if not text.startswith("-")), "status")
    if action in ("status", "summary"):
        return READ
    if action == "deinit":
        return EFFECTS["rewrites"]
    return EFFECTS["network"] if action in ("update", "add", "init") else WORK


def _worktree(sub: str, texts: list[str]) -> Effect:
    if "remove" in texts or _has(sub, texts):
        return EFFECTS["rewrites"]
    return READ if "list" in texts else WORK


def _gc(sub: str, texts: list[str]) -> Effect:  # noqa: ARG001
    return (
        EFFECTS["rewrites"]
        if any(text.startswith("--prune") for text in texts)
        else WORK
    )


def _update_ref(sub: str, texts: list[str]) -> Effect:  # noqa: ARG001
    return EFFECTS["rewrites"]


def _maintenance(sub: str, texts: list[str]) -> Effect:  # noqa: ARG001
    return EFFECTS["persistence"] if {"start", "register"} & set(texts) else WORK


def _texts(sub: str, arguments: tuple[Word, ...]) -> list[str]:
    """Shell texts that git is told to run."""
    texts = [word.text for word in arguments]
    if sub == "submodule" and "foreach" in texts:
        return [
            " ".join(
                text
                for text in texts[texts.index("foreach") + 1 :]
                if text != "--recursive"
            )
        ]
    if sub == "bisect" and texts[:1] == ["run"]:
        return [shlex.join(texts[1:])]
    found = [
        texts[place + 1]
        for place, text in enumerate(texts[:-1])
        if sub == "rebase" and text in ("-x", "--exec")
    ]
    return found + [
        text.partition("=")[2]
        for text in texts
        if sub == "rebase" and text.startswith("--exec=")
    ]
