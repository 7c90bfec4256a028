"""The one transaction that makes something visible: what each kind of operation adds and drops, and what it may not."""
