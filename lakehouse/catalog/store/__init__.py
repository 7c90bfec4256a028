"""The database itself: connections, concurrent writers, the schema, and rows as values."""
