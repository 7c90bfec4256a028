"""The whole lake: delete what nothing needs, compare it with itself, save it, recover it."""
