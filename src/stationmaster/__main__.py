"""`python -m stationmaster`."""

from stationmaster.cli.main import main

main()
