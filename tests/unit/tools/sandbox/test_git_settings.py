"""Which settings of a repository run nothing, read as git reads them."""

import pytest

from hermes.tools.sandbox.git_settings import is_harmless

USUAL = b"""[core]
\trepositoryformatversion = 0
\tbare = false ; a comment
# another
[remote "origin"]
\turl = https://example.org/x.git
\tfetch = +refs/heads/*:refs/remotes/origin/*
[branch "main"]
\tremote = origin
[user] name = J\xc3\xb8rn
[gc]
\tauto = 0
\treflogExpire = never
"""


def test_usual_settings_run_nothing() -> None:
    assert is_harmless(USUAL)
    assert is_harmless(b"")


@pytest.mark.parametrize(
    "more",
    [
        b"[core]\n\tfsmonitor = evil\n",
        b"[user]\n# \\\n[core]\n\tfsmonitor = evil\n",
        b"[user]\n\tname = me # \\\n[core]\n\tfsmonitor = evil\n",
        b"[core] ;\x0c[user]\n\tfsmonitor = evil\n",
        b"[core] ;\r[user]\n\tfsmonitor = evil\n",
        b"[core] ;\x1c[user]\n\tfsmonitor = evil\n",
        "[core] ;\u2028[user]\n\tfsmonitor = evil\n".encode(),
        "[core] ;\x85[user]\n\tfsmonitor = evil\n".encode(),
        b"[gc]\n\trecentObjectsHook = evil\n",
        b'[remote "x"]\n\turl = e"xt::evil"\n',
    ],
)
def test_what_runs_a_program_is_found_however_it_is_written(more: bytes) -> None:
    assert not is_harmless(USUAL + more)
