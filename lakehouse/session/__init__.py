"""What one process keeps open of a lake: its catalog and files, engines, leases, pins and what it remembers."""
