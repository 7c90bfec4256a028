"""A table's schema: read from users' input, normalized, checked, and stored as JSON."""

from lakehouse.schema.alter import altered, merging, restored, seen_at
from lakehouse.schema.changes import SchemaChange
from lakehouse.schema.define import define_table, read_table_properties, typed_scope
from lakehouse.schema.definition import definition_from_json, definition_to_json, footer_texts
from lakehouse.schema.encoding import schema_from_json, schema_to_json
from lakehouse.schema.history import history_fields, history_value
from lakehouse.schema.layout import key_fields
from lakehouse.schema.names import check_column_name, check_table_name
from lakehouse.schema.nested import default_of
from lakehouse.schema.read import from_spark_schema, from_spark_type, read_type, to_schema
from lakehouse.schema.types import table_column
from lakehouse.schema.values import typed_value

__all__ = [
    "SchemaChange",
    "altered",
    "check_column_name",
    "check_table_name",
    "default_of",
    "define_table",
    "definition_from_json",
    "definition_to_json",
    "footer_texts",
    "from_spark_schema",
    "from_spark_type",
    "history_fields",
    "history_value",
    "key_fields",
    "read_table_properties",
    "merging",
    "read_type",
    "restored",
    "seen_at",
    "schema_from_json",
    "schema_to_json",
    "table_column",
    "to_schema",
    "typed_scope",
    "typed_value",
]
