"""The most that is accepted from one machine: of each answer, of each list in it, and of one job in all.

A rented machine belongs to a stranger. What an honest machine sends stays below the limits of an answer, so an answer
that exceeds one is false. Of lists that an honest training can make long (steps, outputs, events) the first entries
are taken and the rest is left out, with one note. Log and measured values of a job have settings of their own
(`log_cap_bytes`, `metrics.cap_bytes`), and so has what is downloaded (`artifacts.cap_bytes`).
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

MIB = 2**20

# Bytes of one answer ------------------------------------------------------------------------------------------------

ANSWER_BYTES = MIB
"""Of a command or a verb of trackside that is not named below."""

VERB_BYTES: Mapping[str, int] = MappingProxyType(
    {
        "status": 2 * MIB,  # trackside itself stays below 1 MiB
        "start": 2 * MIB,
        "stop": 2 * MIB,
        "follow": 2 * MIB,  # of each line
        "inventory": 4 * MIB,
        "hash": 2 * MIB,  # plus BYTES_PER_CHUNK for each piece that was asked for
        "read": 2 * MIB,  # 1 MiB in base64
        "logs": 64 * MIB,
    }
)

BYTES_PER_CHUNK = 80
"""Of one SHA-256 in a list."""

STDERR_BYTES = 64 * 1024
"""The end of what a command prints as errors; the rest is dropped."""

JSON_VALUES = 400_000
"""Commas and brackets in one answer: each stands for a value that takes far more room in memory than in the text."""

# Entries of one status or inventory ---------------------------------------------------------------------------------

PLAN_STEPS = 200
LOG_STREAMS = 64
KNOWN_STREAMS = 512  # whose position is remembered
TIME_MARKS = 256  # of one piece of the log
SERIES_VALUES = 200_000
SERIES_TABLES = 32
GPUS = 64
SECRET_NAMES = 64
OUTPUT_FILES = 2_000

NAME_CHARACTERS = 200
MESSAGE_CHARACTERS = 4_000
PATH_CHARACTERS = 4_096
LARGEST_INTEGER = 2**53  # exact as a float too, and both databases can store it
LARGEST_TIME = 1e12  # seconds

# Rows of one job ----------------------------------------------------------------------------------------------------

JOB_READINGS = 2_000_000
JOB_EVENTS = 5_000  # of those that a machine causes
JOB_CHECKPOINTS = 10_000

# Faults -------------------------------------------------------------------------------------------------------------

FALSE_ANSWERS = 5
"""In a row: the machine is at fault and its attempt ends. A single one may be an accident, such as a full disk."""
