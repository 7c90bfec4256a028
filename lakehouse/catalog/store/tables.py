"""All tables of the catalog, whatever module describes them."""

from lakehouse.catalog.store import models, serving_model, topic_model, upload_model
from lakehouse.catalog.store.columns import Row

MODULES = (models, serving_model, topic_model, upload_model)
"""Those that describe tables."""
metadata = Row.metadata
