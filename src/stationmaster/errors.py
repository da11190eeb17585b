"""The exception tree. The class decides what a caller does next; no code matches on message text.

StationmasterError            hint, exit_code, http_status; the docstring is the default message
├── UserError                 the person can fix it
│   ├── ConfigInvalid         a setting, file or environment variable is wrong
│   ├── RecipeInvalid         a recipe does not follow the schema
│   ├── DatasetInvalid        the dataset has errors that would waste money
│   ├── NotFound              no such job, recipe, file
│   ├── IllegalMove           the job's state does not allow this; WrongOffset (a piece of an upload that does not fit)
│   ├── AlreadyEnded          the outcome is written and does not change
│   ├── TicketRefused         an upload ticket that was used, has expired or does not fit; TokenMissing (not shown)
│   ├── SecretRefused         a secret that may do too much to be sent to a rented machine
│   ├── NoOfferFits           no machine that can be rented now is what the job needs
│   ├── OutOfCredit           not enough credits, with the numbers
│   ├── KeyReused             an idempotency key that belongs to another request
│   ├── NotSignedIn           the server does not know who asks
│   ├── Forbidden             the server knows who asks, and they may not do this
│   ├── TooManyRequests       the server takes no more requests from them now
│   ├── TooLarge              more bytes than the server accepts
│   ├── PictureInvalid        a picture that is broken or too large to be shown
│   └── DiskFull              not enough disk space, with the numbers
├── StoreError                the store cannot be used
│   ├── StoreNewer            written by a newer version of Stationmaster
│   ├── LedgerBroken          the credits do not add up
│   └── LeaseLost             another worker holds the job now: drop the result
├── ProviderError             NoCapacity (next offer) · ProviderBusy (same call, later) · AccessRefused (alert people)
│                             AnswerLost (unknown whether it happened) · ProviderFault (its answer makes no sense)
├── RemoteError               Unreachable (state unknown) · CommandFailed · HostKeyRefused · TransferFailed
│   └── MachineFault          what the machine sent cannot be true: FalseAnswer (a CommandFailed), FalseFile (a
│                             TransferFailed)
├── DeliveryError             DeliveryRefused (try another place) · DeliveryBusy (the same place, later)
├── NotifyError               NotifyRefused (try another way) · NotifyBusy (the same way, later)
└── ServerError               the server of `--server` does not answer, or not as Stationmaster's API does
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
    """The job, recipe, user or file does not exist."""

    exit_code = 6
    http_status = 404


class IllegalMove(UserError):
    """The job's state does not allow this."""

    exit_code = 7
    http_status = 409


class AlreadyEnded(IllegalMove):
    """The job has already ended; nothing was changed."""

    exit_code = 0  # asking twice is not a failure


class WrongOffset(IllegalMove):
    """The piece does not begin where the file on the server ends."""

    def __init__(self, message: str | None = None, *, received: int | None = None, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.received = received  # where the next piece begins, as far as it is known


class TicketRefused(UserError):
    """The upload ticket was used, has expired, or is for something else."""

    exit_code = 9
    http_status = 409


class TokenMissing(TicketRefused):
    """The token of the upload ticket is missing."""

    http_status = 401


class SecretRefused(UserError):
    """The secret allows too much to be sent to a rented machine."""


class NoOfferFits(UserError):
    """No machine that can be rented now fits."""


class OutOfCredit(UserError):
    """There are not enough credits."""

    exit_code = 60
    http_status = 402


class KeyReused(UserError):
    """The idempotency key was used for another request."""

    exit_code = 17
    http_status = 422


class NotSignedIn(UserError):
    """Who is asking is unknown: no token, or one that is not valid."""

    exit_code = 12
    http_status = 401


class Forbidden(UserError):
    """This account may not do that."""

    exit_code = 13
    http_status = 403


class TooManyRequests(UserError):
    """There are too many requests; retry later."""

    exit_code = 14
    http_status = 429

    def __init__(
        self, message: str | None = None, *, retry_after_seconds: float | None = None, hint: str | None = None
    ) -> None:
        super().__init__(message, hint=hint)
        self.retry_after_seconds = retry_after_seconds


class TooLarge(UserError):
    """The request has more bytes than the server accepts."""

    exit_code = 15
    http_status = 413


class PictureInvalid(UserError):
    """The picture is broken, or too large to be shown."""

    http_status = 422


class DiskFull(UserError):
    """There is not enough disk space."""

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
    """Another worker holds this job now; the result is dropped."""


class ProviderError(StationmasterError):
    """The provider did not carry out the request."""

    exit_code = 20
    http_status = 502


class NoCapacity(ProviderError):
    """The offer is gone or nothing fits; nothing was rented."""


class ProviderBusy(ProviderError):
    """The provider is busy; nothing was changed. Retry later."""

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
    """The machine did not carry out the command."""

    exit_code = 30
    http_status = 502


class Unreachable(RemoteError):
    """The machine cannot be reached; its state is unknown."""


class CommandFailed(RemoteError):
    """A command on the machine failed."""


class HostKeyRefused(RemoteError):
    """The machine's host key is not the one that was pinned; nothing was sent."""


class TransferFailed(RemoteError):
    """A file was not transferred completely."""


class BrokenModel(TransferFailed):
    """A file that should be a model cannot be opened as one."""


class MachineFault(RemoteError):
    """What the machine sent cannot be true."""


class FalseAnswer(MachineFault, CommandFailed):
    """The machine's answer is too long, or is no answer."""


class FalseFile(MachineFault, TransferFailed):
    """A file has another size or hash than the machine reported."""


class DeliveryError(StationmasterError):
    """A model or dataset could not be uploaded or downloaded."""

    exit_code = 31
    http_status = 502


class DeliveryRefused(DeliveryError):
    """The bucket or Hub refuses this; a retry does not help."""


class DeliveryBusy(DeliveryError):
    """The bucket or Hub failed for now; retry later. Whether it carried out the request is unknown."""

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
    """The service refuses this message; a retry does not help."""

    http_status = 409


class NotifyBusy(NotifyError):
    """The service cannot take the message now; retry later."""

    def __init__(
        self, message: str | None = None, *, retry_after_seconds: float | None = None, hint: str | None = None
    ) -> None:
        super().__init__(message, hint=hint)
        self.retry_after_seconds = retry_after_seconds


class ServerError(StationmasterError):
    """The server does not answer."""

    exit_code = 16
    http_status = 502
