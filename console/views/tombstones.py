"""The Tombstones page."""

import shell

shell.title("Tombstones", "To be built.")
