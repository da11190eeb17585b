"""The station of this computer, which answers from its store."""
