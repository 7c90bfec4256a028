"""The one transaction that makes operations visible: what each kind adds and drops, and when it is refused."""
