"""What trackside raises; a person or home sees one line of it.

TracksideError    the call could not be done (exit status 1)
└── Misuse        the call itself makes no sense (exit status 2)
"""

from __future__ import annotations


class TracksideError(Exception):
    exit_status = 1


class Misuse(TracksideError):
    exit_status = 2
