"""The Key frames page."""

import shell

shell.title("Key frames", "To be built.")
