//! The findings of the binder at the nodes of a syntax tree, for those who print the tree.
//!
//! A node is known by its address, so notes hold for the tree that was bound, as long as it is not changed. They are made
//! for the query of a view only, and not for the queries of views that it reads.

use std::collections::HashMap;
use std::sync::Arc;

use sqlparser::ast;

use crate::bind::scope::{Names, ScopeColumn, ScopeRelation};
use crate::bind::{Binder, Typed};
use crate::catalog::TableDef;
use crate::plan::Column;
use crate::value::DataType;

/// A column that a name means.
#[derive(Debug, Clone)]
pub(crate) struct ColumnNote {
    /// Queries out from the one that has the name.
    pub(crate) level: usize,
    /// The relation; none if a join merges two columns.
    pub(crate) relation: Option<String>,
    /// Its name.
    pub(crate) name: String,
}

/// The name in the note of a whole row; no column has it.
pub(crate) const WHOLE_ROW: &str = "\0";

/// The findings.
#[derive(Debug, Default)]
pub(crate) struct TreeNotes {
    types: HashMap<usize, (DataType, i32)>,
    columns: HashMap<usize, ColumnNote>,
    stars: HashMap<usize, Vec<ColumnNote>>,
    tables: HashMap<usize, Arc<TableDef>>,
    aliased: HashMap<usize, Vec<String>>,
    shared: HashMap<usize, Vec<String>>,
    queries: HashMap<usize, Vec<Column>>,
    types_of_queries: HashMap<usize, Vec<DataType>>,
    outputs: HashMap<usize, Vec<String>>,
    copies: HashMap<usize, Arc<ast::Cte>>,
    /// The column that was found last.
    found: Option<ColumnNote>,
    /// True if the text calls a column by a name of before.
    has_old_names: bool,
}

fn address<T>(node: &T) -> usize {
    std::ptr::from_ref(node).addr()
}

impl TreeNotes {
    /// Takes the relations' names from all columns, which are of one table, and gives one of them another name. False if a
    /// whole row is among them, which has no other name than its relation's.
    pub(crate) fn keep_names_only(&mut self, renamed: Option<(&str, &str)>) -> bool {
        for note in self.columns.values_mut() {
            if note.name == WHOLE_ROW {
                return false;
            }
            note.relation = None;
            if let Some((from, to)) = renamed
                && note.name == from
            {
                to.clone_into(&mut note.name);
            }
        }
        true
    }

    /// True if the text calls a column by a name of before, so that it cannot be shown as it was written.
    pub(crate) fn has_old_names(&self) -> bool {
        self.has_old_names
    }

    /// The type of an expression and its modifier, before it is brought to another.
    pub(crate) fn type_of(&self, tree: &ast::Expr) -> Option<(DataType, i32)> {
        self.types.get(&address(tree)).copied()
    }

    /// The column that a name means.
    pub(crate) fn column(&self, ident: &ast::Ident) -> Option<&ColumnNote> {
        self.columns.get(&address(ident))
    }

    /// The columns of a `*`.
    pub(crate) fn star(&self, item: &ast::SelectItem) -> &[ColumnNote] {
        self.stars.get(&address(item)).map_or(&[], Vec::as_slice)
    }

    /// The table that a name in FROM means.
    pub(crate) fn table(&self, name: &ast::ObjectName) -> Option<&Arc<TableDef>> {
        self.tables.get(&address(name))
    }

    /// The names of a table's columns, if an alias changes any.
    pub(crate) fn aliased_columns(&self, name: &ast::ObjectName) -> Option<Vec<String>> {
        self.aliased.get(&address(name)).cloned()
    }

    /// The columns that a NATURAL JOIN compares.
    pub(crate) fn shared(&self, join: &ast::Join) -> &[String] {
        self.shared.get(&address(join)).map_or(&[], Vec::as_slice)
    }

    /// The type of a query's first column.
    pub(crate) fn query_type(&self, query: &ast::Query) -> Option<DataType> {
        self.query_types(query)?.first().copied()
    }

    /// The types of a query's columns.
    pub(crate) fn query_types(&self, query: &ast::Query) -> Option<&[DataType]> {
        self.types_of_queries.get(&address(query)).map(Vec::as_slice)
    }

    /// The names of a query's columns, the first of them as given.
    pub(crate) fn query_columns(&self, query: &ast::Query, given: &[String]) -> Option<Vec<String>> {
        let columns = self.queries.get(&address(query))?;
        let names = columns.iter().enumerate();
        Some(
            names
                .map(|(number, column)| given.get(number).unwrap_or(&column.name).clone())
                .collect(),
        )
    }

    /// The tree of a common table expression that was bound, which has the notes.
    pub(crate) fn bound<'t>(&'t self, cte: &'t ast::Cte) -> &'t ast::Cte {
        self.copies.get(&address(cte)).map_or(cte, Arc::as_ref)
    }

    /// The names of a SELECT's columns.
    pub(crate) fn outputs(&self, select: &ast::Select) -> Option<&[String]> {
        self.outputs.get(&address(select)).map(Vec::as_slice)
    }
}

/// The note of a column of these names.
fn note_of(column: &ScopeColumn, names: &Names, level: usize) -> ColumnNote {
    let is_it = |known: &ScopeColumn| known.typed.expr == column.typed.expr && known.name == column.name;
    let place_in = |relation: &'_ ScopeRelation| relation.columns.iter().position(is_it);
    let mut relations = names.relations.iter();
    let found = relations.find_map(|relation| Some((relation, place_in(relation)?)));
    ColumnNote {
        level,
        relation: found.map(|(relation, _)| relation.alias.clone()),
        name: found
            .map_or(&*column.name, |(relation, place)| relation.name_now(place))
            .to_owned(),
    }
}

impl Binder<'_> {
    #[inline]
    fn notes(&mut self) -> Option<&mut TreeNotes> {
        self.view.as_mut()?.notes.as_mut()
    }

    /// True if the findings are for a text that is printed.
    pub(super) fn makes_notes(&mut self) -> bool {
        self.notes().is_some()
    }

    /// Notes that the text calls a column by a name of before.
    pub(super) fn note_old_name(&mut self) {
        if let Some(notes) = self.notes() {
            notes.has_old_names = true;
        }
    }

    /// Notes an expression's type.
    #[inline]
    pub(super) fn note_type(&mut self, tree: &ast::Expr, typed: &Typed) {
        if let Some(notes) = self.notes() {
            notes.types.insert(address(tree), (typed.data_type, typed.typmod));
        }
    }

    /// Notes that a column was found among these names, so many queries out.
    #[inline]
    pub(super) fn note_found(&mut self, column: &ScopeColumn, names: &Names, level: usize) {
        if let Some(notes) = self.notes() {
            notes.found = Some(note_of(column, names, level));
        }
    }

    /// Notes that a relation's whole row was found, so many queries out.
    #[inline]
    pub(super) fn note_whole_row(&mut self, relation: &str, level: usize) {
        if let Some(notes) = self.notes() {
            notes.found = Some(ColumnNote {
                level,
                relation: Some(relation.to_owned()),
                name: WHOLE_ROW.to_owned(),
            });
        }
    }

    /// The column that was found last is what a name means.
    #[inline]
    pub(super) fn note_name(&mut self, ident: &ast::Ident) {
        if let Some(notes) = self.notes()
            && let Some(found) = notes.found.take()
        {
            notes.columns.insert(address(ident), found);
        }
    }

    /// Notes the columns of a `*`.
    pub(super) fn note_star(
        &mut self,
        item: &ast::SelectItem,
        columns: &[ScopeColumn],
        names: &Names,
        level: usize,
    ) {
        if let Some(notes) = self.notes() {
            let columns = columns.iter().map(|column| note_of(column, names, level));
            notes.stars.insert(address(item), columns.collect());
        }
    }

    /// Notes a table in FROM, and its columns' names if an alias changes them.
    pub(super) fn note_table(
        &mut self,
        name: &ast::ObjectName,
        table: &Arc<TableDef>,
        columns: &[ScopeColumn],
    ) {
        if let Some(notes) = self.notes() {
            notes.tables.insert(address(name), Arc::clone(table));
            let renamed = columns
                .iter()
                .zip(&table.columns)
                .any(|(shown, own)| shown.name != own.name);
            if renamed {
                let names = columns.iter().map(|column| column.name.clone());
                notes.aliased.insert(address(name), names.collect());
            }
        }
    }

    /// Notes what a NATURAL JOIN compares.
    pub(super) fn note_join(&mut self, join: &ast::Join, left: &Names, right: &Names) {
        if let Some(notes) = self.notes() {
            let columns = left.visible.iter().map(|column| column.name.clone());
            notes.shared.insert(
                address(join),
                columns.filter(|name| right.has_column(name)).collect(),
            );
        }
    }

    /// Notes a query's columns.
    pub(super) fn note_query(&mut self, query: &ast::Query, columns: &[Column]) {
        if let Some(notes) = self.notes() {
            notes.queries.insert(address(query), columns.to_vec());
            let types = columns.iter().map(|column| column.data_type);
            notes.types_of_queries.insert(address(query), types.collect());
        }
    }

    /// Notes that a copy of a common table expression will be bound.
    pub(super) fn note_cte(&mut self, cte: &ast::Cte, copy: &Arc<ast::Cte>) {
        if let Some(notes) = self.notes() {
            notes.copies.insert(address(cte), Arc::clone(copy));
        }
    }

    /// Notes the names of a SELECT's columns.
    pub(super) fn note_outputs(&mut self, select: &ast::Select, columns: &[Column]) {
        if let Some(notes) = self.notes() {
            let names = columns.iter().map(|column| column.name.clone());
            notes.outputs.insert(address(select), names.collect());
        }
    }
}
