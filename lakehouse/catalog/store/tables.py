"""All tables of the catalog, whatever module describes them."""

from lakehouse.catalog.store import columns, models, serving_model, topic_model, upload_model

MODULES = (models, serving_model, topic_model, upload_model)
"""Those that describe tables."""
metadata = columns.metadata
