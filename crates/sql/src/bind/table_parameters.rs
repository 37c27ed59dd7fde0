//! The storage parameters of CREATE TABLE.

use sqlparser::ast;

use crate::bind::normal;
use crate::error::{EngineError, Result};
use crate::storage_parameters::StorageParameters;

/// The parameters of WITH (…).
pub(super) fn parameters(options: &ast::CreateTableOptions) -> Result<StorageParameters> {
    let options = match options {
        ast::CreateTableOptions::None => return Ok(StorageParameters::default()),
        ast::CreateTableOptions::With(options) => options,
        ast::CreateTableOptions::Plain(options) if options.is_empty() => {
            return Ok(StorageParameters::default());
        }
        _ => return Err(EngineError::not_supported("this option of CREATE TABLE")),
    };
    let given = options.iter().map(|option| match option {
        ast::SqlOption::KeyValue { key, value } => Ok((normal(key), parameter_text(value))),
        ast::SqlOption::Ident(key) => Ok((normal(key), "true".to_owned())),
        other => Err(EngineError::not_supported(format!(
            "the storage parameter {other}"
        ))),
    });
    StorageParameters::of(given.collect::<Result<Vec<_>>>()?)
}

/// The text of a parameter's value: words in lower case, strings without their quotes.
fn parameter_text(value: &ast::Expr) -> String {
    match value {
        ast::Expr::Identifier(word) => normal(word),
        ast::Expr::Value(value) => match &value.value {
            ast::Value::SingleQuotedString(text) => text.clone(),
            other => other.to_string().to_lowercase(),
        },
        other => other.to_string(),
    }
}
