"""What the operator lets users choose: providers of machines, and datasets that are read with the operator's keys."""

from __future__ import annotations

from dataclasses import dataclass

from stationmaster.datasets.sources.reference import BucketReference, HubReference
from stationmaster.errors import Forbidden
from stationmaster.settings import Settings
from stationmaster.settings.machines import DEFAULT_ACCOUNT, vast_name
from stationmaster.station.adopting import AdoptRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class Allowances:
    """By default users get the default provider, and train on what they uploaded."""

    default_provider: str | None = None
    providers: tuple[str, ...] = ()
    datasets: tuple[str, ...] = ()
    adopt_on: tuple[str, ...] = ()

    @classmethod
    def of(cls, settings: Settings) -> Allowances:
        serve = settings.serve
        return cls(
            default_provider=settings.provider,
            providers=serve.user_providers,
            datasets=serve.user_datasets,
            adopt_on=serve.user_adopt_hosts,
        )

    def require_adoption(self, request: AdoptRequest) -> None:
        """Raises Forbidden unless users may adopt there: it logs in with the operator's keys."""
        if request.target in self.adopt_on and not request.is_instance:
            return
        raise Forbidden(
            "only administrators may adopt trainings on this machine",
            hint="ask the operator to add its name in ssh.hosts to serve.user_adopt_hosts",
        )

    def require_provider(self, name: str | None, account: str | None = None) -> None:
        """Raises Forbidden unless users may choose this provider; None is the default one."""
        if account is not None:
            raise Forbidden("only administrators may choose an account", hint="leave out the account")
        allowed = {_full_name(each) for each in (self.default_provider, *self.providers) if each is not None}
        if name is not None and _full_name(name) not in allowed:
            raise Forbidden(
                f"only administrators may choose the provider {name}",
                hint="leave out the provider, or ask the operator to add it to serve.user_providers",
            )

    def require_dataset(self, source: BucketReference | HubReference) -> None:
        """Raises Forbidden unless the dataset's address begins as the operator allows."""
        address = str(source) if isinstance(source, BucketReference) else f"hf://datasets/{source.repository}"
        parts = address.partition("://")[2].split("/")
        is_plain = not any(part in ("", ".", "..") for part in parts)  # a server might resolve them
        if is_plain and any(_begins(address, prefix) for prefix in self.datasets):
            return
        raise Forbidden(
            f"only administrators may train on {address}",
            hint="upload the dataset, or ask the operator to add its address to serve.user_datasets",
        )


NOTHING_MORE = Allowances()


def _full_name(provider: str) -> str:
    return vast_name(DEFAULT_ACCOUNT) if provider == f"vastai:{DEFAULT_ACCOUNT}" else provider


def _begins(address: str, prefix: str) -> bool:
    """Whether the address is the prefix, or below it: `s3://a/b` is not below `s3://a/bc`."""
    folder = prefix.rstrip("/")
    return address == folder or address.startswith(f"{folder}/")
