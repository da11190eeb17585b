"""Adopting a training: the request, and what is known of the training."""

from __future__ import annotations

from typing import Any, Self

from pydantic import Field

from stationmaster.model import AdoptedTraining
from stationmaster.station.adopting import AdoptRequest, StopSignal
from stationmaster.station.job_file import Name, hours
from stationmaster.station.wire.document import Document, Instant, RequestDocument

_LONGEST_PATH = 1000


class AdoptBody(RequestDocument):
    """A training that was started by hand. All paths are on its machine."""

    target: Name = Field(examples=["ann@gpu.example.org:2222"])
    """Number of an instance in the server's account, `[USER@]HOST[:PORT]`, or a name in the server's ssh.hosts."""
    log: str = Field(max_length=_LONGEST_PATH, examples=["/workspace/logs/*.log"])
    """Path of the log; with `*`, the newest file that matches."""
    output: str = Field(max_length=_LONGEST_PATH, examples=["/workspace/output"])
    """Folder with its checkpoints."""
    pid_file: str | None = Field(default=None, max_length=_LONGEST_PATH)
    """File with the id of its process; without it, the process that has the log open for writing."""
    release: bool = False
    """Destroy the instance once the training is over and its model is safe."""
    name: Name | None = None
    """Name of the model; null: that of the output folder."""
    provider: Name | None = None
    """Provider of the instance; default: the server's."""
    account: Name | None = None
    """Account of the provider that has the instance; null: the default one."""
    id: Name | None = None
    """Id of the job."""
    max_hours: float | None = Field(default=None, gt=0, lt=10_000, allow_inf_nan=False)
    """Stop the training after this many hours; null: never, or after 72 hours with `release`."""
    stop_signal: StopSignal = "TERM"
    """The signal that a stop sends."""
    stop_when_stalled: bool = False
    """Stop a training that is still stalled after its grace period; otherwise a stall only raises an alert."""

    @classmethod
    def of(cls, request: AdoptRequest) -> Self:
        return cls(
            target=request.target,
            log=request.log,
            output=request.output,
            pid_file=request.pid_file,
            release=request.release,
            name=request.name,
            provider=request.provider,
            account=request.account,
            id=request.id,
            max_hours=request.max_hours,
            stop_signal=request.stop_signal,
            stop_when_stalled=request.stop_when_stalled,
        )

    def request(self, *, owner: str | None) -> AdoptRequest:
        """Raises UserError."""
        return AdoptRequest(
            target=self.target,
            log=self.log,
            output=self.output,
            pid_file=self.pid_file,
            release=self.release,
            name=self.name,
            provider=self.provider,
            account=self.account,
            id=self.id,
            owner=owner,
            max_hours=hours("max_hours", self.max_hours),
            stop_signal=self.stop_signal,
            stop_when_stalled=self.stop_when_stalled,
        )


class AdoptedDocument(Document):
    """The training that a job watches and did not start."""

    target: str
    """The machine, as it was named."""
    log: str
    """The path or pattern of its log on the machine."""
    output: str | None
    """The folder with its checkpoints on the machine."""
    pid: int | None
    """Id of its process; null: not identified, so its end cannot be seen."""
    command: str
    """Program and script."""
    started_at: Instant | None
    """When its process started."""
    instance: str | None
    """The provider's id of the rented machine; null for a machine of your own."""
    rented_at: Instant | None
    """When the instance was rented, if that is known; its cost before the adoption is not counted."""
    release: bool
    """Whether the instance is destroyed when the training is over."""
    stop_signal: StopSignal
    """The signal that `stop` sends to it."""
    unknown: tuple[str, ...]
    """What cannot be known of it, as sentences."""

    @classmethod
    def of(cls, training: AdoptedTraining) -> Self:
        return cls(
            target=training.target,
            log=training.log,
            output=training.output,
            pid=training.pid,
            command=training.command,
            started_at=training.started_at,
            instance=training.instance,
            rented_at=training.rented_at,
            release=training.release,
            stop_signal=training.stop_signal,  # type: ignore[arg-type]
            unknown=training.unknown,
        )

    def value(self) -> AdoptedTraining:
        """Without what only workers need to find the process again."""
        process: dict[str, Any] | None = None if self.pid is None else {"pid": self.pid}
        return AdoptedTraining(
            target=self.target,
            log=self.log,
            output=self.output,
            process=process,
            command=self.command,
            started_at=self.started_at,
            instance=self.instance,
            rented_at=self.rented_at,
            release=self.release,
            stop_signal=self.stop_signal,
            unknown=self.unknown,
        )
