//! Generated columns in definitions: their texts, what depends on the columns that they read, DROP EXPRESSION.

use crate::catalog::TableEntry;
use crate::definition::{DefinitionChange, notice};
use clearway_sql::deparse::{generation_expression, generation_renamed};
use clearway_sql::error::{EngineError, Result, SqlState};
use clearway_sql::expr::Expr;
use clearway_sql::value::datetime::in_force as date_times;
use clearway_sql::{ColumnDefault, TableDef, bind_generated, types_by_number};

/// Changes the text of each generated column of a table, and binds the new ones.
fn change(table: &mut TableDef, text: impl Fn(&TableDef, u16, &str) -> Result<String>) -> Result<()> {
    for place in 0..table.columns.len() as u16 {
        let Some(ColumnDefault::Generated { sql, .. }) = &table.columns[usize::from(place)].default else {
            continue;
        };
        let sql = text(table, place, sql)?;
        let expr = bind_generated(&sql, table, place)?;
        table.columns[usize::from(place)].default = Some(ColumnDefault::Generated { sql, expr });
    }
    Ok(())
}

/// Puts the texts of a new table's generated columns as they are shown.
pub(super) fn print(table: &mut TableDef) -> Result<()> {
    let _kept = date_times::for_keeping();
    change(table, |table, place, sql| {
        generation_expression(sql, table, place, false).map(|sql| types_by_number(&sql))
    })
}

/// Binds the expressions anew, after places or types of columns have changed.
pub(super) fn rebind(table: &mut TableDef) -> Result<()> {
    change(table, |_, _, sql| Ok(sql.to_owned()))
}

/// Puts a column's new name into the expressions of its table, which has the old one still.
pub(super) fn rename(table: &mut TableDef, from: &str, to: &str) -> Result<()> {
    let _as_kept = date_times::under(None);
    for place in 0..table.columns.len() as u16 {
        if let Some(ColumnDefault::Generated { sql, .. }) = &table.columns[usize::from(place)].default {
            let renamed = types_by_number(&generation_renamed(sql, table, place, (from, to))?);
            if let Some(ColumnDefault::Generated { sql, .. }) = &mut table.columns[usize::from(place)].default
            {
                *sql = renamed;
            }
        }
    }
    Ok(())
}

/// The generated columns that read a column, by their places.
pub(super) fn readers(table: &TableDef, column: u16) -> Vec<u16> {
    let reads = |expr: &Expr| {
        let mut reads = false;
        expr.walk(&mut |part| reads |= *part == Expr::Column(column));
        reads
    };
    let generated = table.generated().filter(|(_, expr)| reads(expr));
    generated.map(|(place, _)| place).collect()
}

/// 0A000 for a type of a column that a generated one reads.
pub(super) fn require_unread(table: &TableDef, column: u16) -> Result<()> {
    match readers(table, column).first() {
        None => Ok(()),
        Some(reader) => Err(EngineError::new(
            SqlState::FEATURE_NOT_SUPPORTED,
            "cannot alter type of a column used by a generated column",
        )
        .with_detail(format!(
            "Column \"{}\" is used by generated column \"{}\".",
            table.columns[usize::from(column)].name,
            table.columns[usize::from(*reader)].name
        ))),
    }
}

/// 42601 for another default of a generated column.
pub(super) fn require_plain(table: &TableDef, column: u16, drops: bool) -> Result<()> {
    let def = &table.columns[usize::from(column)];
    if def.generated().is_none() {
        return Ok(());
    }
    let error = EngineError::new(
        SqlState::SYNTAX_ERROR,
        format!(
            "column \"{}\" of relation \"{}\" is a generated column",
            def.name, table.name
        ),
    );
    Err(match drops {
        true => error.with_hint("Use ALTER TABLE ... ALTER COLUMN ... DROP EXPRESSION instead."),
        false => error,
    })
}

impl DefinitionChange<'_, '_, '_> {
    /// DROP EXPRESSION: the column keeps its values, and is one like any other.
    pub(super) fn drop_expression(&mut self, entry: &TableEntry, column: u16, if_exists: bool) -> Result<()> {
        let mut table = (*entry.def).clone();
        let def = &mut table.columns[usize::from(column)];
        if def.generated().is_none() {
            let text = format!(
                "column \"{}\" of relation \"{}\" is not a stored generated column",
                def.name, entry.def.name
            );
            if !if_exists {
                return Err(EngineError::new(SqlState::from_code("55000"), text));
            }
            self.outcome
                .notices
                .push(notice(SqlState::SUCCESS, format!("{text}, skipping")));
            return Ok(());
        }
        def.default = None;
        self.redefine(entry, table)
    }
}
