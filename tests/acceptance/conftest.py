"""For tests of whole jobs on rented machines."""

from tests.support.chaos.storm_fixtures import forge, hold, url

__all__ = ["forge", "hold", "url"]
