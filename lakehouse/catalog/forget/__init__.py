"""Removing what nothing can reach any more: versions, entries, files."""
