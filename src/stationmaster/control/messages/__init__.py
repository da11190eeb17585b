"""From events to people: what is told, to whom, by which way, once."""
