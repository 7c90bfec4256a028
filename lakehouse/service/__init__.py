"""The table service: plans what to do with each table, does it in small steps, and says why."""

from lakehouse.service.rounds import Limits, maintain, plan_tasks, run_one
from lakehouse.service.service import Service

__all__ = ["Limits", "Service", "maintain", "plan_tasks", "run_one"]
