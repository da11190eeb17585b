"""Work that is due every so often, whatever the jobs do."""
