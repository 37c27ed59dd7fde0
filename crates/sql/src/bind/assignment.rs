//! Targets of assignments: columns, and parts of columns: elements and slices of arrays, parts of `jsonb`, fields of
//! composite types, and parts of these in turn.
//!
//! `SET a[1] = x` sets the column to a call that puts x into the array that it was; a second part of the same column
//! puts its value into the result of the first. In an INSERT the value before is NULL: an array without elements, or a
//! record whose fields are NULL.

use sqlparser::ast;

use crate::bind::changed_view::{Change, ChangedRelation};
use crate::bind::record::composite_of;
use crate::bind::scope::Scope;
use crate::bind::types::no_column;
use crate::bind::{Binder, Typed, normal, refuse};
use crate::catalog::TableDef;
use crate::error::{EngineError, Result, SqlState};
use crate::expr::Expr;
use crate::expr::domain::may_be_checked;
use crate::function::{array, array_assignment, field_assignment};
use crate::parse::{SUBSCRIPTS_MARK, parse_expression};
use crate::stack::with_stack_for;
use crate::value::cast::{CastContext, can_cast};
use crate::value::{DataType, NO_TYPMOD, Value};

/// The most parts of one column that a statement assigns to: each is a level of the expression.
pub(super) const PARTS_MAX: usize = 100;

/// The most parts of one column before one that is a part of a part: each such has what came before it inside twice.
const PARTS_BEFORE_PART_OF_PART_MAX: usize = 6;

/// The target of an assignment.
#[derive(Debug)]
pub(super) struct Target {
    /// The number of the column.
    pub(super) column: u16,
    /// The way to the part of it that is assigned to.
    pub(super) part: Option<Vec<Step>>,
}

/// A step on the way to a part of a value.
#[derive(Debug)]
pub(super) enum Step {
    /// To a field of a composite type, or a field of that in turn: their numbers, from 0, and types and modifiers; then
    /// the name of the last.
    Fields(Vec<(u16, DataType, i32)>, String),
    /// To an element or, if true, a slice of an array, or to a part of a `jsonb`.
    Elements(Vec<Expr>, bool),
}

impl Target {
    /// A whole column.
    pub(super) fn of(column: u16) -> Target {
        Target { column, part: None }
    }
}

/// True if a value is an assignment to a part.
pub(super) fn is_part_assignment(value: &Expr) -> bool {
    parts_in(value) > 0
}

/// The value that an assignment to a part makes, before it is checked as one of its domain: the next part goes into it, and
/// only the outcome of all is checked.
pub(super) fn unchecked(value: Expr) -> Expr {
    match value {
        Expr::Cast { input, .. } if is_part_assignment(&input) => *input,
        other => other,
    }
}

/// The number of parts that a value assigns to.
pub(super) fn parts_in(mut value: &Expr) -> usize {
    let mut count = 0;
    if let Expr::Cast { input, .. } = value {
        value = input;
    }
    while let Expr::Call { function, arguments } = value
        && [
            array_assignment(function.of(), false),
            array_assignment(function.of(), true),
            field_assignment(function.of()),
        ]
        .contains(function)
    {
        count += 1;
        value = &arguments[0];
    }
    count
}

/// 0A000 for too many parts of one column.
pub(super) fn check_parts(targets: &[Target]) -> Result<()> {
    let parts = targets.iter().filter(|target| target.part.is_some()).count();
    refuse(parts > PARTS_MAX, "so many assignments to parts of columns")
}

/// The array that the target at this place of an INSERT puts its value into.
pub(super) fn base_of(targets: &[Target], at: usize, columns: &[Expr]) -> Expr {
    let column = targets[at].column;
    match targets[..at].iter().any(|before| before.column == column) {
        true => unchecked(columns[usize::from(column)].clone()),
        false => Expr::Constant(Value::Null),
    }
}

/// 0A000 for DEFAULT as the value of a part.
pub(super) fn refuse_default(target: &Target) -> Result<()> {
    let message = match target.part.as_ref().and_then(|steps| steps.last()) {
        None => return Ok(()),
        Some(Step::Elements(..)) => "cannot set an array element to DEFAULT",
        Some(Step::Fields(..)) => "cannot set a subfield to DEFAULT",
    };
    Err(EngineError::new(SqlState::FEATURE_NOT_SUPPORTED, message))
}

impl Binder<'_> {
    /// The target of this name; its subscripts see a scope.
    pub(super) fn target(
        &mut self,
        name: &ast::ObjectName,
        relation: &ChangedRelation,
        change: Change,
        scope: &mut Scope,
    ) -> Result<Target> {
        // A mark of ours: see `parse::assigned_parts`.
        let (name, subscripts) = match name.0.as_slice() {
            [front @ .., ast::ObjectNamePart::Identifier(last)]
                if last.quote_style == Some(SUBSCRIPTS_MARK) =>
            {
                (&ast::ObjectName(front.to_vec()), Some(&last.value))
            }
            _ => (name, None),
        };
        let Some((ast::ObjectNamePart::Identifier(first), fields)) = name.0.split_first() else {
            return Err(EngineError::not_supported(format!("the target {name}")));
        };
        let (column, position) = (normal(first), self.position(first.span));
        let found = relation
            .column(&column, change)
            .unwrap_or_else(|| Err(no_column(relation.name(), &column).or_position(position)));
        let number = found?;
        self.note_target(relation, &column, number, change);
        if fields.is_empty() && subscripts.is_none() {
            return Ok(Target::of(number));
        }
        let data_type = relation.table.columns[usize::from(number)].data_type;
        // Places in the text of the subscripts are not those of the statement.
        let bound = self.steps(&column, data_type, fields, subscripts.map(String::as_str), scope);
        let steps = bound.map_err(|error| error.without_position().or_position(position))?;
        Ok(Target {
            column: number,
            part: Some(steps),
        })
    }

    /// The way to a part of a column: fields, then what the text of subscripts has, among them fields too.
    fn steps(
        &mut self,
        column: &str,
        data_type: DataType,
        fields: &[ast::ObjectNamePart],
        subscripts: Option<&str>,
        scope: &mut Scope,
    ) -> Result<Vec<Step>> {
        let mut way = Way {
            column: column.to_owned(),
            at: data_type,
            steps: Vec::new(),
        };
        for field in fields {
            let ast::ObjectNamePart::Identifier(field) = field else {
                return Err(EngineError::not_supported(format!("the target {field}")));
            };
            way.enter_field(&normal(field))?;
        }
        let Some(subscripts) = subscripts else {
            return Ok(way.steps);
        };
        let tree = parse_expression(&format!("x{subscripts}"), 0)?;
        let ast::Expr::CompoundFieldAccess { access_chain, .. } = &*tree else {
            return Err(EngineError::new(
                SqlState::SYNTAX_ERROR,
                "syntax error at or near \"[\"",
            ));
        };
        with_stack_for(tree.levels(), || {
            let mut rest = access_chain.as_slice();
            while let Some(access) = rest.first() {
                if let ast::AccessExpr::Dot(field) = access {
                    let ast::Expr::Identifier(field) = field else {
                        return Err(EngineError::not_supported(format!("the target {field}")));
                    };
                    way.enter_field(&normal(field))?;
                    rest = &rest[1..];
                    continue;
                }
                let elements: Vec<&ast::Subscript> = rest
                    .iter()
                    .map_while(|access| match access {
                        ast::AccessExpr::Subscript(subscript) => Some(subscript),
                        ast::AccessExpr::Dot(_) => None,
                    })
                    .collect();
                rest = &rest[elements.len()..];
                way.require_array()?;
                let (elements, is_slice) = self.assigned_subscripts(&elements, way.at, scope)?;
                way.enter_elements(elements, is_slice);
            }
            Ok(way.steps)
        })
    }

    /// A value, converted for its target; for a part of a column, the value `base` with it.
    pub(super) fn assigned(
        &mut self,
        typed: Typed,
        target: &Target,
        base: Expr,
        table: &TableDef,
        position: Option<u32>,
    ) -> Result<Expr> {
        let def = &table.columns[usize::from(target.column)];
        let Some(steps) = &target.part else {
            return self.assign(typed, def.data_type, def.typmod, &def.name, position);
        };
        refuse(
            steps.len() > 1 && parts_in(&base) > PARTS_BEFORE_PART_OF_PART_MAX,
            "so many assignments to parts of parts of one column",
        )?;
        let part = Part {
            column: &def.name,
            typmod: def.typmod,
            position,
        };
        let value = self.with_part(typed, base, def.data_type.base(), steps, &part)?;
        match def.data_type {
            DataType::Domain(_) => {
                let whole = Typed::new(value, def.data_type.base());
                self.assign(whole, def.data_type, def.typmod, &def.name, position)
            }
            // The part may be of a domain, or in a value of one.
            _ if may_be_checked(def.data_type) => Ok(Expr::Cast {
                input: Box::new(value),
                from: def.data_type,
                to: def.data_type,
                typmod: NO_TYPMOD,
                context: CastContext::Assignment,
            }),
            _ => Ok(value),
        }
    }

    /// The value `base` of a type with a part replaced.
    fn with_part(
        &mut self,
        typed: Typed,
        base: Expr,
        of: DataType,
        steps: &[Step],
        part: &Part<'_>,
    ) -> Result<Expr> {
        match steps {
            [] => Ok(typed.expr),
            [Step::Fields(fields, name), rest @ ..] => {
                let last = *fields.last().unwrap_or(&(0, of, -1));
                let mut before = base.clone();
                for (number, data_type, _) in fields {
                    before = Expr::Field {
                        input: Box::new(before),
                        number: *number,
                        data_type: *data_type,
                    };
                }
                let value = match rest {
                    [] => {
                        if !can_cast(typed.data_type, last.1, CastContext::Assignment) {
                            return Err(part.mismatch("subfield", name, last.1, typed.data_type));
                        }
                        self.assign(typed, last.1, last.2, name, part.position)?
                    }
                    rest => self.with_part(typed, before, last.1.base(), rest, part)?,
                };
                let numbers = fields
                    .iter()
                    .map(|(number, ..)| Expr::constant(i32::from(*number)));
                Ok(Expr::Call {
                    function: field_assignment(of),
                    arguments: [base, value].into_iter().chain(numbers).collect(),
                })
            }
            [Step::Elements(subscripts, is_slice), rest @ ..] => {
                let wanted = match (is_slice, of.element()) {
                    (false, Some(element)) => element,
                    _ => of,
                };
                let value = match rest {
                    [] => {
                        if !can_cast(typed.data_type, wanted, CastContext::Assignment) {
                            let what = "subscripted assignment to";
                            return Err(part.mismatch(what, part.column, wanted, typed.data_type));
                        }
                        self.assign(typed, wanted, part.typmod, part.column, part.position)?
                    }
                    rest => {
                        let arguments = std::iter::once(base.clone()).chain(subscripts.iter().cloned());
                        let before = Expr::Call {
                            function: array::subscript(*is_slice),
                            arguments: arguments.collect(),
                        };
                        self.with_part(typed, before, wanted.base(), rest, part)?
                    }
                };
                Ok(Expr::Call {
                    function: array_assignment(of, *is_slice),
                    arguments: [base, value]
                        .into_iter()
                        .chain(subscripts.iter().cloned())
                        .collect(),
                })
            }
        }
    }
}

/// The column whose part is assigned to, for conversions and errors.
struct Part<'c> {
    column: &'c str,
    typmod: i32,
    position: Option<u32>,
}

impl Part<'_> {
    /// 42804 for a value of another type than the part has.
    fn mismatch(&self, what: &str, name: &str, wanted: DataType, given: DataType) -> EngineError {
        let message = match what {
            "subfield" => {
                format!("subfield \"{name}\" is of type {wanted} but expression is of type {given}")
            }
            _ => format!("{what} \"{name}\" requires type {wanted} but expression is of type {given}"),
        };
        EngineError::new(SqlState::DATATYPE_MISMATCH, message)
            .with_hint("You will need to rewrite or cast the expression.")
            .or_position(self.position)
    }
}

/// The way to a part, as far as it is known.
struct Way {
    /// The name of the column, or of the field that it has led to.
    column: String,
    /// The type that it has led to.
    at: DataType,
    steps: Vec<Step>,
}

impl Way {
    fn enter_field(&mut self, name: &str) -> Result<()> {
        let refused = |state, why: String| {
            EngineError::new(
                state,
                format!(
                    "cannot assign to field \"{name}\" of column \"{}\" because {why}",
                    self.column
                ),
            )
        };
        let Some(composite) = composite_of(self.at.base()) else {
            return Err(refused(
                SqlState::DATATYPE_MISMATCH,
                format!("its type {} is not a composite type", self.at),
            ));
        };
        let Some(number) = composite.field_named(name) else {
            return Err(refused(
                SqlState::UNDEFINED_COLUMN,
                format!("there is no such column in data type {}", self.at),
            ));
        };
        let field = &composite.fields[number];
        self.at = field.data_type;
        let step = (number as u16, field.data_type, field.typmod);
        match self.steps.last_mut() {
            Some(Step::Fields(fields, last)) => {
                fields.push(step);
                name.clone_into(last);
            }
            _ => self.steps.push(Step::Fields(vec![step], name.to_owned())),
        }
        name.clone_into(&mut self.column);
        Ok(())
    }

    /// 42804 for subscripts of what has none.
    fn require_array(&self) -> Result<()> {
        match self.at.base() {
            DataType::Array(_) | DataType::Jsonb => Ok(()),
            other if other.is_array() => Err(EngineError::not_supported(format!(
                "an assignment to an element of {other}"
            ))),
            other => Err(EngineError::new(
                SqlState::DATATYPE_MISMATCH,
                format!("cannot subscript type {other} because it does not support subscripting"),
            )),
        }
    }

    fn enter_elements(&mut self, subscripts: Vec<Expr>, is_slice: bool) {
        self.steps.push(Step::Elements(subscripts, is_slice));
        if let (false, Some(element)) = (is_slice, self.at.base().element()) {
            self.at = element;
        }
    }
}
