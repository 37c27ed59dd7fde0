//! Types that users have defined, as the bytes of rows of the catalog heap; see [`super::stored`].
//!
//! The labels of an enumeration that stand as CREATE TYPE put them are their texts alone; the others have their numbers too.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::catalog::row_format::{BYTES_MAX, FORMAT, check_format, damaged, is_public, public};
use clearway_sql::compile_domain;
use clearway_sql::error::{EngineError, Result, SqlState};
use clearway_sql::function::USER_OID;
use clearway_sql::value::user_type::{
    CompositeType, DomainCheck, DomainType, EnumLabel, EnumType, Field, UserType, UserTypeKind, first_label,
};
use clearway_sql::value::{DataType, TypeOid};

/// The beginning of a row that is a type.
pub(super) const TYPE: &[u8] = b"{\"user_type\":";

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredType {
    /// The name. First: see [`TYPE`].
    user_type: String,
    format: u32,
    oid: u32,
    #[serde(default = "public", skip_serializing_if = "is_public")]
    schema: u32,
    #[serde(default = "first_user", skip_serializing_if = "is_first_user")]
    owner: u32,
    /// Of an enumeration, in their order.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    labels: Option<Vec<String>>,
    /// Of those that do not stand as CREATE TYPE puts them: place among the labels, number, position, order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    placed: Vec<(usize, u32, i64, f32)>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    domain: Option<StoredDomain>,
    /// Of a composite type: names, types and modifiers of its fields.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    fields: Option<Vec<(String, u32, i32)>>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredDomain {
    base: u32,
    modifier: i32,
    not_null: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    default: Option<String>,
    /// Number, name, text, and whether all values are known to satisfy it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    checks: Vec<(u32, String, String, bool)>,
}

fn stored_domain(domain: &DomainType) -> StoredDomain {
    let checks = domain.checks.iter();
    StoredDomain {
        base: domain.base.oid(),
        modifier: domain.typmod,
        not_null: domain.not_null,
        default: domain.default.clone(),
        checks: checks
            .map(|check| (check.oid, check.name.clone(), check.sql.clone(), check.validated))
            .collect(),
    }
}

fn domain_of(stored: StoredDomain) -> Result<DomainType> {
    let base = DataType::from_oid(stored.base)
        .ok_or_else(|| damaged(format!("type {} below a domain", stored.base)))?;
    let conditions = stored.checks.iter().map(|(_, _, sql, _)| sql.as_str());
    let compiled = compile_domain(base, stored.modifier, stored.default.as_deref(), conditions)?;
    let checks = stored.checks.into_iter();
    Ok(DomainType {
        base,
        typmod: stored.modifier,
        not_null: stored.not_null,
        default: stored.default,
        checks: checks
            .map(|(oid, name, sql, validated)| DomainCheck {
                oid,
                name,
                sql,
                validated,
            })
            .collect(),
        compiled,
    })
}

fn field_of((name, oid, typmod): (String, u32, i32)) -> Result<Field> {
    let data_type =
        DataType::from_oid(oid).ok_or_else(|| damaged(format!("type {oid} in a composite type")))?;
    Ok(Field {
        name,
        data_type,
        typmod,
    })
}

fn first_user() -> u32 {
    USER_OID
}

fn is_first_user(owner: &u32) -> bool {
    *owner == USER_OID
}

/// Encodes a type as a catalog row.
pub(crate) fn encode_type(def: &UserType) -> Result<Vec<u8>> {
    let mut stored = StoredType {
        user_type: def.name.clone(),
        format: FORMAT,
        oid: def.oid.get(),
        schema: def.schema_oid,
        owner: def.owner,
        labels: None,
        placed: Vec::new(),
        domain: None,
        fields: None,
    };
    match &def.kind {
        UserTypeKind::Enum(of) => {
            stored.labels = Some(of.labels.iter().map(|label| label.label.clone()).collect());
            stored.placed = placed(def.oid, of);
        }
        UserTypeKind::Domain(domain) => stored.domain = Some(stored_domain(domain)),
        UserTypeKind::Composite(composite) => {
            let fields = composite.fields.iter();
            stored.fields = Some(
                fields
                    .map(|field| (field.name.clone(), field.data_type.oid(), field.typmod))
                    .collect(),
            );
        }
    }
    let bytes = serde_json::to_vec(&stored)
        .map_err(|error| EngineError::internal(format!("cannot encode a type: {error}")))?;
    if bytes.len() > BYTES_MAX {
        return Err(EngineError::new(
            SqlState::PROGRAM_LIMIT_EXCEEDED,
            format!("the definition of type \"{}\" is too long", def.name),
        )
        .with_detail(format!(
            "It takes {} bytes; the limit is {BYTES_MAX}.",
            bytes.len()
        )));
    }
    debug_assert!(bytes.starts_with(TYPE));
    Ok(bytes)
}

/// Decodes a type; the types that it names are in force.
pub(super) fn decode_type(bytes: &[u8]) -> Result<Arc<UserType>> {
    let stored: StoredType = serde_json::from_slice(bytes).map_err(damaged)?;
    check_format(stored.format)?;
    let oid = TypeOid::new(stored.oid).ok_or_else(|| damaged("the number of a type"))?;
    let kind = match (stored.labels, stored.domain, stored.fields) {
        (Some(labels), ..) => UserTypeKind::Enum(labels_of(oid, labels, &stored.placed)?),
        (_, Some(domain), _) => UserTypeKind::Domain(domain_of(domain)?),
        (.., Some(fields)) => UserTypeKind::Composite(CompositeType {
            fields: fields.into_iter().map(field_of).collect::<Result<_>>()?,
            table: None,
        }),
        _ => return Err(damaged("a type of no kind")),
    };
    Ok(Arc::new(UserType {
        oid,
        schema_oid: stored.schema,
        // The catalog has its name.
        schema: "".into(),
        name: stored.user_type,
        owner: stored.owner,
        kind,
    }))
}

/// The labels that do not stand as CREATE TYPE puts them.
fn placed(oid: TypeOid, of: &EnumType) -> Vec<(usize, u32, i64, f32)> {
    let labels = of.labels.iter().enumerate();
    let numbers = |label: &EnumLabel| (label.oid, label.position, label.order);
    labels
        .filter(|(at, label)| numbers(label) != numbers(&first_label(oid, *at, String::new())))
        .map(|(at, label)| (at, label.oid, label.position, label.order))
        .collect()
}

fn labels_of(oid: TypeOid, texts: Vec<String>, placed: &[(usize, u32, i64, f32)]) -> Result<EnumType> {
    let labels = texts.into_iter().enumerate();
    let mut labels: Vec<EnumLabel> = labels.map(|(at, text)| first_label(oid, at, text)).collect();
    for (at, oid, position, order) in placed {
        let label = labels
            .get_mut(*at)
            .ok_or_else(|| damaged("a label of an enumeration"))?;
        (label.oid, label.position, label.order) = (*oid, *position, *order);
    }
    if !labels.is_sorted_by(|one, other| one.position < other.position) {
        return Err(damaged("the labels of an enumeration are not in their order"));
    }
    Ok(EnumType { labels })
}
