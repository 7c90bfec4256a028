"""Files in the warehouse: their paths, durability, and footers. Knows nothing of the catalog."""
