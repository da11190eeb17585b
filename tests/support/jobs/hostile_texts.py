"""Text that a hostile machine would write, and a home full of it."""

from __future__ import annotations

import re

from stationmaster.model import Alert, LogChunk, Note, Outcome, Place, Reason, SamplePicture, TrainedModel
from stationmaster.store import events, logs
from stationmaster.store.store import Store
from stationmaster.store.writes import NewEvent
from tests.support.jobs.stored_jobs import change_row, put_trained

TITLE, CLIPBOARD, CLEAR = "\x1b]0;pwned\x07", "\x1b]52;c;cHduZWQ=\x1b\\", "\x1b[2J\x1b[H"
C1 = "\x9b2J\x9d0;pwned\x9c\x90q\x9c"
OTHER = "\x1bP+q544e\x1b\\\x1b_x\x1b\\\x1bc\x1b(0\x1b[?1049h\x1b[31m\x05\x7f\x08"
BIDI = "\u202egnp.cilbup\u202c\u2066\u2069\u200b\U000e0041"
UNENDED = "\x1b]0;never ends"

ESCAPES = f"a{TITLE}b{CLIPBOARD}c{CLEAR}d{C1}e{OTHER}f{BIDI}g[bold red]h[/]"
"""One line of it; the letters are all that a person should read, and the markup is only text."""

CONTROLS = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\U000e0000-\U000e007f]"
)
"""What no terminal may get."""

LOG = f"{ESCAPES}\n10%\r20%\r\nnot UTF-8: \xff\n".encode().replace("\xff".encode(), b"\xff\x9b2J") + (
    f"{ESCAPES}\nspl\x1b".encode()
)
LOG_REST = f"]52;c;cHduZWQ=\x07it over two pieces\n{UNENDED}\n".encode()


def put_hostile_job(store: Store, job_id: str) -> None:
    """An ended job of which every text that a machine or a person chose is hostile."""
    put_trained(store, job_id, name=f"cats{ESCAPES}", trigger=f"ohwx{ESCAPES}", owner=None)
    explanation = f"it failed: {ESCAPES}\nNext: run this"
    change_row(store, job_id, outcome=Outcome.FAILED.value, reason=Reason.STEP_FAILED.value, explanation=explanation)
    chunks = [
        LogChunk(attempt=1, stream="train", start=0, end=len(LOG), data=LOG),
        LogChunk(attempt=1, stream="train", start=len(LOG), end=len(LOG + LOG_REST), data=LOG_REST),
    ]
    happened = [
        NewEvent(kind="step", payload={"step": ESCAPES, "state": "failed", "try": 1, "tries": 1, "exit_code": 1}),
        NewEvent(kind="a_kind_of_newer_code", payload={"said": ESCAPES}),
    ]
    version = store.jobs.get(job_id).version + len(happened)
    change_row(store, job_id, version=version)
    with store.database.write() as connection:
        size = len(LOG + LOG_REST)
        logs.append(connection, logs.rows(job_id, chunks, log_bytes=size, cap_bytes=1 << 30, now=store.now()))
        events.append(connection, events.rows(job_id, happened, version=version, now=store.now()))
    store.alerts.raise_without_lease(Alert(kind="silence", message=ESCAPES, job_id=job_id))
    store.models.put(_model(job_id))
    note = Note(key="k", kind="failed", text=f"cats failed\n\nIssue: {ESCAPES}", priority="high", at=store.now())
    store.inbox.put("me", note)


def _model(job_id: str) -> TrainedModel:
    return TrainedModel(
        slug=f"cats-{job_id}",
        job_id=job_id,
        name=f"cats{ESCAPES}",
        recipe="tiny-lora@1",
        file_name=f"{ESCAPES}.safetensors",
        sha256="0" * 64,
        size=7,
        complete=True,
        created_at=5_000.0,
        family=f"family{ESCAPES}",
        trigger=f"ohwx{ESCAPES}",
        details={"not_published": {"hub": ESCAPES}},
        places=(Place(kind="home", address=ESCAPES, link=ESCAPES),),
        previews=(SamplePicture(path=ESCAPES, text=f"{ESCAPES}\nregistration: done"),),
    )
