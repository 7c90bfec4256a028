"""What changes a table, a file for each kind of operation: begin, write, commit."""
