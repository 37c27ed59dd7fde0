//! Methods: `type()`, `size()`, `double()`, `abs()`, `ceiling()`, `floor()`, `keyvalue()`.

use super::arithmetic::of_value;
use super::evaluation::{Evaluation, Found, Scope};
use super::fault::{Outcome, Problem};
use super::item::{Item, Scalar};
use crate::value::Numeric;
use crate::value::json::{Json, Method, NodeId};
use crate::value::text::parse_float;

/// An id of `keyvalue()` is the number of its document times this, and the object's place in the document.
const IDS_PER_DOCUMENT: i64 = 10_000_000_000;

impl<'e> Evaluation<'e> {
    pub(super) fn method<'v>(
        &self,
        id: NodeId,
        method: Method,
        item: &Item<'v>,
        scope: &Scope<'v>,
        found: Found<'_, 'v>,
    ) -> Outcome
    where
        'e: 'v,
    {
        match method {
            Method::Type => self.behind(id, Item::Text(item.type_name()), scope, found),
            Method::Size => {
                let size = match item.array() {
                    Some(array) => array.count(),
                    None if self.is_lax() => 1,
                    None if scope.passes_over => return Ok(false),
                    None => return Err(self.fault(id, Problem::NotAnArray)),
                };
                self.behind(id, Item::Number(Numeric::from(size as i64)), scope, found)
            }
            Method::Abs | Method::Ceiling | Method::Floor => {
                let number = item.number().ok_or_else(|| self.fault(id, Problem::NotANumber))?;
                let number = match method {
                    Method::Abs => Ok(number.abs()),
                    Method::Ceiling => number.ceil(),
                    _ => number.floor(),
                };
                self.behind(id, Item::Number(number.map_err(of_value)?), scope, found)
            }
            Method::Double => self.double(id, item, scope, found),
            Method::KeyValue => self.key_value(id, item, scope, found),
        }
    }

    /// `double()`: the number that a string stands for; a number stays as it is, if it fits.
    fn double<'v>(&self, id: NodeId, item: &Item<'v>, scope: &Scope<'v>, found: Found<'_, 'v>) -> Outcome
    where
        'e: 'v,
    {
        let number = match item.scalar() {
            Some(Scalar::Number(number)) => {
                let double = number.to_f64().filter(|double| double.is_finite());
                match double {
                    Some(double) if double != 0.0 || number.is_zero() => number,
                    _ => return Err(self.fault(id, Problem::NumberNotDouble)),
                }
            }
            Some(Scalar::Text(text)) => {
                let double = parse_float::<f64>(text).ok().filter(|double| double.is_finite());
                let double = double.ok_or_else(|| self.fault(id, Problem::StringNotDouble))?;
                Numeric::from_f64(double).map_err(of_value)?
            }
            _ => return Err(self.fault(id, Problem::NotAStringOrNumber)),
        };
        self.behind(id, Item::Number(number), scope, found)
    }

    /// `keyvalue()`: an object for each member, with an id of the object that has it.
    fn key_value<'v>(
        &self,
        id: NodeId,
        item: &Item<'v>,
        scope: &Scope<'v>,
        mut found: Found<'_, 'v>,
    ) -> Outcome
    where
        'e: 'v,
    {
        let object = item
            .object()
            .ok_or_else(|| self.fault(id, Problem::NotAnObject))?;
        if object.count() == 0 {
            return Ok(false);
        }
        if found.is_none() && self.path.next(id).is_none() {
            return Ok(true);
        }
        let place = self.places.of(object, scope.base)?;
        let number = scope.base.number * IDS_PER_DOCUMENT + place;
        let mut any = false;
        for (key, value) in object.members() {
            let pair = Json::Object(vec![
                ("id".into(), Json::Number(Numeric::from(number))),
                ("key".into(), Json::String(key.into())),
                ("value".into(), value.tree()),
            ]);
            any = self.made(id, &pair, scope, found.as_deref_mut())?;
            if any && found.is_none() {
                return Ok(true);
            }
        }
        Ok(any)
    }
}

impl Method {
    /// True if in lax mode the method is of the elements of an array.
    pub(super) fn takes_elements(self) -> bool {
        !matches!(self, Method::Type | Method::Size)
    }
}
