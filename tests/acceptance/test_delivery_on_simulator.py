"""Deliveries from rented machines over SSH: finished, stalled, refused by the Hub; where each model is, its card."""

from __future__ import annotations

import hashlib
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from capabilities import require
from hub_server import HUB_TOKEN, HubServer
from local_world import write_pictures
from s3_servers import S3Server, raw_client, rclone_s3
from simulator_service import Service, simulator_service
from stationmaster.config import load_settings
from stationmaster.model import Event, Job, Outcome, Reason, State, TrainedModel
from stationmaster.station.base import TrainRequest
from stationmaster.station.local import LocalStation

pytestmark = pytest.mark.slow  # three trainings on rented machines; each way on its own is tried in memory

PATIENCE_SECONDS = 240.0
QUICK = {"steps": 20, "seconds_per_step": 0, "save_every": 10, "sample_every": 20}
STALLED = {
    "steps": 400, "seconds_per_step": 0.02, "save_every": 50, "sample_every": 50, "fault": "stall", "fault_at": 230,
}  # fmt: skip
THRESHOLDS = {
    "min_window": "3s",
    "patience_steps": 10,
    "patience_lines": 2,
    "near_end_eta": "1s",
    "resume_span": "1s",
    "resume_window": "2s",
    "start_limit": "60s",
}
IMPATIENT = {"gracePeriod": 1000, "poll_interval": 0.5, "save_timeout": 1, "stallDetection": {"thresholds": THRESHOLDS}}


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivered:
    """What became of one job."""

    job: Job
    model: TrainedModel
    events: list[Event]

    def told(self, kind: str) -> list[Any]:
        return [event.payload for event in self.events if event.kind == kind]

    def place(self, kind: str) -> str | None:
        found = self.model.place(kind)
        return None if found is None else found.address


@dataclass(frozen=True, slots=True, kw_only=True)
class Station:
    """Everything after all jobs have ended."""

    hub: HubServer
    bucket: S3Server
    service: Service
    jobs: dict[str, Delivered]


@pytest.fixture(scope="module")
def station(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Station]:
    require("sshd")
    folder = tmp_path_factory.mktemp("delivery")
    pictures = write_pictures(folder / "pictures")
    with HubServer() as hub, rclone_s3(folder / "s3") as bucket:
        hub.refuse("POST /api/models/anna/refused-[^/]*/preupload", 403, times=None)
        environ = {
            "STATIONMASTER_HUB__PUBLISH": "true",
            "STATIONMASTER_HUB__URL": hub.url,
            "HF_TOKEN": HUB_TOKEN,
            "STATIONMASTER_LIMITS__MAX_RENTALS": "4",
            **bucket.environment(),
        }
        with simulator_service(folder, **environ) as service:
            settings = load_settings(service.environ, folder=folder)
            with closing(LocalStation(settings, service.environ)) as opened:
                submit(opened, pictures, "finished", QUICK, {})
                submit(opened, pictures, "refused", QUICK, {})
                submit(opened, pictures, "stalled", STALLED, IMPATIENT)
                work_until_ended(opened, service, ("finished", "refused", "stalled"))
                yield Station(hub=hub, bucket=bucket, service=service, jobs=delivered(opened))


def submit(
    station: LocalStation, pictures: Path, name: str, parameters: dict[str, Any], monitoring: dict[str, Any]
) -> None:
    request = TrainRequest(
        recipe="tiny-lora@1",
        dataset=pictures,
        id=name,
        name=name,
        trigger="ohwx",
        parameters=parameters,
        monitoring=monitoring,
    )
    station.submit(request)


def work_until_ended(station: LocalStation, service: Service, jobs: tuple[str, ...]) -> None:
    command = [sys.executable, "-m", "stationmaster", "worker"]
    log = service.home / "test-worker.log"
    with log.open("wb") as said:
        worker = subprocess.Popen(command, env=service.environ, stdin=subprocess.DEVNULL, stdout=said, stderr=said)
    ends = time.monotonic() + PATIENCE_SECONDS
    try:
        while any(station.view(job).job.state is not State.ENDED for job in jobs):
            assert time.monotonic() < ends, log.read_text()[-3000:]
            time.sleep(0.1)
    finally:
        worker.send_signal(signal.SIGTERM)
        worker.wait(timeout=60)


def delivered(station: LocalStation) -> dict[str, Delivered]:
    return {
        model.name: Delivered(
            job=station.view(model.job_id).job, model=model, events=list(station.events(model.job_id))
        )
        for model in station.models()
    }


def test_a_finished_model_is_on_the_hub_and_at_home_with_a_card_that_shows_its_samples(station: Station) -> None:
    done = station.jobs["finished"]
    repo = f"anna/{done.model.slug}"
    weights = Path(str(done.place("home"))).read_bytes()
    assert done.job.outcome is Outcome.COMPLETED
    assert station.hub.content(repo, done.model.file_name) == weights
    assert hashlib.sha256(weights).hexdigest() == done.model.sha256
    front = _front_matter(station.hub.content(repo, "README.md"))
    assert "incomplete" not in front["tags"]
    assert all(station.hub.content(repo, one["output"]["url"]) for one in front["widget"])


def test_a_refused_model_is_in_the_bucket_and_the_reason_is_told(station: Station) -> None:
    done = station.jobs["refused"]
    key = str(done.place("bucket")).removeprefix(f"s3://{station.bucket.bucket}/")
    with closing(raw_client(station.bucket)) as client:
        stored = client.get_object(Bucket=station.bucket.bucket, Key=key)["Body"].read()
    assert done.job.outcome is Outcome.COMPLETED
    assert hashlib.sha256(stored).hexdigest() == done.model.sha256
    assert done.place("hub") is None
    assert "403" in done.told("delivery_failed")[0]["problem"]


def test_a_stalled_model_is_published_as_incomplete_to_the_letter(station: Station) -> None:
    done = station.jobs["stalled"]
    saved = done.model.details["steps"]
    card = station.hub.content(f"anna/{done.model.slug}", "README.md") or b""
    assert (done.job.outcome, done.job.reason) == (Outcome.INCOMPLETE, Reason.STALLED)
    assert _front_matter(card)["tags"][-2:] == ["lora", "incomplete"]
    assert (
        "# stalled\n\n⚠️ **This model was terminated early due to training stall.**\n\n- Target steps: 400\n"
        f"- Completed steps: {saved} ({saved / 4:.1f}%)\n- Reason: ETA not converging\n\n"
        "The model may still be usable but was not fully trained.\n"
    ) in card.decode()


def test_every_machine_is_gone_and_none_had_a_token_in_its_files(station: Station) -> None:
    assert station.service.alive() == []
    left = [path for path in (station.service.home / "simulator").rglob("*") if path.is_file()]
    assert [path for path in left if HUB_TOKEN.encode() in path.read_bytes()] == []


def _front_matter(card: bytes | None) -> dict[str, Any]:
    assert card is not None
    found = yaml.safe_load(card.decode().split("---\n")[1])
    assert isinstance(found, dict)
    return found
