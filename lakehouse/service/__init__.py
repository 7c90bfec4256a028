"""The table service: plans maintenance of each table, runs it in small tasks, and records why."""

from lakehouse.service.rounds import Limits, maintain, plan_tasks, run_one
from lakehouse.service.service import Service

__all__ = ["Limits", "Service", "maintain", "plan_tasks", "run_one"]
