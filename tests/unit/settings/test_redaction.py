"""Redaction: every shape of a secret is masked, and text that only looks alike stays as it is."""

import base64
import time

import pytest

from hermes.settings.redaction import mask

RANDOM = "AbCdEfGhIjKlMnOpQrStUvWxYz0123456789"
URL_SAFE = "AAEhBOweik6ad9r_QXMENQjcrGbqCr4K-bc"
PEM = "MIIEpAIBAAKCAQEA1234567890abcdef\nq8b7c6d5e4f3a2b1c0d9e8f7a6b5c4d3\nZZ9plural"


def b64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


KEYS = [
    "sk-proj-" + RANDOM,
    "sk-ant-api03-" + RANDOM + "-_AbCd",
    "sk_live_51" + RANDOM[:22],
    "rk_live_" + RANDOM,
    *("gh" + letter + "_" + RANDOM for letter in "pousr"),
    "github_pat_11ABCDEFG0abcdefghijkl_" + RANDOM,
    "glpat-" + RANDOM[:20],
    "xoxb-123456789012-123456789012-" + RANDOM[:24],
    "xapp-1-A0123456789-1234567890123-" + "0123456789abcdef" * 2,
    "AIza" + "SyA1234567890abcdefghijklmnopqrstuv",
    "AKIA" + "IOSFODNN7EXAMPLE",
    "ASIA" + "IOSFODNN7EXAMPLE",
    "npm_" + RANDOM,
    "pypi-AgEIcHlwaS5vcmc" + RANDOM,
    "hf_" + "AbCdEfGhIjKlMnOpQrStUvWxYzAbCdEfGh",
    "gsk_" + RANDOM,
    "xai-" + RANDOM,
    "dop_v1_" + "0123456789abcdef" * 4,
    "shpat_" + "0123456789abcdef" * 2,
    "SG." + RANDOM[:22] + "." + RANDOM + "abcdefg",
    "hvs." + RANDOM,
    "ya29." + URL_SAFE,
    "GOCSPX-" + RANDOM[:28],
    "whsec_" + RANDOM,
    "lin_api_" + RANDOM,
    "figd_" + RANDOM,
    "tvly-" + RANDOM,
    "r8_" + RANDOM,
    "syt_aGVybWVz_" + RANDOM[:20] + "_1aB2cD",
    "dckr_pat_" + RANDOM[:27],
    "AGE-SECRET-KEY-1" + "QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L" + "QPZRY9X8GF",
    "MTIzNDU2Nzg5MDEyMzQ1Njc4." + "GAbCdE." + RANDOM[:30],
    "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U",
]
NAMED = [  # the text, and what must not be in it any more
    ("pw: hunter22", "hunter22"),
    ("the db_pw=abc12345 works", "abc12345"),
    ("password -> hunter22", "hunter22"),
    ("passwort/password → hunter22x", "hunter22x"),
    ("Password (s3cr3t!x) for bob", "s3cr3t!x"),
    ("pw -> hunter22", "hunter22"),
    ("pass -> a1b2C3d4e5", "a1b2C3d4e5"),
    ("pass (a1b2C3d4e5)", "a1b2C3d4e5"),
    ("password=ab,cd1234ef", "cd1234ef"),
    ("password: hunter2,X!9zz, user: bob", "X!9zz"),
    ("passwd: zz;yy1234", "yy1234"),
    ("123456789:" + URL_SAFE, URL_SAFE),
    ("GET https://api.telegram.org/bot123456789:" + URL_SAFE + "/getMe", URL_SAFE),
    (
        "https://hooks.slack.com/services/T00000000/B00000000/" + RANDOM[:24],
        RANDOM[:24],
    ),
    ("https://discord.com/api/webhooks/123456789012345678/" + RANDOM + RANDOM, RANDOM),
    (
        "aws_secret_access_key = wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
        "wJalrXUtnFEMI",
    ),
    ("AWS_SECRET_ACCESS_KEY=wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", "wJalrXUtnFEMI"),
    ("postgres://user:S3cr3tPassw0rd@db.example.com:5432/x", "S3cr3tPassw0rd"),
    ("redis://:S3cr3tPassw0rd@localhost:6379/0", "S3cr3tPassw0rd"),
    (
        "https://x.example/?access_token=abcdef1234567890abcdef",
        "abcdef1234567890abcdef",
    ),
    ("/callback?code=1&client_secret=abcdef1234", "abcdef1234"),
    ("Authorization: Basic dXNlcjpTM2NyM3RQYXNzdzByZA==", "dXNlcjpTM2NyM3"),
    ("Authorization: Bearer abcdefghijklmnop1234567890", "abcdefghijklmnop"),
    (
        "curl -H 'authorization: token abcdef0123456789' https://x.example",
        "abcdef0123456789",
    ),
    (
        '{"headers": {"Authorization": "Bearer abcdefghijklmnop1234567890"}}',
        "abcdefghijklmnop",
    ),
    (
        'Proxy-Authorization: Digest username="me", response="6629fae49393a053"',
        "username",
    ),
    ("sent with Bearer abcdefghijklmnop1234567890", "abcdefghijklmnop"),
    ("X-Api-Key: 9f8e7d6c5b4a3928", "9f8e7d6c5b4a3928"),
    ("x-auth-token: 9f8e7d6c5b4a3928", "9f8e7d6c5b4a3928"),
    ("Cookie: theme=dark; session=9f8e7d6c5b4a", "9f8e7d6c5b4a"),
    ("Set-Cookie: sid=9f8e7d6c5b4a; Path=/; HttpOnly", "9f8e7d6c5b4a"),
    ("MYCORP_API_TOKEN=9f8e7d6c5b4a39281706f5e4d3c2b1a0", "9f8e7d6c5b4a"),
    ("export DB_PASSWORD='correct horse'", "correct horse"),
    ("PGPASSWORD=swordfish psql -h db", "swordfish"),
    ("MYSQL_PWD=swordfish mysql", "swordfish"),
    ("Server=db;Uid=me;Pwd=sw0rdfish;Database=x", "sw0rdfish"),
    ("AccountName=me;AccountKey=AbCd1234/EfGh5678+==;EndpointSuffix=x", "AbCd1234"),
    ('{"password":"hunter2hunter2"}', "hunter2"),
    ('{"user": "me", "passwd": "swordfish"}', "swordfish"),
    ('{"accessToken":"abc123def456","refreshToken":"zzz999yyy888"}', "zzz999yyy888"),
    ('{"clientSecret": "swordfish"}', "swordfish"),
    ('"{\\"password\\": \\"hunter2\\"}"', "hunter2"),
    ("{'api_key': 'abcd1234efgh'}", "abcd1234efgh"),
    ('password = "hunter2"', "hunter2"),
    ("db.password=hunter2", "hunter2"),
    ("password: hunter2", "hunter2"),
    ("  client_secret: 8Xk2-pQ9z", "8Xk2-pQ9z"),
    ("username=bob&password=swordfish&remember=1", "swordfish"),
    ("grant_type=password&client_secret=swordfish", "swordfish"),
    ("mysql --user=root --password=swordfish", "swordfish"),
    ("login --password swordfish --verbose", "swordfish"),
    ("gh auth login --token abc123def", "abc123def"),
    ("curl -u admin:swordfish https://x.example", "swordfish"),
    ("curl -s --user 'admin:swordfish' https://x.example", "swordfish"),
    ("ALTER USER me WITH PASSWORD 'swordfish'", "swordfish"),
    ("machine x.example login me password swordfish", "swordfish"),
    ("<password>swordfish</password>", "swordfish"),
    (":password => 'swordfish'", "swordfish"),
    ('$env:API_KEY = "abcd1234efgh"', "abcd1234efgh"),
    ('"password": "hunter2 and then it was cut', "hunter2"),
    ("https://s3.example/a?X-Amz-Signature=9f8e7d6c5b4a3928", "9f8e7d6c5b4a3928"),
    (
        "https://storage.example/a?x=1&X-Goog-Signature=9f8e7d6c5b4a3928",
        "9f8e7d6c5b4a3928",
    ),
    ("token: token: password: 9f8e7d6c5b4a3928", "9f8e7d6c5b4a3928"),
    ("token=" * 300 + "9f8e7d6c5b4a3928", "9f8e7d6c5b4a3928"),
    ("SECRET_KEY_BASE=9f8e7d6c5b4a3928", "9f8e7d6c5b4a3928"),
    ("export TOKEN_GITHUB='9f8e7d6c5b4a3928'", "9f8e7d6c5b4a3928"),
    ("PASSWORD_DB=swordfish ./run", "swordfish"),
    ("//registry.example/:_auth=bWU6c3dvcmRmaXNo", "bWU6c3dvcmRmaXNo"),
    ('{"auths": {"x.example": {"auth": "bWU6c3dvcmRmaXNo"}}}', "bWU6c3dvcmRmaXNo"),
    ("CREATE USER me IDENTIFIED BY 'swordfish'", "swordfish"),
    (
        "CREATE USER me IDENTIFIED WITH caching_sha2_password BY 'swordfish'",
        "swordfish",
    ),
    ("mysql -u root -pswordfish shop", "swordfish"),
    ("sshpass -p swordfish ssh me@host", "swordfish"),
    ("redis-cli -h db -a swordfish ping", "swordfish"),
    ("redis-cli -h db -p 6379 -a swordfish ping", "swordfish"),
    ("docker-postgres: ALTER USER me IDENTIFIED BY 'swordfish'", "swordfish"),
    ("api-auth: CREATE USER me IDENTIFIED BY 'swordfish'", "swordfish"),
    ("MASTER_KEY := 4821-9934-0077X", "4821-9934-0077X"),
    ('Authorization: " swordfish99"', "swordfish99"),
    ("--auth-token *sword9fish*", "sword9fish"),
    (
        "environment: " + base64.b64encode(b"PWD=/\0API_KEY=swordfish-99\0").decode(),
        base64.b64encode(b"PWD=/\0API_KEY=swordfish-99\0").decode(),
    ),
    ("docker login -u me -p swordfish x.example", "swordfish"),
    (
        "GET /go?to=https%3A%2F%2Fx.example%2F%3Fa%3D1%26access_token%3Dabcdef1234567890",
        "abcdef1234567890",
    ),
    ("client_secret%3D9f8e7d6c5b4a3928", "9f8e7d6c5b4a3928"),
    ("sk%2Dproj%2D" + RANDOM, RANDOM),
    ("postgres://me:sw@rd/fish@db.example.com/x", "fish"),
    ("postgres://me:sword/f1sh@db.example.com/x", "f1sh"),
    ("postgres://me:sw@rdf1sh@db.example.com/x", "rdf1sh"),
    (b64("sk-proj-" + RANDOM), b64("sk-proj-" + RANDOM)[:20]),
    (
        b64("OPENAI_API_KEY=sk-proj-" + RANDOM),
        b64("OPENAI_API_KEY=sk-proj-" + RANDOM)[:40],
    ),
    (b64('{"password":"hunter2hunter2"}'), b64('{"password":"hunter2hunter2"}')[:20]),
    (
        base64.encodebytes(("sk-ant-api03-" + RANDOM * 3).encode()).decode(),
        b64("sk-ant-api03-" + RANDOM * 3)[80:100],
    ),
    ("sk-proj-AbCdEfGhIjKl\nMnOpQrStUvWxYz0123456789abcdEFGH", "MnOpQrStUvWxYz"),
    ("ghp_AbCd\nEfGhIjKlMnOpQrStUvWxYz0123456789", "EfGhIjKlMnOpQ"),
    ("key = (\n    'ghp_AbCdEfGh'\n    'IjKlMnOpQrStUvWxYz0123456789'\n)", "IjKlMnOp"),
    ('"sk-proj-AbCdEfGh" + "IjKlMnOp0123456789"', "IjKlMnOp"),
    ("echo ghp_AbCdEfGhIjKl\\\nMnOpQrStUvWxYz0123456789", "MnOpQrSt"),
    ("sk-pr\u200boj-AbCdEf\u200bGhIjKlMnOpQrSt0123", "GhIjKlMnOp"),
    (
        f"-----BEGIN RSA PRIVATE KEY-----\n{PEM}\n-----END RSA PRIVATE KEY-----\nafter",
        "ZZ9plural",
    ),
    (
        f"-----BEGIN OPENSSH PRIVATE KEY-----\r\n{PEM}\r\n-----END OPENSSH PRIVATE KEY-----",
        "q8b7c6d5",
    ),
    (
        f"-----BEGIN EC PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES,0\n\n{PEM}",
        "ZZ9plural",
    ),
    (
        '{"private_key": "-----BEGIN PRIVATE KEY-----\\nMIIEvQIB\\nq8b7c6d5\\n-----END PRIVATE KEY-----\\n"}',
        "q8b7",
    ),
    (
        f"-----BEGIN PGP PRIVATE KEY BLOCK-----\n\n{PEM}\n-----END PGP PRIVATE KEY BLOCK-----",
        "ZZ9plural",
    ),
]
BENIGN = [
    "PASS (1234ms), ok pass (test_42)",
    "2nd pass (step_12)",
    "pass (x86_64)",
    "pass -> src/foo1.py",
    "pass -> utf8mb4",
    "it passes (step_12), passes -> utf8mb4",
    "connect(host, password=None,8080)",
    "f(password=str,x1), f(password=integer,x1)",
    "pw=True,1",
    "pass: true,12",
    "password: null,id1",
    "pw=10px;margin",
    "token->next12 and token -> uint256",
    "def password(self) -> bytes32:",
    "password (8 to 64 characters), password (sha256)",
    "get_password (user1234)",
    "connect(password=abc,user=x1)",
    "password: abc, def1",
    "pw: page_width",
    "pwsh: version7",
    "2026-11-16 13:49:14,123 4242 INFO hermes.app.session_runner: the turn ended after 3 calls in /home/me/work/project-one",
    "12 passed, 1 failed in 3.21s",
    "hermes store copy sqlite:// postgresql://hermes@db.example/hermes",
    "tokens used: 15,321 of 200,000",
    "max_tokens=4096, input_tokens: 1523, total_tokens=128000/200000",
    '{"max_tokens": 4096, "eos_token": "<|endoftext|>", "pad_token": "[PAD]"}',
    "SyntaxError: unexpected token: 'else' (line 3)",
    "SyntaxError: unexpected token: identifier2",
    "https://x.example:8080/pkg/@scope/name and http://localhost:3000/a?to=me@example.org",
    "https://x.example/a%20b%3Fpage%3D3",
    "TOKEN_URL=https://x.example/oauth TOKEN_LIMIT=200000 SECRET_NAME=production PASSWORD_FILE=/run/pw1",
    "mysql -h db -P 3306 -p shop",
    "mysqldump --single-transaction shop > a.sql && docker login x.example",
    "the design was identified by its author",
    "Enter password: ",
    "password: must be at least 8 characters long",
    "The password is wrong. Ask for a new one.",
    '{"password": "This field is required."}',
    "def login(user: str, password: str, token: str | None = None) -> bool:",
    "client.login(user, password=password, token=self.token, api_key=settings.api_key)",
    "token = lexer.next_token()",
    "token = tokens[index2]",
    "if token == 'end': return key",
    "api_key = os.environ['OPENAI_API_KEY']",
    "api_key: ${OPENAI_API_KEY}",
    "OPENAI_API_KEY=$OPENAI_API_KEY hermes",
    "export GITHUB_TOKEN=<your token>",
    "OPENAI_API_KEY=********",
    "key_env: OPENAI_API_KEY",
    'api_key_env = "OPENAI_API_KEY"',
    "PWD=/home/me/work OLDPWD=/tmp/a1",
    "docker login --password-stdin < file",
    "hermes config set OPENAI_API_KEY",
    '{"key": "value1234", "public_key": "abc12345", "primary_key": "id00001"}',
    "sorted(items, key=lambda item: item[0])",
    "cache key: sessions/01HXYZ/rows",
    "Authorization: Bearer $TOKEN",
    "curl -H 'Authorization: Bearer <token>' https://x.example",
    "the Authorization header is missing",
    "Authorization: required for this route",
    "we use bearer authentication here",
    "Cookie: none was sent",
    "fetch(url, {credentials: 'same-origin'})",
    "commit e2a1c74d9f8e7d6c5b4a39281706f5e4d3c2b1a0",
    "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    "session 018f3a5e-7c1d-7b2a-9c3d-4e5f6a7b8c9d resumed",
    "task-runner-with-a-long-name and disk-usage-report-2026",
    "pip install sk-learn-contrib-examples",
    "https://example.org/v1/models?limit=20&page=3",
    "https://host/openai?api-version=2024-06-01",
    "mail me@example.org about https://example.org",
    "git@github.com:me/project.git",
    b64("The quick brown fox jumps over the lazy dog."),
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk",
    "-----BEGIN CERTIFICATE-----\nMIIDdzCCAl+gAwIBAgIEAgAAuTANBg\n-----END CERTIFICATE-----",
    "-----BEGIN PUBLIC KEY-----\nMIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8A\n-----END PUBLIC KEY-----",
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ2bV8b0w3 me@host",
    "tests/unit/settings/test_redaction.py::test_a_rather_long_name_of_a_test PASSED",
    "kubectl get secret my-app --output yaml",
    "secrets: 3 found, 0 leaked",
    "the secret: keep it simple",
    "passphrase: (empty)",
    "auth_mode: password",
    "一行中文日志：没有秘密",
]


@pytest.mark.parametrize("key", KEYS, ids=lambda key: key[:8])
@pytest.mark.parametrize(
    "around", ["{}", "said {}, then", '{{"text":"{}"}}', "f({})", "X={}", "a\n{}\nb"]
)
def test_a_providers_key_is_masked_wherever_it_stands(key: str, around: str) -> None:
    masked = mask(around.format(key))
    assert key[8:24] not in masked
    assert "********" in masked


@pytest.mark.parametrize(("text", "secret"), NAMED, ids=lambda text: text[:40])
def test_a_secret_is_masked(text: str, secret: str) -> None:
    assert secret in "".join(text.replace("\u200b", "").split("\n")) or secret in text
    assert secret not in mask(text)
    assert secret not in mask(f"before\n{text}\nafter")


@pytest.mark.parametrize("text", BENIGN, ids=lambda text: text[:40])
def test_what_only_looks_alike_stays(text: str) -> None:
    assert mask(text) == text
    assert mask(f"before\n{text}\nafter") == f"before\n{text}\nafter"


@pytest.mark.parametrize(("text", "secret"), NAMED, ids=lambda text: text[:40])
def test_masking_twice_changes_nothing(text: str, secret: str) -> None:
    assert mask(mask(text)) == mask(text)
    assert secret not in mask(mask(text))


def test_what_stands_around_a_secret_stays() -> None:
    assert (
        mask('{"user":"me","password":"hunter2"}')
        == '{"user":"me","password":"********"}'
    )
    assert (
        mask("user=bob&password=swordfish&page=1")
        == "user=bob&password=********&page=1"
    )
    assert (
        mask("Set-Cookie: sid=9f8e7d; Path=/; HttpOnly")
        == "Set-Cookie: sid=********; Path=/; HttpOnly"
    )
    key = "sk-proj-" + RANDOM
    assert mask(f"{key}\nThen the next line.") == "********\nThen the next line."


@pytest.mark.parametrize(
    "unit",
    ["sk-", "password=", "token: ", "://@", "eyJa", "-----BEGIN PRIVATE KEY-----\n", "a1B2" * 8 + "\n", "Cookie: a=",
     "curl -u ", '\\"', "authorization: ", 'password="', "ghp_Ab1\n", "<password>", "--token ", "set-cookie:",
     "token=", "TOKEN_A_", "mysql ", "://a:", "%3D", "docker login "],
)  # fmt: skip
def test_no_text_takes_long(unit: str) -> None:
    start = time.process_time()
    mask(unit * (100_000 // len(unit)))
    assert time.process_time() - start < 4


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("password: Tr0ub4dor&3", "password: ********"),
        ("DB_PASSWORD=a&b12345", "DB_PASSWORD=********"),
        ("Password for root is Tr0ub4dor&3", "Password for root is ********"),
        ("passwd 'Tr0ub4dor&3'", "passwd '********'"),
        ("password=Tr0ub4dor&user=bob", "password=********&user=bob"),
        ("PASSWORD=Tr0ub4dor&&make", "PASSWORD=********&&make"),
    ],
)
def test_a_password_does_not_end_at_an_ampersand(text: str, masked: str) -> None:
    assert mask(text) == masked
