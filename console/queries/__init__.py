"""Queries of the pages, one module for each page: plain values and data frames, no drawing."""
