"""The SQL catalog: versions, locks and operations, on SQLite or PostgreSQL."""
