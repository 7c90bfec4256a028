"""Exports of the catalog, and a new catalog from one."""
