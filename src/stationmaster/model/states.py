"""A job's state, outcome and reason, and what users want of it."""

from __future__ import annotations

from enum import StrEnum

from stationmaster.model.open_enum import OpenEnum


class State(OpenEnum):
    """Where a job is."""

    QUEUED = "QUEUED"  # accepted, validated, price quoted; nothing rented
    PROVISIONING = "PROVISIONING"  # an attempt with a unique label exists; the provider may be billing
    TRANSFERRING_DATA = "TRANSFERRING_DATA"  # the machine is ours and healthy; the dataset is being sent
    EXECUTING = "EXECUTING"  # trackside runs the plan's steps, detached
    FETCHING_RESULTS = "FETCHING_RESULTS"  # the training is over; its files are being fetched
    FINALIZING = "FINALIZING"  # the model is safe; it is being published and catalogued
    RELEASING = "RELEASING"  # the machine is no longer needed; its release is retried until it is gone
    ENDED = "ENDED"  # every rental is confirmed gone; `outcome` and `reason` are set


class Outcome(OpenEnum):
    """How a job ended."""

    COMPLETED = "COMPLETED"
    INCOMPLETE = "INCOMPLETE"  # ended early, the best checkpoint kept
    FAILED = "FAILED"
    FAILED_PROVISIONING = "FAILED_PROVISIONING"  # no machine could be rented
    CANCELLED = "CANCELLED"


class Reason(OpenEnum):
    """Why a job ended, or why an attempt was given up. `lifecycle.REASONS` has the consequences of each."""

    FINISHED = "FINISHED"
    STOPPED_BY_USER = "STOPPED_BY_USER"
    CANCELLED_BY_USER = "CANCELLED_BY_USER"
    STALLED = "STALLED"
    ANOMALY = "ANOMALY"  # a rule whose reaction is to stop found something, such as NaN losses
    HARD_LIMIT = "HARD_LIMIT"
    STEP_FAILED = "STEP_FAILED"
    NO_MODEL = "NO_MODEL"
    NO_OFFER = "NO_OFFER"
    ACCESS_REFUSED = "ACCESS_REFUSED"
    NO_PROVIDER_CREDIT = "NO_PROVIDER_CREDIT"
    MACHINE_NOT_READY = "MACHINE_NOT_READY"
    PREFLIGHT_FAILED = "PREFLIGHT_FAILED"
    TRANSFER_FAILED = "TRANSFER_FAILED"
    MACHINE_LOST = "MACHINE_LOST"
    MACHINE_STOPPED = "MACHINE_STOPPED"
    FETCH_FAILED = "FETCH_FAILED"  # the training was over, and its model never arrived
    MACHINE_FAULT = "MACHINE_FAULT"  # what it sent cannot be true
    OUTBID = "OUTBID"
    OUT_OF_CREDIT = "OUT_OF_CREDIT"
    INTERNAL_ERROR = "INTERNAL_ERROR"


class Desired(StrEnum):
    """What the user wants of a job; the CLI and the API write only this."""

    RUN = "RUN"
    STOP = "STOP"  # save, deliver, end INCOMPLETE
    CANCEL = "CANCEL"  # release at once and discard
    CANCEL_KEEP = "CANCEL_KEEP"  # download the best checkpoint first, then as CANCEL


class Request(StrEnum):
    """What a user may request from a running training; the training continues afterwards."""

    SAVE = "save"
    SAMPLE = "sample"
