"""Rows at a version: scans, what they open, changes between versions. Nothing here writes."""
