"""Query processes: queries run in a separate process, which can always be ended and has bounded memory."""

from lakehouse.apart.pool import QueryProcesses as QueryProcesses
