//! JSON that is put together row by row: the text of a `json`, the tree of a `jsonb`.

use crate::aggregate::AggregateCall;
use crate::error::Result;
use crate::function::json::make::{member_of, tree_of, write_member, write_value};
use crate::value::json::Json;
use crate::value::{DataType, Jsonb, Value};

/// The JSON of one group, `None` until its first row; of a tree, also about the bytes that it has.
#[derive(Debug, Clone)]
pub(in crate::aggregate) enum Gathered {
    /// The text of an array or an object, without its end.
    Text(Option<String>),
    /// The elements of an array.
    Elements(Option<Vec<Json>>, usize),
    /// The members of an object.
    Members(Option<Vec<(Box<str>, Json)>>, usize),
}

impl Gathered {
    /// Takes a row.
    pub(in crate::aggregate) fn take(&mut self, call: &AggregateCall, arguments: &[Value]) -> Result<()> {
        match (self, arguments) {
            (Gathered::Text(text), [value]) => {
                match text {
                    None => *text = Some("[".to_owned()),
                    // What has parts begins a line.
                    Some(text) => text.push_str(match call.argument_types[0] {
                        DataType::Record | DataType::Composite(_) | DataType::Array(_)
                            if !value.is_null() =>
                        {
                            ", \n "
                        }
                        _ => ", ",
                    }),
                }
                text.as_mut().map_or(Ok(()), |text| write_value(value, text))
            }
            (Gathered::Text(text), [key, value]) => {
                match text {
                    None => *text = Some("{ ".to_owned()),
                    Some(text) => text.push_str(", "),
                }
                text.as_mut()
                    .map_or(Ok(()), |text| write_member(key, value, text))
            }
            (Gathered::Elements(elements, bytes), [value]) => {
                *bytes += size_of::<Json>() + 2 * value.heap_bytes();
                elements.get_or_insert_default().push(tree_of(value)?);
                Ok(())
            }
            (Gathered::Members(members, bytes), [key, value]) => {
                *bytes += 2 * size_of::<Json>() + key.heap_bytes() + 2 * value.heap_bytes();
                members.get_or_insert_default().push(member_of(key, value)?);
                Ok(())
            }
            (_, [value, ..]) => Err(call.unexpected(value)),
            (_, []) => Err(call.unexpected(&Value::Null)),
        }
    }

    /// The JSON of all rows; NULL without any.
    pub(in crate::aggregate) fn finish(self, is_object: bool) -> Result<Value> {
        Ok(match self {
            Gathered::Text(Some(text)) => {
                let end = if is_object { " }" } else { "]" };
                Value::Json((text + end).into())
            }
            Gathered::Elements(Some(elements), _) => Value::Jsonb(Jsonb::of(&Json::Array(elements))?),
            Gathered::Members(Some(members), _) => Value::Jsonb(Jsonb::of(&Json::Object(members))?),
            _ => Value::Null,
        })
    }

    /// The bytes that it has on the heap.
    pub(in crate::aggregate) fn heap_bytes(&self) -> usize {
        match self {
            Gathered::Text(text) => text.as_ref().map_or(0, String::capacity),
            Gathered::Elements(_, bytes) | Gathered::Members(_, bytes) => *bytes,
        }
    }
}
