"""Dagster code location: one folder per source; `definitions` is the only wiring."""
