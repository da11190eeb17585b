"""The errors of trackside; each is printed as one line on stderr.

TracksideError    the verb failed (exit status 1)
└── Misuse        the command line or the input is invalid (exit status 2)
"""

from __future__ import annotations


class TracksideError(Exception):
    exit_status = 1


class Misuse(TracksideError):
    exit_status = 2
