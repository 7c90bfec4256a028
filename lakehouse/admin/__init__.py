"""The whole lake: expire, collect, check, export, recover."""
