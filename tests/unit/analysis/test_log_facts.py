"""Errors, steps, ends and times in a run's log."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from stationmaster.analysis.facts.log_facts import LogFacts, first_time_in, out_of_memory_of, read_log
from stationmaster.parsers.base import ErrorKind

TRACEBACK = """Traceback (most recent call last):
  File "/app/run.py", line 12, in main
    job.run()
  File "/app/job.py", line 80, in run
    self.save(step)
"""


def read(text: str, *, framework: str | None = "ai-toolkit", total: int | None = None, offset: float = 0) -> LogFacts:
    return read_log(text, framework=framework, total_steps=total, utc_offset=offset)


def test_a_crash_has_its_exceptions_own_line_and_its_traceback() -> None:
    found = read(
        "Running 1 job\n\nError running job: [Errno 28] No space left on device\n\n"
        f"{TRACEBACK}OSError: [Errno 28] No space left on device\n"
    ).cause
    assert found is not None
    assert found.kind is ErrorKind.DISK_FULL
    assert found.message == "OSError: [Errno 28] No space left on device"
    assert found.traceback is not None
    assert "self.save(step)" in found.traceback


def test_the_explanation_after_an_exception_belongs_to_its_message() -> None:
    found = read(
        f"{TRACEBACK}huggingface_hub.errors.GatedRepoError: 403 Client Error.\n\n"
        "Cannot access gated repo for url https://huggingface.co/some/model.\n"
    ).cause
    assert found is not None
    assert "Cannot access gated repo" in found.message


def test_an_error_before_further_steps_ended_nothing() -> None:
    found = read(
        f"{TRACEBACK}RuntimeError: the picture viewer is gone\n"
        "name:  50%|█████     | 500/1000 [08:20<08:20,  1.00it/s, lr: 1.0e-04 loss: 3.000e-01]\n"
    )
    assert found.cause is None
    assert [error.advanced for error in found.errors] == [True]


def test_a_local_time_becomes_the_machines() -> None:
    text = (
        "2026-11-06 09:24:39 WARNING  the cache is stale                       train_util.py:12\n"
        "                    WARNING  the cache is stale, again                train_util.py:13\n"
    )
    found = read(text, framework="kohya", offset=3600)
    assert [warning.at for warning in found.warnings] == [1793953479.0, 1793953479.0]
    assert first_time_in(text) == 1793957079.0


def test_a_resumed_kohya_counts_only_what_is_left() -> None:
    bar = "\rsteps: 100%|██████████| 200/200 [06:40<00:00,  2.00s/it, avr_loss=0.28]\n"
    assert read(bar, framework="kohya", total=600).steps == 600
    assert read(bar, framework="kohya").steps == 200


def test_a_nan_is_one_error_however_often_it_is_printed() -> None:
    found = read("loss is nan\r\n" * 5)
    assert [(error.kind, error.message, error.count) for error in found.errors] == [
        (ErrorKind.NAN_LOSS, "loss is nan", found.errors[0].count)
    ]
    assert found.errors[0].count >= 5


def test_a_save_that_failed_lost_work() -> None:
    found = read("Saving at step 200\nCould not save optimizer\n")
    assert [error.message for error in found.errors if error.lost_work] == ["Could not save optimizer"]


def test_the_figures_of_an_allocator_are_read_in_both_of_its_wordings() -> None:
    old = out_of_memory_of(
        "CUDA out of memory. Tried to allocate 512.00 MiB (GPU 0; 24.00 GiB total capacity; 21.50 GiB already "
        "allocated; 256.00 MiB free; 22.00 GiB reserved in total by PyTorch)"
    )
    assert (old.wanted_gb, old.used_gb, old.capacity_gb) == (0.5, 23.75, 24.0)
    assert out_of_memory_of("MPS backend out of memory").wanted_gb is None


@given(st.text(alphabet=st.characters(codec="utf-8"), max_size=400), st.sampled_from(["ai-toolkit", "kohya", None]))
def test_any_text_can_be_read(text: str, framework: str | None) -> None:
    assert read(text, framework=framework).text == text


def test_a_secret_in_the_log_does_not_get_into_the_report() -> None:
    found = read(f"{TRACEBACK}RuntimeError: refused hf_abcdefghijklmnop at https://me:pw@host/a?sig=x\n").cause
    assert found is not None
    assert found.message == "RuntimeError: refused … at https://host/a?…"
    assert "hf_abc" not in (found.traceback or "")


def test_of_millions_of_lines_the_first_and_the_last_are_read() -> None:
    """A flood takes no longer than the longest honest log."""
    flood = "Step 1/9: loss=0.5\n" + "y\n" * 1_000_000 + "RuntimeError: it broke\n"
    facts = read_log(flood, framework=None, total_steps=None, utc_offset=0.0)
    assert facts.steps == 1
    assert [error.message for error in facts.errors] == ["RuntimeError: it broke"]
    assert facts.text.count("\n") <= 200_000
