//! Enumerations: labels, and their positions.
//!
//! ```text
//! create type mood as enum ('sad', 'ok');        sad 0          ok 2^40
//! alter type mood add value 'happy';             sad 0          ok 2^40   happy 2^41
//! alter type mood add value 'so-so' before 'ok'; sad 0  so-so 2^39  ok 2^40  …
//! ```
//!
//! Labels that are added in halves of the room between the same two others leave room for 40; the next one is refused.
//! `pg_enum.enumsortorder` is another number, which PostgreSQL's clients see: it is counted as PostgreSQL counts it.

use crate::error::{EngineError, Result, SqlState, shown};
use crate::value::DataType;
use crate::value::type_table::TypeOid;
use crate::value::user_type::{self, in_force};

/// The room between two labels when they are made.
const SPACING: i64 = 1 << 40;

/// The most bytes of a label.
const LABEL_BYTES_MAX: usize = 63;

/// A label of an enumeration.
#[derive(Debug, Clone, PartialEq)]
pub struct EnumLabel {
    /// Its number.
    pub oid: u32,
    /// Its text.
    pub label: String,
    /// Its position (U2).
    pub position: i64,
    /// Its order as `pg_enum` shows it.
    pub order: f32,
    /// The transaction by which ALTER TYPE has added it; 0 if that has ended for sure.
    pub added_by: u64,
}

/// The place of a new label.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LabelPlace {
    /// Behind all
    Last,
    /// BEFORE this one
    Before(String),
    /// AFTER this one
    After(String),
}

/// An enumeration.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct EnumType {
    /// Its labels, in their order.
    pub labels: Vec<EnumLabel>,
}

impl EnumType {
    /// A new enumeration of these labels.
    pub fn new(oid: TypeOid, labels: &[String]) -> Result<EnumType> {
        let mut made: Vec<EnumLabel> = Vec::with_capacity(labels.len());
        for (at, label) in labels.iter().enumerate() {
            check_label(label)?;
            if made.iter().any(|known| known.label == *label) {
                return Err(EngineError::new(
                    SqlState::from_code("23505"),
                    "duplicate key value violates unique constraint \"pg_enum_typid_label_index\"",
                )
                .with_detail(format!(
                    "Key (enumtypid, enumlabel)=({}, {label}) already exists.",
                    oid.get()
                )));
            }
            made.push(first_label(oid, at, label.clone()));
        }
        Ok(EnumType { labels: made })
    }

    /// The label of this text.
    pub fn named(&self, label: &str) -> Option<&EnumLabel> {
        self.labels.iter().find(|known| known.label == label)
    }

    /// The label at this position.
    pub fn at(&self, position: i64) -> Option<&EnumLabel> {
        let found = self
            .labels
            .binary_search_by_key(&position, |label| label.position);
        self.labels.get(found.ok()?)
    }

    /// Adds a label.
    pub fn add(&mut self, oid: TypeOid, label: &str, place: &LabelPlace, added_by: u64) -> Result<()> {
        check_label(label)?;
        let numbers = self.labels.iter().map(|label| label.oid);
        let oid = numbers.max().map_or(first_number(oid), |last| last + 1);
        let neighbor = |name: &str| {
            let found = self.labels.iter().position(|known| known.label == name);
            found.ok_or_else(|| no_label(name))
        };
        let at = match place {
            LabelPlace::Last => self.labels.len(),
            LabelPlace::Before(name) => neighbor(name)?,
            LabelPlace::After(name) => neighbor(name)? + 1,
        };
        let before = at.checked_sub(1).map(|at| &self.labels[at]);
        let after = self.labels.get(at);
        let position = match (before, after) {
            (None, None) => 0,
            (Some(before), None) => before.position + SPACING,
            (None, Some(after)) => after.position - SPACING,
            (Some(before), Some(after)) => before.position + (after.position - before.position) / 2,
        };
        if before.is_some_and(|before| before.position == position) {
            return Err(EngineError::new(
                SqlState::PROGRAM_LIMIT_EXCEEDED,
                format!("there is no room for enum label \"{label}\" between its neighbors"),
            ));
        }
        let mut order = match (before, after) {
            (None, None) => 1.0,
            (Some(before), None) => before.order + 1.0,
            (None, Some(after)) => after.order - 1.0,
            (Some(before), Some(after)) => f32::midpoint(before.order, after.order),
        };
        let is_taken = |label: Option<&EnumLabel>| label.is_some_and(|label| label.order == order);
        if is_taken(before) || is_taken(after) {
            for (place, label) in self.labels.iter_mut().enumerate() {
                label.order = (place + 1 + usize::from(place >= at)) as f32;
            }
            order = (at + 1) as f32;
        }
        self.labels.insert(
            at,
            EnumLabel {
                oid,
                label: label.to_owned(),
                position,
                order,
                added_by,
            },
        );
        Ok(())
    }

    /// Renames a label.
    pub fn rename(&mut self, from: &str, to: &str) -> Result<()> {
        check_label(to)?;
        let taken = self.named(to).is_some();
        let found = self.labels.iter_mut().find(|known| known.label == from);
        let found = found.ok_or_else(|| no_label(from))?;
        if taken {
            return Err(label_exists(to));
        }
        to.clone_into(&mut found.label);
        Ok(())
    }
}

/// The position of the label of this text; 22P02 if there is none.
pub(crate) fn position_of(text: &str, oid: TypeOid) -> Result<i64> {
    let data_type = DataType::Enum(oid);
    let invalid = || {
        EngineError::new(
            SqlState::INVALID_TEXT_REPRESENTATION,
            format!("invalid input value for enum {data_type}: \"{}\"", shown(text)),
        )
    };
    let found = in_force::get(oid).ok_or_else(invalid)?;
    let label = found
        .enumeration()
        .and_then(|of| of.named(text))
        .ok_or_else(invalid)?;
    require_committed(data_type, label)?;
    Ok(label.position)
}

/// 55P04 for a label that the running transaction has added, also to a type that it has made: so PostgreSQL 15 does.
pub(crate) fn require_committed(data_type: DataType, label: &EnumLabel) -> Result<()> {
    if label.added_by == 0 || label.added_by != in_force::transaction() {
        return Ok(());
    }
    Err(EngineError::new(
        SqlState::from_code("55P04"),
        format!(
            "unsafe use of new value \"{}\" of enum type {data_type}",
            label.label
        ),
    )
    .with_hint("New enum values must be committed before they can be used."))
}

/// Appends the text of a value.
pub(crate) fn write_label(oid: TypeOid, position: i64, out: &mut String) {
    let found = in_force::get(oid);
    let label = found
        .as_deref()
        .and_then(|found| found.enumeration()?.at(position));
    match label {
        Some(label) => out.push_str(&label.label),
        None => out.push_str(user_type::UNKNOWN),
    }
}

/// The number of the first label of an enumeration: above those of all other objects, and with room for 1,024.
fn first_number(oid: TypeOid) -> u32 {
    (1 << 31) | (oid.get() << 10 & ((1 << 31) - 1))
}

/// The label that CREATE TYPE makes of a text at this place.
pub fn first_label(oid: TypeOid, at: usize, label: String) -> EnumLabel {
    EnumLabel {
        oid: first_number(oid) + at as u32,
        label,
        position: at as i64 * SPACING,
        order: (at + 1) as f32,
        added_by: 0,
    }
}

fn check_label(label: &str) -> Result<()> {
    if label.len() <= LABEL_BYTES_MAX {
        return Ok(());
    }
    Err(EngineError::new(
        SqlState::from_code("42602"),
        format!("invalid enum label \"{label}\""),
    )
    .with_detail(format!("Labels must be {LABEL_BYTES_MAX} bytes or less.")))
}

fn no_label(name: &str) -> EngineError {
    EngineError::new(
        SqlState::INVALID_PARAMETER_VALUE,
        format!("\"{name}\" is not an existing enum label"),
    )
}

/// 42710 for a label that there is.
pub fn label_exists(label: &str) -> EngineError {
    EngineError::new(
        SqlState::from_code("42710"),
        format!("enum label \"{label}\" already exists"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const OID: TypeOid = TypeOid::new(16_384).unwrap();

    fn made(labels: [&str; 2]) -> EnumType {
        EnumType::new(OID, &labels.map(str::to_owned)).unwrap()
    }

    fn labels(of: &EnumType) -> Vec<&str> {
        of.labels.iter().map(|label| label.label.as_str()).collect()
    }

    #[test]
    fn labels_stand_where_they_are_put() {
        let mut of = made(["b", "d"]);
        for (label, place) in [
            ("e", LabelPlace::Last),
            ("a", LabelPlace::Before("b".to_owned())),
            ("c", LabelPlace::After("b".to_owned())),
        ] {
            of.add(OID, label, &place, 0).unwrap();
        }
        assert_eq!(labels(&of), ["a", "b", "c", "d", "e"]);
        assert!(of.labels.is_sorted_by(|one, other| one.position < other.position));
        assert!(of.labels.is_sorted_by(|one, other| one.order < other.order));
        assert_eq!(of.at(of.labels[2].position).unwrap().label, "c");
    }

    /// Positions are for ever; the order that clients see is counted anew when it has no room.
    #[test]
    fn thirty_labels_fit_between_two() {
        let mut of = made(["a", "z"]);
        let last = of.labels[1].position;
        for number in 0..39 {
            let place = LabelPlace::Before("z".to_owned());
            of.add(OID, &format!("{number:02}"), &place, 0).unwrap();
        }
        assert!(of.labels.is_sorted_by(|one, other| one.position < other.position));
        assert!(of.labels.is_sorted_by(|one, other| one.order < other.order));
        assert_eq!(of.labels.last().unwrap().position, last);
        let one_more = |of: &mut EnumType| of.add(OID, "y", &LabelPlace::Before("z".to_owned()), 0);
        let refused = one_more(&mut of).and_then(|()| one_more(&mut of)).unwrap_err();
        assert_eq!(refused.sqlstate(), SqlState::PROGRAM_LIMIT_EXCEEDED);
    }
}
