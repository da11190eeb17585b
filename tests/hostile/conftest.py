"""For tests of machines that are rented from strangers."""

from tests.support.chaos.storm_fixtures import forge, hold, url

__all__ = ["forge", "hold", "url"]
