//! Views as the catalog keeps them.
//!
//! A view is the text of its query as it was written, and what the names of tables in it meant then: the number of each
//! table, and how many columns it had. When the view is read, the text is bound again with these numbers in place of the
//! names, and each table shows the columns it had. So every name in the text, every `*` and every NATURAL means what it
//! meant when the view was made: a table of the same name that comes first on the search path later, a renamed table or
//! column, and a column added to one change nothing. A whole row has the columns that there are, by the names of now.
//!
//! V1. Nothing in the text is resolved by a search path. V2. A table that the text names is there as long as the view is:
//! it cannot be dropped without the view (`uses`).

use std::sync::Arc;

use crate::value::datetime::in_force::DateTimeSettings;

/// A view.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ViewDef {
    /// The text of its query.
    pub sql: String,
    /// The tables that the text names, by their places in it.
    pub tables: Vec<NamedTable>,
    /// The tables and columns that it needs; in order, each once.
    pub uses: Vec<ViewUse>,
    /// The constraints that it needs: those that let a column stand beside GROUP BY.
    pub constraints: Vec<ConstraintUse>,
    /// The names of columns in the text, of those that have another one since; of a temporary view, of all columns of its
    /// tables, since no session tells another of a change.
    pub names: Vec<TextName>,
    /// WITH CHECK OPTION
    pub check: Option<CheckOption>,
    /// True if it was made a barrier (`security_barrier`); here all users may see all rows.
    pub barrier: Option<bool>,
    /// Whose rights it reads with (`security_invoker`); here all users have the same.
    pub invoker: Option<bool>,
    /// The settings that the literals of its text are read by; `None` for the defaults.
    pub date_times: Option<Arc<DateTimeSettings>>,
}

/// A table that a view's text names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NamedTable {
    /// Characters of the text before the name.
    pub at: u32,
    /// The table's number.
    pub table: u32,
    /// The attributes that the table had.
    pub columns: u16,
}

/// The name that a view's text has for a column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextName {
    /// The table's number.
    pub table: u32,
    /// The attribute's number, from 1.
    pub column: u16,
    /// The name.
    pub name: String,
}

/// A table that a view needs, or a column of one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct ViewUse {
    /// The table's number.
    pub table: u32,
    /// The attribute's number, from 1; 0 for the table itself, and [`ViewUse::ROW_TYPE`] for the type of its rows.
    pub column: u16,
}

impl ViewUse {
    /// In the place of an attribute's number: the type of the table's rows, which the view's text names. No table has so many
    /// attributes.
    pub const ROW_TYPE: u16 = u16::MAX;
}

/// A constraint that a view needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct ConstraintUse {
    /// The table's number.
    pub table: u32,
    /// The number of the constraint's index.
    pub index: u32,
}

/// The extent of WITH CHECK OPTION.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CheckOption {
    /// The view's own condition.
    Local,
    /// Those of the views below as well.
    Cascaded,
}

impl CheckOption {
    /// Its word, in lower case.
    pub fn word(self) -> &'static str {
        match self {
            CheckOption::Local => "local",
            CheckOption::Cascaded => "cascaded",
        }
    }
}

impl ViewDef {
    /// The view after a column that was called `from` got another name; `None` if it does not read the table.
    #[must_use]
    pub fn with_renamed(&self, table: u32, column: u16, from: &str) -> Option<ViewDef> {
        let reads = self.tables.iter().any(|named| named.table == table);
        let is_it = |known: &TextName| known.table == table && known.column == column;
        let mut view = self.clone();
        // The name in the text stays, also where it is the column's again.
        if !view.names.iter().any(is_it) {
            view.names.push(TextName {
                table,
                column,
                name: from.to_owned(),
            });
        }
        reads.then_some(view)
    }

    /// The options as `pg_class.reloptions` has them.
    pub fn options(&self) -> Vec<String> {
        let flag = |name: &str, value: Option<bool>| value.map(|value| format!("{name}={value}"));
        let check = self.check.map(|check| format!("check_option={}", check.word()));
        let flags = [
            flag("security_barrier", self.barrier),
            flag("security_invoker", self.invoker),
        ];
        flags.into_iter().flatten().chain(check).collect()
    }
}
