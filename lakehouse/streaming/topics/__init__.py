"""Many streams kept running side by side: ``lakehouse stream run topics.toml``.

`config` reads the file, `sources` makes a topic's frame, `run` keeps one topic running, `supervisor` all of them and
says how they are, `figures` writes that for Prometheus.
"""
