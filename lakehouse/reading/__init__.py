"""Rows at a version: what a read opens, scans, changes between versions. Nothing here writes."""
