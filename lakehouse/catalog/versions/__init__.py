"""Which versions exist, which can still be read, and what protects them."""
