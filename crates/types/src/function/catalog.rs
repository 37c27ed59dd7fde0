//! Functions about objects of the catalog: their definitions, names and visibility, the sizes of relations.

use super::names::{parts_of_name, relation_argument, relation_named};
use super::row::Implementation::{Pure, Session};
use super::row::{FunctionRow, row};
use crate::context::SessionFacts;
use crate::error::{EngineError, Result, SqlState};
use crate::lex::with_double_backslashes;
use crate::numbered_names::with_other_names;
use crate::value::DataType::{Bool, Int4, Int8, Name, Oid, Text, TimestampTz};
use crate::value::array::ArrayValue;
use crate::value::user_type::{definition_of, in_force};
use crate::value::{DataType, Value, format_type};

/// The functions.
pub(super) static ROWS: &[FunctionRow] = &[
    row(1081, "format_type", &[Oid, Int4], Text, Pure(type_name))
        .stable()
        .called_on_null(),
    row(1643, "pg_get_indexdef", &[Oid], Text, Session(index_definition)).stable(),
    row(
        2507,
        "pg_get_indexdef",
        &[Oid, Int4, Bool],
        Text,
        Session(index_definition),
    )
    .stable(),
    row(
        1387,
        "pg_get_constraintdef",
        &[Oid],
        Text,
        Session(constraint_definition),
    )
    .stable(),
    row(
        2508,
        "pg_get_constraintdef",
        &[Oid, Bool],
        Text,
        Session(constraint_definition),
    )
    .stable(),
    row(1716, "pg_get_expr", &[Text, Oid], Text, Session(expression)).stable(),
    row(2509, "pg_get_expr", &[Text, Oid, Bool], Text, Session(expression)).stable(),
    row(1641, "pg_get_viewdef", &[Oid], Text, Session(view_definition)).stable(),
    row(
        2506,
        "pg_get_viewdef",
        &[Oid, Bool],
        Text,
        Session(view_definition),
    )
    .stable(),
    row(
        3159,
        "pg_get_viewdef",
        &[Oid, Int4],
        Text,
        Session(view_definition),
    )
    .stable(),
    row(1640, "pg_get_viewdef", &[Text], Text, Session(view_definition)).stable(),
    row(
        2505,
        "pg_get_viewdef",
        &[Text, Bool],
        Text,
        Session(view_definition),
    )
    .stable(),
    row(1573, "pg_get_ruledef", &[Oid], Text, Session(rule_definition)).stable(),
    row(
        2504,
        "pg_get_ruledef",
        &[Oid, Bool],
        Text,
        Session(rule_definition),
    )
    .stable(),
    // There are no triggers.
    row(1662, "pg_get_triggerdef", &[Oid], Text, Pure(nothing)).stable(),
    row(2730, "pg_get_triggerdef", &[Oid, Bool], Text, Pure(nothing)).stable(),
    row(3352, "pg_get_partkeydef", &[Oid], Text, Pure(nothing)).stable(),
    row(
        3408,
        "pg_get_partition_constraintdef",
        &[Oid],
        Text,
        Pure(nothing),
    )
    .stable(),
    row(3415, "pg_get_statisticsobjdef", &[Oid], Text, Pure(nothing)).stable(),
    // No function has a body in SQL.
    row(6197, "pg_get_function_sqlbody", &[Oid], Text, Pure(nothing)).stable(),
    row(
        1665,
        "pg_get_serial_sequence",
        &[Text, Text],
        Text,
        Session(serial_sequence),
    )
    .stable(),
    row(1642, "pg_get_userbyid", &[Oid], Name, Session(user_name)).stable(),
    row(
        2079,
        "pg_table_is_visible",
        &[Oid],
        Bool,
        Session(table_is_visible),
    )
    .stable(),
    row(
        6121,
        "pg_relation_is_publishable",
        &[Oid],
        Bool,
        Session(is_publishable),
    )
    .stable(),
    // All of these are in pg_catalog.
    row(2080, "pg_type_is_visible", &[Oid], Bool, Pure(type_is_visible)).stable(),
    row(2081, "pg_function_is_visible", &[Oid], Bool, Pure(visible)).stable(),
    row(2082, "pg_operator_is_visible", &[Oid], Bool, Pure(visible)).stable(),
    row(2083, "pg_opclass_is_visible", &[Oid], Bool, Pure(visible)).stable(),
    row(3829, "pg_opfamily_is_visible", &[Oid], Bool, Pure(visible)).stable(),
    row(3815, "pg_collation_is_visible", &[Oid], Bool, Pure(visible)).stable(),
    row(
        2332,
        "pg_relation_size",
        &[Oid, Text],
        Int8,
        Session(relation_size),
    )
    .volatile(),
    row(0, "pg_relation_size", &[Text, Text], Int8, Session(relation_size)).volatile(),
    row(2325, "pg_relation_size", &[Oid], Int8, Session(relation_size)).volatile(),
    row(0, "pg_relation_size", &[Text], Int8, Session(relation_size)).volatile(),
    row(2997, "pg_table_size", &[Oid], Int8, Session(table_size)).volatile(),
    row(0, "pg_table_size", &[Text], Int8, Session(table_size)).volatile(),
    row(2998, "pg_indexes_size", &[Oid], Int8, Session(indexes_size)).volatile(),
    row(0, "pg_indexes_size", &[Text], Int8, Session(indexes_size)).volatile(),
    row(2286, "pg_total_relation_size", &[Oid], Int8, Session(total_size)).volatile(),
    row(0, "pg_total_relation_size", &[Text], Int8, Session(total_size)).volatile(),
    row(2168, "pg_database_size", &[Oid], Int8, Session(database_size)).volatile(),
    row(2324, "pg_database_size", &[Name], Int8, Session(database_size)).volatile(),
    row(2322, "pg_tablespace_size", &[Oid], Int8, Session(tablespace_size)).volatile(),
    row(
        2323,
        "pg_tablespace_size",
        &[Name],
        Int8,
        Session(tablespace_size),
    )
    .volatile(),
    row(2288, "pg_size_pretty", &[Int8], Text, Pure(size_in_words)),
    row(1597, "pg_encoding_to_char", &[Int4], Name, Pure(encoding_name)).stable(),
    row(
        810,
        "pg_client_encoding",
        &[],
        Name,
        Pure(|_| Ok(Value::from("UTF8"))),
    )
    .stable(),
    row(
        1403,
        "current_schemas",
        &[Bool],
        DataType::array_of(Name),
        Session(current_schemas),
    )
    .stable(),
    row(
        1039,
        "getdatabaseencoding",
        &[],
        Name,
        Pure(|_| Ok(Value::from("UTF8"))),
    )
    .stable(),
    row(1264, "pg_char_to_encoding", &[Name], Int4, Pure(encoding_number)).stable(),
    // Both tablespaces are in the data directory.
    row(
        3778,
        "pg_tablespace_location",
        &[Oid],
        Text,
        Pure(|_| Ok(Value::from(""))),
    )
    .stable(),
    row(
        2162,
        "pg_get_function_arguments",
        &[Oid],
        Text,
        Session(function_arguments),
    )
    .stable(),
    row(
        2232,
        "pg_get_function_identity_arguments",
        &[Oid],
        Text,
        Session(function_arguments),
    )
    .stable(),
    row(
        2165,
        "pg_get_function_result",
        &[Oid],
        Text,
        Session(function_result),
    )
    .stable(),
    // There are none of these objects.
    row(2093, "pg_conversion_is_visible", &[Oid], Bool, Pure(nothing)).stable(),
    row(3756, "pg_ts_parser_is_visible", &[Oid], Bool, Pure(nothing)).stable(),
    row(3757, "pg_ts_dict_is_visible", &[Oid], Bool, Pure(nothing)).stable(),
    row(3768, "pg_ts_template_is_visible", &[Oid], Bool, Pure(nothing)).stable(),
    row(3758, "pg_ts_config_is_visible", &[Oid], Bool, Pure(nothing)).stable(),
    row(3403, "pg_statistics_obj_is_visible", &[Oid], Bool, Pure(nothing)).stable(),
    row(
        6174,
        "pg_get_statisticsobjdef_columns",
        &[Oid],
        Text,
        Pure(nothing),
    )
    .stable(),
    row(
        2854,
        "pg_my_temp_schema",
        &[],
        Oid,
        Session(|_, session| Ok(Value::Oid(session.catalog()?.temporary_schema()))),
    )
    .stable(),
    row(
        2855,
        "pg_is_other_temp_schema",
        &[Oid],
        Bool,
        Pure(|_| Ok(Value::Bool(false))),
    )
    .stable(),
    row(
        2560,
        "pg_postmaster_start_time",
        &[],
        TimestampTz,
        Session(server_start),
    )
    .stable(),
    row(
        2034,
        "pg_conf_load_time",
        &[],
        TimestampTz,
        Session(configuration_load),
    )
    .stable(),
];

/// The number of the database.
pub const DATABASE_OID: u32 = 5;
/// The number of the user.
pub const USER_OID: u32 = 10;

pub(super) fn oid_of(value: &Value) -> Result<u32> {
    match value {
        Value::Oid(oid) => Ok(*oid),
        other => Err(EngineError::internal(format!(
            "{other:?} is used as a number of the catalog"
        ))),
    }
}

pub(super) fn text_of(value: &Value) -> Result<&str> {
    value
        .as_str()
        .ok_or_else(|| EngineError::internal(format!("{value:?} is used as text")))
}

pub(super) fn optional(text: Option<String>) -> Value {
    text.map_or(Value::Null, Value::text)
}

fn nothing(_: &[Value]) -> Result<Value> {
    Ok(Value::Null)
}

fn visible(_: &[Value]) -> Result<Value> {
    Ok(Value::Bool(true))
}

fn type_name(arguments: &[Value]) -> Result<Value> {
    let Value::Oid(oid) = arguments[0] else {
        return Ok(Value::Null);
    };
    let typmod = match arguments[1] {
        Value::Int4(typmod) => Some(typmod),
        _ => None,
    };
    Ok(match (DataType::from_oid(oid), typmod) {
        (None, _) if oid == 0 => Value::from("-"),
        (None, _) => Value::from("???"),
        (Some(data_type), None) => Value::from(&*data_type.name()),
        (Some(data_type), Some(typmod)) => Value::text(format_type(data_type, typmod)),
    })
}

/// A text of a definition, with strings as the session reads them.
fn definition(text: Option<String>, session: &dyn SessionFacts) -> Value {
    optional(text.map(
        |text| match session.setting("standard_conforming_strings").as_deref() {
            Some("off") => with_double_backslashes(&text),
            _ => text,
        },
    ))
}

fn index_definition(arguments: &[Value], session: &dyn SessionFacts) -> Result<Value> {
    let column = match arguments.get(1) {
        Some(Value::Int4(column)) => *column,
        _ => 0,
    };
    let is_pretty = arguments.get(2).and_then(Value::as_bool) == Some(true);
    let found = session
        .catalog()?
        .index_definition(oid_of(&arguments[0])?, column, !is_pretty);
    Ok(definition(found, session))
}

fn constraint_definition(arguments: &[Value], session: &dyn SessionFacts) -> Result<Value> {
    let is_pretty = arguments.get(1).and_then(Value::as_bool) == Some(true);
    let oid = oid_of(&arguments[0])?;
    let found = session.catalog()?.constraint_definition(oid, is_pretty);
    Ok(definition(found, session))
}

/// The text is SQL already; the schema of a sequence is left out where its name alone leads to it.
fn expression(arguments: &[Value], session: &dyn SessionFacts) -> Result<Value> {
    let catalog = session.catalog()?;
    let is_visible = |schema: &str, name: &str| {
        let found = catalog.relation_oid(None, name);
        found.is_some() && found == catalog.relation_oid(Some(schema), name)
    };
    let text = text_of(&arguments[0])?;
    let is_pretty = arguments.get(2).and_then(Value::as_bool) == Some(true);
    let pretty = match is_pretty {
        true => catalog.pretty_expression(oid_of(&arguments[1])?, text),
        false => None,
    };
    let shown = pretty.as_deref().unwrap_or(text);
    Ok(definition(Some(expression_shown(shown, &is_visible)), session))
}

/// An expression as it is shown to a session: a sequence without its schema where that is not needed.
pub fn expression_shown(expression: &str, is_visible: &dyn Fn(&str, &str) -> bool) -> String {
    with_other_names(expression, |full| {
        let [schema, name] = <[String; 2]>::try_from(parts_of_name(full).ok()?).ok()?;
        is_visible(&schema, &name).then(|| super::quote_identifier(&name))
    })
}

/// By number or name; the second argument asks for few parentheses, or gives a column to wrap lines at, which does.
fn view_definition(arguments: &[Value], session: &dyn SessionFacts) -> Result<Value> {
    let catalog = session.catalog()?;
    let view = match &arguments[0] {
        Value::Oid(oid) => *oid,
        name => relation_named(text_of(name)?, catalog)?,
    };
    let pretty = match arguments.get(1) {
        Some(Value::Int4(_)) => true,
        Some(pretty) => pretty.as_bool() == Some(true),
        None => false,
    };
    Ok(definition(catalog.view_definition(view, pretty)?, session))
}

fn rule_definition(arguments: &[Value], session: &dyn SessionFacts) -> Result<Value> {
    let pretty = arguments.get(1).and_then(Value::as_bool) == Some(true);
    let rule = oid_of(&arguments[0])?;
    let found = session.catalog()?.rule_definition(rule, pretty)?;
    Ok(definition(found, session))
}

fn serial_sequence(arguments: &[Value], session: &dyn SessionFacts) -> Result<Value> {
    let (table, column) = (text_of(&arguments[0])?, text_of(&arguments[1])?);
    let catalog = session.catalog()?;
    let relation = relation_named(table, catalog)?;
    let Some(number) = catalog.column_number(relation, column) else {
        let name = parts_of_name(table)?.pop().unwrap_or_default();
        return Err(EngineError::new(
            SqlState::UNDEFINED_COLUMN,
            format!("column \"{column}\" of relation \"{name}\" does not exist"),
        ));
    };
    let schema = catalog.relation(relation).map(|relation| relation.schema);
    let sequence = catalog.sequence_of(relation, number);
    Ok(optional(sequence.zip(schema).map(|(name, schema)| {
        format!(
            "{}.{}",
            super::quote_identifier(&schema),
            super::quote_identifier(&name)
        )
    })))
}

fn user_name(arguments: &[Value], session: &dyn SessionFacts) -> Result<Value> {
    let oid = oid_of(&arguments[0])?;
    let name = session.catalog()?.role_name(oid);
    Ok(Value::text(
        name.unwrap_or_else(|| format!("unknown (OID={oid})")),
    ))
}

fn table_is_visible(arguments: &[Value], session: &dyn SessionFacts) -> Result<Value> {
    let catalog = session.catalog()?;
    let oid = oid_of(&arguments[0])?;
    // It is what its name alone leads to.
    Ok(catalog.relation(oid).map_or(Value::Null, |relation| {
        Value::Bool(catalog.is_visible(oid, &relation.name))
    }))
}

/// True for a table of a user.
fn is_publishable(arguments: &[Value], session: &dyn SessionFacts) -> Result<Value> {
    let oid = oid_of(&arguments[0])?;
    let relation = session.catalog()?.relation(oid);
    Ok(relation.map_or(Value::Null, |relation| {
        let of_system = matches!(relation.schema.as_str(), "pg_catalog" | "information_schema");
        Value::Bool(relation.kind == 'r' && !of_system)
    }))
}

fn type_is_visible(arguments: &[Value]) -> Result<Value> {
    let oid = oid_of(&arguments[0])?;
    Ok(DataType::from_oid(oid).map_or(Value::Null, |found| {
        // An array is where its elements are, and a type of the system comes before all others.
        let element = found.element().unwrap_or(found);
        Value::Bool(definition_of(element).is_none_or(|of| in_force::is_visible(&of)))
    }))
}

/// The size of a relation's main file: there are no other ones.
fn relation_size(arguments: &[Value], session: &dyn SessionFacts) -> Result<Value> {
    let is_main = match arguments.get(1) {
        None => true,
        Some(fork) => match text_of(fork)? {
            "main" => true,
            "fsm" | "vm" | "init" => false,
            _ => {
                return Err(
                    EngineError::new(SqlState::INVALID_PARAMETER_VALUE, "invalid fork name")
                        .with_hint("Valid fork names are \"main\", \"fsm\", \"vm\", and \"init\"."),
                );
            }
        },
    };
    let catalog = session.catalog()?;
    let found = catalog.relation_bytes(relation_argument(&arguments[0], catalog)?);
    Ok(found.map_or(Value::Null, |bytes| {
        Value::Int8(if is_main { bytes.own } else { 0 })
    }))
}

fn indexes_size(arguments: &[Value], session: &dyn SessionFacts) -> Result<Value> {
    let catalog = session.catalog()?;
    let found = catalog.relation_bytes(relation_argument(&arguments[0], catalog)?);
    Ok(found.map_or(Value::Null, |bytes| Value::Int8(bytes.indexes)))
}

fn total_size(arguments: &[Value], session: &dyn SessionFacts) -> Result<Value> {
    let catalog = session.catalog()?;
    let found = catalog.relation_bytes(relation_argument(&arguments[0], catalog)?);
    Ok(found.map_or(Value::Null, |bytes| {
        Value::Int8(bytes.own + bytes.indexes + bytes.long_values)
    }))
}

fn table_size(arguments: &[Value], session: &dyn SessionFacts) -> Result<Value> {
    let catalog = session.catalog()?;
    let found = catalog.relation_bytes(relation_argument(&arguments[0], catalog)?);
    Ok(found.map_or(Value::Null, |bytes| Value::Int8(bytes.own + bytes.long_values)))
}

fn database_size(arguments: &[Value], session: &dyn SessionFacts) -> Result<Value> {
    match &arguments[0] {
        Value::Oid(DATABASE_OID) => {}
        Value::Oid(_) => return Ok(Value::Null),
        name if name.as_str() == Some(session.database()) => {}
        name => {
            return Err(EngineError::new(
                SqlState::INVALID_CATALOG_NAME,
                format!("database \"{}\" does not exist", text_of(name)?),
            ));
        }
    }
    Ok(Value::Int8(session.catalog()?.database_bytes()))
}

/// All relations are in one tablespace; the one of shared tables has none of its own.
fn tablespace_size(arguments: &[Value], session: &dyn SessionFacts) -> Result<Value> {
    /// `pg_default`
    const DEFAULT_OID: u32 = 1_663;
    /// `pg_global`
    const GLOBAL_OID: u32 = 1_664;
    let bytes = || Ok(Value::Int8(session.catalog()?.database_bytes()));
    match &arguments[0] {
        Value::Oid(DEFAULT_OID) => bytes(),
        Value::Oid(GLOBAL_OID) => Ok(Value::Int8(0)),
        Value::Oid(other) => Err(EngineError::new(
            SqlState::UNDEFINED_OBJECT,
            format!("tablespace with OID {other} does not exist"),
        )),
        name => match text_of(name)? {
            "pg_default" => bytes(),
            "pg_global" => Ok(Value::Int8(0)),
            other => Err(EngineError::new(
                SqlState::UNDEFINED_OBJECT,
                format!("tablespace \"{other}\" does not exist"),
            )),
        },
    }
}

/// A number of bytes with the unit in which it has at most five digits, rounded half up.
fn size_in_words(arguments: &[Value]) -> Result<Value> {
    /// A unit is used up to this many of it.
    const MOST: u128 = 10 * 1024;
    const UNITS: [&str; 6] = ["bytes", "kB", "MB", "GB", "TB", "PB"];
    let bytes = arguments[0].as_i64().unwrap_or(0);
    let (mut amount, mut unit) = (u128::from(bytes.unsigned_abs()), 0);
    if amount >= MOST {
        // Halves are kept to the end, for the rounding.
        (amount, unit) = (amount * 2 / 1024, 1);
        while unit + 1 < UNITS.len() && amount >= MOST * 2 - 1 {
            amount /= 1024;
            unit += 1;
        }
        amount = amount.div_ceil(2);
    }
    let sign = if bytes < 0 { "-" } else { "" };
    Ok(Value::text(format!("{sign}{amount} {}", UNITS[unit])))
}

fn encoding_name(arguments: &[Value]) -> Result<Value> {
    Ok(Value::from(match arguments[0] {
        Value::Int4(0) => "SQL_ASCII",
        Value::Int4(6) => "UTF8",
        _ => "",
    }))
}

fn current_schemas(arguments: &[Value], session: &dyn SessionFacts) -> Result<Value> {
    let with_implicit = arguments[0].as_bool() == Some(true);
    let schemas = session.catalog()?.schemas_on_path(with_implicit);
    let names = schemas.into_iter().map(Value::text).collect();
    let array = ArrayValue::of(DataType::array_of(Name), names)?;
    Ok(Value::Array(Box::new(array)))
}

fn encoding_number(arguments: &[Value]) -> Result<Value> {
    let name = text_of(&arguments[0])?
        .to_ascii_lowercase()
        .replace(['-', '_'], "");
    Ok(Value::Int4(match name.as_str() {
        "sqlascii" => 0,
        "utf8" | "unicode" => 6,
        _ => -1,
    }))
}

/// The types of a function's arguments, with names of types as SQL has them.
fn function_arguments(arguments: &[Value], session: &dyn SessionFacts) -> Result<Value> {
    let found = session.catalog()?.function_types(oid_of(&arguments[0])?);
    Ok(optional(found.map(|(types, _, _)| {
        let names: Vec<String> = types.into_iter().map(sql_name).collect();
        names.join(", ")
    })))
}

fn function_result(arguments: &[Value], session: &dyn SessionFacts) -> Result<Value> {
    let found = session.catalog()?.function_types(oid_of(&arguments[0])?);
    Ok(optional(found.map(|(_, result, returns_set)| {
        let name = sql_name(result);
        if returns_set {
            format!("SETOF {name}")
        } else {
            name
        }
    })))
}

/// The name of a type as SQL has it, if values can have it; else as the catalog has it.
fn sql_name((oid, name): (u32, &'static str)) -> String {
    match DataType::from_oid(oid) {
        Some(data_type) => data_type.name().into_owned(),
        None => super::quote_identifier(name),
    }
}

fn server_start(_: &[Value], session: &dyn SessionFacts) -> Result<Value> {
    Ok(Value::TimestampTz(session.catalog()?.server_start()))
}

fn configuration_load(_: &[Value], session: &dyn SessionFacts) -> Result<Value> {
    Ok(Value::TimestampTz(session.catalog()?.configuration_load()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_told_in_words() {
        for (bytes, words) in [
            (0, "0 bytes"),
            (10_239, "10239 bytes"),
            (10_240, "10 kB"),
            (10_485_247, "10239 kB"),
            (10_485_248, "10 MB"),
            (10_485_760, "10 MB"),
            (-12_345_678, "-12 MB"),
            (1_000_000_000_000_000, "909 TB"),
            (i64::MAX, "8192 PB"),
        ] {
            assert_eq!(
                size_in_words(&[Value::Int8(bytes)]).unwrap(),
                Value::from(words),
                "{bytes}"
            );
        }
    }

    #[test]
    fn types_are_told_with_their_modifiers() {
        for (oid, typmod, name) in [
            (23, Some(-1), "integer"),
            (1_043, Some(14), "character varying(10)"),
            (1_043, None, "character varying"),
            (1_042, Some(-1), "bpchar"),
            (1_042, None, "character"),
            (1_700, Some(524_294), "numeric(8,2)"),
            (0, None, "-"),
            (99_999, None, "???"),
        ] {
            let typmod = typmod.map_or(Value::Null, Value::Int4);
            assert_eq!(
                type_name(&[Value::Oid(oid), typmod]).unwrap(),
                Value::from(name),
                "{oid}"
            );
        }
        assert_eq!(type_name(&[Value::Null, Value::Int4(1)]).unwrap(), Value::Null);
    }
}
