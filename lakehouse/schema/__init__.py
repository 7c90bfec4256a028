"""A table's schema: read from users' input, normalized, checked, and stored as JSON."""

from typing import TYPE_CHECKING

from lakehouse.late import names_of

if TYPE_CHECKING:
    from lakehouse.schema.alter import altered as altered
    from lakehouse.schema.alter import merging as merging
    from lakehouse.schema.alter import restored as restored
    from lakehouse.schema.changes import SchemaChange as SchemaChange
    from lakehouse.schema.define import define_table as define_table
    from lakehouse.schema.define import read_table_properties as read_table_properties
    from lakehouse.schema.define import typed_scope as typed_scope
    from lakehouse.schema.definition import definition_from_json as definition_from_json
    from lakehouse.schema.definition import definition_to_json as definition_to_json
    from lakehouse.schema.definition import footer_texts as footer_texts
    from lakehouse.schema.encoding import schema_from_json as schema_from_json
    from lakehouse.schema.encoding import schema_to_json as schema_to_json
    from lakehouse.schema.history import history_fields as history_fields
    from lakehouse.schema.history import history_value as history_value
    from lakehouse.schema.history import seen_at as seen_at
    from lakehouse.schema.layout import key_fields as key_fields
    from lakehouse.schema.names import check_column_name as check_column_name
    from lakehouse.schema.names import check_table_name as check_table_name
    from lakehouse.schema.nested import default_of as default_of
    from lakehouse.schema.read import from_spark_schema as from_spark_schema
    from lakehouse.schema.read import from_spark_type as from_spark_type
    from lakehouse.schema.read import read_type as read_type
    from lakehouse.schema.read import to_schema as to_schema
    from lakehouse.schema.types import table_column as table_column
    from lakehouse.schema.values import typed_value as typed_value

_HOME = {
    "SchemaChange": "changes",
    "altered": "alter",
    "check_column_name": "names",
    "check_table_name": "names",
    "default_of": "nested",
    "define_table": "define",
    "definition_from_json": "definition",
    "definition_to_json": "definition",
    "footer_texts": "definition",
    "from_spark_schema": "read",
    "from_spark_type": "read",
    "history_fields": "history",
    "history_value": "history",
    "key_fields": "layout",
    "merging": "alter",
    "read_table_properties": "define",
    "read_type": "read",
    "restored": "alter",
    "schema_from_json": "encoding",
    "schema_to_json": "encoding",
    "seen_at": "history",
    "table_column": "types",
    "to_schema": "read",
    "typed_scope": "define",
    "typed_value": "values",
}
__all__ = sorted(_HOME)  # noqa: PLE0605
__getattr__ = names_of(__name__, _HOME)
