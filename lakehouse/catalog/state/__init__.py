"""What is live in a table at a version: bins, key frames, the sets of tombstones, summaries."""
