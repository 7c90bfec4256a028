"""A table's schema: read from users' input, normalized, checked, and stored as JSON."""

from lakehouse.schema.define import define_table, read_table_properties, typed_scope
from lakehouse.schema.definition import definition_from_json, definition_to_json
from lakehouse.schema.encoding import schema_from_json, schema_to_json
from lakehouse.schema.names import check_column_name, check_table_name
from lakehouse.schema.read import from_spark_type, to_schema
from lakehouse.schema.values import typed_value

__all__ = [
    "check_column_name",
    "check_table_name",
    "define_table",
    "definition_from_json",
    "definition_to_json",
    "from_spark_type",
    "read_table_properties",
    "schema_from_json",
    "schema_to_json",
    "to_schema",
    "typed_scope",
    "typed_value",
]
