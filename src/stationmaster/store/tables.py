"""The tables. JSON columns are text, written and read by `codec.py`; instants are seconds by the database's clock.

Indexes over only some of a table's rows are in `schema.py`.
"""

from __future__ import annotations

import sqlalchemy as sa
from sqlalchemy import BigInteger, Boolean, CheckConstraint, Column, Double, Index, Integer, LargeBinary, Text

from stationmaster.store.storable_text import StorableText

metadata = sa.MetaData()

# SQLite autoincrements only columns of type INTEGER.
_Counter = BigInteger().with_variant(Integer, "sqlite")

installation = sa.Table(
    "installation",
    metadata,
    Column("one", Integer, primary_key=True),  # always 1: there is one installation per store
    Column("id", Text, nullable=False),
    Column("created_at", Double, nullable=False),
)

# To add a column: append it here, write a migration and raise `schema.HEAD`, add the field to `model.Job`, and name it
# in `leased_writes.py` if workers write it. A NOT NULL column needs a server default, for the rows that exist already.
jobs = sa.Table(
    "jobs",
    metadata,
    Column("id", Text, primary_key=True),
    Column("name", Text, nullable=False),
    Column("provider", Text, nullable=False),
    Column("owner", Text),
    Column("retry_of", Text),
    Column("spec", Text, nullable=False),
    Column("created_at", Double, nullable=False),
    Column("state", Text, nullable=False),
    Column("state_since", Double, nullable=False),
    Column("version", BigInteger, nullable=False),
    Column("desired", Text, nullable=False),
    Column("desired_seq", Integer, nullable=False),
    Column("seen_seq", Integer, nullable=False),
    Column("outcome", Text),
    Column("reason", Text),
    Column("explanation", StorableText),
    Column("attempt", Integer, nullable=False),
    Column("failed_before_login", Integer, nullable=False),
    Column("failed_after_login", Integer, nullable=False),
    Column("due_at", Double),
    Column("deadline_at", Double),
    Column("unreachable_since", Double),
    Column("progress", Text, nullable=False),
    Column("memory", Text, nullable=False),
    Column("log_bytes", BigInteger, nullable=False),
    Column("ended_at", Double),
    Column("lease_owner", Text),
    Column("lease_token", BigInteger, nullable=False),
    Column("lease_until", Double),
    Column("saves_asked", Integer, nullable=False, server_default="0"),
    Column("samples_asked", Integer, nullable=False, server_default="0"),
    Column("series_bytes", BigInteger, nullable=False, server_default="0"),  # also of those dropped at the limit
    Column("series_dropped", BigInteger, nullable=False, server_default="0"),  # rows
    Index("jobs_due", "due_at"),
    Index("jobs_leased", "lease_owner"),
    Index("jobs_created", "created_at"),
    Index("jobs_of_owner", "owner", "created_at"),
)

rentals = sa.Table(
    "rentals",
    metadata,
    Column("label", Text, primary_key=True),
    Column("job_id", Text, nullable=False),
    Column("attempt", Integer, nullable=False),
    Column("provider", Text, nullable=False),
    Column("account", Text),
    Column("provider_id", Text),
    Column("state", Text, nullable=False),
    Column("offer", Text),
    Column("surplus", Boolean, nullable=False),
    Column("requested_at", Double, nullable=False),
    Column("create_sent_at", Double),
    Column("held_at", Double),
    Column("release_asked_at", Double),
    Column("stopped_at", Double),
    Column("absent_listings", Integer, nullable=False),
    Column("gone_at", Double),
    Index("rentals_of_job", "job_id"),
)

cost_lines = sa.Table(
    "cost_lines",
    metadata,
    Column("rental_label", Text, primary_key=True),
    Column("kind", Text, primary_key=True),
    Column("job_id", Text, nullable=False),
    Column("rate_per_hour", BigInteger, nullable=False),
    Column("started_at", Double, nullable=False),
    Column("ended_at", Double),
    Column("amount", BigInteger, nullable=False),
    Column("source", Text, nullable=False),
    Index("cost_lines_of_job", "job_id"),
)

# Owners of removed jobs that cost something: the cost lines stay and count against the owner's daily cap.
removed_jobs = sa.Table(
    "removed_jobs",
    metadata,
    Column("id", Text, primary_key=True),  # as its cost lines name the job since
    Column("owner", Text, nullable=False),
    Column("at", Double, nullable=False),
)

proposals = sa.Table(
    "proposals",
    metadata,
    Column("id", Text, primary_key=True),
    Column("owner", Text),
    Column("job_id", Text, nullable=False),  # of the job, before and after it is submitted
    Column("created_at", Double, nullable=False),
    Column("expires_at", Double, nullable=False),
    Column("dataset_sha256", Text, nullable=False),
    Column("spec", Text, nullable=False),
    Column("terms", Text, nullable=False),
    Index("proposals_expire", "expires_at"),
)

events = sa.Table(
    "events",
    metadata,
    Column("seq", _Counter, primary_key=True, autoincrement=True),
    Column("job_id", Text, nullable=False),
    Column("job_version", BigInteger, nullable=False),
    Column("kind", Text, nullable=False),
    Column("payload", Text, nullable=False),
    Column("at", Double, nullable=False),
    Index("events_of_job", "job_id", "job_version", unique=True),
)

log_chunks = sa.Table(
    "log_chunks",
    metadata,
    Column("seq", _Counter, primary_key=True, autoincrement=True),
    Column("job_id", Text, nullable=False),
    Column("attempt", Integer, nullable=False),
    Column("stream", Text, nullable=False),
    Column("start", BigInteger, nullable=False),
    Column("end", BigInteger, nullable=False),
    Column("size", BigInteger, nullable=False),
    Column("data", LargeBinary, nullable=False),
    Column("at", Double, nullable=False),
    Index("log_chunks_of_job", "job_id", "seq"),
)

readings = sa.Table(
    "readings",
    metadata,
    Column("seq", _Counter, primary_key=True, autoincrement=True),
    Column("job_id", Text, nullable=False),
    Column("attempt", Integer, nullable=False),
    Column("at", Double, nullable=False),
    Column("step", BigInteger, nullable=False),
    Column("loss", Double),
    Column("learning_rate", Double),
    Column("steps_per_second", Double),
    Index("readings_of_job", "job_id", "step"),
    Index("readings_in_order", "job_id", "seq"),
)

# Measured values by column, compressed; see `stationmaster.series`. `seq` is the order in which the rows arrived.
series_blocks = sa.Table(
    "series_blocks",
    metadata,
    Column("seq", _Counter, primary_key=True, autoincrement=True),
    Column("job_id", Text, nullable=False),
    Column("attempt", Integer, nullable=False),
    Column("name", Text, nullable=False),  # of the table
    Column("first_id", BigInteger, nullable=False),
    Column("last_id", BigInteger, nullable=False),
    Column("first_at", Double),
    Column("last_at", Double),
    Column("row_count", Integer, nullable=False),
    Column("thinned", Boolean, nullable=False),
    Column("size", Integer, nullable=False),
    Column("data", LargeBinary, nullable=False),
    Index("series_blocks_of_job", "job_id", "name", "attempt", "seq"),
)

# Kept when the job is removed: it describes a recipe on a GPU, not a user's job.
past_runs = sa.Table(
    "past_runs",
    metadata,
    Column("job_id", Text, primary_key=True),
    Column("recipe", Text, nullable=False),
    Column("gpu", Text, nullable=False),
    Column("facts", Text, nullable=False),
    Column("at", Double, nullable=False),
    Index("past_runs_like", "recipe", "gpu", "at"),
)

# The analysis of an attempt that trained; the parts of the report are JSON.
analysis_reports = sa.Table(
    "analysis_reports",
    metadata,
    Column("job_id", Text, primary_key=True),
    Column("attempt", Integer, primary_key=True),
    Column("created_at", Double, nullable=False),
    Column("health", Text, nullable=False),
    Column("headline", Text),  # the first recommendation
    Column("summary", Text, nullable=False),
    Column("recommendations", Text, nullable=False),
    Column("log_errors", Text, nullable=False),
    Column("timeline", Text, nullable=False),
    Column("notes", Text, nullable=False),
)

checkpoints = sa.Table(
    "checkpoints",
    metadata,
    Column("job_id", Text, primary_key=True),
    Column("attempt", Integer, primary_key=True),
    Column("path", Text, primary_key=True),
    Column("kind", Text, nullable=False),
    Column("size", BigInteger, nullable=False),
    Column("step", BigInteger),
    Column("sha256", Text),
    Column("location", Text),
    Column("verified_at", Double),
)

alerts = sa.Table(
    "alerts",
    metadata,
    Column("seq", _Counter, primary_key=True, autoincrement=True),
    Column("job_id", Text),
    Column("kind", Text, nullable=False),
    Column("message", StorableText, nullable=False),
    Column("at", Double, nullable=False),
    Column("cleared_at", Double),
    Index("alerts_of_job", "job_id", "kind"),
)

bad_machines = sa.Table(
    "bad_machines",
    metadata,
    Column("provider", Text, primary_key=True),
    Column("machine_id", Text, primary_key=True),
    Column("why", StorableText, nullable=False),
    Column("at", Double, nullable=False),
)

interests = sa.Table(
    "interests",
    metadata,
    Column("job_id", Text, primary_key=True),
    Column("watcher", Text, primary_key=True),
    Column("until", Double, nullable=False),
)

call_turns = sa.Table(
    "call_turns",
    metadata,
    Column("account", Text, primary_key=True),
    Column("endpoint", Text, primary_key=True),
    Column("next_at", Double, nullable=False),
)

periodic = sa.Table(
    "periodic",
    metadata,
    Column("name", Text, primary_key=True),
    Column("due_at", Double, nullable=False),
    Column("last_run_at", Double),
    Column("lease_owner", Text),
    Column("lease_token", BigInteger, nullable=False),
    Column("lease_until", Double),
)

users = sa.Table(
    "users",
    metadata,
    Column("name", Text, primary_key=True),
    Column("telegram_id", Text),
    Column("discord_id", Text),
    Column("email", Text),
    Column("inbox", Boolean, nullable=False),
    Column("muted", Text, nullable=False),
    Column("quiet", Text),
    Column("time_zone", Text, nullable=False),
    Column("created_at", Double, nullable=False),
    Column("role", Text, nullable=False, server_default="user"),
)

# One row per event, user and purpose: the unique index refuses a second one.
outbox = sa.Table(
    "outbox",
    metadata,
    Column("id", _Counter, primary_key=True, autoincrement=True),
    Column("cause", Text, nullable=False),
    Column("user", Text, nullable=False),
    Column("purpose", Text, nullable=False),
    Column("job_id", Text),
    Column("message", Text, nullable=False),
    Column("state", Text, nullable=False),
    Column("tries", Integer, nullable=False),
    Column("next_at", Double),
    Column("channel", Text),
    Column("problem", StorableText),
    Column("created_at", Double, nullable=False),
    Column("done_at", Double),
    Column("lease_owner", Text),
    Column("lease_token", BigInteger, nullable=False),
    Column("lease_until", Double),
    Index("outbox_once", "cause", "user", "purpose", unique=True),
    Index("outbox_due", "next_at"),
)

inbox = sa.Table(
    "inbox",
    metadata,
    Column("id", _Counter, primary_key=True, autoincrement=True),
    Column("user", Text, nullable=False),
    Column("key", Text, nullable=False),
    Column("kind", Text, nullable=False),
    Column("job_id", Text),
    Column("text", StorableText, nullable=False),
    Column("priority", Text, nullable=False),
    Column("at", Double, nullable=False),
    Column("read_at", Double),
    Index("inbox_once", "user", "key", unique=True),
)

followed = sa.Table(
    "followed",
    metadata,
    Column("name", Text, primary_key=True),
    Column("seq", BigInteger, nullable=False),
)

# Users who have or had credits: to spend credits, a transaction locks this row.
credit_accounts = sa.Table(
    "credit_accounts",
    metadata,
    Column("user", Text, primary_key=True),
)

# Credits that came in together, and what is left of them. Lots that expire are spent first, then the oldest.
credit_lots = sa.Table(
    "credit_lots",
    metadata,
    Column("id", Text, primary_key=True),
    Column("user", Text, nullable=False),
    Column("amount", BigInteger, nullable=False),
    Column("remaining", BigInteger, nullable=False),
    Column("expires_at", Double),
    Column("at", Double, nullable=False),
    CheckConstraint("remaining >= 0", name="credit_lot_not_negative"),
    Index("credit_lots_of_user", "user"),  # `remaining` is in no index, so PostgreSQL updates it in place
)

# Written once, never changed. A job's entries name it in `job`, so that they stay when the job is removed.
ledger_entries = sa.Table(
    "ledger_entries",
    metadata,
    Column("seq", _Counter, primary_key=True, autoincrement=True),
    Column("user", Text, nullable=False),
    Column("kind", Text, nullable=False),
    Column("lot", Text, nullable=False),
    Column("balance", BigInteger, nullable=False),  # what it adds to the spendable credits
    Column("held", BigInteger, nullable=False),  # what it adds to the held credits
    Column("job", Text),
    Column("attempt", Integer),
    Column("part", Integer, nullable=False),  # one entry per lot that the movement touches
    Column("key", Text),  # chosen by the operator; repeating the command with the same key changes nothing
    Column("note", Text, nullable=False),
    Column("actor", Text, nullable=False),
    Column("at", Double, nullable=False),
    Index("ledger_entries_of_user", "user", "seq"),
    # One hold and one settlement per job and attempt: the unique index refuses a second one.
    Index("ledger_entries_once", "job", "attempt", "kind", "part", unique=True),
)

# The catalogue. A model stays in it when its job is removed.
trained_models = sa.Table(
    "models",
    metadata,
    Column("slug", Text, primary_key=True),
    Column("job_id", Text, nullable=False),
    Column("name", Text, nullable=False),
    Column("owner", Text),
    Column("recipe", Text, nullable=False),
    Column("family", Text),
    Column("trigger", Text),
    Column("base_model", Text),
    Column("dataset_sha256", Text),
    Column("file_name", Text, nullable=False),
    Column("sha256", Text, nullable=False),
    Column("size", BigInteger, nullable=False),
    Column("complete", Boolean, nullable=False),
    Column("details", Text, nullable=False),
    Column("places", Text, nullable=False),
    Column("previews", Text, nullable=False),
    Column("registering", Text, nullable=False),
    Column("register_note", Text),
    Column("register_at", Double),
    Column("register_tries", Integer, nullable=False),
    Column("created_at", Double, nullable=False),
    Index("models_of_job", "job_id"),
    Index("models_to_register", "register_at"),
)

# Permission to upload one file to the bucket. A path has one live ticket at a time: a unique index refuses a second.
tickets = sa.Table(
    "tickets",
    metadata,
    Column("id", Text, primary_key=True),
    Column("token_sha256", Text),
    Column("job_id", Text, nullable=False),
    Column("attempt", Integer, nullable=False),
    Column("path", Text, nullable=False),
    Column("size", BigInteger, nullable=False),
    Column("sha256", Text, nullable=False),
    Column("parts", Text, nullable=False),
    Column("key", Text, nullable=False),
    Column("quarantine", Text, nullable=False),
    Column("upload", Text),
    Column("state", Text, nullable=False),
    Column("created_at", Double, nullable=False),
    Column("expires_at", Double, nullable=False),
    Column("closed_at", Double),
    Column("problem", Text),
)

# Tokens, codes and cookies are stored as SHA-256: a copy of the store gives no access.
api_tokens = sa.Table(
    "api_tokens",
    metadata,
    Column("id", Text, primary_key=True),
    Column("secret_sha256", Text, nullable=False, unique=True),
    Column("name", Text, nullable=False),
    Column("owner", Text, nullable=False),
    Column("rights", Text, nullable=False),
    Column("created_at", Double, nullable=False),
    Column("expires_at", Double),
    Column("last_used_at", Double),
    Column("revoked_at", Double),
    Index("tokens_of_user", "owner"),
)

sign_in_codes = sa.Table(
    "sign_in_codes",
    metadata,
    Column("code_sha256", Text, primary_key=True),
    Column("owner", Text, nullable=False),
    Column("expires_at", Double, nullable=False),
)

browser_sessions = sa.Table(
    "browser_sessions",
    metadata,
    Column("secret_sha256", Text, primary_key=True),
    Column("owner", Text, nullable=False),
    Column("token_id", Text),  # of the token that opened it, whose end ends it
    Column("csrf_token", Text, nullable=False),
    Column("created_at", Double, nullable=False),
    Column("expires_at", Double, nullable=False),
)

audit_log = sa.Table(
    "audit_log",
    metadata,
    Column("id", _Counter, primary_key=True, autoincrement=True),
    Column("at", Double, nullable=False),
    Column("actor", StorableText),
    Column("token_id", Text),
    Column("action", StorableText, nullable=False),
    Column("subject", StorableText),
    Column("status", Integer, nullable=False),
    Column("address", StorableText),
    Index("audit_by_age", "at"),
)

# One row per idempotency key of a user: a repeated request finds the job that the first one made.
submissions = sa.Table(
    "submissions",
    metadata,
    Column("owner", Text, primary_key=True),
    Column("key_sha256", Text, primary_key=True),
    Column("body_sha256", Text, nullable=False),
    Column("job_id", Text, nullable=False),
    Column("created_at", Double, nullable=False),
    Column("submitted_at", Double),  # when the job was queued; a job that was removed since does not come back
    Index("submissions_by_age", "created_at"),
    Index("submissions_of_job", "job_id"),
)

# Datasets that arrive over HTTP; their files are in the home, under `uploads/<id>`.
dataset_uploads = sa.Table(
    "dataset_uploads",
    metadata,
    Column("id", Text, primary_key=True),
    Column("owner", Text, nullable=False),
    Column("name", StorableText, nullable=False),
    Column("created_at", Double, nullable=False),
    Column("charged_bytes", BigInteger, nullable=False),  # counts against the owner's limit, arrived or only announced
    Column("sha256", Text),  # of the one archive that it is to be
    Column("size", BigInteger),
    Index("uploads_of_user", "owner", "created_at"),
)

# One row per worker: which providers it serves, and until when it counts as alive.
workers = sa.Table(
    "workers",
    metadata,
    Column("owner", Text, primary_key=True),
    Column("version", Text, nullable=False),
    Column("providers", Text, nullable=False),
    Column("until", Double, nullable=False),
)
