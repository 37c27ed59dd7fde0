//! Domains: a base type, and what its values must satisfy.

use std::any::Any;
use std::sync::Arc;

use crate::value::DataType;

/// A domain.
#[derive(Debug, Clone)]
pub struct DomainType {
    /// The type that it is over, which may be another domain.
    pub base: DataType,
    /// That type's modifier.
    pub typmod: i32,
    /// True if no value is NULL.
    pub not_null: bool,
    /// The default's text.
    pub default: Option<String>,
    /// Its constraints, in the order of their names.
    pub checks: Vec<DomainCheck>,
    /// Default and conditions as expressions, which are nothing that values know of: see `domain`.
    pub compiled: Arc<dyn Any + Send + Sync>,
}

/// A CHECK constraint of a domain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DomainCheck {
    /// Its number.
    pub oid: u32,
    /// Its name.
    pub name: String,
    /// Its text, in which VALUE is the value.
    pub sql: String,
    /// False if values from before it may not satisfy it.
    pub validated: bool,
}
