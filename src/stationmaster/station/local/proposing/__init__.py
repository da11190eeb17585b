"""From a person's request to a proposal: everything is checked before any money can be spent."""
