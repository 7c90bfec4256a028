"""Changes of a table, one module for each kind of operation: begin, write, commit."""
