"""The Query page."""

import shell

shell.title("Query", "To be built.")
