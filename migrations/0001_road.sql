-- The road: deliveries become events, events become decisions and jobs, jobs become attempts, gates, log, money and outputs.
--
-- Times are PostgreSQL's. Money is whole micro-dollars. States are words with a CHECK for the shape of each and a trigger for the arrows
-- between them; both are said again in queue/src/state.rs and docs/job-states.md.
-- What comes out of a payload is `json`, not `jsonb`: it is kept as it came, and a NUL in it is no error. Parameters are sent as text for the
-- same reason, and nothing looks inside with an operator: what lists show has a column of its own.

-- ---------------------------------------------------------------- deliveries

CREATE TABLE deliveries (
    id          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    forge       text        NOT NULL,
    kind        text        NOT NULL,
    delivery    text        NOT NULL CHECK (octet_length(delivery) <= 200),
    event       text        NOT NULL,
    event_type  text        NOT NULL,
    headers     json        NOT NULL,
    body        bytea       NOT NULL,
    received_at timestamptz NOT NULL DEFAULT now(),
    state       text        NOT NULL DEFAULT 'received',
    not_before  timestamptz NOT NULL DEFAULT now(),
    tries       integer     NOT NULL DEFAULT 0,
    replayed    boolean     NOT NULL DEFAULT false,
    lease_no    bigint      NOT NULL DEFAULT 0,
    worker      text,
    lease_until timestamptz,
    reason      text,
    detail      text        NOT NULL DEFAULT '',
    decided_at  timestamptz,

    CONSTRAINT deliveries_once UNIQUE (forge, delivery),
    CONSTRAINT deliveries_lease_shape CHECK (num_nulls(worker, lease_until) IN (0, 2)),
    CONSTRAINT deliveries_state_shape CHECK (CASE state
        WHEN 'received'  THEN num_nonnulls(reason, decided_at) = 0
        WHEN 'waiting'   THEN reason IS NOT NULL AND decided_at IS NULL
        WHEN 'decided'   THEN decided_at IS NOT NULL AND num_nonnulls(worker, lease_until) = 0
        WHEN 'abandoned' THEN num_nulls(reason, decided_at) = 0 AND num_nonnulls(worker, lease_until) = 0
        ELSE false
    END)
);

-- The body is written once and read once: compressing it must cost next to nothing.
DO $$
BEGIN
    ALTER TABLE deliveries ALTER COLUMN body SET COMPRESSION lz4;
EXCEPTION WHEN feature_not_supported OR invalid_parameter_value THEN
    ALTER TABLE deliveries ALTER COLUMN body SET STORAGE EXTERNAL;
END
$$;

CREATE INDEX deliveries_due ON deliveries (not_before, id) WHERE state IN ('received', 'waiting');
CREATE INDEX deliveries_open ON deliveries (state, id) WHERE state <> 'decided';
CREATE INDEX deliveries_by_their_id ON deliveries (delivery);
CREATE INDEX deliveries_by_age ON deliveries (decided_at) WHERE state IN ('decided', 'abandoned');

-- ---------------------------------------------------------------- repositories, events, decisions

CREATE TABLE repositories (
    id        bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    forge     text   NOT NULL,
    remote_id bigint NOT NULL,
    owner     text   NOT NULL,
    name      text   NOT NULL,
    CONSTRAINT repositories_once UNIQUE (forge, remote_id)
);
CREATE INDEX repositories_by_name ON repositories (lower(owner || '/' || name));

-- One row per arrival.
CREATE TABLE events (
    id            bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    delivery_id   bigint NOT NULL REFERENCES deliveries ON DELETE CASCADE,
    forge         text   NOT NULL,
    key           text   NOT NULL CHECK (octet_length(key) BETWEEN 1 AND 512),
    kind          text   NOT NULL,
    duplicate_of  bigint,
    at            timestamptz,
    repository_id bigint REFERENCES repositories,
    subject       bigint,
    actor         text,
    data          json   NOT NULL
);
CREATE INDEX events_by_delivery ON events (delivery_id);

-- What happened, once for ever: narrow, and without a foreign key, because it outlives the event.
CREATE TABLE event_keys (
    forge    text   NOT NULL,
    key      text   NOT NULL,
    event_id bigint NOT NULL,
    CONSTRAINT events_once PRIMARY KEY (forge, key)
);

CREATE TABLE decisions (
    id          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    delivery_id bigint NOT NULL REFERENCES deliveries ON DELETE CASCADE,
    event_id    bigint NOT NULL REFERENCES events ON DELETE CASCADE,
    trigger_id  text,
    verdict     text   NOT NULL,
    job_id      bigint,
    reason      text,
    detail      text   NOT NULL DEFAULT '',
    at          timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT decisions_once UNIQUE NULLS NOT DISTINCT (event_id, trigger_id),
    CONSTRAINT decisions_shape CHECK (CASE verdict
        WHEN 'fired'  THEN job_id IS NOT NULL AND reason IS NULL
        WHEN 'joined' THEN job_id IS NOT NULL AND reason IS NULL
        WHEN 'no'     THEN job_id IS NULL AND reason IS NOT NULL
        ELSE false
    END)
);
CREATE INDEX decisions_by_delivery ON decisions (delivery_id);
CREATE INDEX decisions_by_trigger ON decisions (trigger_id, id);

-- ---------------------------------------------------------------- lanes, jobs

-- One row per concurrency key. The claim locks it; `queued` is a count, since a head that was noted at finish could be stale.
CREATE TABLE lanes (
    id            bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    key           text    NOT NULL CONSTRAINT lanes_once UNIQUE,
    repository_id bigint  NOT NULL REFERENCES repositories,
    queued        integer NOT NULL DEFAULT 0 CHECK (queued >= 0),
    running       bigint,
    since         timestamptz NOT NULL DEFAULT clock_timestamp(),
    -- After a rescue the old container may still live for a while: nothing starts in the lane before then.
    free_at       timestamptz NOT NULL DEFAULT '-infinity'
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 200,
        autovacuum_analyze_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 1);
CREATE INDEX lanes_turn ON lanes (repository_id, since) WHERE queued > 0 AND running IS NULL;

CREATE TABLE jobs (
    id            bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    lane_id       bigint  NOT NULL REFERENCES lanes,
    repository_id bigint  NOT NULL REFERENCES repositories,
    series        text,
    trigger_id    text    NOT NULL,
    flow          text    NOT NULL,
    forge         text    NOT NULL,
    subject       bigint,
    -- For lists: the subject's title and who asked first.
    title         text,
    actor         text,
    image         text    NOT NULL,
    data_version  integer NOT NULL,
    data          json    NOT NULL,
    created_at    timestamptz NOT NULL DEFAULT now(),

    state         text    NOT NULL DEFAULT 'queued',
    not_before    timestamptz NOT NULL DEFAULT now(),
    hold_until    timestamptz,
    worker        text,
    attempt       integer NOT NULL DEFAULT 0,
    attempts_used integer NOT NULL DEFAULT 0,
    lease_no      bigint  NOT NULL DEFAULT 0,
    beat          bigint  NOT NULL DEFAULT 0,
    reason        text,
    detail        text    NOT NULL DEFAULT '',
    finished_at   timestamptz,
    outcome       text,

    started_at    timestamptz,
    stop_at       timestamptz,
    stop_by       text,
    turns         integer,
    reply         text,

    CONSTRAINT jobs_stop_shape CHECK (num_nulls(stop_at, stop_by) IN (0, 2)),
    CONSTRAINT jobs_outcome CHECK (outcome IN ('completed', 'refused', 'stopped', 'failed', 'cancelled', 'expired')),
    CONSTRAINT jobs_state_shape CHECK (CASE state
        WHEN 'queued'   THEN num_nonnulls(worker, hold_until, finished_at, outcome) = 0
        WHEN 'held'     THEN reason IS NOT NULL AND num_nonnulls(worker, finished_at, outcome) = 0
        WHEN 'running'  THEN worker IS NOT NULL AND attempt > 0 AND num_nonnulls(reason, hold_until, finished_at, outcome) = 0
        WHEN 'finished' THEN num_nulls(finished_at, outcome, reason) = 0 AND num_nonnulls(worker, hold_until) = 0
        ELSE false
    END)
) WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.05, autovacuum_analyze_scale_factor = 0.05);

CREATE INDEX jobs_next ON jobs (lane_id, id) WHERE state = 'queued';
-- The backstops: the code orders itself by the lane's lock, and the database holds even if it did not.
CREATE UNIQUE INDEX jobs_one_running_per_lane ON jobs (lane_id) WHERE state = 'running';
CREATE UNIQUE INDEX jobs_one_waiting_per_series ON jobs (series) WHERE state IN ('queued', 'held') AND attempt = 0;
CREATE INDEX jobs_open ON jobs (state, id) WHERE state <> 'finished';
CREATE INDEX jobs_by_outcome ON jobs (outcome, id) WHERE state = 'finished';
CREATE INDEX jobs_by_end ON jobs (finished_at) WHERE state = 'finished';
CREATE INDEX jobs_by_trigger ON jobs (trigger_id, id);
CREATE INDEX jobs_by_repository ON jobs (repository_id, id);

CREATE TABLE job_events (
    id          bigint GENERATED ALWAYS AS IDENTITY,
    job_id      bigint NOT NULL REFERENCES jobs ON DELETE CASCADE,
    event_id    bigint NOT NULL,
    delivery_id bigint NOT NULL,
    asked       json,
    CONSTRAINT job_events_once PRIMARY KEY (job_id, event_id)
);

CREATE TABLE attempts (
    job_id     bigint  NOT NULL REFERENCES jobs ON DELETE CASCADE,
    attempt    integer NOT NULL,
    worker     text    NOT NULL,
    claimed_at timestamptz NOT NULL DEFAULT now(),
    container  text,
    image      text,
    started_at timestamptz,
    gone_at    timestamptz,
    ended_at   timestamptz,
    exit_code  integer,
    -- It used up one of the allowed attempts.
    counted    boolean NOT NULL DEFAULT false,
    -- A model request of it was forwarded: it is never repeated by itself.
    spent      boolean NOT NULL DEFAULT false,
    reason     text,
    detail     text    NOT NULL DEFAULT '',
    PRIMARY KEY (job_id, attempt),
    CONSTRAINT attempts_shape CHECK (
        num_nulls(container, image) IN (0, 2)
        AND (started_at IS NULL OR container IS NOT NULL)
        AND (gone_at IS NULL OR container IS NOT NULL)
    )
);
CREATE UNIQUE INDEX attempts_by_container ON attempts (container);

CREATE TABLE gates (
    job_id  bigint   NOT NULL REFERENCES jobs ON DELETE CASCADE,
    attempt integer  NOT NULL,
    number  smallint NOT NULL,
    name    text     NOT NULL,
    verdict text     NOT NULL,
    reason  text,
    detail  text     NOT NULL DEFAULT '',
    micros  bigint   NOT NULL,
    at      timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (job_id, attempt, number),
    CONSTRAINT gates_shape CHECK (CASE verdict
        WHEN 'passed'  THEN reason IS NULL
        WHEN 'refused' THEN reason IS NOT NULL
        WHEN 'waits'   THEN reason IS NOT NULL
        ELSE false
    END)
);

CREATE TABLE job_log (
    id      bigint GENERATED ALWAYS AS IDENTITY,
    job_id  bigint  NOT NULL REFERENCES jobs ON DELETE CASCADE,
    attempt integer NOT NULL,
    source  text    NOT NULL CHECK (source IN ('runner', 'worker', 'gateway')),
    seq     bigint  NOT NULL,
    kind    text    NOT NULL,
    data    json    NOT NULL,
    at      timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (job_id, id),
    CONSTRAINT job_log_once UNIQUE (job_id, attempt, source, seq)
);

CREATE TABLE proposals (
    id        bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    job_id    bigint  NOT NULL REFERENCES jobs ON DELETE CASCADE,
    attempt   integer NOT NULL,
    tool      text    NOT NULL,
    ordinal   integer NOT NULL,
    arguments json    NOT NULL,
    at        timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT proposals_once UNIQUE (job_id, attempt, tool, ordinal)
);

-- ---------------------------------------------------------------- money

CREATE TABLE model_requests (
    id           bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    job_id       bigint  NOT NULL REFERENCES jobs ON DELETE CASCADE,
    attempt      integer NOT NULL,
    provider     text    NOT NULL,
    model        text    NOT NULL,
    at           timestamptz NOT NULL DEFAULT now(),
    day          date    NOT NULL,
    worst_tokens bigint  NOT NULL CHECK (worst_tokens >= 0),
    worst_cost   bigint  NOT NULL CHECK (worst_cost >= 0),
    settled_at   timestamptz,
    status       text,
    input        bigint,
    output       bigint,
    cache_read   bigint,
    cache_write  bigint,
    tokens       bigint CHECK (tokens >= 0),
    cost         bigint CHECK (cost >= 0),
    CONSTRAINT model_requests_settled CHECK (
        num_nulls(settled_at, status, input, output, cache_read, cache_write, tokens, cost) IN (0, 8)
    )
);
CREATE INDEX model_requests_by_job ON model_requests (job_id, attempt);

-- What counts against the caps: the worst case of what is not settled, the truth of what is. One row per run and per day, to be locked.
CREATE TABLE run_spend (
    job_id   bigint  NOT NULL REFERENCES jobs ON DELETE CASCADE,
    attempt  integer NOT NULL,
    requests bigint  NOT NULL DEFAULT 0,
    tokens   bigint  NOT NULL DEFAULT 0,
    cost     bigint  NOT NULL DEFAULT 0,
    PRIMARY KEY (job_id, attempt)
) WITH (fillfactor = 50);

CREATE TABLE day_spend (
    day      date   PRIMARY KEY,
    requests bigint NOT NULL DEFAULT 0,
    tokens   bigint NOT NULL DEFAULT 0,
    cost     bigint NOT NULL DEFAULT 0,
    input    bigint NOT NULL DEFAULT 0,
    output   bigint NOT NULL DEFAULT 0,
    cache_read  bigint NOT NULL DEFAULT 0,
    cache_write bigint NOT NULL DEFAULT 0
) WITH (fillfactor = 20);

-- ---------------------------------------------------------------- outbox

CREATE TABLE outputs (
    id            bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    kind          text     NOT NULL CHECK (kind IN ('reaction', 'comment', 'refusal', 'status')),
    marker        uuid     NOT NULL DEFAULT gen_random_uuid() CONSTRAINT outputs_marker_once UNIQUE,
    job_id        bigint   REFERENCES jobs ON DELETE CASCADE,
    event_id      bigint,
    ordinal       smallint NOT NULL DEFAULT 0,
    forge         text     NOT NULL,
    remote_id     bigint   NOT NULL,
    owner         text     NOT NULL,
    name          text     NOT NULL,
    subject       bigint,
    comment       bigint,
    body          text     NOT NULL,
    revision      integer  NOT NULL DEFAULT 1,
    created_at    timestamptz NOT NULL DEFAULT now(),

    state         text     NOT NULL DEFAULT 'pending',
    not_before    timestamptz NOT NULL DEFAULT now(),
    tries         integer  NOT NULL DEFAULT 0,
    lease_no      bigint   NOT NULL DEFAULT 0,
    worker        text,
    lease_until   timestamptz,
    reason        text,
    detail        text     NOT NULL DEFAULT '',
    posted_at     timestamptz,
    posted_id     bigint,
    url           text,

    CONSTRAINT outputs_belong CHECK (CASE kind WHEN 'reaction' THEN event_id IS NOT NULL ELSE job_id IS NOT NULL AND subject IS NOT NULL END),
    CONSTRAINT outputs_ordinal CHECK (ordinal = 0 OR kind = 'comment'),
    CONSTRAINT outputs_lease_shape CHECK (num_nulls(worker, lease_until) IN (0, 2)),
    CONSTRAINT outputs_state_shape CHECK (CASE state
        WHEN 'pending' THEN true
        WHEN 'posted'  THEN posted_at IS NOT NULL AND num_nonnulls(worker, lease_until, reason) = 0
        WHEN 'failed'  THEN reason IS NOT NULL AND num_nonnulls(worker, lease_until) = 0
        ELSE false
    END)
);
CREATE UNIQUE INDEX outputs_one_per_job ON outputs (job_id, kind, ordinal) WHERE kind <> 'reaction';
CREATE UNIQUE INDEX outputs_one_reaction_per_event ON outputs (event_id) WHERE kind = 'reaction';
CREATE INDEX outputs_due ON outputs (not_before, id) WHERE state = 'pending';
CREATE INDEX outputs_failed ON outputs (id) WHERE state = 'failed';
CREATE INDEX outputs_by_job ON outputs (job_id, id);
-- Status comments that still say what they said at first.
CREATE INDEX outputs_status_unedited ON outputs (job_id) WHERE kind = 'status' AND revision = 1;

-- What we wrote, for ever: an own post starts nothing, however late it comes back.
CREATE TABLE own_posts (
    forge     text   NOT NULL,
    remote_id bigint NOT NULL,
    at        timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (forge, remote_id)
);

-- ---------------------------------------------------------------- workers, people

CREATE TABLE workers (
    worker       text PRIMARY KEY,
    version      text    NOT NULL,
    slots        integer NOT NULL,
    busy         integer NOT NULL,
    data_version integer NOT NULL,
    images       jsonb   NOT NULL,
    trouble      text,
    started_at   timestamptz NOT NULL DEFAULT now(),
    seen_at      timestamptz NOT NULL DEFAULT now()
) WITH (fillfactor = 50);

CREATE TABLE triggers_in_force (
    worker   text PRIMARY KEY,
    file     text NOT NULL,
    sha256   text NOT NULL,
    triggers json NOT NULL,
    faults   json NOT NULL,
    remarks  json NOT NULL,
    at       timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE settings (
    only_row  boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    -- Names the deployment in container labels.
    deployment text NOT NULL DEFAULT left(replace(gen_random_uuid()::text, '-', ''), 12),
    paused_at timestamptz,
    paused_by text,
    CONSTRAINT settings_pause_shape CHECK (num_nulls(paused_at, paused_by) IN (0, 2))
);
INSERT INTO settings DEFAULT VALUES;

CREATE TABLE users (
    id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name       text NOT NULL CONSTRAINT users_once UNIQUE CHECK (octet_length(name) BETWEEN 1 AND 100),
    password   text NOT NULL,
    role       text NOT NULL CHECK (role IN ('operator', 'viewer')),
    created_at timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE sessions (
    token_sha256 bytea  PRIMARY KEY CHECK (octet_length(token_sha256) = 32),
    user_id      bigint NOT NULL REFERENCES users ON DELETE CASCADE,
    created_at   timestamptz NOT NULL DEFAULT now(),
    expires_at   timestamptz NOT NULL
);
CREATE INDEX sessions_by_user ON sessions (user_id);

CREATE TABLE audit (
    id     bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at     timestamptz NOT NULL DEFAULT now(),
    who    text  NOT NULL,
    action text  NOT NULL,
    target text  NOT NULL DEFAULT '',
    detail json  NOT NULL DEFAULT '{}'
);

-- ---------------------------------------------------------------- arrows

CREATE FUNCTION refuse_arrow() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION '% % may not go from % to %', TG_TABLE_NAME, OLD.id, OLD.state, NEW.state
        USING ERRCODE = 'check_violation', CONSTRAINT = TG_NAME;
END
$$;

CREATE TRIGGER jobs_arrows BEFORE UPDATE OF state ON jobs FOR EACH ROW
    WHEN (CASE OLD.state
        WHEN 'queued'   THEN NEW.state NOT IN ('queued', 'running', 'held', 'finished')
        WHEN 'held'     THEN NEW.state NOT IN ('held', 'queued', 'finished')
        WHEN 'running'  THEN NEW.state NOT IN ('running', 'queued', 'held', 'finished')
        ELSE true
    END)
    EXECUTE FUNCTION refuse_arrow();

CREATE TRIGGER deliveries_arrows BEFORE UPDATE OF state ON deliveries FOR EACH ROW
    WHEN (CASE OLD.state
        WHEN 'received'  THEN NEW.state NOT IN ('received', 'waiting', 'decided', 'abandoned')
        WHEN 'waiting'   THEN NEW.state NOT IN ('waiting', 'decided', 'abandoned')
        WHEN 'abandoned' THEN NEW.state <> 'received'
        ELSE true
    END)
    EXECUTE FUNCTION refuse_arrow();

CREATE TRIGGER outputs_arrows BEFORE UPDATE OF state ON outputs FOR EACH ROW
    WHEN (CASE OLD.state
        WHEN 'pending' THEN NEW.state NOT IN ('pending', 'posted', 'failed')
        WHEN 'posted'  THEN NOT (NEW.state = 'pending' AND NEW.kind = 'status')
        ELSE true
    END)
    EXECUTE FUNCTION refuse_arrow();
