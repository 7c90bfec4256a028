"""What one process keeps open of a lake: catalog, warehouse, engines, leases, pins and caches."""
