//! Functions and operators of SQL/JSON paths, and the evaluation of a path.
//!
//! | module | job |
//! |---|---|
//! | `evaluation` | the steps of a path, and the rules of lax and strict mode |
//! | `accessor` | members, elements, all levels |
//! | `predicate` | filters: true, false, unknown |
//! | `arithmetic`, `method`, `datetime` | operations on numbers; methods |
//! | `moment` | dates and times, and how they compare |
//! | `item`, `place` | an item that is found; its place in the document |
//! | `fault` | faults, which end an evaluation or are forgotten |

mod accessor;
mod arithmetic;
mod datetime;
mod evaluation;
mod fault;
mod item;
mod method;
mod moment;
mod place;
mod predicate;

use std::cell::RefCell;
use std::rc::Rc;

use super::{jsonb_of, owned};
use crate::context::SessionFacts;
use crate::error::{EngineError, Result, SqlState};
use crate::function::row::Implementation::Session;
use crate::function::row::{FunctionRow, row};
use crate::function::{check_length, text_of};
use crate::value::DataType::{Bool, JsonPath, Jsonb};
use crate::value::json::{Json, Kind, Path};
use crate::value::{ArrayValue, DataType, Value};
use evaluation::{Evaluation, Variables};
use fault::Fault;
use item::{Item, Scalar};

const JSONBS: DataType = DataType::array_of(Jsonb);

/// Rows of a function with two to four arguments, and of its form that compares times with zones.
macro_rules! forms {
    ($($oid:literal $with_zones:literal $name:literal $result:ident $code:ident;)*) => {
        &[
            row(4010, "jsonb_path_exists_opr", &[Jsonb, JsonPath], Bool, Session(|x, s| exists(&Call::operator(x, s)?)))
                .operator("@?"),
            row(4011, "jsonb_path_match_opr", &[Jsonb, JsonPath], Bool, Session(|x, s| matches(&Call::operator(x, s)?)))
                .operator("@@"),
            $(
                row($oid, $name, &[Jsonb, JsonPath], $result, Session(|x, s| $code(&Call::of(x, false, s)?))),
                row($oid, $name, &[Jsonb, JsonPath, Jsonb], $result, Session(|x, s| $code(&Call::of(x, false, s)?))),
                row($oid, $name, &[Jsonb, JsonPath, Jsonb, Bool], $result, Session(|x, s| $code(&Call::of(x, false, s)?))),
                row($with_zones, concat!($name, "_tz"), &[Jsonb, JsonPath], $result, Session(|x, s| $code(&Call::of(x, true, s)?)))
                    .stable(),
                row($with_zones, concat!($name, "_tz"), &[Jsonb, JsonPath, Jsonb], $result, Session(|x, s| $code(&Call::of(x, true, s)?)))
                    .stable(),
                row($with_zones, concat!($name, "_tz"), &[Jsonb, JsonPath, Jsonb, Bool], $result, Session(|x, s| $code(&Call::of(x, true, s)?)))
                    .stable(),
            )*
        ]
    };
}

/// The functions.
pub(super) static ROWS: &[FunctionRow] = forms! {
    4005 1177 "jsonb_path_exists" Bool exists;
    4009 2030 "jsonb_path_match" Bool matches;
    4006 1179 "jsonb_path_query" JSONBS all;
    4007 1180 "jsonb_path_query_array" Jsonb array;
    4008 2023 "jsonb_path_query_first" Jsonb first;
};

/// Paths that a thread keeps.
const KEPT_MAX: usize = 16;

/// Longer paths are not kept.
const KEPT_BYTES_MAX: usize = 10_000;

thread_local! {
    /// The paths used last, the latest at the end.
    static KEPT: RefCell<Vec<(Box<str>, Rc<Path>)>> = const { RefCell::new(Vec::new()) };
}

/// The path of a text, which the thread may have from the row before.
fn path_of(text: &str) -> Result<Rc<Path>> {
    let kept = KEPT.with_borrow_mut(|kept| {
        let at = kept.iter().position(|(known, _)| **known == *text)?;
        let entry = kept.remove(at);
        let path = Rc::clone(&entry.1);
        kept.push(entry);
        Some(path)
    });
    if let Some(path) = kept {
        return Ok(path);
    }
    let path = Rc::new(Path::parse(text)?);
    if text.len() <= KEPT_BYTES_MAX {
        KEPT.with_borrow_mut(|kept| {
            if kept.len() >= KEPT_MAX {
                kept.remove(0);
            }
            kept.push((text.into(), Rc::clone(&path)));
        });
    }
    Ok(path)
}

/// A call of a function: a document and a path, perhaps variables and the wish to be told of no error.
struct Call<'a> {
    path: Rc<Path>,
    arguments: &'a [Value],
    is_operator: bool,
    is_silent: bool,
    with_zones: bool,
    session: &'a dyn SessionFacts,
}

impl<'a> Call<'a> {
    fn of(arguments: &'a [Value], with_zones: bool, session: &'a dyn SessionFacts) -> Result<Call<'a>> {
        Ok(Call {
            path: path_of(text_of(&arguments[1])?)?,
            arguments,
            is_operator: false,
            is_silent: arguments.get(3).and_then(Value::as_bool) == Some(true),
            with_zones,
            session,
        })
    }

    /// An operator is told of no error, and its variables are null.
    fn operator(arguments: &'a [Value], session: &'a dyn SessionFacts) -> Result<Call<'a>> {
        let call = Call::of(arguments, false, session)?;
        Ok(Call {
            is_operator: true,
            is_silent: true,
            ..call
        })
    }

    /// The outcome of `work` on the evaluation.
    fn evaluate<T>(&self, work: impl FnOnce(&Evaluation<'_>) -> Result<T>) -> Result<T> {
        let document = jsonb_of(&self.arguments[0])?;
        let none = owned(&Json::Object(Vec::new()))?;
        let variables = match self.is_operator {
            true => Variables::Null,
            false => {
                let variables = jsonb_of(self.arguments.get(2).unwrap_or(&none))?;
                if variables.kind() != Kind::Object {
                    return Err(not_variables());
                }
                Variables::Of(variables)
            }
        };
        work(&Evaluation::new(
            &self.path,
            document,
            variables,
            self.with_zones,
            self.session,
        ))
    }

    /// The outcome without the error that the call does not want to be told; `None` for that.
    fn told<T>(&self, outcome: Result<T, Fault>) -> Result<Option<T>> {
        match outcome {
            Ok(value) => Ok(Some(value)),
            Err(fault) if self.is_silent && fault.is_silent() => Ok(None),
            Err(fault) => Err(fault.into_error(&self.path)),
        }
    }

    /// The outcome of `work` on the items; those in front of an error that is not told are among them.
    fn with_items<T>(&self, work: impl FnOnce(Vec<Item<'_>>) -> Result<T>) -> Result<T> {
        self.evaluate(|evaluation| {
            let mut items = Vec::new();
            self.told(evaluation.items(!self.is_silent, &mut items))?;
            work(items)
        })
    }
}

#[cold]
fn not_variables() -> EngineError {
    EngineError::new(
        SqlState::INVALID_PARAMETER_VALUE,
        "\"vars\" argument is not an object",
    )
    .with_detail("Jsonpath parameters should be encoded as key-value pairs of \"vars\" object.")
}

fn exists(call: &Call<'_>) -> Result<Value> {
    call.evaluate(|evaluation| {
        let exists = call.told(evaluation.exists(!call.is_silent))?;
        Ok(exists.map_or(Value::Null, Value::Bool))
    })
}

fn matches(call: &Call<'_>) -> Result<Value> {
    call.with_items(|items| {
        let only = match items.as_slice() {
            [only] => only.scalar(),
            _ => None,
        };
        match only {
            Some(Scalar::Bool(truth)) => Ok(Value::Bool(truth)),
            Some(Scalar::Null) => Ok(Value::Null),
            _ if call.is_silent => Ok(Value::Null),
            _ => Err(EngineError::new(
                SqlState::from_code("22038"),
                "single boolean result is expected",
            )),
        }
    })
}

/// 54000 for items that are too long together, before they are copied.
fn check_items(items: &[Item<'_>]) -> Result<()> {
    check_length(items.iter().map(Item::bytes).fold(0, usize::saturating_add))
}

fn all(call: &Call<'_>) -> Result<Value> {
    call.with_items(|items| {
        check_items(&items)?;
        let items = items.into_iter().map(|item| item.into_jsonb().map(Value::Jsonb));
        ArrayValue::of(JSONBS, items.collect::<Result<_>>()?).map(Value::from)
    })
}

fn array(call: &Call<'_>) -> Result<Value> {
    call.with_items(|items| {
        check_items(&items)?;
        owned(&Json::Array(items.iter().map(Item::tree).collect()))
    })
}

fn first(call: &Call<'_>) -> Result<Value> {
    call.with_items(|items| match items.into_iter().next() {
        Some(item) => item.into_jsonb().map(Value::Jsonb),
        None => Ok(Value::Null),
    })
}

#[cfg(test)]
mod tests;
