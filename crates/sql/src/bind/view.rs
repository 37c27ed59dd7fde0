//! Views: their definition, and their rows where a query reads one.
//!
//! A view's query is bound in a binder of its own, so that nothing of the statement around it is seen inside: no relation,
//! no common table expression, no parameter. The rules of what its names mean are those of [`crate::view`].

use std::collections::BTreeSet;
use std::rc::Rc;
use std::sync::Arc;

use sqlparser::ast;

use crate::bind::create_table_as::begins_with_into;
use crate::bind::notes::TreeNotes;
use crate::bind::size::Size;
use crate::bind::text_names::text_names;
use crate::bind::types::no_column;
use crate::bind::view_changes::reason_against_check;
use crate::bind::{Binder, Place, bound_default, query_columns};
use crate::catalog::{CatalogView, ColumnDef, SchemaRef, TableDef, TableKind};
use crate::error::{EngineError, Result, SqlState};
use crate::parse::utility::{AlterView, AlterViewAction, CreateView, Name, ViewOptions};
use crate::parse::{ParsedStatement, Tree, parse_one};
use crate::plan::{
    AlterTablePlan, AlterViewPlan, Column, CreateViewPlan, DefinitionStatement, TableAction, ViewChange,
};
use crate::query::{Block, Rows};
use crate::stack::{Deep, with_stack_for};
use crate::value::datetime::in_force as date_times;
use crate::value::user_type::ROW_TYPE_OFFSET;
use crate::value::{DataType, format_type};
use crate::view::{ConstraintUse, NamedTable, ViewDef, ViewUse};

/// A view's query after it was bound.
pub(super) struct BoundView {
    pub(super) statement: ParsedStatement,
    pub(super) block: Block,
    pub(super) binding: ViewBinding,
}

/// A view's query while it is bound.
#[derive(Debug, Default)]
pub(super) struct ViewBinding {
    /// The view whose text it is; absent while the view is made.
    pub(super) given: Option<Arc<ViewDef>>,
    pub(super) tables: Vec<NamedTable>,
    uses: BTreeSet<ViewUse>,
    constraints: BTreeSet<ConstraintUse>,
    /// The findings in its tree, if it is to be printed.
    pub(super) notes: Option<TreeNotes>,
}

impl ViewBinding {
    /// For an expression by itself that is to be printed.
    pub(super) fn with_notes(notes: TreeNotes) -> ViewBinding {
        ViewBinding {
            notes: Some(notes),
            ..ViewBinding::default()
        }
    }

    /// Notes a column of a table that the query reads, by its origin.
    pub(super) fn note_column(&mut self, origin: (u32, i16)) {
        if let (table @ 1.., column @ 1..) = origin {
            self.uses.insert(ViewUse {
                table,
                column: column.cast_unsigned(),
            });
        }
    }

    /// Notes a type that the query names, if it is that of a relation's rows, or of arrays of them.
    pub(super) fn note_type(&mut self, data_type: DataType) {
        let mut of = data_type;
        while let Some(element) = of.element() {
            of = element;
        }
        if let DataType::Composite(oid) = of
            && let Some(table) = oid.get().checked_sub(ROW_TYPE_OFFSET)
        {
            self.uses.insert(ViewUse {
                table,
                column: ViewUse::ROW_TYPE,
            });
        }
    }

    /// Notes a constraint that lets a column stand beside GROUP BY.
    pub(super) fn note_constraint(&mut self, table: u32, index: u32) {
        self.constraints.insert(ConstraintUse { table, index });
    }
}

impl<'a> Binder<'a> {
    /// A binder for a query that sees nothing of this statement.
    fn apart<'b>(&self, text: &'b str, offset: u32, view: ViewBinding) -> Binder<'b>
    where
        'a: 'b,
    {
        let mut apart = Binder::new(Place::of(text, offset), &[], self.catalog, &[], self.check);
        apart.view = Some(Box::new(view));
        apart.presence = Rc::clone(&self.presence);
        apart
    }

    /// The table that a name in FROM means, with the number of its columns that are seen.
    pub(super) fn table_in_from(&mut self, name: &ast::ObjectName) -> Result<(Arc<TableDef>, usize)> {
        if self.view.is_none() {
            let table = self.table(name)?;
            let columns = table.columns.len();
            return Ok((table, columns));
        }
        let (_, _, span) = super::split_name(name)?;
        let at = self
            .position(span)
            .map(|position| position - self.place.offset - 1);
        let at = at.ok_or_else(|| EngineError::internal("a table of a view's query has no place"))?;
        let given = self.view.as_ref().and_then(|view| view.given.clone());
        let (table, attributes) = match given {
            None => {
                let table = self.table(name)?;
                let attributes = table.attribute_count();
                (table, attributes)
            }
            Some(given) => {
                let named = given.tables.iter().find(|named| named.at == at);
                let found = named.and_then(|named| Some((self.catalog.table_numbered(named.table)?, named)));
                let (table, named) = found.ok_or_else(|| {
                    EngineError::new(
                        SqlState::UNDEFINED_TABLE,
                        "a relation that the view reads does not exist any more",
                    )
                })?;
                (table, usize::from(named.columns))
            }
        };
        if let Some(view) = &mut self.view {
            view.tables.push(NamedTable {
                at,
                table: table.oid,
                columns: attributes as u16,
            });
            view.uses.insert(ViewUse {
                table: table.oid,
                column: 0,
            });
        }
        let numbers = (1..=attributes as u16).filter_map(|number| table.column_of_attribute(number));
        let columns = numbers.count();
        Ok((table, columns))
    }

    /// The rows of a view, for a query that reads it.
    pub(super) fn view_rows(&mut self, table: &TableDef, view: &Arc<ViewDef>) -> Result<(Vec<Column>, Rows)> {
        self.deeper(1, |binder| binder.view_rows_here(table, view))
    }

    fn view_rows_here(&mut self, table: &TableDef, view: &Arc<ViewDef>) -> Result<(Vec<Column>, Rows)> {
        let block = self.bound_view_of(table.oid, view)?.block;
        self.note_copy(Size::of_one(block.width + block.projection.len()))?;
        let fits = block.columns.len() == table.columns.len()
            && block
                .columns
                .iter()
                .zip(&table.columns)
                .all(|(bound, kept)| bound.data_type == kept.data_type);
        if !fits {
            return Err(EngineError::internal(format!(
                "the query of view \"{}\" has other columns than the view",
                table.name
            )));
        }
        let columns = table.columns.iter().enumerate().map(|(number, column)| Column {
            name: column.name.clone(),
            data_type: column.data_type,
            type_modifier: column.typmod,
            table_oid: table.oid,
            attribute: number as i16 + 1,
        });
        Ok((
            columns.collect(),
            Rows::Query {
                block: Box::new(block),
                arguments: Vec::new(),
            },
        ))
    }

    /// The query of a view, bound.
    pub(super) fn bound_view(&mut self, table: &TableDef) -> Result<BoundView> {
        let view = Arc::clone(require_view(table)?);
        self.bound_view_of(table.oid, &view)
    }

    fn bound_view_of(&mut self, number: u32, view: &Arc<ViewDef>) -> Result<BoundView> {
        let _as_written = date_times::reading_by(view.date_times.clone());
        let statement = parse_one(&view.sql, 0)?;
        let query = query_of(&statement)?;
        let binding = ViewBinding {
            given: Some(Arc::clone(view)),
            ..ViewBinding::default()
        };
        let mut apart = self.apart(&view.sql, 0, binding);
        apart.subqueries = std::mem::take(&mut self.subqueries);
        apart.reads = std::mem::take(&mut self.reads);
        apart.accesses = std::mem::take(&mut self.accesses);
        apart.as_view = self.in_view(number, view);
        apart.with = self.with.lent();
        (apart.depth, apart.copied, apart.ticks) = (self.depth, self.copied, self.ticks);
        let bound = with_stack_for(query.levels(), || apart.query(query_in(query)?, true));
        self.subqueries = std::mem::take(&mut apart.subqueries);
        self.reads = std::mem::take(&mut apart.reads);
        self.accesses = std::mem::take(&mut apart.accesses);
        self.with.take_back(&mut apart.with);
        (self.copied, self.ticks) = (apart.copied, apart.ticks);
        let binding = *apart.view.take().unwrap_or_default();
        drop(apart);
        let block = bound.map_err(EngineError::without_position)?;
        Ok(BoundView {
            statement,
            block,
            binding,
        })
    }

    /// CREATE VIEW
    pub(super) fn create_view(&self, create: &CreateView) -> Result<DefinitionStatement> {
        let (schema, position) = (create.name.schema.as_deref(), create.name.position);
        let written = schema;
        let mut schema =
            self.schema_for_table(create.temporary, schema, &create.name.name, Some(position))?;
        let name = create.name.name.clone();
        let query = query_of(&create.query)?;
        refuse_changes(query_in(query)?)?;
        let text = &create.query.text;
        let mut apart = self.apart(text, create.query.offset, ViewBinding::default());
        let block = with_stack_for(query.levels(), || {
            let query = query_in(query)?;
            if begins_with_into(&query.body) {
                return Err(EngineError::new(
                    SqlState::FEATURE_NOT_SUPPORTED,
                    "views must not contain SELECT INTO",
                ));
            }
            apart.query(query, true)
        })?;
        if !apart.params.is_empty() {
            return Err(EngineError::new(
                SqlState::UNDEFINED_PARAMETER,
                "there is no parameter $1",
            ));
        }
        super::refuse(block.from.locks_rows(), "FOR UPDATE in a view")?;
        let binding = *apart.view.take().unwrap_or_default();
        let made_temporary = reads_temporary(&binding, self.catalog)? && !schema.is_temporary();
        if made_temporary {
            schema = self.schema_for_table(true, written, &create.name.name, Some(position))?;
        }
        let columns = view_columns(&block, create)?;
        let replaced = self.replaced_view(create, &schema, &columns)?;
        if let Some(replaced) = &replaced
            && apart.reads.iter().any(|read| read.table.oid == replaced.oid)
        {
            return Err(EngineError::new(
                SqlState::INVALID_OBJECT_DEFINITION,
                format!("infinite recursion detected in rules for relation \"{name}\""),
            ));
        }
        if create.options.check.is_some()
            && let Some(why) = reason_against_check(query_in(query)?, &block)
        {
            return Err(EngineError::new(
                SqlState::FEATURE_NOT_SUPPORTED,
                "WITH CHECK OPTION is supported only on automatically updatable views",
            )
            .with_hint(why));
        }
        let ViewOptions {
            check,
            barrier,
            invoker,
        } = create.options;
        let view = ViewDef {
            sql: text.to_string(),
            tables: binding.tables.clone(),
            uses: without_whole_tables(&binding.uses),
            constraints: binding.constraints.into_iter().collect(),
            names: match schema.is_temporary() {
                true => text_names(&binding.tables, self.catalog),
                false => Vec::new(),
            },
            check,
            barrier,
            invoker,
            date_times: date_times::settings(),
        };
        Ok(DefinitionStatement::CreateView(Box::new(CreateViewPlan {
            schema,
            name,
            columns,
            view: Arc::new(view),
            replaced,
            made_temporary,
        })))
    }
}

impl Binder<'_> {
    /// The view that CREATE OR REPLACE VIEW replaces, if it is there.
    fn replaced_view(
        &self,
        create: &CreateView,
        schema: &SchemaRef,
        columns: &[ColumnDef],
    ) -> Result<Option<Arc<TableDef>>> {
        if !create.or_replace {
            return Ok(None);
        }
        let Some(old) = self.catalog.lookup_table(Some(&schema.name), &create.name.name) else {
            return Ok(None);
        };
        require_view(&old)?;
        let invalid = |message: String| EngineError::new(SqlState::INVALID_TABLE_DEFINITION, message);
        if columns.len() < old.columns.len() {
            return Err(invalid("cannot drop columns from view".to_owned()));
        }
        for (old, new) in old.columns.iter().zip(columns) {
            if old.name != new.name {
                return Err(invalid(format!(
                    "cannot change name of view column \"{}\" to \"{}\"",
                    old.name, new.name
                ))
                .with_hint("Use ALTER VIEW ... RENAME COLUMN ... to change name of view column instead."));
            }
            if (old.data_type, old.typmod) != (new.data_type, new.typmod) {
                return Err(invalid(format!(
                    "cannot change data type of view column \"{}\" from {} to {}",
                    old.name,
                    format_type(old.data_type, old.typmod),
                    format_type(new.data_type, new.typmod)
                )));
            }
        }
        Ok(Some(old))
    }

    /// ALTER VIEW
    pub(super) fn alter_view(&self, alter: &AlterView) -> Result<DefinitionStatement> {
        let found = self
            .catalog
            .lookup_table(alter.view.schema.as_deref(), &alter.view.name);
        let view = match found {
            None if alter.if_exists => {
                return Ok(DefinitionStatement::AlterView(Box::new(AlterViewPlan {
                    name: alter.view.name.clone(),
                    view: None,
                    change: ViewChange::Rename(String::new()),
                })));
            }
            None => self
                .any_table(&alter.view)
                .map_err(EngineError::without_position)?,
            Some(view) => view,
        };
        let definition = require_view(&view)?;
        let change = match &alter.action {
            AlterViewAction::Rename(name) => ViewChange::Rename(name.clone()),
            AlterViewAction::RenameColumn(old, new) => {
                let number = view.column_number(old).ok_or_else(|| {
                    EngineError::new(
                        SqlState::UNDEFINED_COLUMN,
                        format!("column \"{old}\" does not exist"),
                    )
                })?;
                if view.column_number(new).is_some() {
                    return Err(EngineError::new(
                        SqlState::DUPLICATE_COLUMN,
                        format!("column \"{new}\" of relation \"{}\" already exists", view.name),
                    ));
                }
                ViewChange::RenameColumn {
                    column: number,
                    name: new.clone(),
                }
            }
            AlterViewAction::Owner(owner) => ViewChange::Owner(owner.clone()),
            AlterViewAction::Default(column, default) => {
                let number = view
                    .column_number(column)
                    .ok_or_else(|| no_column(&view.name, column))?;
                let def = &view.columns[usize::from(number)];
                let default = default.as_ref().map(|written| {
                    let expr = bound_default(written, def.data_type, def.typmod)?;
                    self.default_of(written, expr, def.data_type, def.typmod)
                });
                return Ok(DefinitionStatement::AlterTable(Box::new(AlterTablePlan {
                    name: view.name.clone(),
                    actions: vec![TableAction::SetDefault {
                        name: column.clone(),
                        default: default.transpose()?,
                    }],
                    table: Some(view),
                    tag: "ALTER VIEW",
                })));
            }
            AlterViewAction::SetSchema(schema) => {
                let schema = self.schema_to_move_to(schema, &view.name)?;
                return Ok(DefinitionStatement::AlterTable(Box::new(AlterTablePlan {
                    name: view.name.clone(),
                    actions: vec![TableAction::SetSchema(schema)],
                    table: Some(view),
                    tag: "ALTER VIEW",
                })));
            }
            AlterViewAction::SetOptions(options) => ViewChange::Define(Arc::new(ViewDef {
                check: options.check.or(definition.check),
                barrier: options.barrier.or(definition.barrier),
                invoker: options.invoker.or(definition.invoker),
                ..(**definition).clone()
            })),
            AlterViewAction::ResetOptions(names) => {
                let mut kept = (**definition).clone();
                for name in names {
                    match name.as_str() {
                        "check_option" => kept.check = None,
                        "security_barrier" => kept.barrier = None,
                        _ => kept.invoker = None,
                    }
                }
                ViewChange::Define(Arc::new(kept))
            }
        };
        Ok(DefinitionStatement::AlterView(Box::new(AlterViewPlan {
            name: view.name.clone(),
            view: Some(view),
            change,
        })))
    }

    /// DROP VIEW
    pub(super) fn drop_view(
        &self,
        views: &[Name],
        if_exists: bool,
        cascade: bool,
    ) -> Result<DefinitionStatement> {
        let mut found = Vec::with_capacity(views.len());
        for name in views {
            let view = self.catalog.lookup_table(name.schema.as_deref(), &name.name);
            match &view {
                Some(view) => {
                    require_view(view).map_err(|error| match view.kind {
                        TableKind::Heap { .. } => error.with_hint("Use DROP TABLE to remove a table."),
                        _ => error,
                    })?;
                }
                None if !if_exists => {
                    return Err(EngineError::new(
                        SqlState::UNDEFINED_TABLE,
                        format!("view \"{}\" does not exist", name.name),
                    ));
                }
                None => {}
            }
            found.push((name.name.clone(), view));
        }
        Ok(DefinitionStatement::DropView {
            views: found,
            if_exists,
            cascade,
        })
    }
}

/// The definition of a view; 42809 for a relation that is none.
fn require_view(table: &TableDef) -> Result<&Arc<ViewDef>> {
    table.view.as_ref().ok_or_else(|| {
        EngineError::new(
            SqlState::WRONG_OBJECT_TYPE,
            format!("\"{}\" is not a view", table.name),
        )
    })
}

/// A view's query, with what is found in it.
pub(crate) fn annotated(view: &TableDef, catalog: &dyn CatalogView) -> Result<(ParsedStatement, TreeNotes)> {
    let definition = require_view(view)?;
    let _as_written = date_times::reading_by(definition.date_times.clone());
    let statement = parse_one(&definition.sql, 0)?;
    let check = || Ok(());
    let place = Place::of(&definition.sql, 0);
    let mut binder = Binder::new(place, &[], catalog, &[], &check);
    binder.view = Some(Box::new(ViewBinding {
        given: Some(Arc::clone(definition)),
        notes: Some(TreeNotes::default()),
        ..ViewBinding::default()
    }));
    let query = query_of(&statement)?;
    with_stack_for(query.levels(), || binder.query(query_in(query)?, true))
        .map_err(EngineError::without_position)?;
    let notes = binder.view.take().and_then(|view| view.notes).unwrap_or_default();
    drop(binder);
    Ok((statement, notes))
}

/// The tree of a view's query, and its depth.
pub(crate) fn query_of_view(statement: &ParsedStatement) -> Result<(&ast::Query, u32)> {
    let tree = query_of(statement)?;
    Ok((query_in(tree)?, tree.levels()))
}

/// The tree of a view's query.
pub(super) fn query_of(statement: &ParsedStatement) -> Result<&Deep<ast::Statement>> {
    match &statement.tree {
        Tree::Sql(tree) => Ok(tree),
        _ => Err(EngineError::internal("a view's query is none")),
    }
}

pub(super) fn query_in(tree: &ast::Statement) -> Result<&ast::Query> {
    match tree {
        ast::Statement::Query(query) => Ok(query),
        _ => Err(EngineError::internal("a view's query is none")),
    }
}

/// The columns of a view: those of its query, under the names that are given to the first of them.
fn view_columns(block: &Block, create: &CreateView) -> Result<Vec<ColumnDef>> {
    if create.columns.len() > block.columns.len() {
        return Err(EngineError::new(
            SqlState::SYNTAX_ERROR,
            "CREATE VIEW specifies more column names than columns",
        ));
    }
    query_columns::named(&block.columns, create.columns.iter().map(|(name, _)| name))
}

/// 0A000 for a WITH that changes rows.
fn refuse_changes(query: &ast::Query) -> Result<()> {
    let ctes = query.with.iter().flat_map(|with| &with.cte_tables);
    let changes = |cte: &ast::Cte| {
        matches!(
            &*cte.query.body,
            ast::SetExpr::Insert(_)
                | ast::SetExpr::Update(_)
                | ast::SetExpr::Delete(_)
                | ast::SetExpr::Merge(_)
        )
    };
    if ctes.into_iter().any(changes) {
        return Err(EngineError::new(
            SqlState::FEATURE_NOT_SUPPORTED,
            "views must not contain data-modifying statements in WITH",
        ));
    }
    Ok(())
}

/// True if a view's query reads a temporary table or names the type of its rows, so that the view is temporary too; 0A000 for
/// what it cannot read.
fn reads_temporary(binding: &ViewBinding, catalog: &dyn CatalogView) -> Result<bool> {
    /// The first number of what users make.
    const FIRST_USER_OID: u32 = 16_384;
    let mut temporary = false;
    for named in &binding.tables {
        let table = catalog.table_numbered(named.table);
        temporary |= table.as_ref().is_some_and(|table| table.schema.is_temporary());
        let is_sequence =
            |table: Arc<TableDef>| table.kind == TableKind::Virtual && named.table >= FIRST_USER_OID;
        if table.is_none_or(is_sequence) {
            return Err(EngineError::not_supported("a view over a sequence"));
        }
    }
    let mut row_types = binding
        .uses
        .iter()
        .filter(|used| used.column == ViewUse::ROW_TYPE);
    let is_temporary = |used: &ViewUse| {
        let relation = catalog.table_numbered(used.table);
        relation.is_some_and(|relation| relation.schema.is_temporary())
    };
    Ok(temporary || row_types.any(is_temporary))
}

/// The tables and columns that a query uses; a table of which columns are used does not stand there by itself.
fn without_whole_tables(uses: &BTreeSet<ViewUse>) -> Vec<ViewUse> {
    let has_columns = |table: u32| {
        uses.range(
            ViewUse { table, column: 1 }..ViewUse {
                table,
                column: ViewUse::ROW_TYPE,
            },
        )
        .next()
        .is_some()
    };
    let kept = uses
        .iter()
        .filter(|found| found.column != 0 || !has_columns(found.table));
    kept.copied().collect()
}
