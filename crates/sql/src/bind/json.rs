//! JSON where a statement is bound: the names of a record's fields, subscripts of `jsonb`, and what `json` has not.

use sqlparser::ast;

use crate::bind::record::is_row;
use crate::bind::scope::Scope;
use crate::bind::{Binder, Typed, fold};
use crate::error::{EngineError, Result, SqlState};
use crate::expr::Expr;
use crate::expr::domain::may_be_checked;
use crate::function::json::populate::Populate;
use crate::function::{self, json::make};
use crate::value::cast::CastContext;
use crate::value::json::Json;
use crate::value::user_type::{UserType, definition_of};
use crate::value::{DataType, NO_TYPMOD};

impl Binder<'_> {
    /// The call of a function that makes JSON of a record by itself; `None` if it is another call.
    pub(super) fn json_of_record(&mut self, name: &str, arguments: &[Typed]) -> Result<Option<Typed>> {
        if matches!(name, "to_json" | "to_jsonb")
            && let [only] = arguments
            && only.data_type == DataType::Unknown
        {
            return Err(EngineError::new(
                SqlState::DATATYPE_MISMATCH,
                "could not determine polymorphic type because input has type unknown",
            ));
        }
        let (record, rest) = match (name, arguments) {
            ("to_json" | "to_jsonb", [record]) => (record, [].as_slice()),
            ("row_to_json", [record, rest @ ..]) if rest.len() < 2 => (record, rest),
            _ => return Ok(None),
        };
        if !is_row(record.data_type.base()) {
            return Ok(None);
        }
        let mut call = self.with_names(record.clone(), name == "to_jsonb")?;
        if let ([pretty], Expr::Call { arguments, .. }) = (rest, &mut call.expr) {
            arguments.push(self.coerce(pretty.clone(), DataType::Bool, None)?);
        }
        Ok(Some(call))
    }

    /// A call of a function that fills a composite value from JSON.
    pub(super) fn populated(
        &mut self,
        populate: Populate,
        arguments: Vec<Typed>,
        position: Option<u32>,
    ) -> Result<Typed> {
        let mut arguments = arguments.into_iter();
        let (Some(base), Some(json)) = (arguments.next(), arguments.next()) else {
            return Err(EngineError::internal("a function lacks an argument"));
        };
        let (wanted, composite) = (base.data_type, base.data_type.base());
        let json = self.coerce(json, populate.of, position)?;
        let result = |row: DataType| match (populate.is_set, row.array_type()) {
            (true, Some(array)) => array,
            _ => row,
        };
        let (data_type, wanted) = (result(composite), result(wanted));
        let call = Expr::Call {
            function: populate.function(composite),
            arguments: vec![base.expr, json],
        };
        // It may be of a domain, and its fields too.
        let expr = match may_be_checked(wanted) {
            false => call,
            true => Expr::Cast {
                input: Box::new(call),
                from: data_type,
                to: wanted,
                typmod: NO_TYPMOD,
                context: CastContext::Assignment,
            },
        };
        Ok(Typed::new(expr, wanted))
    }

    /// The arguments of a function that makes JSON, records among them with the names of their fields.
    pub(super) fn json_arguments(&mut self, name: &str, arguments: Vec<Typed>) -> Result<Vec<Typed>> {
        if !make::takes_names(name) {
            return Ok(arguments);
        }
        let named = arguments.into_iter().map(|argument| match argument.data_type {
            DataType::Record => self.with_names(argument, false),
            // The catalog tells the names inside.
            of if has_names_inside(of) => self.scalar_of("to_json", vec![argument], None),
            _ => Ok(argument),
        });
        named.collect()
    }

    /// A record as JSON.
    fn with_names(&mut self, record: Typed, is_jsonb: bool) -> Result<Typed> {
        let names = match record.data_type {
            DataType::Record => self.names_of(record.typmod),
            _ => Vec::new(),
        };
        let names = Expr::Constant(make::names_value(names)?);
        let function = make::of_record(is_jsonb);
        Ok(Typed::new(
            fold(Expr::Call {
                function,
                arguments: vec![record.expr, names],
            }),
            function.row().result,
        ))
    }

    /// The names of the fields of a shape; of a field that is a record, its name and those of its fields.
    /// The names of a composite type's fields come with its values.
    fn names_of(&self, shape: i32) -> Vec<Json> {
        let Some(shape) = self.shape_numbered(shape) else {
            return Vec::new();
        };
        let name = |name: &str| Json::String(name.into());
        let names = shape.iter().map(|field| match field.data_type {
            DataType::Record => {
                Json::Array(vec![name(&field.name), Json::Array(self.names_of(field.typmod))])
            }
            _ => name(&field.name),
        });
        names.collect()
    }

    /// `j['key'][0]`: a part of a `jsonb`.
    pub(super) fn part_of_jsonb(
        &mut self,
        input: Typed,
        subscripts: &[&ast::Subscript],
        scope: &mut Scope,
        position: Option<u32>,
    ) -> Result<Typed> {
        let path = self.path_of_subscripts(subscripts, scope, position)?;
        let input = Typed::new(input.expr, DataType::Jsonb);
        self.operator_of("#>", vec![input, path], position)
    }

    /// Subscripts of a `jsonb` as the array of texts that a path is.
    pub(super) fn path_of_subscripts(
        &mut self,
        subscripts: &[&ast::Subscript],
        scope: &mut Scope,
        position: Option<u32>,
    ) -> Result<Typed> {
        let mut steps = Vec::with_capacity(subscripts.len());
        for subscript in subscripts {
            let ast::Subscript::Index { index } = subscript else {
                return Err(EngineError::new(
                    SqlState::DATATYPE_MISMATCH,
                    "jsonb subscript does not support slices",
                )
                .or_position(position));
            };
            let at = self.position_of(index);
            let typed = self.expression(index, scope)?;
            let fits = typed.data_type.is_integer() || typed.data_type.is_string();
            if !fits && typed.data_type != DataType::Unknown {
                return Err(EngineError::new(
                    SqlState::DATATYPE_MISMATCH,
                    format!("subscript type {} is not supported", typed.data_type),
                )
                .with_hint("jsonb subscript must be coercible to either integer or text.")
                .or_position(at));
            }
            steps.push(self.cast_explicitly(typed, DataType::Text, -1, at)?.expr);
        }
        let texts = DataType::array_of(DataType::Text);
        let path = fold(Expr::Call {
            function: function::array::constructor(texts, false),
            arguments: steps,
        });
        Ok(Typed::new(path, texts))
    }
}

/// True if a value of the type is a record, or an array of records, in which something may be shown as the session shows
/// it.
pub(super) fn has_names_inside(data_type: DataType) -> bool {
    let of = data_type.element().unwrap_or(data_type).base();
    let shown = |of: DataType| match is_row(of.element().unwrap_or(of).base()) {
        true => has_names_inside(of),
        false => of.needs_session(),
    };
    match definition_of(of).as_deref().and_then(UserType::composite) {
        Some(composite) => composite.types().any(shown),
        None => of == DataType::Record,
    }
}

/// True if values of the type have neither an order nor equality.
pub(super) fn has_no_equality(data_type: DataType) -> bool {
    matches!(
        data_type.element().unwrap_or(data_type),
        DataType::Json | DataType::JsonPath
    )
}

/// 42883 for a key of a type whose values have no order, or no equality.
pub(super) fn require_comparable(data_type: DataType, what: &str, position: Option<u32>) -> Result<()> {
    match has_no_equality(data_type) {
        false => Ok(()),
        true => Err(EngineError::new(
            SqlState::UNDEFINED_FUNCTION,
            format!("could not identify an {what} operator for type {data_type}"),
        )
        .or_position(position)),
    }
}
