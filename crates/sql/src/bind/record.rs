//! Records in expressions: `row(a, b)`, whole rows of relations, and their fields.
//!
//! The type `record` says nothing of a record's fields. What is known of them when a statement is bound is its *shape*,
//! and the number of the shape is the type modifier of the expression: so it goes with a column through queries in FROM,
//! WITH and set operations. No client sees it ([`forget_shapes`]).
//!
//! | text | fields |
//! | --- | --- |
//! | `row(a, b)`, `(a, b)` | `f1`, `f2` |
//! | `t`, `t.*` of a relation, where no column is called `t` | its columns; NULL where an outer join has no row of it |

use std::sync::Arc;

use sqlparser::ast;

use crate::bind::row_columns::columns_of;
use crate::bind::scope::{Names, Qualifier, Scope, ScopeRelation};
use crate::bind::{Binder, Typed, normal, split_name};
use crate::error::{EngineError, Result, SqlState};
use crate::expr::Expr;
use crate::parse::is_all_fields;
use crate::plan::Column;
use crate::value::{DataType, NO_TYPMOD};

/// The most fields of a record.
const FIELDS_MAX: usize = 1_664;

/// A field of a record.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Field {
    pub(super) name: String,
    pub(super) data_type: DataType,
    pub(super) typmod: i32,
}

/// The fields of a record.
pub(super) type RecordShape = Vec<Field>;

/// Takes the numbers of shapes off the columns that a client is told of.
pub(super) fn forget_shapes(columns: &mut [Column]) {
    let records = columns
        .iter_mut()
        .filter(|column| column.data_type == DataType::Record);
    records.for_each(|column| column.type_modifier = NO_TYPMOD);
}

impl Binder<'_> {
    /// `row(a, b)`, `(a, b)`
    pub(super) fn record(
        &mut self,
        tree: &ast::Expr,
        scope: &mut Scope,
        position: Option<u32>,
    ) -> Result<Typed> {
        let Some(columns) = columns_of(tree) else {
            return Err(EngineError::not_supported("this form of ROW").or_position(position));
        };
        let fields = self.row_of(&columns, scope)?;
        let named = fields.into_iter().enumerate();
        let named = named.map(|(at, typed)| (format!("f{}", at + 1), typed)).collect();
        self.record_of(named).map_err(|error| error.or_position(position))
    }

    /// A record of named fields.
    pub(super) fn record_of(&mut self, fields: Vec<(String, Typed)>) -> Result<Typed> {
        if fields.len() > FIELDS_MAX {
            return Err(EngineError::new(
                SqlState::TOO_MANY_COLUMNS,
                format!("ROW expressions can have at most {FIELDS_MAX} entries"),
            ));
        }
        let mut shape = RecordShape::with_capacity(fields.len());
        let mut exprs = Vec::with_capacity(fields.len());
        for (name, typed) in fields {
            // A parameter is a text where nothing else is wanted of it.
            let typed = match typed.expr {
                Expr::Parameter(_) => self.settle(typed)?,
                _ => typed,
            };
            shape.push(Field {
                name,
                data_type: typed.data_type,
                typmod: typed.typmod,
            });
            exprs.push(typed.expr);
        }
        let types: Arc<[DataType]> = shape.iter().map(|field| field.data_type).collect();
        Ok(Typed {
            expr: Expr::Row { fields: exprs, types },
            data_type: DataType::Record,
            typmod: self.number_of_shape(shape),
        })
    }

    /// The number of a shape.
    pub(super) fn number_of_shape(&mut self, shape: RecordShape) -> i32 {
        let known = self.records.iter().position(|known| *known == shape);
        let number = known.unwrap_or_else(|| {
            self.records.push(shape);
            self.records.len() - 1
        });
        number as i32
    }

    /// The whole row of the relation of this name; `None` if there is no such relation.
    pub(super) fn whole_row(
        &mut self,
        name: &str,
        names: &Names,
        position: Option<u32>,
    ) -> Result<Option<Typed>> {
        let qualifier = Qualifier {
            schema: None,
            relation: name,
        };
        let Some((relation, out)) = self.relation_of(qualifier, names) else {
            return Ok(None);
        };
        self.row_of_relation(&relation, out)
            .map(Some)
            .map_err(|error| error.or_position(position))
    }

    /// `t.*` as a value.
    pub(super) fn whole_row_of(&mut self, name: &ast::ObjectName, scope: &Scope) -> Result<Typed> {
        let (relation, out, position) = self.relation_named(name, &scope.names)?;
        self.row_of_relation(&relation, out)
            .map_err(|error| error.or_position(position))
    }

    /// `t.*` as columns of a row.
    pub(super) fn columns_of_relation(
        &mut self,
        name: &ast::ObjectName,
        scope: &Scope,
    ) -> Result<Vec<Typed>> {
        let (relation, out, _) = self.relation_named(name, &scope.names)?;
        let columns = relation.columns.into_iter().map(|column| {
            self.note_column(&column);
            Typed {
                expr: self.value_from_around(column.typed.expr, out),
                ..column.typed
            }
        });
        Ok(columns.collect())
    }

    fn relation_named(
        &self,
        name: &ast::ObjectName,
        names: &Names,
    ) -> Result<(ScopeRelation, usize, Option<u32>)> {
        let (schema, table, span) = split_name(name)?;
        let qualifier = Qualifier {
            schema: schema.as_deref(),
            relation: &table,
        };
        let position = self.position(span);
        match self.relation_of(qualifier, names) {
            Some((relation, out)) => Ok((relation, out, position)),
            None => Err(EngineError::new(
                SqlState::UNDEFINED_TABLE,
                format!("missing FROM-clause entry for table \"{table}\""),
            )
            .or_position(position)),
        }
    }

    fn row_of_relation(&mut self, relation: &ScopeRelation, out: usize) -> Result<Typed> {
        let mut fields = Vec::with_capacity(relation.columns.len());
        for column in &relation.columns {
            self.note_column(column);
            fields.push((column.name.clone(), column.typed.clone()));
        }
        self.note_whole_row(&relation.alias, out);
        let row = self.record_of(fields)?;
        let value = relation.where_present(row.expr, "the whole row")?;
        Ok(Typed {
            expr: self.value_from_around(value, out),
            ..row
        })
    }

    /// `(record).name`
    pub(super) fn field(&mut self, input: Typed, name: &ast::Expr, position: Option<u32>) -> Result<Typed> {
        let ast::Expr::Identifier(ident) = name else {
            return Err(EngineError::not_supported(format!("the field {name}")).or_position(position));
        };
        if is_all_fields(ident) {
            return Err(EngineError::new(
                SqlState::FEATURE_NOT_SUPPORTED,
                "row expansion via \"*\" is not supported here",
            )
            .or_position(position));
        }
        let name = normal(ident);
        if input.data_type != DataType::Record {
            return Err(EngineError::new(
                SqlState::WRONG_OBJECT_TYPE,
                format!(
                    "column notation .{name} applied to type {}, which is not a composite type",
                    input.data_type
                ),
            )
            .or_position(position));
        }
        let found = self
            .shape(&input)
            .and_then(|shape| shape.iter().position(|field| field.name == name));
        let Some(number) = found else {
            return Err(EngineError::new(
                SqlState::UNDEFINED_COLUMN,
                format!("could not identify column \"{name}\" in record data type"),
            )
            .or_position(position));
        };
        Ok(self.field_at(&input, number))
    }

    /// `(record).*`: the names and values of its fields.
    ///
    /// The record is that of `chain` behind `root`.
    pub(super) fn all_fields(
        &mut self,
        root: &ast::Expr,
        chain: &[ast::AccessExpr],
        scope: &mut Scope,
    ) -> Result<Vec<(String, Typed)>> {
        let position = self.position_of(root);
        let input = self.part(root, chain, scope, position)?;
        if input.data_type != DataType::Record {
            return Err(EngineError::new(
                SqlState::WRONG_OBJECT_TYPE,
                format!("type {} is not composite", input.data_type),
            )
            .or_position(position));
        }
        let Some(shape) = self.shape(&input).cloned() else {
            return Err(
                EngineError::new(SqlState::WRONG_OBJECT_TYPE, "record type has not been registered")
                    .or_position(position),
            );
        };
        let fields = shape.into_iter().enumerate();
        Ok(fields
            .map(|(number, field)| (field.name, self.field_at(&input, number)))
            .collect())
    }

    /// The shape of this number.
    pub(super) fn shape_numbered(&self, number: i32) -> Option<&RecordShape> {
        usize::try_from(number)
            .ok()
            .and_then(|number| self.records.get(number))
    }

    fn shape(&self, input: &Typed) -> Option<&RecordShape> {
        self.shape_numbered(input.typmod)
    }

    /// A field of a record whose shape is known.
    fn field_at(&self, input: &Typed, number: usize) -> Typed {
        let field = self.shape(input).and_then(|shape| shape.get(number));
        let (data_type, typmod) = field.map_or((DataType::Unknown, NO_TYPMOD), |field| {
            (field.data_type, field.typmod)
        });
        let expr = match &input.expr {
            Expr::Row { fields, .. } => fields[number].clone(),
            other => Expr::Field {
                input: Box::new(other.clone()),
                number: number as u16,
                data_type,
            },
        };
        Typed {
            expr,
            data_type,
            typmod,
        }
    }
}
