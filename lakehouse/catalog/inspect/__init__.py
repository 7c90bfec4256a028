"""Inspection of the catalog that reads of rows do not need: checks, histories, activity."""
