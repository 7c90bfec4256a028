"""The days and months of the source as partitions."""

from lakehouse.dagster import chunk_partitions

# UTC days: the evening of 31 December in New York is 1 January 2014.
DAYS = chunk_partitions("day", "2013-01-01", "2014-01-02")
MONTHS = chunk_partitions("month", "2013-01-01", "2014-01-02")
