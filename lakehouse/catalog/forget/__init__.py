"""Taking away what nobody can reach any more: versions, entries, files."""
