"""The one exception tree. The branch tells the caller what to do, so nobody matches on message text.

StationmasterError            hint, exit_code, http_status; the docstring is the default message
├── UserError                 the person can fix it
│   ├── ConfigInvalid         a setting, file or environment variable is wrong
│   ├── RecipeInvalid         a recipe does not follow the schema
│   ├── DatasetInvalid        the dataset has errors that would waste money
│   ├── NotFound              no such job, recipe, file
│   ├── IllegalMove           the job's state does not allow this
│   ├── AlreadyEnded          the outcome is written and does not change
│   ├── TicketRefused         an upload ticket that was used, has expired or does not fit; TokenMissing (not shown)
│   ├── SecretRefused         a secret that may do too much to be sent to a rented machine
│   ├── OutOfCredit           the credits do not suffice, with the numbers
│   └── DiskFull              not enough room, with the numbers
├── StoreError                the store cannot be used
│   ├── StoreNewer            written by a newer version of Stationmaster
│   ├── LedgerBroken          the credits do not add up
│   └── LeaseLost             somebody else's job now: drop the result
├── ProviderError             NoCapacity (next offer) · ProviderBusy (same call, later) · AccessRefused (tell people)
│                             AnswerLost (nobody knows whether it happened) · ProviderFault (its answer makes no sense)
├── RemoteError               Unreachable (state unknown) · CommandFailed · HostKeyRefused · TransferFailed
├── DeliveryError             DeliveryRefused (try another place) · DeliveryBusy (the same place, later)
└── NotifyError               NotifyRefused (try another way) · NotifyBusy (the same way, later)
"""

from __future__ import annotations

from typing import ClassVar


class StationmasterError(Exception):
    """Something went wrong."""

    exit_code: ClassVar[int] = 1
    http_status: ClassVar[int] = 500

    def __init__(self, message: str | None = None, *, hint: str | None = None) -> None:
        super().__init__(message or (type(self).__doc__ or "").strip())
        self.hint = hint


class UserError(StationmasterError):
    """The request cannot be carried out as given."""

    exit_code = 2
    http_status = 400


class ConfigInvalid(UserError):
    """The settings are not valid."""

    exit_code = 3


class RecipeInvalid(UserError):
    """The recipe is not valid."""

    exit_code = 4


class DatasetInvalid(UserError):
    """The dataset cannot be trained on."""

    exit_code = 5
    http_status = 422


class NotFound(UserError):
    """There is no such thing."""

    exit_code = 6
    http_status = 404


class IllegalMove(UserError):
    """The job's state does not allow this."""

    exit_code = 7
    http_status = 409


class AlreadyEnded(IllegalMove):
    """The job has its outcome already; nothing was changed."""

    exit_code = 0  # asking twice is no failure


class TicketRefused(UserError):
    """The upload ticket was used, has expired, or is for something else."""

    exit_code = 9
    http_status = 409


class TokenMissing(TicketRefused):
    """An upload ticket needs its token."""

    http_status = 401


class SecretRefused(UserError):
    """The secret may do too much to be sent to a rented machine."""


class OutOfCredit(UserError):
    """The credits do not suffice."""

    exit_code = 60
    http_status = 402


class DiskFull(UserError):
    """There is not enough room on the disk."""

    exit_code = 8
    http_status = 507


class StoreError(StationmasterError):
    """The store cannot be used."""

    exit_code = 10
    http_status = 503


class StoreNewer(StoreError):
    """The store was written by a newer version of Stationmaster."""

    exit_code = 11


class LedgerBroken(StoreError):
    """The ledger does not add up."""

    exit_code = 61


class LeaseLost(StoreError):
    """Another worker holds this job now; what was learnt is dropped."""


class ProviderError(StationmasterError):
    """The provider did not do what was asked."""

    exit_code = 20
    http_status = 502


class NoCapacity(ProviderError):
    """The offer is gone or nothing fits; nothing was rented."""


class ProviderBusy(ProviderError):
    """The provider asks to come back later; nothing was changed."""

    def __init__(
        self, message: str | None = None, *, retry_after_seconds: float | None = None, hint: str | None = None
    ) -> None:
        super().__init__(message, hint=hint)
        self.retry_after_seconds = retry_after_seconds


class AccessRefused(ProviderError):
    """The provider does not accept the key; nothing was changed."""

    exit_code = 21


class AnswerLost(ProviderError):
    """The request may or may not have been carried out."""


class ProviderFault(ProviderError):
    """The provider's answer cannot be trusted."""


class RemoteError(StationmasterError):
    """The machine did not do what was asked."""

    exit_code = 30
    http_status = 502


class Unreachable(RemoteError):
    """The machine cannot be reached; its state is unknown."""


class CommandFailed(RemoteError):
    """A command on the machine failed."""


class HostKeyRefused(RemoteError):
    """The machine's host key is not the one that was pinned; nothing was sent."""


class TransferFailed(RemoteError):
    """A file did not arrive whole."""


class BrokenModel(TransferFailed):
    """A file that should be a model does not open as one."""


class DeliveryError(StationmasterError):
    """A model or dataset could not be moved to or from a store of files."""

    exit_code = 31
    http_status = 502


class DeliveryRefused(DeliveryError):
    """The store of files will not do this, however often it is asked."""


class DeliveryBusy(DeliveryError):
    """The store of files could not do this now; it may later. Whether it did is unknown."""

    def __init__(
        self, message: str | None = None, *, retry_after_seconds: float | None = None, hint: str | None = None
    ) -> None:
        super().__init__(message, hint=hint)
        self.retry_after_seconds = retry_after_seconds


class NotifyError(StationmasterError):
    """The message could not be delivered."""

    exit_code = 50
    http_status = 502


class NotifyRefused(NotifyError):
    """The service will not deliver this message, however often it is asked."""


class NotifyBusy(NotifyError):
    """The service could not take the message now; it may later."""

    def __init__(
        self, message: str | None = None, *, retry_after_seconds: float | None = None, hint: str | None = None
    ) -> None:
        super().__init__(message, hint=hint)
        self.retry_after_seconds = retry_after_seconds
