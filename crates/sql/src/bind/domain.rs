//! Domains: their expressions compiled, and the statements about them.

use std::any::Any;
use std::sync::Arc;

use crate::bind::{bind_check, bind_default};
use crate::catalog::{ColumnDef, TableDef, TableKind};
use crate::error::Result;
use crate::expr::domain::CompiledDomain;
use crate::lex::{Kind, lex};
use crate::value::DataType;

/// The name by which a domain's conditions have the value.
const VALUE: &str = "value";

/// A table whose only column is the value of a domain: its conditions are conditions over a row of it.
pub fn domain_table(base: DataType, typmod: i32) -> TableDef {
    let mut column = ColumnDef::new(VALUE, base);
    column.typmod = typmod;
    TableDef::new(0, "", TableKind::Virtual, vec![column])
}

/// The text of a condition as it is shown: the value is a word of its own.
pub fn domain_condition(sql: &str) -> String {
    let mut shown = String::with_capacity(sql.len());
    let mut from = 0;
    for token in lex(sql, usize::MAX) {
        if matches!(&token.kind, Kind::Word(word) if word == VALUE) {
            shown.push_str(&sql[from..token.start]);
            shown.push_str("VALUE");
            from = token.end;
        }
    }
    shown.push_str(&sql[from..]);
    shown
}

/// Compiles default and conditions of a domain.
pub fn compile_domain<'s>(
    base: DataType,
    typmod: i32,
    default: Option<&str>,
    checks: impl Iterator<Item = &'s str>,
) -> Result<Arc<dyn Any + Send + Sync>> {
    let table = domain_table(base, typmod);
    Ok(Arc::new(CompiledDomain {
        default: default.map(|sql| bind_default(sql, base, typmod)).transpose()?,
        checks: checks.map(|sql| bind_check(sql, &table)).collect::<Result<_>>()?,
    }))
}
