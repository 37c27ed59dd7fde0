//! A part of a `jsonb` tree or of the text of a `json`, so that what reads values of other types from JSON is written once.
//! A part of a text stays as it was written.

use super::{text_of_json, text_of_jsonb};
use crate::error::Result;
use crate::value::json::{JsonbRef, Kind, Level, level, parse};
use crate::value::{Jsonb, Value};

/// A value inside JSON.
#[derive(Clone, Copy)]
pub(super) enum Part<'j> {
    /// In a tree.
    Tree(JsonbRef<'j>),
    /// In a text, without blanks around it.
    Text(&'j str),
}

impl<'j> Part<'j> {
    /// Its kind.
    pub(super) fn kind(self) -> Kind {
        match self {
            Part::Tree(tree) => tree.kind(),
            Part::Text(text) => match text.trim_start().as_bytes().first() {
                Some(b'{') => Kind::Object,
                Some(b'[') => Kind::Array,
                Some(b'"') => Kind::String,
                Some(b't') => Kind::True,
                Some(b'f') => Kind::False,
                Some(b'n') => Kind::Null,
                _ => Kind::Number,
            },
        }
    }

    /// The elements of an array; none of anything else.
    pub(super) fn elements(self) -> Result<Vec<Part<'j>>> {
        Ok(match self {
            Part::Tree(tree) => tree.elements().map(Part::Tree).collect(),
            Part::Text(text) => match level(text)? {
                Level::Array(pieces) => pieces.into_iter().map(Part::Text).collect(),
                _ => Vec::new(),
            },
        })
    }

    /// The members of an object that have these names, in the order of the names: of several with one name the last.
    pub(super) fn members<'n>(self, names: impl Iterator<Item = &'n str>) -> Result<Vec<Option<Part<'j>>>> {
        Ok(match self {
            Part::Tree(tree) => names.map(|name| tree.get(name).map(Part::Tree)).collect(),
            Part::Text(text) => {
                let Level::Object(members) = level(text)? else {
                    return Ok(names.map(|_| None).collect());
                };
                let last = |name: &str| {
                    let mut from_behind = members.iter().rev();
                    from_behind.find(|(known, _)| **known == *name)
                };
                names
                    .map(|name| last(name).map(|(_, piece)| Part::Text(piece)))
                    .collect()
            }
        })
    }

    /// Its text: that of a string without quotes, NULL for null.
    pub(super) fn text(self) -> Result<Value> {
        match self {
            Part::Tree(tree) => Ok(text_of_jsonb(tree)),
            Part::Text(text) => text_of_json(text),
        }
    }

    /// The same as a `json`.
    pub(super) fn json(self) -> Value {
        match self {
            Part::Tree(tree) => {
                let mut text = String::new();
                tree.write(&mut text);
                Value::Json(text.into())
            }
            Part::Text(text) => Value::Json(text.into()),
        }
    }

    /// The same as a `jsonb`.
    pub(super) fn jsonb(self) -> Result<Value> {
        match self {
            Part::Tree(tree) => Ok(Value::Jsonb(tree.to_owned())),
            Part::Text(text) => Ok(Value::Jsonb(Jsonb::of(&parse(text)?)?)),
        }
    }
}
