"""A JSON line per step, flushed to the kernel after each."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from . import Finish, Log

IMPORT = "import json"
_NAME = "steps.jsonl"


def start(folder: str) -> tuple[Log, Finish]:
    import json
    import time

    file = open(f"{folder}/{_NAME}", "a", encoding="utf-8")
    dumps, write, flush, now = json.dumps, file.write, file.flush, time.time

    def log(step: int, loss: float, lr: float, grad_norm: float) -> None:
        write(dumps({"step": step, "at": now(), "loss": loss, "lr": lr, "grad_norm": grad_norm}) + "\n")
        flush()

    return log, file.close


def stored_steps(folder: str) -> int:
    import json

    with open(f"{folder}/{_NAME}", encoding="utf-8") as file:
        lines = file.read().splitlines()
    return len({json.loads(line)["step"] for line in lines if line.endswith("}")})
