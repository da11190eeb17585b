"""`--gpus` reaches the request, and is merged with what a job file asks of the machine."""

from __future__ import annotations

from stationmaster.station.job_file import AskedMachine, JobFile


def test_gpus_of_the_command_line_are_added_to_those_of_the_file() -> None:
    written = JobFile(recipe="tiny-lora@1", dataset="./cats", machine=AskedMachine(vram_gib=24, gpus=1))
    given = JobFile(machine=AskedMachine(gpus=2))
    asked = written.overlaid(given).request().machine
    assert (asked.gpus, asked.vram_gib) == (2, 24)
    assert written.overlaid(JobFile()).request().machine.gpus == 1
