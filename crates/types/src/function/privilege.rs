//! Functions about privileges: does a role have one of some on an object?

use super::catalog::{DATABASE_OID, text_of};
use super::names::relation_named;
use super::row::Implementation::Session;
use super::row::{FunctionRow, row};
use crate::catalog_facts::{CatalogFacts, PrivilegeOn};
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
        Session(on_any_column),
    )
    .stable(),
    row(
        3025,
        "has_any_column_privilege",
        &[Name, Oid, Text],
        Bool,
        Session(on_any_column),
    )
    .stable(),
    row(
        3026,
        "has_any_column_privilege",
        &[Oid, Text, Text],
        Bool,
        Session(on_any_column),
    )
    .stable(),
    row(
        3027,
        "has_any_column_privilege",
        &[Oid, Oid, Text],
        Bool,
        Session(on_any_column),
    )
    .stable(),
    row(
        3028,
        "has_any_column_privilege",
        &[Text, Text],
        Bool,
        Session(on_any_column),
    )
    .stable(),
    row(
        3029,
        "has_any_column_privilege",
        &[Oid, Text],
        Bool,
        Session(on_any_column),
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
        Session(on_sequence),
    )
    .stable(),
    row(
        2182,
        "has_sequence_privilege",
        &[Name, Oid, Text],
        Bool,
        Session(on_sequence),
    )
    .stable(),
    row(
        2183,
        "has_sequence_privilege",
        &[Oid, Text, Text],
        Bool,
        Session(on_sequence),
    )
    .stable(),
    row(
        2184,
        "has_sequence_privilege",
        &[Oid, Oid, Text],
        Bool,
        Session(on_sequence),
    )
    .stable(),
    row(
        2185,
        "has_sequence_privilege",
        &[Text, Text],
        Bool,
        Session(on_sequence),
    )
    .stable(),
    row(
        2186,
        "has_sequence_privilege",
        &[Oid, Text],
        Bool,
        Session(on_sequence),
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
const ON_SEQUENCES: &[&str] = &["select", "update", "usage"];
const ON_COLUMNS: &[&str] = &["select", "insert", "update", "references"];
const ON_SCHEMAS: &[&str] = &["create", "usage"];
const ON_DATABASES: &[&str] = &["create", "temporary", "temp", "connect"];
const IN_ROLES: &[&str] = &["usage", "member"];

/// The role that is asked about, the current one unless one is in front of `count` arguments; and the others.
fn role_and_rest<'a>(
    arguments: &'a [Value],
    count: usize,
    session: &dyn SessionFacts,
) -> Result<(u32, &'a [Value])> {
    match arguments.len() < count {
        true => Ok((role_named(session.user(), session)?, arguments)),
        false => Ok((role(&arguments[0], session)?, &arguments[1..])),
    }
}

/// The number of the role of this name.
fn role_named(name: &str, session: &dyn SessionFacts) -> Result<u32> {
    session.catalog()?.role_named(name).ok_or_else(|| {
        EngineError::new(
            SqlState::UNDEFINED_OBJECT,
            format!("role \"{name}\" does not exist"),
        )
    })
}

/// The number of a role, given as such or by its name; `public` is 0.
fn role(value: &Value, session: &dyn SessionFacts) -> Result<u32> {
    match value {
        Value::Oid(oid) => Ok(*oid),
        name => match text_of(name)? {
            "public" => Ok(0),
            name => role_named(name, session),
        },
    }
}

/// The privileges of a list, and whether the right to grant each is asked for; 22023 for one that there is not.
fn privileges(list: &Value, known: &[&str]) -> Result<Vec<(String, bool)>> {
    let mut found = Vec::new();
    for privilege in text_of(list)?.split(',') {
        let name = privilege.trim().to_ascii_lowercase();
        let word = name
            .strip_suffix(" with grant option")
            .or_else(|| name.strip_suffix(" with admin option"));
        let (word, with_option) = word.map_or((name.as_str(), false), |word| (word, true));
        if !known.contains(&word) {
            return Err(EngineError::new(
                SqlState::INVALID_PARAMETER_VALUE,
                format!("unrecognized privilege type: \"{}\"", privilege.trim()),
            ));
        }
        let word = if word == "temp" { "temporary" } else { word };
        found.push((word.to_owned(), with_option));
    }
    Ok(found)
}

/// True if a role has one of these privileges on an object.
fn has_one_of(role: u32, on: PrivilegeOn, wanted: &[(String, bool)], catalog: &dyn CatalogFacts) -> Value {
    let mut wanted = wanted.iter();
    Value::Bool(wanted.any(|(privilege, option)| catalog.has_privilege(role, on, privilege, *option)))
}

/// The number of a relation; `None` for the number of one that there is not.
fn relation(value: &Value, catalog: &dyn CatalogFacts) -> Result<Option<u32>> {
    match value {
        Value::Oid(oid) => Ok(catalog.relation(*oid).map(|_| *oid)),
        name => relation_named(text_of(name)?, catalog).map(Some),
    }
}

fn on_relation(arguments: &[Value], session: &dyn SessionFacts) -> Result<Value> {
    on_relation_as(arguments, session, ON_RELATIONS, PrivilegeOn::Relation)
}

fn on_sequence(arguments: &[Value], session: &dyn SessionFacts) -> Result<Value> {
    let has = on_relation_as(arguments, session, ON_SEQUENCES, PrivilegeOn::Relation)?;
    let (_, rest) = role_and_rest(arguments, 3, session)?;
    let catalog = session.catalog()?;
    let found = rest
        .first()
        .map_or(Ok(None), |object| relation(object, catalog))?;
    match found.and_then(|oid| catalog.relation(oid)) {
        Some(other) if other.kind != 'S' => Err(EngineError::new(
            SqlState::WRONG_OBJECT_TYPE,
            format!("\"{}\" is not a sequence", other.name),
        )),
        _ => Ok(has),
    }
}

fn on_any_column(arguments: &[Value], session: &dyn SessionFacts) -> Result<Value> {
    on_relation_as(arguments, session, ON_COLUMNS, PrivilegeOn::AnyColumn)
}

fn on_relation_as(
    arguments: &[Value],
    session: &dyn SessionFacts,
    known: &[&str],
    on: fn(u32) -> PrivilegeOn,
) -> Result<Value> {
    let (role, rest) = role_and_rest(arguments, 3, session)?;
    let [object, list] = rest else {
        return Ok(Value::Null);
    };
    let catalog = session.catalog()?;
    let found = relation(object, catalog)?;
    let wanted = privileges(list, known)?;
    Ok(found.map_or(Value::Null, |oid| has_one_of(role, on(oid), &wanted, catalog)))
}

fn on_column(arguments: &[Value], session: &dyn SessionFacts) -> Result<Value> {
    let (role, rest) = role_and_rest(arguments, 4, session)?;
    let [object, column, list] = rest else {
        return Ok(Value::Null);
    };
    let catalog = session.catalog()?;
    let found = relation(object, catalog)?;
    let wanted = privileges(list, ON_COLUMNS)?;
    let Some(oid) = found else { return Ok(Value::Null) };
    let number = match (column, column.as_str()) {
        (Value::Int2(number), _) if !catalog.has_column(oid, *number) => return Ok(Value::Null),
        (Value::Int2(number), _) => *number,
        (_, Some(name)) => catalog.column_number(oid, name).ok_or_else(|| {
            let table = catalog.relation(oid).map(|relation| relation.name);
            EngineError::new(
                SqlState::UNDEFINED_COLUMN,
                format!(
                    "column \"{name}\" of relation \"{}\" does not exist",
                    table.unwrap_or_default()
                ),
            )
        })?,
        _ => return Ok(Value::Null),
    };
    Ok(has_one_of(
        role,
        PrivilegeOn::Column(oid, number),
        &wanted,
        catalog,
    ))
}

fn on_schema(arguments: &[Value], session: &dyn SessionFacts) -> Result<Value> {
    let (role, rest) = role_and_rest(arguments, 3, session)?;
    let [object, list] = rest else {
        return Ok(Value::Null);
    };
    let catalog = session.catalog()?;
    let found = match object {
        Value::Oid(oid) => catalog.schema_name(*oid).map(|_| *oid),
        name => {
            let name = text_of(name)?;
            Some(catalog.schema_oid(name).ok_or_else(|| {
                EngineError::new(
                    SqlState::INVALID_SCHEMA_NAME,
                    format!("schema \"{name}\" does not exist"),
                )
            })?)
        }
    };
    let wanted = privileges(list, ON_SCHEMAS)?;
    Ok(found.map_or(Value::Null, |oid| {
        has_one_of(role, PrivilegeOn::Schema(oid), &wanted, catalog)
    }))
}

fn on_database(arguments: &[Value], session: &dyn SessionFacts) -> Result<Value> {
    let (role, rest) = role_and_rest(arguments, 3, session)?;
    let [object, list] = rest else {
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
    let wanted = privileges(list, ON_DATABASES)?;
    Ok(match is_known {
        true => has_one_of(role, PrivilegeOn::Database, &wanted, session.catalog()?),
        false => Value::Null,
    })
}

fn in_role(arguments: &[Value], session: &dyn SessionFacts) -> Result<Value> {
    let (member, rest) = role_and_rest(arguments, 3, session)?;
    let [of, list] = rest else { return Ok(Value::Null) };
    let of = role(of, session)?;
    let wanted = privileges(list, IN_ROLES)?;
    Ok(has_one_of(
        member,
        PrivilegeOn::Role(of),
        &wanted,
        session.catalog()?,
    ))
}
