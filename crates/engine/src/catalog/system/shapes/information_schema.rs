//! The views of `information_schema`. Its domains are the types they are made of.

use crate::catalog::system::shape::Shape;

/// `applicable_roles`
pub(crate) const APPLICABLE_ROLES: Shape = Shape::information(
    13_236,
    "applicable_roles",
    "grantee name, role_name name, is_grantable varchar",
);

/// `character_sets`
pub(crate) const CHARACTER_SETS: Shape = Shape::information(
    13_250,
    "character_sets",
    "character_set_catalog name, character_set_schema name, character_set_name name, character_repertoire \
     name, form_of_use name, default_collate_catalog name, default_collate_schema name, default_collate_name \
     name",
);

/// `check_constraints`
pub(crate) const CHECK_CONSTRAINTS: Shape = Shape::information(
    13_260,
    "check_constraints",
    "constraint_catalog name, constraint_schema name, constraint_name name, check_clause varchar",
);

/// `column_privileges`
pub(crate) const COLUMN_PRIVILEGES: Shape = Shape::information(
    13_285,
    "column_privileges",
    "grantor name, grantee name, table_catalog name, table_schema name, table_name name, column_name name, \
     privilege_type varchar, is_grantable varchar",
);

/// `role_column_grants`
pub(crate) const ROLE_COLUMN_GRANTS: Shape = Shape::information(
    13_344,
    "role_column_grants",
    "grantor name, grantee name, table_catalog name, table_schema name, table_name name, column_name name, \
     privilege_type varchar, is_grantable varchar",
);

/// `role_table_grants`
pub(crate) const ROLE_TABLE_GRANTS: Shape = Shape::information(
    13_421,
    "role_table_grants",
    "grantor name, grantee name, table_catalog name, table_schema name, table_name name, privilege_type varchar, \
     is_grantable varchar, with_hierarchy varchar",
);

/// `role_usage_grants`
pub(crate) const ROLE_USAGE_GRANTS: Shape = Shape::information(
    13_459,
    "role_usage_grants",
    "grantor name, grantee name, object_catalog name, object_schema name, object_name name, object_type varchar, \
     privilege_type varchar, is_grantable varchar",
);

/// `table_privileges`
pub(crate) const TABLE_PRIVILEGES: Shape = Shape::information(
    13_416,
    "table_privileges",
    "grantor name, grantee name, table_catalog name, table_schema name, table_name name, privilege_type varchar, \
     is_grantable varchar, with_hierarchy varchar",
);

/// `usage_privileges`
pub(crate) const USAGE_PRIVILEGES: Shape = Shape::information(
    13_454,
    "usage_privileges",
    "grantor name, grantee name, object_catalog name, object_schema name, object_name name, object_type varchar, \
     privilege_type varchar, is_grantable varchar",
);

/// `columns`
pub(crate) const COLUMNS: Shape = Shape::information(
    13_295,
    "columns",
    "table_catalog name, table_schema name, table_name name, column_name name, ordinal_position int4, \
     column_default varchar, is_nullable varchar, data_type varchar, character_maximum_length int4, \
     character_octet_length int4, numeric_precision int4, numeric_precision_radix int4, numeric_scale int4, \
     datetime_precision int4, interval_type varchar, interval_precision int4, character_set_catalog name, \
     character_set_schema name, character_set_name name, collation_catalog name, collation_schema name, \
     collation_name name, domain_catalog name, domain_schema name, domain_name name, udt_catalog name, \
     udt_schema name, udt_name name, scope_catalog name, scope_schema name, scope_name name, \
     maximum_cardinality int4, dtd_identifier name, is_self_referencing varchar, is_identity varchar, \
     identity_generation varchar, identity_start varchar, identity_increment varchar, identity_maximum \
     varchar, identity_minimum varchar, identity_cycle varchar, is_generated varchar, generation_expression \
     varchar, is_updatable varchar",
);

/// `constraint_column_usage`
pub(crate) const CONSTRAINT_COLUMN_USAGE: Shape = Shape::information(
    13_300,
    "constraint_column_usage",
    "table_catalog name, table_schema name, table_name name, column_name name, constraint_catalog name, \
     constraint_schema name, constraint_name name",
);

/// `constraint_table_usage`
pub(crate) const CONSTRAINT_TABLE_USAGE: Shape = Shape::information(
    13_305,
    "constraint_table_usage",
    "table_catalog name, table_schema name, table_name name, constraint_catalog name, constraint_schema name, \
     constraint_name name",
);

/// `domain_constraints`
pub(crate) const DOMAIN_CONSTRAINTS: Shape = Shape::information(
    13_310,
    "domain_constraints",
    "constraint_catalog name, constraint_schema name, constraint_name name, domain_catalog name, \
     domain_schema name, domain_name name, is_deferrable varchar, initially_deferred varchar",
);

/// `domains`
pub(crate) const DOMAINS: Shape = Shape::information(
    13_320,
    "domains",
    "domain_catalog name, domain_schema name, domain_name name, data_type varchar, character_maximum_length \
     int4, character_octet_length int4, character_set_catalog name, character_set_schema name, \
     character_set_name name, collation_catalog name, collation_schema name, collation_name name, \
     numeric_precision int4, numeric_precision_radix int4, numeric_scale int4, datetime_precision int4, \
     interval_type varchar, interval_precision int4, domain_default varchar, udt_catalog name, udt_schema \
     name, udt_name name, scope_catalog name, scope_schema name, scope_name name, maximum_cardinality int4, \
     dtd_identifier name",
);

/// `element_types`
pub(crate) const ELEMENT_TYPES: Shape = Shape::information(
    13_493,
    "element_types",
    "object_catalog name, object_schema name, object_name name, object_type varchar, \
     collection_type_identifier name, data_type varchar, character_maximum_length int4, \
     character_octet_length int4, character_set_catalog name, character_set_schema name, character_set_name \
     name, collation_catalog name, collation_schema name, collation_name name, numeric_precision int4, \
     numeric_precision_radix int4, numeric_scale int4, datetime_precision int4, interval_type varchar, \
     interval_precision int4, domain_default varchar, udt_catalog name, udt_schema name, udt_name name, \
     scope_catalog name, scope_schema name, scope_name name, maximum_cardinality int4, dtd_identifier name",
);

/// `enabled_roles`
pub(crate) const ENABLED_ROLES: Shape = Shape::information(13_325, "enabled_roles", "role_name name");

/// `foreign_tables`
pub(crate) const FOREIGN_TABLES: Shape = Shape::information(
    13_541,
    "foreign_tables",
    "foreign_table_catalog name, foreign_table_schema name, foreign_table_name name, foreign_server_catalog \
     name, foreign_server_name name",
);

/// `information_schema_catalog_name`
pub(crate) const INFORMATION_SCHEMA_CATALOG_NAME: Shape =
    Shape::information(13_227, "information_schema_catalog_name", "catalog_name name");

/// `key_column_usage`
pub(crate) const KEY_COLUMN_USAGE: Shape = Shape::information(
    13_329,
    "key_column_usage",
    "constraint_catalog name, constraint_schema name, constraint_name name, table_catalog name, table_schema \
     name, table_name name, column_name name, ordinal_position int4, position_in_unique_constraint int4",
);

/// `referential_constraints`
pub(crate) const REFERENTIAL_CONSTRAINTS: Shape = Shape::information(
    13_339,
    "referential_constraints",
    "constraint_catalog name, constraint_schema name, constraint_name name, unique_constraint_catalog name, \
     unique_constraint_schema name, unique_constraint_name name, match_option varchar, update_rule varchar, \
     delete_rule varchar",
);

/// `routines`
pub(crate) const ROUTINES: Shape = Shape::information(
    13_377,
    "routines",
    "specific_catalog name, specific_schema name, specific_name name, routine_catalog name, routine_schema \
     name, routine_name name, routine_type varchar, module_catalog name, module_schema name, module_name \
     name, udt_catalog name, udt_schema name, udt_name name, data_type varchar, character_maximum_length \
     int4, character_octet_length int4, character_set_catalog name, character_set_schema name, \
     character_set_name name, collation_catalog name, collation_schema name, collation_name name, \
     numeric_precision int4, numeric_precision_radix int4, numeric_scale int4, datetime_precision int4, \
     interval_type varchar, interval_precision int4, type_udt_catalog name, type_udt_schema name, \
     type_udt_name name, scope_catalog name, scope_schema name, scope_name name, maximum_cardinality int4, \
     dtd_identifier name, routine_body varchar, routine_definition varchar, external_name varchar, \
     external_language varchar, parameter_style varchar, is_deterministic varchar, sql_data_access varchar, \
     is_null_call varchar, sql_path varchar, schema_level_routine varchar, max_dynamic_result_sets int4, \
     is_user_defined_cast varchar, is_implicitly_invocable varchar, security_type varchar, \
     to_sql_specific_catalog name, to_sql_specific_schema name, to_sql_specific_name name, as_locator \
     varchar, created timestamptz, last_altered timestamptz, new_savepoint_level varchar, is_udt_dependent \
     varchar, result_cast_from_data_type varchar, result_cast_as_locator varchar, result_cast_char_max_length \
     int4, result_cast_char_octet_length int4, result_cast_char_set_catalog name, result_cast_char_set_schema \
     name, result_cast_char_set_name name, result_cast_collation_catalog name, result_cast_collation_schema \
     name, result_cast_collation_name name, result_cast_numeric_precision int4, \
     result_cast_numeric_precision_radix int4, result_cast_numeric_scale int4, result_cast_datetime_precision \
     int4, result_cast_interval_type varchar, result_cast_interval_precision int4, \
     result_cast_type_udt_catalog name, result_cast_type_udt_schema name, result_cast_type_udt_name name, \
     result_cast_scope_catalog name, result_cast_scope_schema name, result_cast_scope_name name, \
     result_cast_maximum_cardinality int4, result_cast_dtd_identifier name",
);

/// `schemata`
pub(crate) const SCHEMATA: Shape = Shape::information(
    13_382,
    "schemata",
    "catalog_name name, schema_name name, schema_owner name, default_character_set_catalog name, \
     default_character_set_schema name, default_character_set_name name, sql_path varchar",
);

/// `sequences`
pub(crate) const SEQUENCES: Shape = Shape::information(
    13_386,
    "sequences",
    "sequence_catalog name, sequence_schema name, sequence_name name, data_type varchar, numeric_precision \
     int4, numeric_precision_radix int4, numeric_scale int4, start_value varchar, minimum_value varchar, \
     maximum_value varchar, increment varchar, cycle_option varchar",
);

/// `table_constraints`
pub(crate) const TABLE_CONSTRAINTS: Shape = Shape::information(
    13_411,
    "table_constraints",
    "constraint_catalog name, constraint_schema name, constraint_name name, table_catalog name, table_schema \
     name, table_name name, constraint_type varchar, is_deferrable varchar, initially_deferred varchar, \
     enforced varchar, nulls_distinct varchar",
);

/// `tables`
pub(crate) const TABLES: Shape = Shape::information(
    13_425,
    "tables",
    "table_catalog name, table_schema name, table_name name, table_type varchar, self_referencing_column_name \
     name, reference_generation varchar, user_defined_type_catalog name, user_defined_type_schema name, \
     user_defined_type_name name, is_insertable_into varchar, is_typed varchar, commit_action varchar",
);

/// `triggers`
pub(crate) const TRIGGERS: Shape = Shape::information(
    13_440,
    "triggers",
    "trigger_catalog name, trigger_schema name, trigger_name name, event_manipulation varchar, \
     event_object_catalog name, event_object_schema name, event_object_table name, action_order int4, \
     action_condition varchar, action_statement varchar, action_orientation varchar, action_timing varchar, \
     action_reference_old_table name, action_reference_new_table name, action_reference_old_row name, \
     action_reference_new_row name, created timestamptz",
);

/// `user_defined_types`
pub(crate) const USER_DEFINED_TYPES: Shape = Shape::information(
    13_463,
    "user_defined_types",
    "user_defined_type_catalog name, user_defined_type_schema name, user_defined_type_name name, \
     user_defined_type_category varchar, is_instantiable varchar, is_final varchar, ordering_form varchar, \
     ordering_category varchar, ordering_routine_catalog name, ordering_routine_schema name, \
     ordering_routine_name name, reference_type varchar, data_type varchar, character_maximum_length int4, \
     character_octet_length int4, character_set_catalog name, character_set_schema name, character_set_name \
     name, collation_catalog name, collation_schema name, collation_name name, numeric_precision int4, \
     numeric_precision_radix int4, numeric_scale int4, datetime_precision int4, interval_type varchar, \
     interval_precision int4, source_dtd_identifier name, ref_dtd_identifier name",
);

/// `view_column_usage`
pub(crate) const VIEW_COLUMN_USAGE: Shape = Shape::information(
    13_468,
    "view_column_usage",
    "view_catalog name, view_schema name, view_name name, table_catalog name, table_schema name, table_name \
     name, column_name name",
);

/// `view_table_usage`
pub(crate) const VIEW_TABLE_USAGE: Shape = Shape::information(
    13_478,
    "view_table_usage",
    "view_catalog name, view_schema name, view_name name, table_catalog name, table_schema name, table_name \
     name",
);

/// `views`
pub(crate) const VIEWS: Shape = Shape::information(
    13_483,
    "views",
    "table_catalog name, table_schema name, table_name name, view_definition varchar, check_option varchar, \
     is_updatable varchar, is_insertable_into varchar, is_trigger_updatable varchar, is_trigger_deletable \
     varchar, is_trigger_insertable_into varchar",
);
