//! The catalog of types that the running statement sees, a thread each.
//!
//! Text and binary forms, names in errors and the base types of domains are asked for in places that have no session at
//! hand: deep inside arrays and records, while a literal is bound, while a row is written to a client. All of these run
//! on the thread that runs the statement. So the session tells its thread once which catalog is in force.
//!
//! 1. [`is`] compares a token: a version of the catalog that the process never uses twice, and what else the answers
//!    depend on. It costs two loads, and nothing more happens while definitions stay as they are.
//! 2. [`set`] replaces the catalog. The one before is released.
//!
//! Outside of a session (tests, tools) there is no catalog, and no type of users is known.

use std::cell::{Cell, RefCell};
use std::sync::Arc;

use crate::value::DataType;
use crate::value::type_table::TypeOid;
use crate::value::user_type::{UNKNOWN, UserType};

/// A catalog of types, as one session sees it.
pub trait TypeSource {
    /// The type of this number.
    fn get(&self, oid: TypeOid) -> Option<Arc<UserType>>;
    /// The type of this name, looked for along the search path if no schema is given.
    fn named(&self, schema: Option<&str>, name: &str) -> Option<DataType>;
    /// The name of a type as SQL and errors show it: in quotes and with its schema where that is needed.
    fn shown(&self, of: &UserType) -> String;
    /// True if the name of a type alone leads to it.
    fn is_visible(&self, of: &UserType) -> bool;
    /// The name of the array type of a type.
    fn array_name(&self, of: &UserType) -> String;
}

/// The facts that the answers of a catalog depend on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Token {
    /// The version of the catalog.
    pub version: u64,
    /// The search path, by the place of the settings that hold it.
    pub path: usize,
    /// The transaction whose own changes are in it; 0 if there are none.
    pub transaction: u64,
}

thread_local! {
    static TOKEN: Cell<Token> = const { Cell::new(Token { version: 0, path: 0, transaction: 0 }) };
    static SOURCE: RefCell<Option<Arc<dyn TypeSource>>> = const { RefCell::new(None) };
}

/// True if the catalog of this token is in force.
#[inline]
pub fn is(token: Token) -> bool {
    TOKEN.get() == token
}

/// Puts a catalog in force for what this thread does from now on.
pub fn set(token: Token, source: Arc<dyn TypeSource>) {
    TOKEN.set(token);
    // Dropped behind the borrow: it may be the last that holds a catalog.
    let before = SOURCE.with(|current| current.replace(Some(source)));
    drop(before);
}

/// The transaction whose own changes are in the catalog; 0 if there are none.
pub(super) fn transaction() -> u64 {
    TOKEN.get().transaction
}

/// The type of this number.
pub fn get(oid: TypeOid) -> Option<Arc<UserType>> {
    source()?.get(oid)
}

/// The type of this name, looked for along the search path if no schema is given.
pub fn named(schema: Option<&str>, name: &str) -> Option<DataType> {
    // A type by its number, in a text of the catalog.
    if let Some(oid) = name.strip_prefix('@').filter(|_| schema.is_none()) {
        return super::of_oid(oid.parse().ok()?);
    }
    source()?.named(schema, name)
}

/// A type's name in quotes and with its schema where that is needed.
pub(super) fn shown(of: &UserType) -> String {
    source().map_or_else(|| UNKNOWN.to_owned(), |source| source.shown(of))
}

/// The name of the array type of the type of this number.
pub(crate) fn array_name(oid: TypeOid) -> Option<String> {
    let source = source()?;
    Some(source.array_name(&*source.get(oid)?))
}

/// True if the name of a type alone leads to it.
pub(crate) fn is_visible(of: &UserType) -> bool {
    source().is_some_and(|source| source.is_visible(of))
}

fn source() -> Option<Arc<dyn TypeSource>> {
    SOURCE.with(|current| current.borrow().clone())
}
