//! The items that a path finds.

use super::fault::Fault;
use super::moment::Moment;
use crate::error::Result;
use crate::memory;
use crate::value::Numeric;
use crate::value::json::{Json, Jsonb, JsonbRef, Kind};

/// An item: a part of a document where it lies, or a value that the path has made.
#[derive(Debug, Clone)]
pub(super) enum Item<'v> {
    /// A part of a document.
    Part(JsonbRef<'v>),
    /// A document that a method has made.
    Made(Jsonb),
    /// `null`
    Null,
    /// `true`, `false`
    Bool(bool),
    /// A number
    Number(Numeric),
    /// A string of the path
    Text(&'v str),
    /// A date or time
    Moment(Moment),
}

/// The value of an item that is no array or object.
#[derive(Debug)]
pub(super) enum Scalar<'i> {
    Null,
    Bool(bool),
    Number(Numeric),
    Text(&'i str),
    Moment(&'i Moment),
}

impl<'v> Item<'v> {
    /// The item as a part of a document; `None` for other values.
    fn json(&self) -> Option<JsonbRef<'_>> {
        match self {
            Item::Part(part) => Some(*part),
            Item::Made(json) => Some(json.as_ref()),
            _ => None,
        }
    }

    /// The array that it is.
    pub(super) fn array(&self) -> Option<JsonbRef<'v>> {
        self.part_of(Kind::Array)
    }

    /// True for an array.
    pub(super) fn is_array(&self) -> bool {
        self.json().is_some_and(|json| json.kind() == Kind::Array)
    }

    /// The object that it is.
    pub(super) fn object(&self) -> Option<JsonbRef<'v>> {
        self.part_of(Kind::Object)
    }

    /// The array or object that it is.
    pub(super) fn container(&self) -> Option<JsonbRef<'v>> {
        match self {
            Item::Part(part) if !part.is_scalar() => Some(*part),
            _ => None,
        }
    }

    fn part_of(&self, kind: Kind) -> Option<JsonbRef<'v>> {
        self.container().filter(|part| part.kind() == kind)
    }

    /// Its value; `None` for an array or object.
    pub(super) fn scalar(&self) -> Option<Scalar<'_>> {
        Some(match self {
            Item::Null => Scalar::Null,
            Item::Bool(truth) => Scalar::Bool(*truth),
            Item::Number(number) => Scalar::Number(number.clone()),
            Item::Text(text) => Scalar::Text(text),
            Item::Moment(moment) => Scalar::Moment(moment),
            Item::Part(_) | Item::Made(_) => {
                let json = self.json()?;
                match json.kind() {
                    Kind::Null => Scalar::Null,
                    Kind::False => Scalar::Bool(false),
                    Kind::True => Scalar::Bool(true),
                    Kind::Number => Scalar::Number(json.number()?),
                    Kind::String => Scalar::Text(json.text()?),
                    Kind::Array | Kind::Object => return None,
                }
            }
        })
    }

    /// The number that it is.
    pub(super) fn number(&self) -> Option<Numeric> {
        match self.scalar()? {
            Scalar::Number(number) => Some(number),
            _ => None,
        }
    }

    /// The string that it is.
    pub(super) fn text(&self) -> Option<&str> {
        match self.scalar()? {
            Scalar::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The name of its type.
    pub(super) fn type_name(&self) -> &'static str {
        match self.scalar() {
            Some(Scalar::Null) => "null",
            Some(Scalar::Bool(_)) => "boolean",
            Some(Scalar::Number(_)) => "number",
            Some(Scalar::Text(_)) => "string",
            Some(Scalar::Moment(moment)) => moment.type_name(),
            None => self.json().map_or("null", |json| json.kind().name()),
        }
    }

    /// The elements of the array that it is; otherwise itself.
    pub(super) fn unwrapped(self, out: &mut Vec<Item<'v>>) -> Result<(), Fault> {
        match &self {
            Item::Part(part) if part.kind() == Kind::Array => {
                let mut elements = part.elements();
                elements.try_for_each(|element| push(out, Item::Part(element)))
            }
            Item::Made(json) if json.as_ref().kind() == Kind::Array => {
                let mut elements = json.as_ref().elements();
                elements.try_for_each(|element| push(out, Item::Made(element.to_owned())))
            }
            _ => push(out, self),
        }
    }

    /// The item as a value of its own, that needs no document.
    pub(super) fn detached<'other>(self) -> Result<Item<'other>> {
        Ok(match self {
            Item::Part(part) => Item::Made(part.to_owned()),
            Item::Text(text) => Item::Made(Jsonb::of(&Json::String(text.into()))?),
            Item::Made(json) => Item::Made(json),
            Item::Null => Item::Null,
            Item::Bool(truth) => Item::Bool(truth),
            Item::Number(number) => Item::Number(number),
            Item::Moment(moment) => Item::Moment(moment),
        })
    }

    /// The item as a `jsonb`.
    pub(super) fn into_jsonb(self) -> Result<Jsonb> {
        Jsonb::of(&match self {
            Item::Part(part) => return Ok(part.to_owned()),
            Item::Made(json) => return Ok(json),
            other => other.tree(),
        })
    }

    /// The item as a tree.
    pub(super) fn tree(&self) -> Json {
        match self.scalar() {
            Some(Scalar::Null) => Json::Null,
            Some(Scalar::Bool(truth)) => Json::Bool(truth),
            Some(Scalar::Number(number)) => Json::Number(number),
            Some(Scalar::Text(text)) => Json::String(text.into()),
            Some(Scalar::Moment(moment)) => Json::String(moment.text().into()),
            None => self.json().map_or(Json::Null, JsonbRef::tree),
        }
    }

    /// About the bytes that it has as a `jsonb`.
    pub(super) fn bytes(&self) -> usize {
        match self {
            Item::Part(part) => part.byte_count(),
            Item::Made(json) => json.bytes().len(),
            Item::Number(number) => 16 + number.heap_bytes(),
            Item::Text(text) => text.len(),
            _ => 32,
        }
    }
}

/// Appends an item; 53200 if there is no memory for the list.
pub(super) fn push<'v>(found: &mut Vec<Item<'v>>, item: Item<'v>) -> Result<(), Fault> {
    if found.len() == found.capacity() {
        memory::require(2 * found.capacity() * size_of::<Item<'v>>())?;
    }
    found.push(item);
    Ok(())
}
