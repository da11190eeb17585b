"""sd-scripts that goes on from a state: its bar counts what is left, from 0; we count the whole training."""

from __future__ import annotations

import pytest

from stationmaster.parsers import LogReader, Phase

FIRST_TRY = """running training / 学習開始
  num batches per epoch / 1epochのバッチ数: 20
  num epochs / epoch数: 100
  total optimization steps / 学習ステップ数: 2000
\rsteps:   0%|          | 0/2000 [00:00<?, ?it/s]
epoch 1/100
\rsteps:  13%|█▎        | 261/2000 [12:31<1:23:28,  2.88s/it, avr_loss=0.101]
Traceback (most recent call last):
  File "sdxl_train_network.py", line 234, in <module>
    trainer.train(args)
RuntimeError: CUDA error: an illegal memory access was encountered
"""
AGAIN = """resume training from local state: /job/output/cat-step00000250-state
running training / 学習開始
  num batches per epoch / 1epochのバッチ数: 2000
  num epochs / epoch数: 1
  total optimization steps / 学習ステップ数: 2000
skipping 250 steps / 250ステップをスキップします
\rsteps:   0%|          | 0/1750 [00:00<?, ?it/s]
epoch 1/1
"""
BAR = "\rsteps:   2%|▏         | {}/1750 [01:40<1:20:00,  2.88s/it, avr_loss=0.0934]"


def read(*texts: str) -> LogReader:
    reader = LogReader(framework="kohya", total_steps=2000)
    for text in texts:
        reader.feed(text.encode())
    return reader


def where(reader: LogReader) -> tuple[int | None, int | None]:
    read = reader.summary()
    return read.step, read.total_steps


def test_the_bar_counts_on_from_the_steps_that_were_skipped() -> None:
    assert where(read(AGAIN)) == (250, 2000)
    assert where(read(AGAIN, BAR.format(35))) == (285, 2000)
    assert read(AGAIN, BAR.format(35)).summary().loss == 0.0934


def test_every_reading_is_shifted_not_only_the_summary() -> None:
    reader = read(AGAIN)
    (reading,) = [each for each in reader.feed(BAR.format(35).encode()) if each.step is not None]
    assert (reading.step, reading.total_steps) == (285, 2000)


def test_a_further_try_goes_on_in_the_same_log() -> None:
    assert where(read(FIRST_TRY)) == (261, 2000)
    again = read(FIRST_TRY, AGAIN, BAR.format(35))
    assert where(again) == (285, 2000)
    assert again.summary().phase is Phase.TRAINING


def test_what_one_try_skipped_says_nothing_of_the_next() -> None:
    assert where(read(AGAIN, BAR.format(35), FIRST_TRY.partition("Traceback")[0])) == (261, 2000)


def test_it_is_done_at_the_whole_total() -> None:
    done = read(AGAIN, BAR.format(1750), "\nmodel saved.\n")
    assert where(done) == (2000, 2000)
    assert done.summary().phase is Phase.FINISHED


def test_what_was_skipped_is_remembered_between_two_looks() -> None:
    reader = LogReader.restore(read(AGAIN).state())
    reader.feed(BAR.format(35).encode())
    assert where(reader) == (285, 2000)


def test_where_whole_epochs_are_skipped_the_header_tells_the_total() -> None:
    """Then sd-scripts takes only the rest of the last epoch from its bar."""
    log = AGAIN.replace("0/1750", "0/1990").replace(
        "\r", "skipping epoch 1 because initial_step (multiplied) is 250\n\r"
    )
    assert where(read(log, BAR.format(35).replace("1750", "1990"))) == (285, 2000)


def test_the_bars_of_samples_and_caches_are_not_shifted() -> None:
    sampling = "\ngenerating sample images at step / サンプル画像生成 ステップ: 300\n"
    sampling += "\r 50%|█████     | 5/10 [00:01<00:01,  5it/s]"
    reader = read(AGAIN, BAR.format(50), sampling)
    assert where(reader) == (300, 2000)
    assert reader.summary().phase is Phase.SAMPLING


@pytest.mark.parametrize(
    "line",
    ["skipping 250 steps because of nan", "skipping epoch 3 because initial_step", "skipping 12 steps / 25 done"],
)
def test_other_words_about_skipping_shift_nothing(line: str) -> None:
    log = AGAIN.replace("skipping 250 steps / 250ステップをスキップします", line).replace("0/1750", "0/2000")
    assert where(read(log, BAR.format(35).replace("1750", "2000"))) == (35, 2000)


def test_a_log_with_the_time_before_each_line_is_read_alike() -> None:
    log = AGAIN.replace("skipping 250", "2026-08-22 10:00:00 INFO     skipping 250")
    assert where(read(log, BAR.format(35))) == (285, 2000)
