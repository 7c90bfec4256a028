"""The Service page."""

import shell

shell.title("Service", "To be built.")
