//! The types whose values are numbers of catalog objects and whose text is the objects' names: `regclass` and its kin.
//!
//! A value is a [`Value::Oid`]. Its text needs the catalog, which the text form of values knows nothing of: what reads
//! or shows such a value asks the session for its [`CatalogFacts`]. Four places do: a cast from or to a string, a
//! parameter, COPY, and what sends a statement's rows.
//!
//! | text | value |
//! |---|---|
//! | `-` | 0 |
//! | digits | that number |
//! | a name, with its schema or without | the object's number, or the error that there is none |
//!
//! A number of no object is shown as digits.

use std::borrow::Cow;

use super::names::parts_of_name;
use super::quote_identifier;
use super::styled::{cast_with_style, shown as shown_in_style};
use crate::catalog_facts::{CatalogFacts, no_relation};
use crate::context::SessionFacts;
use crate::error::{EngineError, Result, SqlState, shown as shortened};
use crate::type_name::type_of_text;
use crate::value::cast::{CastContext, apply_typmod, cast};
use crate::value::compare::trim_blanks;
use crate::value::record::decode_record_text;
use crate::value::{ArrayValue, CatalogObject, DataType, Value, is_space};

/// Reads the text form of a value of this type, an array of such included.
pub fn read(text: &str, data_type: DataType, session: &dyn SessionFacts) -> Result<Value> {
    if data_type == DataType::Record {
        return crate::value::decode_text(text, data_type, 0);
    }
    if let DataType::Composite(oid) = data_type.base() {
        let now = session.transaction_timestamp();
        let read = &mut |text: &str, of: DataType, typmod| match of.has_names() {
            true => read(text, of, session),
            false => apply_typmod(crate::value::decode_text(text, of, now)?, of, typmod, false),
        };
        return decode_record_text(text, oid, read).map(Value::from);
    }
    let Some(kind) = data_type.catalog_object() else {
        let texts = crate::value::decode_text(text, DataType::array_of(DataType::Text), 0)?;
        return match (texts, data_type.element()) {
            (Value::Array(texts), Some(element)) => texts
                .try_map(data_type, |text| {
                    read(text.as_str().unwrap_or_default(), element, session)
                })
                .map(Value::from),
            _ => Err(EngineError::internal(format!("{data_type} has no names"))),
        };
    };
    if text == "-" {
        return Ok(Value::Oid(0));
    }
    if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
        return crate::value::decode_text(text, DataType::Oid, 0);
    }
    let found = match kind {
        CatalogObject::Type => type_number(text, session)?,
        kind => object_number(text, kind, session)?,
    };
    Ok(Value::Oid(found))
}

fn type_number(text: &str, session: &dyn SessionFacts) -> Result<u32> {
    // Names that only the catalog uses are no names in a statement.
    let known = DataType::named(text.trim_matches(is_space)).filter(|data_type| data_type.kind() == 'p');
    if let Some(known) = known {
        return Ok(known.oid());
    }
    match type_of_text(text) {
        Ok((data_type, _)) => Ok(data_type.oid()),
        // One that only the catalog has.
        Err(error) => object_number(text, CatalogObject::Type, session).map_err(|_| error),
    }
}

fn object_number(text: &str, kind: CatalogObject, session: &dyn SessionFacts) -> Result<u32> {
    let catalog = session.catalog()?;
    // Operators are no identifiers, and arguments follow a name: the catalog reads those.
    let (schema, name) = match kind {
        CatalogObject::FunctionWithArguments
        | CatalogObject::Operator
        | CatalogObject::OperatorWithArguments => (None, text.trim_matches(is_space).to_owned()),
        _ => qualified_name(text, session.database())?,
    };
    let schema = schema.as_deref();
    let found = match kind {
        CatalogObject::Relation => catalog.relation_oid(schema, &name),
        CatalogObject::Schema => catalog.schema_oid(&name),
        kind => catalog.object_oid(kind, schema, &name),
    };
    if found.is_none() && catalog.names_several(kind, &name) {
        return Err(EngineError::new(
            SqlState::AMBIGUOUS_FUNCTION,
            match kind {
                CatalogObject::Operator => format!("more than one operator named {}", shortened(text)),
                _ => format!("more than one function named \"{}\"", shortened(text)),
            },
        ));
    }
    found.ok_or_else(|| match schema {
        Some(schema) if catalog.schema_oid(schema).is_none() => no_object(CatalogObject::Schema, schema),
        Some(schema) => no_object(kind, &format!("{schema}.{name}")),
        None => no_object(kind, &name),
    })
}

/// The error for a name that no object of this kind has.
fn no_object(kind: CatalogObject, name: &str) -> EngineError {
    use CatalogObject as Kind;
    let name = shortened(name);
    let (state, message) = match kind {
        Kind::Relation => return no_relation(name),
        Kind::Type => (
            SqlState::UNDEFINED_OBJECT,
            format!("type \"{name}\" does not exist"),
        ),
        Kind::Function | Kind::FunctionWithArguments => (
            SqlState::UNDEFINED_FUNCTION,
            format!("function \"{name}\" does not exist"),
        ),
        Kind::Operator | Kind::OperatorWithArguments => (
            SqlState::UNDEFINED_FUNCTION,
            format!("operator does not exist: {name}"),
        ),
        Kind::Collation => (
            SqlState::UNDEFINED_OBJECT,
            format!("collation \"{name}\" for encoding \"UTF8\" does not exist"),
        ),
        Kind::Schema => (
            SqlState::INVALID_SCHEMA_NAME,
            format!("schema \"{name}\" does not exist"),
        ),
        Kind::Role => (
            SqlState::UNDEFINED_OBJECT,
            format!("role \"{name}\" does not exist"),
        ),
    };
    EngineError::new(state, message)
}

/// Schema and name in a text. In front of both may be the name of the database that this is.
fn qualified_name(text: &str, database: &str) -> Result<(Option<String>, String)> {
    let mut parts = parts_of_name(text)?;
    let name = parts.pop().unwrap_or_default();
    let schema = parts.pop();
    let named = parts.pop();
    if named.as_deref().is_some_and(|named| named != database) {
        return Err(EngineError::new(
            SqlState::FEATURE_NOT_SUPPORTED,
            format!(
                "cross-database references are not implemented: {}",
                shortened(text)
            ),
        ));
    }
    if !parts.is_empty() {
        return Err(EngineError::new(
            SqlState::SYNTAX_ERROR,
            format!(
                "improper qualified name (too many dotted names): {}",
                shortened(text)
            ),
        ));
    }
    Ok((schema, name))
}

/// The text form of an object's number as a value of this type.
pub fn shown(oid: u32, data_type: DataType, session: &dyn SessionFacts) -> String {
    let Some(kind) = data_type.catalog_object() else {
        return oid.to_string();
    };
    if oid == 0 {
        return "-".to_owned();
    }
    if kind == CatalogObject::Type
        && let Some(known) = DataType::from_oid(oid)
    {
        return known.name().into_owned();
    }
    let found = session.catalog().ok().and_then(|catalog| match kind {
        CatalogObject::Relation => relation_shown(oid, catalog),
        CatalogObject::Schema => catalog.schema_name(oid).map(|name| quote_identifier(&name)),
        kind => catalog.object_name(kind, oid),
    });
    found.unwrap_or_else(|| oid.to_string())
}

/// A relation's name, with its schema where it is not found without.
fn relation_shown(oid: u32, catalog: &dyn CatalogFacts) -> Option<String> {
    let relation = catalog.relation(oid)?;
    let name = quote_identifier(&relation.name);
    Some(match catalog.is_visible(oid, &relation.name) {
        true => name,
        false => format!("{}.{name}", quote_identifier(&relation.schema)),
    })
}

/// A cast from or to a type whose text needs the session, or an array of one.
pub fn cast_with_names(
    value: Value,
    from: DataType,
    to: DataType,
    typmod: i32,
    rules: CastContext,
    session: &dyn SessionFacts,
) -> Result<Value> {
    if from.has_style() || to.has_style() {
        return cast_with_style(value, from, to, typmod, rules, session);
    }
    let is_text = |data_type: DataType| data_type.is_string() || data_type == DataType::Unknown;
    if from == to {
        return cast(value, from, to, typmod, rules, 0);
    }
    let named = match &value {
        Value::Null => return Ok(Value::Null),
        Value::Text(text) if to.has_names() => {
            let text = if from == DataType::Char {
                trim_blanks(text)
            } else {
                text
            };
            return read(text, to, session);
        }
        Value::Array(array) if is_text(array.element_type()) && to.has_names() => {
            let element = to.element().unwrap_or(to);
            let read = |text: Value| read(text.as_str().unwrap_or_default(), element, session);
            return array.as_ref().clone().try_map(to, read).map(Value::from);
        }
        Value::Array(_) if to.element().is_some_and(is_text) || is_text(to) => {
            with_names(&value, from, session).into_owned()
        }
        Value::Record(_) if to.is_string() => {
            return cast(
                with_names(&value, from, session).into_owned(),
                from,
                to,
                typmod,
                rules,
                0,
            );
        }
        Value::Oid(_) if is_text(to) => with_names(&value, from, session).into_owned(),
        _ => return cast(value, from, to, typmod, rules, 0),
    };
    let from = match &named {
        Value::Array(array) => array.data_type(),
        _ => DataType::Text,
    };
    cast(named, from, to, typmod, rules, 0)
}

/// The value with names instead of numbers, if its type has names, or in the session's style, if it has one: a text, or
/// an array of texts.
pub fn with_names<'v>(value: &'v Value, data_type: DataType, session: &dyn SessionFacts) -> Cow<'v, Value> {
    match value {
        value if data_type.has_style() => shown_in_style(value, data_type, session),
        Value::Oid(oid) if data_type.catalog_object().is_some() => {
            Cow::Owned(Value::text(shown(*oid, data_type, session)))
        }
        Value::Record(record) => {
            let named = record.map(
                |field, data_type| with_names(field, data_type, session).into_owned(),
                |data_type| match (data_type, data_type.element()) {
                    (_, Some(element)) if element.catalog_object().is_some() => {
                        DataType::array_of(DataType::Text)
                    }
                    (other, _) if other.catalog_object().is_some() => DataType::Text,
                    (other, _) => other,
                },
            );
            // By its type the fields have names.
            Cow::Owned(named.as_type(record.data_type()).into())
        }
        Value::Array(array)
            if matches!(
                array.element_type().base(),
                DataType::Record | DataType::Composite(_)
            ) =>
        {
            let element = |element: Value| Ok(with_names(&element, DataType::Record, session).into_owned());
            let named = array.as_ref().clone().try_map(data_type, element);
            named.map_or(Cow::Borrowed(value), |named| Cow::Owned(named.into()))
        }
        Value::Array(array) if data_type.has_names() => {
            let names = array.elements().iter().map(|element| match element {
                Value::Oid(oid) => Value::text(shown(*oid, array.element_type(), session)),
                other => other.clone(),
            });
            let texts = DataType::array_of(DataType::Text);
            match ArrayValue::new(texts, array.dimensions().to_vec(), names.collect()) {
                Ok(named) => Cow::Owned(named.into()),
                Err(_) => Cow::Borrowed(value),
            }
        }
        other => Cow::Borrowed(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::context::NoSession;

    #[test]
    fn types_need_no_session() {
        let read = |text: &str| read(text, DataType::Regtype, &NoSession);
        assert_eq!(read("integer").unwrap(), Value::Oid(23));
        assert_eq!(read("character varying(10)").unwrap(), Value::Oid(1043));
        assert_eq!(read("int[]").unwrap(), Value::Oid(1007));
        assert_eq!(read("record").unwrap(), Value::Oid(2249));
        assert_eq!(read("-").unwrap(), Value::Oid(0));
        assert_eq!(read("4294967295").unwrap(), Value::Oid(u32::MAX));
        assert_eq!(
            read("nonsense").unwrap_err().sqlstate(),
            SqlState::UNDEFINED_OBJECT
        );
        let shown = |oid| shown(oid, DataType::Regtype, &NoSession);
        assert_eq!(shown(1184), "timestamp with time zone");
        assert_eq!(shown(1007), "integer[]");
        assert_eq!(shown(0), "-");
        assert_eq!(shown(99_999), "99999");
    }

    #[test]
    fn what_is_not_there_is_an_error_by_its_kind() {
        for (kind, state) in [
            (CatalogObject::Relation, SqlState::UNDEFINED_TABLE),
            (CatalogObject::Function, SqlState::UNDEFINED_FUNCTION),
            (CatalogObject::Operator, SqlState::UNDEFINED_FUNCTION),
            (CatalogObject::Schema, SqlState::INVALID_SCHEMA_NAME),
            (CatalogObject::Role, SqlState::UNDEFINED_OBJECT),
        ] {
            assert_eq!(no_object(kind, "x").sqlstate(), state, "{kind:?}");
        }
    }
}
