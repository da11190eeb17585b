"""What commands print as JSON where no document of the API fits.

Imported where JSON is asked for: pydantic is not needed for text. The text below a field describes it in
docs/reference/json.md.
"""

from __future__ import annotations

from typing import Any

from pydantic import ConfigDict

from stationmaster.station.wire.document import Document, Instant, Number
from stationmaster.station.wire.jobs import JobDocument
from stationmaster.station.wire.metrics import MetricsSummaryDocument, SeriesDocument, StoredTableDocument
from stationmaster.station.wire.proposals import SkippedAdviceDocument


class SubmittedJob(JobDocument):
    """A job, with what was noted when it was submitted."""

    notes: tuple[str, ...]
    """Assumptions and warnings shown before it was submitted."""


class RetriedJob(SubmittedJob):
    """A job that repeats another one."""

    skipped: tuple[SkippedAdviceDocument, ...]
    """Recommendations that were not applied."""


class JobNote(Document):
    """What happens to a job now."""

    id: str
    """Id of the job."""
    note: str
    """What happens now, as a sentence."""


class RequestAnswer(Document):
    """What became of a requested checkpoint or samples."""

    model_config = ConfigDict(extra="allow")

    state: str
    """`saved`, `sampled`, `timed_out`, `not_running` or `refused`."""
    number: int | None = None
    """Which request it answers, counted from 1."""
    files: tuple[str, ...] = ()
    """What was written on the machine."""
    places: tuple[str, ...] = ()
    """Local paths of the copies."""
    problem: str | None = None
    """Why nothing was written."""


class AnsweredRequest(JobNote):
    """What happens to a job now, and what became of the request."""

    answer: RequestAnswer | None
    """Null: the job ended first."""


class RemovedJob(Document):
    """A job that was removed."""

    id: str
    """Id of the job."""
    removed: bool = True
    """Always true."""


class RemovedUser(Document):
    """A user who was removed."""

    name: str
    """Name of the user."""
    removed: bool = True
    """Always true."""


class ErrorLine(Document):
    """A line of an error in a log, or a line around it."""

    attempt: int
    """The attempt that printed it."""
    stream: str
    """Step and try."""
    passage: int
    """Lines that belong together have the same number in their stream."""
    line: int
    """Its number in the stored log of that stream, from 1."""
    text: str
    """The line, without its end."""
    is_error: bool
    """False: a line around the error."""
    kind: str | None
    """What kind of error it names, such as `oom`; null on lines that name none."""
    fatal: bool | None
    """Whether that ends the training."""


class DemoResult(Document):
    """How the demonstration went."""

    job: str
    """Id of the job."""
    outcome: str | None
    """How it ended."""
    reason: str | None
    """Why it ended."""
    model: str | None
    """Path of the model."""
    steps: int | None
    """The last step that it reached."""
    first_loss: Number | None
    """The first loss that was read."""
    last_loss: Number | None
    """The last loss that was read."""
    cost_usd: float
    """What it cost, in play money."""
    machines_left: int
    """Machines that are not confirmed gone."""
    seconds: float | None
    """Time from submission to end."""


class CopiedFiles(Document):
    """Files that were copied to a folder."""

    files: tuple[str, ...]
    """Paths of the copies."""


class CopiedFile(Document):
    """A file that was copied."""

    file: str
    """Path of the copy."""


class RecipeLine(Document):
    """A recipe in a list."""

    recipe: str
    """How other commands name it: `name@version`."""
    title: str
    """What it trains."""


class WrittenRecipe(Document):
    """A new recipe."""

    recipe: str
    """The file that was written."""


class TrustedFile(Document):
    """A settings file that is trusted until it changes."""

    path: str
    """Path of the file."""
    sha256: str
    """SHA-256 of its text."""
    settings: tuple[str, ...]
    """Names of the settings that it sets."""


class ForgottenFile(Document):
    """A settings file that is no longer trusted."""

    path: str
    """Path of the file."""


class ProviderKeys(Document):
    """The SSH keys that a provider has."""

    knows_ours: bool
    """Whether ours is among them."""
    keys: tuple[str, ...]
    """All of them, as in `authorized_keys`."""


class OwnKey(Document):
    """The SSH key for rented machines, and which providers have it."""

    private_key_path: str
    """File with the private key."""
    public_key: str
    """The public key, as in `authorized_keys`."""
    made: bool
    """Whether it was created now."""
    providers: dict[str, ProviderKeys]
    """By name, each provider that keeps keys."""


class PinnedHostKey(Document):
    """The host key of a machine of your own."""

    host: str
    """The machine, as it was named."""
    key: str
    """Its host key."""
    file: str
    """File in which it is pinned."""
    changed: bool
    """False: it was already pinned."""


class ExportedRows(Document):
    """Values that were written to a file."""

    file: str
    """Path of the file."""
    rows: int
    """How many rows were written."""


class TableRows(Document):
    """All rows of one table."""

    table: str
    """Name of the table."""
    columns: dict[str, list[Any]]
    """The values of each column, by its name."""


class RunMetrics(Document):
    """The series of a job, a watched machine or a file."""

    subject: str
    """The job's id, `PROVIDER/INSTANCE`, or the name of the file."""
    summary: MetricsSummaryDocument
    """The range that was asked for, in numbers."""
    tables: tuple[StoredTableDocument, ...]
    """What is stored, by table and attempt; of a file without times and attempts."""
    series: tuple[SeriesDocument, ...]
    """The series that were asked for."""
    notes: tuple[str, ...]
    """What was left out, in words."""


class ParsedError(Document):
    """One problem in a log, once."""

    kind: str
    """What kind of problem it is, such as `oom`."""
    message: str
    """The line that reports it."""
    fatal: bool
    """Whether it ends the training."""


class ParsedLog(Document):
    """What a training log shows at its end."""

    framework: str | None
    """The trainer that wrote it; null: not recognized."""
    step: int | None
    """The last step."""
    total_steps: int | None
    """Steps that the training will take."""
    step_scope: str | None
    """What the steps count: `run`, or `epoch` if they begin again with every epoch."""
    epoch: Number | None
    """The last epoch."""
    total_epochs: int | None
    """Epochs that the training will take."""
    loss: Number | None
    """The last loss."""
    learning_rate: Number | None
    """The last learning rate."""
    steps_per_second: Number | None
    """The last speed."""
    eta_seconds: Number | None
    """Time left, as last printed."""
    phase: str | None
    """What the training does, such as `training` or `saving`."""
    errors: tuple[ParsedError, ...]
    """Problems in the log."""
    checkpoints: tuple[str, ...]
    """Checkpoints that it names."""


class ReplayedEvent(Document):
    """What the stall detector reported at one time."""

    t: float
    """Seconds since the start of the recording."""
    event: str
    """What was reported, such as `stalling` or `ended`."""
    isStalling: bool
    """Whether the training stalls."""
    confidence: str | None
    """How sure that is: `low`, `medium` or `high`; null: not judged."""
    reason: str
    """What it rests on, as a sentence."""
    recommendation: str
    """`watch`, `alert` or `terminate`."""
    currentStep: Number | None
    """The last step that was read."""
    totalSteps: Number | None
    """Steps that the training will take."""
    cause: str | None
    """What makes it stall, if that can be seen."""
    eta_seconds: float | None
    """Time that the training still needs."""
    steps_per_second: float | None
    """Its speed."""
    usual_steps_per_second: float | None
    """The speed that it usually has."""


class MonitoredMachine(Document):
    """One machine, as `monitor` shows it."""

    id: str
    """The provider's id of the machine."""
    label: str | None
    """Its label."""
    gpu_type: str | None
    """Name and number of its GPUs."""
    status: str
    """What the provider says of it."""
    health: str
    """`healthy`, `warning`, `error`, or `neutral`: nothing to judge."""
    epoch: Number | None
    """The current epoch."""
    total_epochs: int | None
    """Epochs that the training will take."""
    step: int | None
    """The last training step that was read."""
    total_steps: int | None
    """Steps that the training will take."""
    progress_percentage: float | None
    """Share of the steps that are done."""
    loss: Number | None
    """The last loss."""
    gpu_percent: Number | None
    """Utilization of its GPUs."""
    memory_percent: Number | None
    """Share of the GPU memory in use."""
    cost_per_hour_usd: float
    """What it costs per hour."""
    total_cost_usd: float
    """What it cost so far."""
    runtime_seconds: float | None
    """How long it has run."""
    eta_seconds: float | None
    """Time that the training still needs."""
    eta: str | None
    """The same for people."""
    logs: tuple[str, ...]
    """The newest lines of its log."""
    logged_lines: int
    """How many lines were read in all."""
    groups: tuple[str, ...]
    """Groups of the settings that it belongs to."""
    ssh: str | None
    """The command that logs in to it."""
    seen_at: str | None
    """When it last answered."""
    stale: bool
    """Whether this is older than the last look."""
    problem: str | None
    """Why it could not be looked at."""


class CostAhead(Document):
    """What all machines will have cost by then."""

    in_hours: float
    """Hours from now."""
    total_cost_usd: float
    """The cost by then, at the current price."""


class MonitoredSummary(Document):
    """All machines together."""

    running: int
    """Machines that run."""
    instances: int
    """All machines."""
    errors: int
    """Machines with a problem."""
    total_cost_usd: float
    """What they cost so far."""
    cost_per_hour_usd: float
    """What they cost per hour."""
    average_cost_per_hour_usd: float
    """The mean of that."""
    average_gpu_percent: float | None
    """Mean utilization of the GPUs."""
    average_memory_percent: float | None
    """Mean share of GPU memory in use."""
    trajectory: tuple[CostAhead, ...]
    """What they will have cost later, if all go on."""


class MonitorNotice(Document):
    """A change that a person may want to know."""

    at: str | None
    """When it was seen."""
    instance: str
    """The machine."""
    kind: str
    """`epoch`, `exited`, `health` or `recovered`."""
    sentence: str
    """The change as a sentence."""


class MonitorUpdate(Document):
    """One look at all machines."""

    at: str | None
    """When it was taken."""
    stale: bool
    """Whether the provider did not answer, so that this is older."""
    made_up: bool
    """Whether the machines are invented (`--mock`)."""
    instances: tuple[MonitoredMachine, ...]
    """Each machine."""
    summary: MonitoredSummary
    """Figures of all machines together."""
    notices: tuple[MonitorNotice, ...]
    """What changed since the last update."""


class StoreCounts(Document):
    """What is in a store; an old one may lack a table."""

    jobs: int = 0
    """Jobs, ended ones included."""
    running_jobs: int = 0
    """Jobs that have not ended."""
    machines: int = 0
    """Machines that may still be billed."""
    events: int = 0
    """Events of all jobs."""
    models: int = 0
    """Models in the catalogue."""
    users: int = 0
    """Users that were added."""


class ShownStore(Document):
    """The database of a home."""

    kind: str
    """SQLite or PostgreSQL."""
    place: str
    """Its file, or its URL without the password."""
    bytes: int
    """Its size."""
    schema_version: str | None
    """Version of its tables; null: it is empty."""
    newest_schema_version: str
    """The version that this Stationmaster migrates it to."""
    installation: str | None
    """Id of the installation, which the labels of its machines contain."""
    created_at: Instant | None
    """When it was created."""
    counts: StoreCounts
    """What is in it."""


class CheckedStore(Document):
    """Whether a store is whole."""

    kind: str
    """SQLite or PostgreSQL."""
    place: str
    """Its file, or its URL without the password."""
    sound: bool
    """Whether there is no problem."""
    problems: tuple[str, ...]
    """Each as a sentence."""


class WrittenBackup(Document):
    """A copy of a store."""

    file: str
    """The file that was written."""
    bytes: int
    """Its size."""


class WrittenSettings(Document):
    """A new config file."""

    file: str
    """The file that was written."""
    settings: tuple[str, ...]
    """Names of the settings that it sets; all others are commented out."""
    kept: str | None
    """Copy of the file that it replaced."""
    next: tuple[str, ...]
    """Commands to run now."""


class PrunedJob(Document):
    """A job that ended long ago."""

    id: str
    """Id of the job."""
    name: str
    """Its name."""
    ended_at: Instant
    """When it ended."""
    bytes: int
    """Size of its files on this computer, or on the server."""


class KeptJob(Document):
    """An old job that is not deleted."""

    id: str
    """Id of the job."""
    why: str
    """Why it stays."""


class PrunedJobs(Document):
    """Jobs that were deleted because of their age, or would be."""

    removed: bool
    """False: a dry run."""
    bytes: int
    """Size of the files of all these jobs."""
    jobs: tuple[PrunedJob, ...]
    """Those that were or would be deleted."""
    kept: tuple[KeptJob, ...]
    """Those that are old enough, and stay."""
