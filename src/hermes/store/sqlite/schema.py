"""The tables of `state.db`, and the numbered migrations that bring an older file up to date.

`events` is authoritative, and so are the `KEPT` tables; every other table is a projection that can
be rebuilt.
"""

APPLICATION_ID = 0x48524D53  # "HRMS": distinguishes our file from another program's

EVENTS = """
CREATE TABLE events (
  id      INTEGER PRIMARY KEY AUTOINCREMENT,  -- commit order over all sessions, never used again
  session TEXT    NOT NULL,
  seq     INTEGER NOT NULL,     -- 1, 2, 3... without holes in a session
  epoch   INTEGER NOT NULL,     -- changes when rows after a cursor may have been lost or replaced
  ts      REAL    NOT NULL,
  type    TEXT    NOT NULL,
  role    TEXT,                 -- set for messages
  turn    TEXT    NOT NULL,
  data    TEXT    NOT NULL,     -- the event's fields as JSON
  crc     INTEGER NOT NULL      -- over all of the above but id
);
CREATE UNIQUE INDEX events_by_session ON events (session, seq);
"""

LAST_ROW = "SELECT seq FROM sqlite_sequence WHERE name = 'events'"
"""The largest `id` ever assigned, even to a row deleted since."""

SEARCH_OPTIONS = "words, names, content='', contentless_delete=1, tokenize='ascii', prefix='2'"  # not translated
"""The full-text index. Its text is already split into words, see tokenizer.py."""

PROJECTIONS = f"""
CREATE TABLE sessions (
  id         TEXT PRIMARY KEY,
  epoch      INTEGER NOT NULL,
  head       INTEGER NOT NULL,  -- seq of the last row
  created    REAL NOT NULL,
  updated    REAL NOT NULL,
  kind       TEXT NOT NULL,
  parent     TEXT NOT NULL,
  parent_seq INTEGER NOT NULL,
  root       TEXT NOT NULL,
  surface    TEXT NOT NULL,
  cwd        TEXT NOT NULL,
  title      TEXT NOT NULL DEFAULT '',
  model      TEXT NOT NULL DEFAULT '',
  messages   INTEGER NOT NULL DEFAULT 0,
  turns      INTEGER NOT NULL DEFAULT 0
) WITHOUT ROWID;

CREATE TABLE usage (
  session            TEXT NOT NULL,
  day                TEXT NOT NULL,  -- UTC
  provider           TEXT NOT NULL,
  model              TEXT NOT NULL,
  calls              INTEGER NOT NULL,
  input_tokens       INTEGER NOT NULL,
  output_tokens      INTEGER NOT NULL,
  cache_read_tokens  INTEGER NOT NULL,
  cache_write_tokens INTEGER NOT NULL,
  reasoning_tokens   INTEGER NOT NULL,
  cost_usd           REAL NOT NULL,
  unpriced_calls     INTEGER NOT NULL,  -- calls whose price is unknown, so that no sum pretends to be whole
  PRIMARY KEY (session, day, provider, model)
) WITHOUT ROWID;

CREATE TABLE leases (
  session TEXT PRIMARY KEY,
  owner   TEXT NOT NULL,
  token   INTEGER NOT NULL,     -- grows with each new holder; an old holder can't write
  expires REAL NOT NULL
) WITHOUT ROWID;

CREATE VIRTUAL TABLE search USING fts5 ({SEARCH_OPTIONS});
CREATE TABLE search_progress (indexed INTEGER NOT NULL);  -- events.id up to which `search` is complete
INSERT INTO search_progress VALUES (0);
"""  # noqa: S608 - our own words

CLAIMS = """
CREATE TABLE claims (
  session  TEXT NOT NULL,
  owner    TEXT NOT NULL,       -- the process, as in leases
  day      TEXT NOT NULL,
  tokens   INTEGER NOT NULL,    -- the most that the call under way can use
  cost_usd REAL NOT NULL,
  expires  REAL NOT NULL,
  PRIMARY KEY (session, owner)
) WITHOUT ROWID;
CREATE INDEX usage_by_day ON usage (day);
CREATE INDEX sessions_by_parent ON sessions (parent) WHERE kind = 'child';
"""

SCHEDULES = """
CREATE TABLE jobs (
  id   TEXT PRIMARY KEY,
  data TEXT NOT NULL            -- the job as JSON, see schema/schedules.py
) WITHOUT ROWID;

-- Every instant a job was planned for, written before it runs, and how it ended.
CREATE TABLE instants (
  job      TEXT NOT NULL,
  due      REAL NOT NULL,
  starts   REAL NOT NULL,             -- due and some jitter
  cause    TEXT NOT NULL,             -- schedule, catch-up or hand
  state    TEXT NOT NULL,             -- planned, running, done, failed, skipped or missed
  reason   TEXT NOT NULL DEFAULT '',
  repeats  INTEGER NOT NULL DEFAULT 1, -- how many instants in a row this stands for, from `due` on
  session  TEXT NOT NULL DEFAULT '',
  owner    TEXT NOT NULL DEFAULT '',  -- the process that runs it, as in leases
  expires  REAL NOT NULL DEFAULT 0,   -- when its claim ends without a heartbeat
  began    REAL NOT NULL DEFAULT 0,
  ended    REAL NOT NULL DEFAULT 0,
  delivery TEXT NOT NULL DEFAULT '',  -- where the result went, or why it did not
  PRIMARY KEY (job, due)
) WITHOUT ROWID;
CREATE INDEX instants_open ON instants (state, starts) WHERE state IN ('planned', 'running');
CREATE INDEX instants_undelivered ON instants (ended) WHERE delivery = 'waiting';
"""

CHATS = """
CREATE TABLE gateway_chats (
  key     TEXT PRIMARY KEY,     -- of the chat, thread or person, by the rules of the gateway
  session TEXT NOT NULL,
  chat    TEXT NOT NULL,        -- where to write to, as JSON
  person  TEXT NOT NULL,        -- whom the session works for, where that is one person
  seq     INTEGER NOT NULL,     -- row of the session up to which everything was delivered
  busy    INTEGER NOT NULL,     -- 1 from before something is said until the session has nothing left to do
  model   TEXT NOT NULL,
  updated REAL NOT NULL
) WITHOUT ROWID;
CREATE UNIQUE INDEX gateway_chats_by_session ON gateway_chats (session);
CREATE INDEX gateway_chats_busy ON gateway_chats (busy) WHERE busy;

CREATE TABLE gateway_inbox (
  platform TEXT NOT NULL,
  id       TEXT NOT NULL,       -- the platform's own; never acted on twice
  received REAL NOT NULL,
  data     TEXT NOT NULL,       -- the message as JSON; empty once it was dealt with
  PRIMARY KEY (platform, id)
) WITHOUT ROWID;
CREATE INDEX gateway_inbox_waiting ON gateway_inbox (received) WHERE data != '';

CREATE TABLE gateway_outbox (
  id      INTEGER PRIMARY KEY,
  chat    TEXT NOT NULL,        -- key of the chat
  session TEXT NOT NULL,        -- whose row it is: the chat's session or one that works for it
  seq     INTEGER NOT NULL,     -- 0 while it is being streamed and the row is yet to come
  part    INTEGER NOT NULL,     -- a long message is sent in several
  state   TEXT NOT NULL,        -- sending, sent, refused
  message TEXT NOT NULL,        -- id on the platform; empty until it is known to have arrived
  ts      REAL NOT NULL
);
CREATE INDEX gateway_outbox_by_row ON gateway_outbox (session, seq, chat, part);

CREATE TABLE gateway_people (
  platform TEXT NOT NULL,
  id       TEXT NOT NULL,
  name     TEXT NOT NULL,
  role     TEXT NOT NULL,       -- owner, user, blocked
  since    REAL NOT NULL,
  PRIMARY KEY (platform, id)
) WITHOUT ROWID;

CREATE TABLE gateway_codes (
  platform TEXT NOT NULL,
  person   TEXT NOT NULL,
  name     TEXT NOT NULL,
  digest   TEXT NOT NULL,       -- of the code, which is nowhere
  made     REAL NOT NULL,
  PRIMARY KEY (platform, person)
) WITHOUT ROWID;

CREATE TABLE gateway_failures (at REAL NOT NULL);  -- wrong pairing codes
"""

FRAMES = """
-- Text that many rows have in common, see frames.py.
CREATE TABLE frames (
  id   INTEGER PRIMARY KEY,
  text TEXT NOT NULL
);
ALTER TABLE events ADD COLUMN frame INTEGER;  -- what stands around `data`, if that is kept apart
CREATE INDEX events_by_frame ON events (frame) WHERE frame IS NOT NULL;
"""  # not translated

HOSTS = """
CREATE TABLE hosts (
  process TEXT PRIMARY KEY,     -- as in leases
  role    TEXT NOT NULL,        -- gateway, dashboard, worker
  version TEXT NOT NULL,
  started REAL NOT NULL,
  seen    REAL NOT NULL
) WITHOUT ROWID;
"""

MACHINES = """
ALTER TABLE sessions ADD COLUMN place TEXT NOT NULL DEFAULT '';  -- the machine that has its folder

CREATE TABLE work (
  session TEXT PRIMARY KEY,     -- whose messages wait for a worker, or are being answered by one
  place   TEXT NOT NULL,
  seq     INTEGER NOT NULL,     -- the last such message
  offered REAL NOT NULL
) WITHOUT ROWID;

CREATE TABLE roles (
  name    TEXT PRIMARY KEY,
  owner   TEXT NOT NULL,        -- a process, as in leases
  token   INTEGER NOT NULL,
  since   REAL NOT NULL,
  expires REAL NOT NULL,
  data    TEXT NOT NULL
) WITHOUT ROWID;
"""

BOARDS = """
CREATE TABLE boards (
  slug TEXT PRIMARY KEY,
  data TEXT NOT NULL            -- the board as JSON, see schema/boards.py
) WITHOUT ROWID;

-- `data` is the whole card as JSON; the other columns repeat what queries look for.
CREATE TABLE cards (
  id       TEXT PRIMARY KEY,
  board    TEXT NOT NULL,
  status   TEXT NOT NULL,
  priority INTEGER NOT NULL,
  assignee TEXT NOT NULL,
  reviewer TEXT NOT NULL,
  due      REAL NOT NULL,             -- not to be started before
  created  REAL NOT NULL,
  unique_key TEXT NOT NULL,
  data     TEXT NOT NULL
);
CREATE INDEX cards_by_board ON cards (board, status, priority DESC, created);
CREATE INDEX cards_queue ON cards (status, priority DESC, created);
CREATE INDEX cards_due ON cards (due) WHERE due > 0;
CREATE UNIQUE INDEX cards_by_key ON cards (board, unique_key) WHERE unique_key != '';

CREATE TABLE card_links (
  parent TEXT NOT NULL,
  child  TEXT NOT NULL,
  PRIMARY KEY (parent, child)
) WITHOUT ROWID;
CREATE INDEX card_links_by_child ON card_links (child);

CREATE TABLE card_runs (
  id        TEXT PRIMARY KEY,
  card      TEXT NOT NULL,
  board     TEXT NOT NULL,
  number    INTEGER NOT NULL,
  agent     TEXT NOT NULL,
  phase     TEXT NOT NULL,
  outcome   TEXT NOT NULL,
  reason    TEXT NOT NULL,
  summary   TEXT NOT NULL,
  closing   TEXT NOT NULL,
  session   TEXT NOT NULL,
  workspace TEXT NOT NULL,
  owner     TEXT NOT NULL,            -- the process that runs it, as in leases
  expires   REAL NOT NULL,
  started   REAL NOT NULL,
  ended     REAL NOT NULL,
  beat      REAL NOT NULL,
  note      TEXT NOT NULL,
  stop      TEXT NOT NULL
) WITHOUT ROWID;
CREATE INDEX card_runs_by_card ON card_runs (card, number);
CREATE UNIQUE INDEX card_runs_open ON card_runs (card) WHERE outcome = 'running';
CREATE INDEX card_runs_by_board ON card_runs (board, started);
CREATE INDEX card_runs_by_session ON card_runs (session) WHERE session != '';

CREATE TABLE card_events (
  id    INTEGER PRIMARY KEY AUTOINCREMENT,
  board TEXT NOT NULL,
  card  TEXT NOT NULL,
  ts    REAL NOT NULL,
  topic TEXT NOT NULL,
  data  TEXT NOT NULL
);
CREATE INDEX card_events_by_card ON card_events (card, id);
CREATE INDEX card_events_by_board ON card_events (board, id);

CREATE TABLE card_attachments (
  id    TEXT PRIMARY KEY,
  card  TEXT NOT NULL,
  name  TEXT NOT NULL,
  size  INTEGER NOT NULL,
  who   TEXT NOT NULL,
  added REAL NOT NULL,
  data  BLOB NOT NULL
);
CREATE INDEX card_attachments_by_card ON card_attachments (card);

CREATE TABLE card_notices (
  id       TEXT PRIMARY KEY,
  card     TEXT NOT NULL,
  target   TEXT NOT NULL,             -- a chat or a session
  text     TEXT NOT NULL,
  made     REAL NOT NULL,
  delivery TEXT NOT NULL              -- waiting, where it went, or why it did not
) WITHOUT ROWID;
CREATE INDEX card_notices_waiting ON card_notices (made) WHERE delivery = 'waiting';
"""

SENDS = """
-- Messages to chats that belong to no session: of `hermes send` and of the tool `send_message`.
CREATE TABLE gateway_sends (
  id     TEXT PRIMARY KEY,
  target TEXT NOT NULL,        -- telegram:123
  body   TEXT NOT NULL,        -- empty once it has ended
  files  TEXT NOT NULL,        -- path of each copy and its name, as JSON
  made   REAL NOT NULL,
  until  REAL NOT NULL,        -- when it is given up
  state  TEXT NOT NULL,        -- waiting, sending, sent, failed
  reason TEXT NOT NULL DEFAULT ''
) WITHOUT ROWID;
CREATE INDEX gateway_sends_open ON gateway_sends (made) WHERE state IN ('waiting', 'sending');
"""  # not translated

MARKS = """
-- How the user files sessions; the log says nothing of it, so that filing one is no use of it.
CREATE TABLE session_marks (
  session  TEXT PRIMARY KEY,
  pinned   REAL NOT NULL DEFAULT 0,     -- since when; 0 if not
  folder   TEXT NOT NULL DEFAULT '',
  archived REAL NOT NULL DEFAULT 0,     -- since when; 0 if not
  seen     INTEGER NOT NULL DEFAULT 0   -- how many messages it had when somebody last looked at it
) WITHOUT ROWID;
"""  # not translated

KEPT: tuple[str, ...] = (
    "jobs",
    "instants",
    "gateway_chats",
    "gateway_inbox",
    "gateway_outbox",
    "gateway_people",
    "gateway_sends",
    "work",
    "boards",
    "cards",
    "card_links",
    "card_runs",
    "card_events",
    "card_attachments",
    "card_notices",
    "session_marks",
)
"""Tables that are not projections: a rebuilt database gets their readable rows."""

MIGRATIONS: tuple[str, ...] = (
    EVENTS + PROJECTIONS,
    CLAIMS,
    SCHEDULES,
    CHATS,
    FRAMES,
    HOSTS,
    MACHINES,
    BOARDS,
    SENDS,
    MARKS,
)
"""Step n migrates a file of version n to version n + 1; a new file runs them all."""
