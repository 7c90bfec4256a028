"""What a user holds: tables with their reads, writes and inspection, and transactions over several."""
