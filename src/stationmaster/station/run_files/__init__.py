"""Files with the series of a run: those of trackside, of other tools, and the ones that are exported."""
