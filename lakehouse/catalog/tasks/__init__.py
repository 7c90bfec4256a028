"""The queue of the table service, and what its plans weigh."""
