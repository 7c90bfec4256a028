"""The Segments page."""

import shell

shell.title("Segments", "To be built.")
