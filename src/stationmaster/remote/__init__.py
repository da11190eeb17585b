"""Access to a machine: commands, files, ports, and typed calls to the trackside that runs there."""
