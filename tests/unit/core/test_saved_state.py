"""State that is stored between two visits: its keys never change, and another version's are read."""

from __future__ import annotations

import json

import pytest

from stationmaster.parsers import LogReader
from stationmaster.saved_state import from_json
from stationmaster.watch.log_moment import log_moment
from stationmaster.watch.policy import StallPolicy
from stationmaster.watch.progress import ProgressTrack
from stationmaster.watch.signs import SignsOfLife
from stationmaster.watch.watcher import StallWatch

WATCH_KEYS = {
    "counter": "unit base printed printed_total epoch from_zero total_epochs header_total spans_run",
    "track": "active still furthest position total counts_steps moves repeating repeat_from marks gaps first_gap",
    "book": "phase spent visits longest",
    "trend": "samples usual usual_undisturbed peak",
    "stillness": "since until quiet seen works_since processes identity memory_gb gpu_memory_gb io_mb"
    " network_mb gpu_percent cpu_percent longest usual is_refuted",
    "escalation": "flagged_at terminated_at",
    "recovery": "cause usual_pace pace_at_flag interval active_at_flag signs looks_in_a_row marks",
    "flagged_as": "is_stalling confidence reason recommendation current_step total_steps cause eta_seconds"
    " steps_per_second usual_steps_per_second is_early",
}
READER_KEYS = (
    "configured_total family step total scope epoch total_epochs loss learning_rate rate eta_seconds phase errors"
    " checkpoints header_total has_step_loss has_whole_loss step_epoch step_restarts has_epoch_lines skipped announced"
    " finished fit_over bar_identity bar_total bar_confirmed bar_was_full loss_since_bar before_bar bar_head full_bars"
    " columns in_metrics in_epoch in_traceback headed traceback_prefix background stopped_at is_stopped"
    " saving_unconfirmed"
)


def stalled() -> tuple[StallWatch, LogReader, SignsOfLife]:
    watch, reader, signs = StallWatch(StallPolicy()), LogReader(), SignsOfLife()
    for minute in range(120):
        line = f"step {10 * min(minute, 60)}/2000 loss: 0.5\n"
        watch.observe(log_moment(reader.feed(line.encode()), at=60.0 * minute, moved=signs.feed(line)))
        watch.look(60.0 * minute)
    return watch, reader, signs


def test_the_stored_keys_of_the_watch_never_change() -> None:
    watch, reader, signs = stalled()
    state = watch.state()
    assert list(state) == ["gpus", *WATCH_KEYS, "at", "idle", "is_closing"]
    for part, keys in WATCH_KEYS.items():
        assert list(state[part]) == keys.split()
    assert list(signs.state()) == ["tail", "shapes"]
    assert list(reader.state()["memory"]) == READER_KEYS.split()


def test_a_watch_read_back_is_the_same_watch() -> None:
    watch, _, signs = stalled()
    assert StallWatch.restore(json.loads(json.dumps(watch.state()))) == watch
    assert SignsOfLife.restore(json.loads(json.dumps(signs.state()))) == signs


@pytest.mark.parametrize("document", [{}, {"moves": 3, "new_in_a_later_version": 1}])
def test_keys_of_another_version_are_ignored_and_missing_ones_get_their_defaults(document: dict[str, int]) -> None:
    assert from_json(ProgressTrack, document) == ProgressTrack(moves=document.get("moves", 0))
