"""The Locks and operations page."""

import shell

shell.title("Locks and operations", "To be built.")
