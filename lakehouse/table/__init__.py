"""What a user holds: a table with its reads, writes and looks, and transactions over several."""
