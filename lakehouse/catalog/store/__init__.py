"""The database itself: how it is opened, written to by many and told its form, and rows as values."""
