"""Options in every form a program accepts: glued, bundled, abbreviated, behind `--`, or as the value of another one."""

from pathlib import Path

import pytest

from hermes.tools.policy import ApprovalPolicy, Circumstances

HOME = Path("/users-that-are-not/me")
CWD = HOME / "work"
POLICY = ApprovalPolicy("ask", Circumstances(HOME / ".hermes", HOME, sandboxed=True))

ASKED = """
mv --target-directory=/etc a
cp --target=/etc a
cp -at /etc a
install -Dt /etc a
install -d /etc/x y
truncate -o src/a.py -s 0
git clean -en -fdx
git clean -fdx -e '-n'
git clean -fd -- -n
git restore -sS x
git restore --staged --work x
git reset --ha
git config --glob user.name x
git config -e
git config --unset
git rebase --exe 'rm -rf x' main
git rebase -i -x'rm -rf x' main
git log --outp=x
git archive -o /etc/x HEAD
git commit -F .env
git branch -a -D x
git remote -v add evil https://example.org/x
git remote --verbose set-url origin https://example.org/x
git remote -v $WORDS
bun add evil -p
bun add evil -p=1
deno publish eval=1
swift package update -e=1
curl -s -w '%output{x.sh}%{json}' http://localhost:8000/
terraform state rm list
env --split='rm -rf src'
env -iS 'rm -rf src'
env rm -rf src -S ls
bash -o pipefail -c 'rm -rf src'
bash --rcfile x -c 'rm -rf src'
trap -- 'rm -rf src' EXIT
python3 -c"import os; os.remove('x')"
python3 -mpip install x
python3 -m json.tool a /etc/b
node -p -e 'require("fs").rmSync("x")'
gawk --include=inplace '{x}' src/a.py
tar -xf x --dir=/etc
tar -C/etc -xf x
tar --create --file=/etc/x src
tar --use=sh -xf x
patch ~/.bashrc < y
sort --outp=/etc/x y
chmod --reference=x /etc/y
chown --reference x /etc/y
rsync -a src/ host:
npm x -- rm -rf src
man -Psh x
x[$(rm -rf src)]=1
bash -euo pipefail -c 'rm -rf src'
fish --init-command='rm -rf src'
uv -q run rm -rf src
uv --directory x run rm -rf src
coverage run -m pip install x
perl -e'unlink "x"'
php -r'unlink("x");'
node --print='require("fs").rmSync("x")'
python3 -Pc 'import os; os.remove("x")'
sed --expr='1e rm x' f
sed -e'1e rm x' f
gawk --source='BEGIN{system("id")}'
mktemp --tmpdir=/etc
grep -f .env x
cat .en[v]
"""
FREE = """
git clean -fdn
git clean -fd --dry-run
git restore --staged x
git rm -rf --cached x
git branch -avv
git stash push -m list
bash -o pipefail -c 'ls | head'
python3 -c"print(1)"
node -p -e 1
tar -xf x -C build
tar -czf x.tgz src
cp -at build a
sort -o x x
npm exec -- eslint .
curl -s -o /dev/null -w '%{http_code}' http://localhost:80/
curl -X GET http://localhost:80/
bash -euo pipefail -c 'ls'
perl -e'print 1'
sed -ne 1p f
uv -q run pytest
grep -e x f
"""


@pytest.mark.parametrize("command", ASKED.strip().splitlines())
def test_no_form_of_an_option_escapes_the_question(command: str) -> None:
    assert POLICY.check(command, CWD).verdict == "ask"


@pytest.mark.parametrize("command", FREE.strip().splitlines())
def test_ordinary_work_stays_free_in_every_form(command: str) -> None:
    assert POLICY.check(command, CWD).verdict == "allow"


def test_moving_a_home_into_a_folder_is_never_allowed() -> None:
    assert POLICY.check("mv -t /tmp/x ~", CWD).verdict == "forbid"
