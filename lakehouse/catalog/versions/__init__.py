"""Which versions there are, which can still be read, and who holds them."""
