"""Files below the warehouse: where they are, how they become durable, what their footers say. Knows no catalog."""
