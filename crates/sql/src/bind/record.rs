//! Records in expressions: `row(a, b)`, whole rows of relations, and their fields.
//!
//! A composite type tells the fields of its values. The type `record` says nothing of a record's fields. What is known of
//! them when a statement is bound is its *shape*, and the number of the shape is the type modifier of the expression: so it
//! goes with a column through queries in FROM, WITH and set operations. No client sees it ([`forget_shapes`]).
//!
//! | text | type | fields |
//! | --- | --- | --- |
//! | `row(a, b)`, `(a, b)` | `record` | `f1`, `f2` |
//! | `t`, `t.*` of a table or view, where no column is called `t` | that of its rows | its columns |
//! | the same of another relation | `record` | its columns |
//! | `row(a, b)::t` | `t` | those of the type, each value cast to its field's |
//!
//! A whole row is NULL where an outer join has no row of the relation.

use std::sync::Arc;

use sqlparser::ast;

use crate::bind::row_columns::columns_of;
use crate::bind::scope::{Names, Qualifier, Scope, ScopeRelation};
use crate::bind::{Binder, Presence, Typed, normal, split_name};
use crate::error::{EngineError, Result, SqlState};
use crate::expr::Expr;
use crate::parse::is_all_fields;
use crate::plan::Column;
use crate::value::cast::{CastContext, can_cast};
use crate::value::user_type::{CompositeType, Field, UserType, definition_of};
use crate::value::{DataType, NO_TYPMOD};

/// The most fields of a record.
const FIELDS_MAX: usize = 1_664;

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
        let names = shape.iter().map(|field| field.name.as_str().into()).collect();
        Ok(Typed {
            expr: Expr::Row {
                fields: exprs,
                types,
                of: DataType::Record,
                names: Some(names),
            },
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

    /// A row of expressions as a value of a composite type: each is cast to its field's type.
    pub(super) fn row_as(
        &mut self,
        fields: Vec<Expr>,
        types: &[DataType],
        to: DataType,
        context: CastContext,
    ) -> Result<Expr> {
        let definition = definition_of(to);
        let composite = definition.as_deref().and_then(UserType::composite);
        let composite = composite.ok_or_else(|| EngineError::internal("a type is not composite"))?;
        let refused = |detail: String| {
            EngineError::new(
                SqlState::CANNOT_COERCE,
                format!("cannot cast type record to {to}"),
            )
            .with_detail(detail)
        };
        if fields.len() != composite.fields.len() {
            let detail = match fields.len() < composite.fields.len() {
                true => "Input has too few columns.",
                false => "Input has too many columns.",
            };
            return Err(refused(detail.to_owned()));
        }
        let mut converted = Vec::with_capacity(fields.len());
        for (at, ((expr, from), field)) in fields.into_iter().zip(types).zip(&composite.fields).enumerate() {
            if !can_cast(*from, field.data_type, context) {
                return Err(refused(format!(
                    "Cannot cast type {from} to {} in column {}.",
                    field.data_type,
                    at + 1
                )));
            }
            let typed = Typed::new(expr, *from);
            converted.push(self.convert(typed, field.data_type, field.typmod, context)?);
        }
        Ok(Expr::Row {
            fields: converted,
            types: composite.types().collect(),
            of: to,
            names: None,
        })
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
        for (place, column) in relation.columns.iter().enumerate() {
            self.note_column(column);
            fields.push((relation.name_now(place).to_owned(), column.typed.clone()));
        }
        let added = relation.since.added.iter();
        fields.extend(added.map(|column| (column.name.clone(), column.typed.clone())));
        self.note_whole_row(&relation.alias, out);
        let row = as_rows_of(self.record_of(fields)?, relation.row_type);
        if relation.nullable && relation.present.is_none() && self.presence.get() == Presence::Untold {
            self.presence.set(Presence::Missed);
        }
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
        let data_type = input.data_type.base();
        if !is_row(data_type) {
            return Err(EngineError::new(
                SqlState::WRONG_OBJECT_TYPE,
                format!(
                    "column notation .{name} applied to type {}, which is not a composite type",
                    input.data_type
                ),
            )
            .or_position(position));
        }
        let found = self.field_named(&input, &name);
        let Some(number) = found else {
            let message = match data_type {
                _ if matches!(input.expr, Expr::Row { .. }) && data_type != DataType::Record => {
                    format!("column {data_type}.{name} does not exist")
                }
                DataType::Record => format!("could not identify column \"{name}\" in record data type"),
                _ => format!("column \"{name}\" not found in data type {data_type}"),
            };
            return Err(EngineError::new(SqlState::UNDEFINED_COLUMN, message).or_position(position));
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
        if !is_row(input.data_type.base()) {
            return Err(EngineError::new(
                SqlState::WRONG_OBJECT_TYPE,
                format!("type {} is not composite", input.data_type),
            )
            .or_position(position));
        }
        let Some(shape) = self.shape(&input) else {
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

    /// The fields of a value of a composite type, or of a record whose shape is known.
    pub(super) fn shape(&self, input: &Typed) -> Option<RecordShape> {
        match input.data_type.base() {
            DataType::Record => self.shape_numbered(input.typmod).cloned(),
            of => Some(composite_of(of)?.fields),
        }
    }

    /// The number of the field of this name; `None` if there is none.
    pub(super) fn field_named(&self, input: &Typed, name: &str) -> Option<usize> {
        self.shape(input)?.iter().position(|field| field.name == name)
    }

    /// A field of a record whose shape is known.
    pub(super) fn field_at(&self, input: &Typed, number: usize) -> Typed {
        let shape = self.shape(input).unwrap_or_default();
        let (data_type, typmod) = shape.get(number).map_or((DataType::Unknown, NO_TYPMOD), |field| {
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

/// True for `record` and for composite types.
pub(super) fn is_row(data_type: DataType) -> bool {
    matches!(data_type, DataType::Record | DataType::Composite(_))
}

/// The definition of a composite type.
pub(super) fn composite_of(data_type: DataType) -> Option<CompositeType> {
    definition_of(data_type)?.composite().cloned()
}

/// A row of a relation's columns as a value of this type, if they are its fields: a relation has other columns where a view's
/// query sees only those from before one was added.
fn as_rows_of(row: Typed, row_type: Option<DataType>) -> Typed {
    let Typed {
        expr: Expr::Row {
            fields,
            types,
            of,
            names,
        },
        data_type,
        typmod,
    } = row
    else {
        return row;
    };
    let known = row_type.filter(|of| {
        let composite = composite_of(*of);
        composite.is_some_and(|composite| composite.types().eq(types.iter().copied()))
    });
    Typed {
        expr: Expr::Row {
            fields,
            types,
            of: known.unwrap_or(of),
            names: names.filter(|_| known.is_none()),
        },
        data_type: known.unwrap_or(data_type),
        typmod: match known {
            Some(_) => NO_TYPMOD,
            None => typmod,
        },
    }
}
