//! Functions about privileges. The one user has them all, so the answer is true for what exists.

use super::catalog::{DATABASE_OID, USER_OID, text_of};
use super::names::relation_named;
use super::row::Implementation::Session;
use super::row::{FunctionRow, row};
use crate::catalog_facts::CatalogFacts;
use crate::context::SessionFacts;
use crate::error::{EngineError, Result, SqlState};
use crate::value::DataType::{Bool, Int2, Name, Oid, Text};
use crate::value::Value;

/// The functions.
pub(super) static ROWS: &[FunctionRow] = &[
    row(
        3024,
        "has_any_column_privilege",
        &[Name, Text, Text],
        Bool,
        Session(on_relation),
    )
    .stable(),
    row(
        3025,
        "has_any_column_privilege",
        &[Name, Oid, Text],
        Bool,
        Session(on_relation),
    )
    .stable(),
    row(
        3026,
        "has_any_column_privilege",
        &[Oid, Text, Text],
        Bool,
        Session(on_relation),
    )
    .stable(),
    row(
        3027,
        "has_any_column_privilege",
        &[Oid, Oid, Text],
        Bool,
        Session(on_relation),
    )
    .stable(),
    row(
        3028,
        "has_any_column_privilege",
        &[Text, Text],
        Bool,
        Session(on_relation),
    )
    .stable(),
    row(
        3029,
        "has_any_column_privilege",
        &[Oid, Text],
        Bool,
        Session(on_relation),
    )
    .stable(),
    row(
        3012,
        "has_column_privilege",
        &[Name, Text, Text, Text],
        Bool,
        Session(on_column),
    )
    .stable(),
    row(
        3013,
        "has_column_privilege",
        &[Name, Text, Int2, Text],
        Bool,
        Session(on_column),
    )
    .stable(),
    row(
        3014,
        "has_column_privilege",
        &[Name, Oid, Text, Text],
        Bool,
        Session(on_column),
    )
    .stable(),
    row(
        3015,
        "has_column_privilege",
        &[Name, Oid, Int2, Text],
        Bool,
        Session(on_column),
    )
    .stable(),
    row(
        3016,
        "has_column_privilege",
        &[Oid, Text, Text, Text],
        Bool,
        Session(on_column),
    )
    .stable(),
    row(
        3017,
        "has_column_privilege",
        &[Oid, Text, Int2, Text],
        Bool,
        Session(on_column),
    )
    .stable(),
    row(
        3018,
        "has_column_privilege",
        &[Oid, Oid, Text, Text],
        Bool,
        Session(on_column),
    )
    .stable(),
    row(
        3019,
        "has_column_privilege",
        &[Oid, Oid, Int2, Text],
        Bool,
        Session(on_column),
    )
    .stable(),
    row(
        3020,
        "has_column_privilege",
        &[Text, Text, Text],
        Bool,
        Session(on_column),
    )
    .stable(),
    row(
        3021,
        "has_column_privilege",
        &[Text, Int2, Text],
        Bool,
        Session(on_column),
    )
    .stable(),
    row(
        3022,
        "has_column_privilege",
        &[Oid, Text, Text],
        Bool,
        Session(on_column),
    )
    .stable(),
    row(
        3023,
        "has_column_privilege",
        &[Oid, Int2, Text],
        Bool,
        Session(on_column),
    )
    .stable(),
    row(
        2250,
        "has_database_privilege",
        &[Name, Text, Text],
        Bool,
        Session(on_database),
    )
    .stable(),
    row(
        2251,
        "has_database_privilege",
        &[Name, Oid, Text],
        Bool,
        Session(on_database),
    )
    .stable(),
    row(
        2252,
        "has_database_privilege",
        &[Oid, Text, Text],
        Bool,
        Session(on_database),
    )
    .stable(),
    row(
        2253,
        "has_database_privilege",
        &[Oid, Oid, Text],
        Bool,
        Session(on_database),
    )
    .stable(),
    row(
        2254,
        "has_database_privilege",
        &[Text, Text],
        Bool,
        Session(on_database),
    )
    .stable(),
    row(
        2255,
        "has_database_privilege",
        &[Oid, Text],
        Bool,
        Session(on_database),
    )
    .stable(),
    row(
        2268,
        "has_schema_privilege",
        &[Name, Text, Text],
        Bool,
        Session(on_schema),
    )
    .stable(),
    row(
        2269,
        "has_schema_privilege",
        &[Name, Oid, Text],
        Bool,
        Session(on_schema),
    )
    .stable(),
    row(
        2270,
        "has_schema_privilege",
        &[Oid, Text, Text],
        Bool,
        Session(on_schema),
    )
    .stable(),
    row(
        2271,
        "has_schema_privilege",
        &[Oid, Oid, Text],
        Bool,
        Session(on_schema),
    )
    .stable(),
    row(
        2272,
        "has_schema_privilege",
        &[Text, Text],
        Bool,
        Session(on_schema),
    )
    .stable(),
    row(
        2273,
        "has_schema_privilege",
        &[Oid, Text],
        Bool,
        Session(on_schema),
    )
    .stable(),
    row(
        2181,
        "has_sequence_privilege",
        &[Name, Text, Text],
        Bool,
        Session(on_relation),
    )
    .stable(),
    row(
        2182,
        "has_sequence_privilege",
        &[Name, Oid, Text],
        Bool,
        Session(on_relation),
    )
    .stable(),
    row(
        2183,
        "has_sequence_privilege",
        &[Oid, Text, Text],
        Bool,
        Session(on_relation),
    )
    .stable(),
    row(
        2184,
        "has_sequence_privilege",
        &[Oid, Oid, Text],
        Bool,
        Session(on_relation),
    )
    .stable(),
    row(
        2185,
        "has_sequence_privilege",
        &[Text, Text],
        Bool,
        Session(on_relation),
    )
    .stable(),
    row(
        2186,
        "has_sequence_privilege",
        &[Oid, Text],
        Bool,
        Session(on_relation),
    )
    .stable(),
    row(
        1922,
        "has_table_privilege",
        &[Name, Text, Text],
        Bool,
        Session(on_relation),
    )
    .stable(),
    row(
        1923,
        "has_table_privilege",
        &[Name, Oid, Text],
        Bool,
        Session(on_relation),
    )
    .stable(),
    row(
        1924,
        "has_table_privilege",
        &[Oid, Text, Text],
        Bool,
        Session(on_relation),
    )
    .stable(),
    row(
        1925,
        "has_table_privilege",
        &[Oid, Oid, Text],
        Bool,
        Session(on_relation),
    )
    .stable(),
    row(
        1926,
        "has_table_privilege",
        &[Text, Text],
        Bool,
        Session(on_relation),
    )
    .stable(),
    row(
        1927,
        "has_table_privilege",
        &[Oid, Text],
        Bool,
        Session(on_relation),
    )
    .stable(),
    row(2705, "pg_has_role", &[Name, Name, Text], Bool, Session(in_role)).stable(),
    row(2706, "pg_has_role", &[Name, Oid, Text], Bool, Session(in_role)).stable(),
    row(2707, "pg_has_role", &[Oid, Name, Text], Bool, Session(in_role)).stable(),
    row(2708, "pg_has_role", &[Oid, Oid, Text], Bool, Session(in_role)).stable(),
    row(2709, "pg_has_role", &[Name, Text], Bool, Session(in_role)).stable(),
    row(2710, "pg_has_role", &[Oid, Text], Bool, Session(in_role)).stable(),
];

/// The privileges on relations, on sequences too; on columns; on schemas; on databases; in roles.
const ON_RELATIONS: &[&str] = &[
    "select",
    "insert",
    "update",
    "delete",
    "truncate",
    "references",
    "trigger",
    "rule",
    "usage",
];
const ON_COLUMNS: &[&str] = &["select", "insert", "update", "references"];
const ON_SCHEMAS: &[&str] = &["create", "usage"];
const ON_DATABASES: &[&str] = &["create", "temporary", "temp", "connect"];
const IN_ROLES: &[&str] = &["usage", "member"];

/// The arguments without a role in front, which must be the one there is; `None` for the number of another one.
fn without_role<'a>(
    arguments: &'a [Value],
    count: usize,
    session: &dyn SessionFacts,
) -> Result<Option<&'a [Value]>> {
    if arguments.len() < count {
        return Ok(Some(arguments));
    }
    Ok(is_user(&arguments[0], session)?.then_some(&arguments[1..]))
}

/// True if a value names the user; an error for another name.
fn is_user(role: &Value, session: &dyn SessionFacts) -> Result<bool> {
    match role {
        Value::Oid(oid) => Ok(*oid == USER_OID),
        name if matches!(name.as_str(), Some(name) if name == session.user() || name == "public") => Ok(true),
        name => Err(EngineError::new(
            SqlState::UNDEFINED_OBJECT,
            format!("role \"{}\" does not exist", text_of(name)?),
        )),
    }
}

/// 22023 for a privilege that there is not.
fn check_privileges(list: &Value, known: &[&str]) -> Result<()> {
    for privilege in text_of(list)?.split(',') {
        let name = privilege.trim().to_ascii_lowercase();
        let word = name
            .strip_suffix(" with grant option")
            .or_else(|| name.strip_suffix(" with admin option"))
            .unwrap_or(&name);
        if !known.contains(&word) {
            return Err(EngineError::new(
                SqlState::INVALID_PARAMETER_VALUE,
                format!("unrecognized privilege type: \"{}\"", privilege.trim()),
            ));
        }
    }
    Ok(())
}

/// The number of a relation; `None` for the number of one that there is not.
fn relation(value: &Value, catalog: &dyn CatalogFacts) -> Result<Option<u32>> {
    match value {
        Value::Oid(oid) => Ok(catalog.relation(*oid).map(|_| *oid)),
        name => relation_named(text_of(name)?, catalog).map(Some),
    }
}

fn on_relation(arguments: &[Value], session: &dyn SessionFacts) -> Result<Value> {
    let Some([object, privileges]) = without_role(arguments, 3, session)? else {
        return Ok(Value::Null);
    };
    let found = relation(object, session.catalog()?)?;
    check_privileges(privileges, ON_RELATIONS)?;
    Ok(found.map_or(Value::Null, |_| Value::Bool(true)))
}

fn on_column(arguments: &[Value], session: &dyn SessionFacts) -> Result<Value> {
    let Some([object, column, privileges]) = without_role(arguments, 4, session)? else {
        return Ok(Value::Null);
    };
    let catalog = session.catalog()?;
    let found = relation(object, catalog)?;
    check_privileges(privileges, ON_COLUMNS)?;
    let Some(oid) = found else { return Ok(Value::Null) };
    if let Some(name) = column.as_str()
        && catalog.column_number(oid, name).is_none()
    {
        let table = catalog
            .relation(oid)
            .map(|relation| relation.name)
            .unwrap_or_default();
        return Err(EngineError::new(
            SqlState::UNDEFINED_COLUMN,
            format!("column \"{name}\" of relation \"{table}\" does not exist"),
        ));
    }
    Ok(Value::Bool(true))
}

fn on_schema(arguments: &[Value], session: &dyn SessionFacts) -> Result<Value> {
    let Some([object, privileges]) = without_role(arguments, 3, session)? else {
        return Ok(Value::Null);
    };
    let catalog = session.catalog()?;
    let is_known = match object {
        Value::Oid(oid) => catalog.schema_name(*oid).is_some(),
        name => {
            let name = text_of(name)?;
            if catalog.schema_oid(name).is_none() {
                return Err(EngineError::new(
                    SqlState::INVALID_SCHEMA_NAME,
                    format!("schema \"{name}\" does not exist"),
                ));
            }
            true
        }
    };
    check_privileges(privileges, ON_SCHEMAS)?;
    Ok(if is_known { Value::Bool(true) } else { Value::Null })
}

fn on_database(arguments: &[Value], session: &dyn SessionFacts) -> Result<Value> {
    let Some([object, privileges]) = without_role(arguments, 3, session)? else {
        return Ok(Value::Null);
    };
    let is_known = match object {
        Value::Oid(oid) => *oid == DATABASE_OID,
        name if name.as_str() == Some(session.database()) => true,
        name => {
            return Err(EngineError::new(
                SqlState::INVALID_CATALOG_NAME,
                format!("database \"{}\" does not exist", text_of(name)?),
            ));
        }
    };
    check_privileges(privileges, ON_DATABASES)?;
    Ok(if is_known { Value::Bool(true) } else { Value::Null })
}

fn in_role(arguments: &[Value], session: &dyn SessionFacts) -> Result<Value> {
    let Some([role, privileges]) = without_role(arguments, 3, session)? else {
        return Ok(Value::Null);
    };
    let is_user = is_user(role, session)?;
    check_privileges(privileges, IN_ROLES)?;
    Ok(Value::Bool(is_user))
}
