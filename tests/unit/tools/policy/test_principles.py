"""What a review found, by principle: programs told to run others, machine changed by readers, files emptied, floods."""

from pathlib import Path

import pytest

from hermes.tools.policy import ApprovalPolicy, Circumstances

HOME = Path("/users-that-are-not/me")
CWD = HOME / "work"
POLICY = ApprovalPolicy("ask", Circumstances(HOME / ".hermes", HOME, sandboxed=True))
STRICT = ApprovalPolicy(
    "ask", Circumstances(HOME / ".hermes", HOME, sandboxed=True, strict=True)
)

TOLD = """
git bisect run sh -c 'rm -rf x'
git difftool -x 'sh -c id' HEAD
npm explore x -- rm -rf .
make -f /tmp/evil.mk
make -C /etc
pdflatex -shell-escape x.tex
go vet -vettool=./x ./...
bat --pager ./x a
python -m timeit -s 'import shutil' 'shutil.rmtree("src")'
sqlite3 -init x.sql a.db
nohup ./xmrig -o pool.example:3333
./worker stratum+tcp://pool.example:3333
strace -p 1
"""
MACHINE = """
ip link set eth0 down
ip route del default
ip -4 addr add 10.0.0.1/8 dev eth0
hostnamectl set-hostname x
date 010112002026
getent hosts x.example
"""
EMPTIED = """
exec > src/a.py
echo '' > src/a.py
echo > src/a.py
{ echo; } > src/a.py
echo "" | tee src/a.py
sort -o src/a.py /dev/null
dd if=/dev/null of=src/a.py
dd if=/dev/zero of=src/a.py count=1
awk -i inplace '{print ""}' src/a.py
perl -i -pe '$_=""' src/a.py
perl -i -ne '1' src/a.py
python3 -c "open('src/a.py','w').close()"
perl -e 'open F,">src/a.py"'
cat <<< '' > src/a.py
cat /dev/null | tee src/a.py
python3 -c "import pathlib; pathlib.Path('main.c').write_text('')"
python3 -c "import os as o; o.remove('x')"
python3 -c "from os import remove as r; r('x')"
node -e "const f=require('fs'); f['rm'+'Sync']('src')"
"""
LATER_RUNS = """
python3 -c "open('AGENTS.md','a').write('x')"
node -e "require('fs').writeFileSync('CLAUDE.md','x')"
python3 -c "open('.git/hooks/pre-commit','w').write('x')"
"""
ENDLESS = """
yes > big
yes | tee big > /dev/null
cat /dev/zero > big
head -c 100G /dev/zero > x
dd if=/dev/zero of=big
fallocate -l 500G big
for i in {1..99999}; do sleep 100 & done
for ((;;)); do sleep 100 & done
for ((i=0; i<5000; i++)); do sleep 100 & done
"""
SECRETS = """
node -p "require('fs').readFileSync('/home/u/.npmrc','utf8')"
ruby -e 'puts File.read(".env")'
perl -e 'open(F,"<id_rsa.bak"); print <F>'
python3 -c "print(open('.env').read())"
cp -r /etc/ssl/private .
"""
FREE = """
go mod tidy
uv sync --frozen --offline
uuidgen
chown me src/a.py
redis-cli ping
redis-cli -h localhost get a
tmp=$(mktemp); trap 'rm -f "$tmp"' EXIT; echo x > "$tmp"
ssh-keygen -lf key.pub
sort -o a.txt a.txt
sort -u a b > c.txt
date -u
ip addr
ip -br link
make -C sub test
make -f Makefile.dev
./run.sh localhost:8080
dd if=/dev/zero of=tmp.img bs=1M count=10
yes | head -5
for i in 1 2 3; do sleep 1 & done; wait
awk -i inplace '{print $1}' a.txt
perl -i -pe 's/a/b/' src/a.py
python3 -c "open('a.txt','w').write('x')"
python3 -c "d={'token': 1}; print(d['token'])"
python -m timeit 'sum(range(9))'
git bisect run make test
"""


@pytest.mark.parametrize(
    "command",
    [
        one
        for text in (TOLD, MACHINE, EMPTIED, LATER_RUNS, ENDLESS, SECRETS)
        for one in text.strip().splitlines()
    ],
)
def test_asked_about_whatever_the_program(command: str) -> None:
    assert POLICY.check(command, CWD).verdict != "allow"


@pytest.mark.parametrize("command", FREE.strip().splitlines())
def test_ordinary_relatives_are_free(command: str) -> None:
    assert POLICY.check(command, CWD).verdict == "allow"


@pytest.mark.parametrize(
    "command",
    [
        "alembic current",
        "hatch run test",
        "ldd ./a",
        "nix eval --expr 1",
        "python -m timeit 1",
        "uv run true",
    ],
)
def test_what_runs_code_of_the_project_is_more_than_reading(command: str) -> None:
    assert STRICT.check(command, CWD).verdict == "ask"


@pytest.mark.parametrize(
    "command",
    [
        "$X",
        "echo x >> .git/hooks/a",
        "cp a AGENTS.md",
        "echo x > ~/.bashrc",
        "ls \u202e",
    ],
)
def test_what_is_unclear_or_carries_policy_is_not_remembered(command: str) -> None:
    decision = POLICY.check(command, CWD)
    assert (decision.verdict, decision.memorable, decision.shape) == ("ask", False, "")


def test_other_questions_can_be_remembered() -> None:
    decision = POLICY.check("git push", CWD)
    assert (decision.verdict, decision.memorable, bool(decision.shape)) == (
        "ask",
        True,
        True,
    )
