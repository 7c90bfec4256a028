"""Queries that run apart: in a process of their own, which can be ended for sure and cannot take more memory."""

from lakehouse.apart.pool import QueryProcesses as QueryProcesses
