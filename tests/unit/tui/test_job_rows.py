"""Jobs as rows and notices."""

from __future__ import annotations

from dataclasses import replace

from stationmaster.model import Outcome, Progress, State
from stationmaster.money import MicroDollars
from stationmaster.station.overview import GpuUse, Needs, OverviewRow
from stationmaster.tui.fleet import Tone
from stationmaster.tui.sources.job_rows import ENDED, NEEDS_YOU, RUNNING, job_row, notices_of

NOW = 1000.0
TRAINING = OverviewRow(
    id="7f3k2q9a", name="cats", owner=None, recipe="flux-lora@1", provider="vastai", shown="EXECUTING",
    stage="training", state_since=0.0, created_at=0.0, ended_at=None,
    progress=Progress(step=500, total_steps=1000, loss=0.12, eta_seconds=60.0), loss_trend=(), gpu="RTX 4090", gpus=2,
    use=GpuUse(percent=90.0, memory_used_gib=12.0, memory_total_gib=24.0), price_per_hour=MicroDollars(300_000),
    cost=MicroDollars(1), quoted=MicroDollars(2), max_spend=MicroDollars(3), health=None, explanation=None, needs=None,
)  # fmt: skip


def test_every_state_and_outcome_has_a_look_of_its_own() -> None:
    shown = [state.value for state in State if state is not State.ENDED] + [outcome.value for outcome in Outcome]
    looks = {each: job_row(replace(TRAINING, shown=each), now=NOW) for each in [*shown, "NEEDS_RECOVERY"]}
    assert len({row.status for row in looks.values()}) == len(looks)
    assert all("_" not in row.status and row.icon for row in looks.values())
    assert job_row(replace(TRAINING, shown="NEWER_STATE"), now=NOW).status == "newer state"


def test_a_training_shows_progress_memory_and_its_group() -> None:
    row = job_row(TRAINING, now=NOW)
    assert (row.progress, row.memory_percent, row.gpu, row.groups) == (50.0, 50.0, "2x RTX 4090", (RUNNING,))


def test_a_stall_matters_more_than_that_it_trains_and_promises_no_time() -> None:
    row = job_row(replace(TRAINING, needs=Needs(kind="stall", sentence="no step for 15 min")), now=NOW)
    assert (row.status, row.tone, row.eta_seconds, row.note) == ("stalled", Tone.WARNING, None, "no step for 15 min")
    assert NEEDS_YOU in row.groups


def test_an_ended_job_shows_no_load() -> None:
    row = job_row(replace(TRAINING, shown="COMPLETED", ended_at=5.0, price_per_hour=None), now=NOW)
    assert (row.gpu_percent, row.eta_seconds, row.cost_per_hour, row.groups) == (None, None, None, (ENDED,))


def test_a_person_hears_of_ends_stalls_and_recoveries_once() -> None:
    good = job_row(TRAINING, now=NOW)
    stalled = job_row(replace(TRAINING, needs=Needs(kind="stall", sentence="no step for 15 min")), now=NOW)
    failed = job_row(replace(TRAINING, shown="FAILED", ended_at=5.0, explanation="out of memory"), now=NOW)

    def told(*rows: object) -> list[str]:
        before, after = rows
        return [each.sentence for each in notices_of({good.id: before}, [after])]  # type: ignore[dict-item,list-item]

    assert told(good, stalled) == ["cats: no step for 15 min"]
    assert told(stalled, stalled) == []
    assert told(stalled, good) == ["cats is training again"]
    assert told(good, failed) == ["cats failed: out of memory"]
    assert notices_of({}, [failed]) == [], "what was so before the app began is no news"
