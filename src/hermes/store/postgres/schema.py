"""The tables and functions of the store in PostgreSQL, as numbered migrations.

Tables and columns are those of `state.db`, so that both databases share their queries. Three things differ:

- An event's id is the number of its transaction, shifted, and a count within the transaction. A reader that stops below
  the oldest transaction under way therefore never misses a row that is committed late (`row_limit`).
- Words for search are in a column of their own with a GIN index; they are written together with the row.
- `append_events` checks lease, seq and epoch and writes rows and projections in one round trip.
"""

BITS = 20
"""Bits of an id that number the rows within a transaction."""

_FUNCTIONS = f"""
CREATE DOMAIN blob AS text;  -- SQLite reads some text as bytes; here it stays what it is

CREATE FUNCTION instr(haystack text, needle text) RETURNS integer
LANGUAGE sql IMMUTABLE AS 'SELECT strpos(haystack, needle)';

CREATE FUNCTION next_row_id() RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
  place bigint := coalesce(nullif(current_setting('hermes.rows', true), ''), '0')::bigint;
BEGIN
  IF place >= {2**BITS} THEN
    RAISE EXCEPTION 'more than {2**BITS} rows in one transaction';
  END IF;
  PERFORM set_config('hermes.rows', (place + 1)::text, true);
  RETURN ((pg_current_xact_id()::text::bigint + (SELECT id_offset FROM hermes_store)) << {BITS}) + place;
END $$;

-- The id up to which the log is complete: every transaction that could still add a smaller one has ended.
CREATE FUNCTION row_limit() RETURNS bigint LANGUAGE sql AS $$
  SELECT ((pg_snapshot_xmin(pg_current_snapshot())::text::bigint + id_offset) << {BITS}) - 1 FROM hermes_store
$$;

CREATE FUNCTION session_lock(session text) RETURNS void LANGUAGE sql AS $$
  SELECT pg_advisory_xact_lock(hashtextextended('session ' || session, 0))
$$;
"""  # noqa: S608 - numbers of our own

_TABLES = """
CREATE TABLE events (
  id      bigint PRIMARY KEY DEFAULT next_row_id(),
  session text   NOT NULL,
  seq     bigint NOT NULL,
  epoch   bigint NOT NULL,
  ts      float8 NOT NULL,
  type    text   NOT NULL,
  role    text,
  turn    text   NOT NULL,
  data    text   NOT NULL,
  crc     bigint NOT NULL,
  frame   bigint,              -- always null: PostgreSQL compresses long text itself
  words   tsvector             -- of a message, for search
);
CREATE UNIQUE INDEX events_by_session ON events (session, seq);
CREATE INDEX events_by_word ON events USING gin (words) WHERE words IS NOT NULL;
CREATE TABLE frames (id bigint PRIMARY KEY, text text NOT NULL);

CREATE TABLE sessions (
  id         text PRIMARY KEY,
  epoch      bigint NOT NULL,
  head       bigint NOT NULL,
  created    float8 NOT NULL,
  updated    float8 NOT NULL,
  kind       text NOT NULL,
  parent     text NOT NULL,
  parent_seq bigint NOT NULL,
  root       text NOT NULL,
  surface    text NOT NULL,
  cwd        text NOT NULL,
  title      text NOT NULL DEFAULT '',
  model      text NOT NULL DEFAULT '',
  messages   bigint NOT NULL DEFAULT 0,
  turns      bigint NOT NULL DEFAULT 0
) WITH (fillfactor = 80);
CREATE INDEX sessions_by_parent ON sessions (parent) WHERE kind = 'child';
CREATE INDEX sessions_by_title ON sessions (title);

CREATE TABLE usage (
  session            text NOT NULL,
  day                text NOT NULL,
  provider           text NOT NULL,
  model              text NOT NULL,
  calls              bigint NOT NULL,
  input_tokens       bigint NOT NULL,
  output_tokens      bigint NOT NULL,
  cache_read_tokens  bigint NOT NULL,
  cache_write_tokens bigint NOT NULL,
  reasoning_tokens   bigint NOT NULL,
  cost_usd           float8 NOT NULL,
  unpriced_calls     bigint NOT NULL,
  PRIMARY KEY (session, day, provider, model)
);
CREATE INDEX usage_by_day ON usage (day);

CREATE TABLE leases (
  session text PRIMARY KEY,
  owner   text NOT NULL,
  token   bigint NOT NULL,
  expires float8 NOT NULL      -- by the clock of the database
) WITH (fillfactor = 80);

CREATE TABLE claims (
  session  text NOT NULL,
  owner    text NOT NULL,
  day      text NOT NULL,
  tokens   bigint NOT NULL,
  cost_usd float8 NOT NULL,
  expires  float8 NOT NULL,
  PRIMARY KEY (session, owner)
);

CREATE TABLE jobs (id text PRIMARY KEY, data text NOT NULL);

CREATE TABLE instants (
  job      text NOT NULL,
  due      float8 NOT NULL,
  starts   float8 NOT NULL,
  cause    text NOT NULL,
  state    text NOT NULL,
  reason   text NOT NULL DEFAULT '',
  repeats  bigint NOT NULL DEFAULT 1,
  session  text NOT NULL DEFAULT '',
  owner    text NOT NULL DEFAULT '',
  expires  float8 NOT NULL DEFAULT 0,
  began    float8 NOT NULL DEFAULT 0,
  ended    float8 NOT NULL DEFAULT 0,
  delivery text NOT NULL DEFAULT '',
  PRIMARY KEY (job, due)
);
CREATE INDEX instants_open ON instants (state, starts) WHERE state IN ('planned', 'running');
CREATE INDEX instants_undelivered ON instants (ended) WHERE delivery = 'waiting';

CREATE TABLE gateway_chats (
  key     text PRIMARY KEY,
  session text NOT NULL UNIQUE,
  chat    text NOT NULL,
  person  text NOT NULL,
  seq     bigint NOT NULL,
  busy    bigint NOT NULL,
  model   text NOT NULL,
  updated float8 NOT NULL
);
CREATE INDEX gateway_chats_busy ON gateway_chats (busy) WHERE busy = 1;

CREATE TABLE gateway_inbox (
  platform text NOT NULL,
  id       text NOT NULL,
  received float8 NOT NULL,
  data     text NOT NULL,
  PRIMARY KEY (platform, id)
);
CREATE INDEX gateway_inbox_waiting ON gateway_inbox (received) WHERE data != '';

CREATE TABLE gateway_outbox (
  id      bigint PRIMARY KEY GENERATED BY DEFAULT AS IDENTITY,
  chat    text NOT NULL,
  session text NOT NULL,
  seq     bigint NOT NULL,
  part    bigint NOT NULL,
  state   text NOT NULL,
  message text NOT NULL,
  ts      float8 NOT NULL
);
CREATE INDEX gateway_outbox_by_row ON gateway_outbox (session, seq, chat, part);

CREATE TABLE gateway_people (
  platform text NOT NULL,
  id       text NOT NULL,
  name     text NOT NULL,
  role     text NOT NULL,
  since    float8 NOT NULL,
  PRIMARY KEY (platform, id)
);

CREATE TABLE gateway_codes (
  platform text NOT NULL,
  person   text NOT NULL,
  name     text NOT NULL,
  digest   text NOT NULL,
  made     float8 NOT NULL,
  PRIMARY KEY (platform, person)
);

CREATE TABLE gateway_failures (at float8 NOT NULL);
"""

_APPEND = """
-- Appends rows behind `after`, the last seq that the caller knows. `outcome` is
--   written  the rows are there, also if an earlier call whose reply was lost has written them
--   moved    other rows came first, or the session has another epoch: nothing was written
--   missing  there is no such session
--   lost     the lease belongs to `holder` now
CREATE FUNCTION append_events(
  name text, after bigint, of_epoch bigint, lease_owner text, lease_token bigint, written_at float8, of_turn text,
  types text[], roles text[], texts text[], crcs bigint[], lexemes text[],
  new_title text, new_model text, message_count bigint, turn_count bigint, calls jsonb,
  OUT outcome text, OUT head bigint, OUT epoch bigint, OUT first_id bigint, OUT holder text
) LANGUAGE plpgsql AS $$
DECLARE
  amount integer := cardinality(types);
  call jsonb;
BEGIN
  PERFORM session_lock(name);
  SELECT sessions.head, sessions.epoch INTO head, epoch FROM sessions WHERE id = name;
  IF NOT FOUND THEN
    outcome := 'missing';
    RETURN;
  END IF;
  IF head >= after + amount AND epoch = of_epoch AND amount > 0 THEN
    SELECT min(id) INTO first_id FROM events
    WHERE session = name AND seq > after AND seq <= after + amount
    HAVING count(*) = amount AND bool_and(crc = crcs[seq - after]);
    IF first_id IS NOT NULL THEN
      outcome := 'written';
      RETURN;
    END IF;
  END IF;
  IF lease_owner IS NOT NULL THEN
    SELECT owner INTO holder FROM leases WHERE session = name AND (owner, token) IS DISTINCT FROM (lease_owner, lease_token);
    IF FOUND OR NOT EXISTS (SELECT FROM leases WHERE session = name) THEN
      outcome := 'lost';
      RETURN;
    END IF;
  END IF;
  IF head != after OR epoch != of_epoch THEN
    outcome := 'moved';
    RETURN;
  END IF;
  FOR place IN 1..amount LOOP
    INSERT INTO events (session, seq, epoch, ts, type, role, turn, data, crc, words)
    VALUES (name, after + place, of_epoch, written_at, types[place], roles[place], of_turn, texts[place], crcs[place],
      CASE WHEN roles[place] IS NOT NULL THEN array_to_tsvector(string_to_array(lexemes[place], ' ')) END)
    RETURNING CASE WHEN place = 1 THEN id ELSE first_id END INTO first_id;
  END LOOP;
  UPDATE sessions SET head = after + amount, updated = written_at,
    title = coalesce(new_title, title), model = coalesce(new_model, model),
    messages = messages + message_count, turns = turns + turn_count
  WHERE id = name;
  FOR call IN SELECT jsonb_array_elements(calls) LOOP
    INSERT INTO usage VALUES (name, call->>0, call->>1, call->>2, 1, (call->>3)::bigint, (call->>4)::bigint,
      (call->>5)::bigint, (call->>6)::bigint, (call->>7)::bigint, (call->>8)::float8, (call->>9)::bigint)
    ON CONFLICT ON CONSTRAINT usage_pkey DO UPDATE SET
      calls = usage.calls + 1,
      input_tokens = usage.input_tokens + excluded.input_tokens,
      output_tokens = usage.output_tokens + excluded.output_tokens,
      cache_read_tokens = usage.cache_read_tokens + excluded.cache_read_tokens,
      cache_write_tokens = usage.cache_write_tokens + excluded.cache_write_tokens,
      reasoning_tokens = usage.reasoning_tokens + excluded.reasoning_tokens,
      cost_usd = usage.cost_usd + excluded.cost_usd,
      unpriced_calls = usage.unpriced_calls + excluded.unpriced_calls;
  END LOOP;
  outcome := 'written';
END $$;
"""  # not translated

VERSION_TABLE = """
CREATE TABLE hermes_store (
  version   integer NOT NULL,
  id_offset bigint NOT NULL DEFAULT 0  -- added to transaction numbers: a restored database begins to count anew
);
INSERT INTO hermes_store (version) VALUES (0);
"""

_COMMITS = """
CREATE TABLE commits (
  mark uuid PRIMARY KEY,       -- of a transaction; whoever lost the reply to its commit looks for it
  at   timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX commits_by_age ON commits (at);
"""

_HOSTS = """
ALTER TABLE hermes_store ADD COLUMN oldest integer NOT NULL DEFAULT 1;  -- program that can use these tables
CREATE TABLE hosts (
  process text PRIMARY KEY,
  role    text NOT NULL,
  version text NOT NULL,
  started float8 NOT NULL,     -- by the clock of the database
  seen    float8 NOT NULL
) WITH (fillfactor = 80);
"""

_MACHINES = """
ALTER TABLE sessions ADD COLUMN place text NOT NULL DEFAULT '';

CREATE TABLE work (
  session text PRIMARY KEY,
  place   text NOT NULL,
  seq     bigint NOT NULL,
  offered float8 NOT NULL
) WITH (fillfactor = 80);
CREATE INDEX work_by_place ON work (place, offered);

CREATE TABLE roles (
  name    text PRIMARY KEY,
  owner   text NOT NULL,
  token   bigint NOT NULL,
  since   float8 NOT NULL,
  expires float8 NOT NULL,
  data    text NOT NULL
) WITH (fillfactor = 80);

-- As append_events, for a message that a worker is to answer.
CREATE FUNCTION append_offered(
  name text, after bigint, of_epoch bigint, lease_owner text, lease_token bigint, written_at float8, of_turn text,
  types text[], roles text[], texts text[], crcs bigint[], lexemes text[],
  new_title text, new_model text, message_count bigint, turn_count bigint, calls jsonb,
  OUT outcome text, OUT head bigint, OUT epoch bigint, OUT first_id bigint, OUT holder text
) LANGUAGE plpgsql AS $$
BEGIN
  SELECT done.outcome, done.head, done.epoch, done.first_id, done.holder INTO outcome, head, epoch, first_id, holder
  FROM append_events(name, after, of_epoch, lease_owner, lease_token, written_at, of_turn, types, roles, texts, crcs,
    lexemes, new_title, new_model, message_count, turn_count, calls) AS done;
  IF outcome = 'written' THEN
    INSERT INTO work (session, place, seq, offered)
    SELECT sessions.id, sessions.place, sessions.head, written_at FROM sessions WHERE sessions.id = name
    ON CONFLICT ON CONSTRAINT work_pkey DO UPDATE SET seq = excluded.seq;
  END IF;
END $$;
"""

_TAKE_LEASE = """
ALTER TABLE leases ADD COLUMN mark uuid;  -- of the call that took it, which may be repeated if its reply was lost

-- Takes a session's lease, unless it has not expired and is not the one that the caller knows to have ended. Returns the
-- lease that is there afterwards. It waits for appends under way: they were checked against the lease before.
CREATE FUNCTION take_lease(
  name text, new_owner text, lasts_s float8, of_mark uuid, ended_owner text, ended_token bigint,
  OUT is_taken boolean, OUT holder text, OUT token bigint, OUT expires float8
) LANGUAGE plpgsql AS $$
DECLARE
  held leases%ROWTYPE;
  is_known boolean;
  at float8;
BEGIN
  PERFORM session_lock(name);
  SELECT * INTO held FROM leases WHERE session = name FOR UPDATE;
  is_known := FOUND;
  at := extract(epoch FROM clock_timestamp())::float8;
  IF is_known AND (held.mark = of_mark OR (
    held.expires > at AND held.owner != ''
    AND (held.owner, held.token) IS DISTINCT FROM (ended_owner, ended_token)
  )) THEN
    is_taken := coalesce(held.mark = of_mark, false) AND held.owner = new_owner;
    holder := held.owner;
    token := held.token;
    expires := held.expires;
    RETURN;
  END IF;
  is_taken := true;
  holder := new_owner;
  token := coalesce(held.token, 0) + 1;
  expires := at + lasts_s;
  INSERT INTO leases (session, owner, token, expires, mark) VALUES (name, holder, take_lease.token, take_lease.expires, of_mark)
  ON CONFLICT ON CONSTRAINT leases_pkey DO UPDATE
  SET owner = excluded.owner, token = excluded.token, expires = excluded.expires, mark = excluded.mark;
END $$;
"""

_BOARDS = """
CREATE TABLE boards (
  slug text PRIMARY KEY,
  data text NOT NULL            -- the board as JSON, see schema/boards.py
);

-- `data` is the whole card as JSON; the other columns repeat what queries look for.
CREATE TABLE cards (
  id       text PRIMARY KEY,
  board    text NOT NULL,
  status   text NOT NULL,
  priority bigint NOT NULL,
  assignee text NOT NULL,
  reviewer text NOT NULL,
  due      float8 NOT NULL,             -- not to be started before
  created  float8 NOT NULL,
  unique_key text NOT NULL,
  data     text NOT NULL
);
CREATE INDEX cards_by_board ON cards (board, status, priority DESC, created);
CREATE INDEX cards_queue ON cards (status, priority DESC, created);
CREATE INDEX cards_due ON cards (due) WHERE due > 0;
CREATE UNIQUE INDEX cards_by_key ON cards (board, unique_key) WHERE unique_key != '';

CREATE TABLE card_links (
  parent text NOT NULL,
  child  text NOT NULL,
  PRIMARY KEY (parent, child)
);
CREATE INDEX card_links_by_child ON card_links (child);

CREATE TABLE card_runs (
  id        text PRIMARY KEY,
  card      text NOT NULL,
  board     text NOT NULL,
  number    bigint NOT NULL,
  agent     text NOT NULL,
  phase     text NOT NULL,
  outcome   text NOT NULL,
  reason    text NOT NULL,
  summary   text NOT NULL,
  closing   text NOT NULL,
  session   text NOT NULL,
  workspace text NOT NULL,
  owner     text NOT NULL,            -- the process that runs it, as in leases
  expires   float8 NOT NULL,
  started   float8 NOT NULL,
  ended     float8 NOT NULL,
  beat      float8 NOT NULL,
  note      text NOT NULL,
  stop      text NOT NULL
);
CREATE INDEX card_runs_by_card ON card_runs (card, number);
CREATE UNIQUE INDEX card_runs_open ON card_runs (card) WHERE outcome = 'running';
CREATE INDEX card_runs_by_board ON card_runs (board, started);
CREATE INDEX card_runs_by_session ON card_runs (session) WHERE session != '';

CREATE TABLE card_events (
  id    bigint GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY,
  board text NOT NULL,
  card  text NOT NULL,
  ts    float8 NOT NULL,
  topic text NOT NULL,
  data  text NOT NULL
);
CREATE INDEX card_events_by_card ON card_events (card, id);
CREATE INDEX card_events_by_board ON card_events (board, id);

CREATE TABLE card_attachments (
  id    text PRIMARY KEY,
  card  text NOT NULL,
  name  text NOT NULL,
  size  bigint NOT NULL,
  who   text NOT NULL,
  added float8 NOT NULL,
  data  bytea NOT NULL
);
CREATE INDEX card_attachments_by_card ON card_attachments (card);

CREATE TABLE card_notices (
  id       text PRIMARY KEY,
  card     text NOT NULL,
  target   text NOT NULL,             -- a chat or a session
  text     text NOT NULL,
  made     float8 NOT NULL,
  delivery text NOT NULL              -- waiting, where it went, or why it did not
);
CREATE INDEX card_notices_waiting ON card_notices (made) WHERE delivery = 'waiting';
"""

_SENDS = """
CREATE TABLE gateway_sends (
  id     text PRIMARY KEY,
  target text NOT NULL,
  body   text NOT NULL,
  files  text NOT NULL,
  made   float8 NOT NULL,
  until  float8 NOT NULL,
  state  text NOT NULL,
  reason text NOT NULL DEFAULT ''
) WITH (fillfactor = 80);
CREATE INDEX gateway_sends_open ON gateway_sends (made) WHERE state IN ('waiting', 'sending');
"""

_MARKS = """
CREATE TABLE session_marks (
  session  text PRIMARY KEY,
  pinned   float8 NOT NULL DEFAULT 0,
  folder   text NOT NULL DEFAULT '',
  archived float8 NOT NULL DEFAULT 0,
  seen     bigint NOT NULL DEFAULT 0
);
"""

MIGRATIONS: tuple[str, ...] = (
    _FUNCTIONS + _TABLES + _APPEND,
    _HOSTS,
    _MACHINES,
    _COMMITS,
    _TAKE_LEASE,
    _BOARDS,
    _SENDS,
    _MARKS,
)
"""Step n migrates a database of version n to version n + 1."""

OLDEST_PROGRAM = 1
"""The oldest program, by its number of migrations, that can use the current tables.

A program older than the database may keep running beside newer ones. Raise this number with a migration that changes or
removes what older programs use.
"""
