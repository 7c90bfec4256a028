"""SQL statements over a lake's tables: parsed, checked against a closed list, and run by one engine or the other."""
