//! Domains where values become theirs: defaults, and checking a value alone or inside an array or a record (U3 of
//! `value::user_type`).

use std::sync::Arc;

use crate::context::EvalContext;
use crate::error::{EngineError, Result, SqlState};
use crate::expr::Expr;
use crate::stack::checkpoint;
use crate::value::cast::CastContext;
use crate::value::user_type::{DomainType, UserType, definition_of};
use crate::value::{DataType, Value};

/// Default and conditions of a domain as expressions.
#[derive(Debug)]
pub struct CompiledDomain {
    /// The default, of the base type.
    pub default: Option<Expr>,
    /// The condition of each constraint; column 0 is the value.
    pub checks: Vec<Expr>,
}

/// True if a value that becomes one of this type may have something to satisfy.
pub fn may_be_checked(data_type: DataType) -> bool {
    match data_type {
        DataType::Domain(_) => true,
        DataType::Array(element) => may_be_checked(element.data_type()),
        DataType::Composite(_) => checkpoint(|| {
            let found = definition_of(data_type);
            let composite = found.as_deref().and_then(UserType::composite);
            composite.is_some_and(|composite| composite.types().any(may_be_checked))
        }),
        _ => false,
    }
}

/// The default of a domain, or of the nearest one that it is over; NULL as a value of it if there is none.
pub fn default_of(data_type: DataType) -> Expr {
    let mut expr = Expr::Constant(Value::Null);
    let mut at = data_type;
    while let DataType::Domain(_) = at {
        let Some(found) = definition_of(at) else { break };
        let Some(domain) = found.domain() else { break };
        if let Some(default) = compiled(domain).and_then(|compiled| compiled.default.clone()) {
            expr = default;
            break;
        }
        at = domain.base;
    }
    Expr::Cast {
        input: Box::new(expr),
        from: data_type.base(),
        to: data_type,
        typmod: -1,
        context: CastContext::Assignment,
    }
}

/// An error if a value of a type's base cannot be one of the type: 23502 or 23514.
pub fn check(value: &Value, data_type: DataType, context: &EvalContext<'_>) -> Result<()> {
    match (data_type, value) {
        (DataType::Domain(_), _) => check_domain(value, data_type, context),
        (DataType::Array(element), Value::Array(array)) if may_be_checked(element.data_type()) => {
            let mut elements = array.elements().iter();
            elements.try_for_each(|value| checkpoint(|| check(value, element.data_type(), context)))
        }
        (DataType::Composite(_), Value::Record(record)) => {
            let mut fields = record.typed_fields();
            fields.try_for_each(|(value, data_type)| checkpoint(|| check(value, data_type, context)))
        }
        _ => Ok(()),
    }
}

fn compiled(domain: &DomainType) -> Option<&CompiledDomain> {
    domain.compiled.downcast_ref()
}

/// Checks a value of a domain: first that it may be NULL, then all conditions, those of the domain at the bottom first. The
/// errors name the domain that the value is to be of.
fn check_domain(value: &Value, data_type: DataType, context: &EvalContext<'_>) -> Result<()> {
    let outer = definition_of(data_type);
    let Some(outer) = outer.filter(|found| found.domain().is_some()) else {
        return Err(EngineError::internal("a domain is not in the catalog"));
    };
    let (mut below, mut chain) = (Some(Arc::clone(&outer)), Vec::new());
    while let Some(found) = below {
        below = found.domain().and_then(|domain| definition_of(domain.base));
        chain.push(found);
    }
    let mut domains = chain.iter().rev().filter_map(|found| found.domain());
    if value.is_null() && domains.clone().any(|domain| domain.not_null) {
        return Err(EngineError::new(
            SqlState::NOT_NULL_VIOLATION,
            format!("domain {data_type} does not allow null values"),
        )
        .with_data_type(&outer.schema, &outer.name));
    }
    // The type at the bottom may have domains inside.
    check(value, data_type.base(), context)?;
    domains.try_for_each(|domain| check_conditions(value, domain, &outer, context))
}

fn check_conditions(
    value: &Value,
    domain: &DomainType,
    outer: &UserType,
    context: &EvalContext<'_>,
) -> Result<()> {
    let conditions = compiled(domain).map_or(&[][..], |compiled| &compiled.checks);
    for (condition, constraint) in conditions.iter().zip(&domain.checks) {
        if condition.truth(std::slice::from_ref(value), context)? == Some(false) {
            return Err(EngineError::new(
                SqlState::CHECK_VIOLATION,
                format!(
                    "value for domain {} violates check constraint \"{}\"",
                    outer.data_type(),
                    constraint.name
                ),
            )
            .with_data_type(&outer.schema, &outer.name)
            .with_constraint(&constraint.name));
        }
    }
    Ok(())
}
