//! `pg_index`, `pg_constraint` and `pg_depend`: what belongs to a table.

use super::Sources;
use super::columns::{default_oid, has_default};
use super::dependency::{PG_ATTRDEF_OID, PG_CLASS_OID, PG_CONSTRAINT_OID, PG_NAMESPACE_OID, depends};
use super::operator_classes::{class_named, class_of};
use super::operators::equality;
use super::rows::{NULL, Rows, array, boolean, int2, int4, oid, text};
use super::server::C_COLLATION_OID;
use super::types::row_of;
use super::views;
use crate::catalog::owned_sequences::owner_of;
use clearway_sql::foreign_key::{KeyTypes, key_types};
use clearway_sql::value::user_type::{DomainCheck, UserType};
use clearway_sql::value::{DataType, Value};
use clearway_sql::{
    CheckTime, ColumnDefault, ForeignKeyDef, IndexDef, IndexStage, IndexedValue, ObjectAddress,
    ReferentialAction, SchemaRef, TableDef, domain_condition, domain_table, types_by_name,
};

/// The attributes' numbers of an index's columns, those of INCLUDE behind the key's; 0 for an expression.
fn numbers<'d>(table: &'d TableDef, index: &'d IndexDef) -> impl Iterator<Item = Value> + 'd {
    let keys = (0..index.keys.len()).map(|at| index.column(at));
    let columns = keys.chain(index.included.iter().map(|column| Some(*column)));
    columns.map(|column| {
        let number = column.map_or(0, |column| table.attribute_number(column));
        int2(number.cast_signed())
    })
}

/// DESC and NULLS FIRST of each part of a key, as bits.
fn options(index: &IndexDef) -> impl Iterator<Item = Value> {
    let options = index.keys.iter().map(|key| &key.options);
    options.map(|options| int2(i16::from(options.descending) | i16::from(options.nulls_first) << 1))
}

/// The texts of a key's expressions, as a list.
fn expressions(index: &IndexDef) -> Value {
    let texts = index.keys.iter().filter_map(|key| match &key.value {
        IndexedValue::Column(_) => None,
        IndexedValue::Expression(kept) => Some(types_by_name(&kept.sql)),
    });
    match texts.collect::<Vec<_>>() {
        texts if texts.is_empty() => NULL,
        texts => text(&texts.join(", ")),
    }
}

fn collations(index: &IndexDef) -> impl Iterator<Item = Value> {
    let keys = index.types.iter().zip(&index.keys);
    keys.map(|(data_type, key)| match key.options.collation.as_deref() {
        Some("C" | "POSIX") => oid(C_COLLATION_OID),
        _ => oid(row_of(*data_type).collation),
    })
}

fn classes(index: &IndexDef) -> impl Iterator<Item = Value> {
    let keys = index.types.iter().zip(&index.keys);
    keys.map(|(data_type, key)| {
        let class = match &key.options.class {
            Some(name) => class_named(name),
            None => class_of(*data_type),
        };
        oid(class.unwrap_or(0))
    })
}

/// `pg_index`
pub(super) fn indexes(sources: &Sources<'_>, rows: &mut Rows) {
    for entry in sources.catalog.tables() {
        for (index, stage) in entry.def.indexes_and_stages() {
            let width = index.keys.len() as i16;
            rows.push([
                ("indexrelid", oid(index.oid)),
                ("indrelid", oid(entry.def.oid)),
                ("indnatts", int2(width + index.included.len() as i16)),
                ("indnkeyatts", int2(width)),
                ("indisunique", boolean(index.unique)),
                ("indnullsnotdistinct", boolean(index.nulls_not_distinct)),
                ("indisprimary", boolean(index.primary)),
                ("indisexclusion", boolean(false)),
                ("indimmediate", boolean(!index.check_time.deferrable)),
                ("indisclustered", boolean(index.marks.clustered)),
                ("indisvalid", boolean(stage.is_none())),
                ("indcheckxmin", boolean(false)),
                (
                    "indisready",
                    boolean(matches!(stage, None | Some(IndexStage::Written))),
                ),
                ("indislive", boolean(stage != Some(IndexStage::Dead))),
                ("indisreplident", boolean(index.marks.replica_identity)),
                ("indkey", array(DataType::Int2Vector, numbers(&entry.def, index))),
                ("indcollation", array(DataType::OidVector, collations(index))),
                ("indclass", array(DataType::OidVector, classes(index))),
                ("indoption", array(DataType::Int2Vector, options(index))),
                ("indexprs", expressions(index)),
                (
                    "indpred",
                    index
                        .predicate
                        .as_ref()
                        .map_or(NULL, |kept| text(&types_by_name(&kept.sql))),
                ),
            ]);
        }
    }
}

/// The number of the constraint that an index enforces: the index's own, which no other constraint has.
pub(super) fn constraint_oid(index: &IndexDef) -> u32 {
    index.oid
}

/// A row of `pg_constraint`.
struct Constraint<'d> {
    oid: u32,
    name: &'d str,
    kind: &'d str,
    validated: bool,
    index: u32,
    without_children: bool,
    columns: Vec<Value>,
    condition: Value,
    time: CheckTime,
    reference: Option<&'d ForeignKeyDef>,
    /// Of a foreign key: the operators between both sides, and of each side with itself.
    operators: [Value; 3],
    /// The domain that it is of; 0 if it is of a table.
    domain: u32,
}

impl Constraint<'_> {
    fn push(self, table: &TableDef, rows: &mut Rows) {
        let key = self.reference;
        let action = |action: fn(&ForeignKeyDef) -> ReferentialAction| {
            text(&key.map_or(' ', |key| action(key).letter()).to_string())
        };
        let numbers = |columns: &[u16]| match columns.is_empty() {
            true => NULL,
            false => array(
                DataType::array_of(DataType::Int2),
                columns.iter().map(|number| int2(number.cast_signed())),
            ),
        };
        let [between, of_parent, own] = self.operators;
        rows.push([
            ("oid", oid(self.oid)),
            ("conname", text(self.name)),
            ("connamespace", oid(table.schema.oid)),
            ("contype", text(self.kind)),
            ("condeferrable", boolean(self.time.deferrable)),
            ("condeferred", boolean(self.time.initially_deferred)),
            ("convalidated", boolean(self.validated)),
            ("conrelid", oid(table.oid)),
            ("contypid", oid(self.domain)),
            ("conindid", oid(self.index)),
            ("conparentid", oid(0)),
            ("confrelid", oid(key.map_or(0, |key| key.parent))),
            ("confupdtype", action(|key| key.on_update)),
            ("confdeltype", action(|key| key.on_delete)),
            (
                "confmatchtype",
                text(match key {
                    None => " ",
                    Some(key) if key.is_full => "f",
                    Some(_) => "s",
                }),
            ),
            ("conislocal", boolean(true)),
            ("coninhcount", int4(0)),
            ("connoinherit", boolean(self.without_children)),
            (
                "conkey",
                match self.columns.is_empty() {
                    true => NULL,
                    false => array(DataType::array_of(DataType::Int2), self.columns.into_iter()),
                },
            ),
            ("confkey", key.map_or(NULL, |key| numbers(&key.parent_columns))),
            ("conpfeqop", between),
            ("conppeqop", of_parent),
            ("conffeqop", own),
            (
                "confdelsetcols",
                key.map_or(NULL, |key| numbers(&key.on_delete_columns)),
            ),
            ("conexclop", NULL),
            ("conbin", self.condition),
        ]);
    }
}

/// `pg_constraint`: primary keys, unique constraints, CHECK constraints and foreign keys.
pub(super) fn constraints(sources: &Sources<'_>, rows: &mut Rows) {
    for entry in sources.catalog.tables() {
        for index in entry.def.indexes.iter().filter(|index| index.constraint) {
            Constraint {
                oid: constraint_oid(index),
                name: &index.name,
                kind: if index.primary { "p" } else { "u" },
                validated: true,
                index: index.oid,
                without_children: true,
                columns: numbers(&entry.def, index).collect(),
                condition: NULL,
                time: index.check_time,
                reference: None,
                operators: [NULL; 3],
                domain: 0,
            }
            .push(&entry.def, rows);
        }
        for check in &entry.def.checks {
            let columns = check.columns().into_iter();
            let columns = columns.map(|column| int2(entry.def.attribute_number(column).cast_signed()));
            Constraint {
                oid: check.oid,
                name: &check.name,
                kind: "c",
                validated: check.validated,
                index: 0,
                without_children: false,
                columns: columns.collect(),
                condition: text(&check.sql),
                time: CheckTime::default(),
                reference: None,
                operators: [NULL; 3],
                domain: 0,
            }
            .push(&entry.def, rows);
        }
        for key in &entry.def.foreign_keys {
            foreign_key(sources, &entry.def, key, rows);
        }
    }
    for found in sources.catalog.user_types() {
        for check in found.domain().iter().flat_map(|domain| &domain.checks) {
            push_of_domain(&found, check, rows);
        }
    }
}

fn push_of_domain(found: &UserType, check: &DomainCheck, rows: &mut Rows) {
    let mut table = domain_table(DataType::Unknown, -1);
    table.schema = SchemaRef::new(found.schema_oid, &found.schema);
    Constraint {
        oid: check.oid,
        name: &check.name,
        kind: "c",
        validated: check.validated,
        index: 0,
        without_children: false,
        columns: Vec::new(),
        condition: text(&domain_condition(&check.sql)),
        time: CheckTime::default(),
        reference: None,
        operators: [NULL; 3],
        domain: found.oid.get(),
    }
    .push(&table, rows);
}

fn foreign_key(sources: &Sources<'_>, table: &TableDef, key: &ForeignKeyDef, rows: &mut Rows) {
    let Some(parent) = sources.catalog.table(key.parent) else {
        return;
    };
    let types = |table: &TableDef, places: Vec<u16>| {
        let places = places.into_iter();
        let types = places.map(|place| table.columns[usize::from(place)].data_type);
        types.collect::<Vec<_>>()
    };
    let own = types(table, key.places(table));
    let referenced = types(&parent.def, key.parent_places(&parent.def));
    let operators = |pairs: Vec<(DataType, DataType)>| {
        let numbers = pairs.into_iter().map(|(left, right)| oid(equality(left, right)));
        array(DataType::array_of(DataType::Oid), numbers)
    };
    let pairs = referenced.iter().copied().zip(own.iter().copied());
    let compared: Vec<_> = pairs
        .map(|(parent, own)| match key_types(own, parent) {
            KeyTypes::Comparable => (parent, own),
            KeyTypes::Converted | KeyTypes::Incompatible => (parent, parent),
        })
        .collect();
    let same = |types: &[DataType]| types.iter().map(|one| (*one, *one)).collect();
    let columns = key.columns.iter().map(|number| int2(number.cast_signed()));
    Constraint {
        oid: key.oid,
        name: &key.name,
        kind: "f",
        validated: key.validated,
        index: key.index,
        without_children: true,
        columns: columns.collect(),
        condition: NULL,
        time: key.check_time,
        reference: Some(key),
        operators: [
            operators(compared),
            operators(same(&referenced)),
            operators(same(&own)),
        ],
        domain: 0,
    }
    .push(table, rows);
}

/// The types of users that columns have, and the relations that the types of rows belong to: a dump makes one after the
/// other.
fn types_of_columns(sources: &Sources<'_>, rows: &mut Rows) {
    let types = sources.catalog.user_types().into_iter();
    for found in types.chain(sources.catalog.row_types()) {
        let of_type = (ObjectAddress::PG_TYPE, found.oid.get(), 0);
        if let Some(table) = found.composite().and_then(|composite| composite.table) {
            depends(rows, of_type, (PG_CLASS_OID, table, 0), "i");
        }
        if let Some(array) = found.data_type().array_type() {
            let of_array = (ObjectAddress::PG_TYPE, array.oid(), 0);
            depends(rows, of_array, of_type, "i");
        }
    }
    let relations = sources.catalog.tables().into_iter();
    for entry in relations.chain(sources.catalog.views()) {
        for (place, column) in (0..).zip(&entry.def.columns) {
            let element = column.data_type.element().unwrap_or(column.data_type);
            if element.user_oid().is_some() {
                let number = i32::from(entry.def.attribute_number(place));
                let on = (ObjectAddress::PG_TYPE, column.data_type.oid(), 0);
                depends(rows, (PG_CLASS_OID, entry.def.oid, number), on, "n");
            }
        }
    }
}

/// `pg_depend`: what goes with what when it is dropped.
pub(super) fn dependencies(sources: &Sources<'_>, rows: &mut Rows) {
    views::dependencies(sources, rows);
    for found in sources.catalog.user_types() {
        let of_type = (ObjectAddress::PG_TYPE, found.oid.get(), 0);
        depends(rows, of_type, (PG_NAMESPACE_OID, found.schema_oid, 0), "n");
        let elements = found
            .parts()
            .into_iter()
            .map(|part| part.element().unwrap_or(part));
        for part in elements.filter_map(DataType::user_oid) {
            depends(rows, of_type, (ObjectAddress::PG_TYPE, part.get(), 0), "n");
        }
    }
    types_of_columns(sources, rows);
    for entry in sources.catalog.sequences() {
        let sequence = (PG_CLASS_OID, entry.def.oid, 0);
        depends(rows, sequence, (PG_NAMESPACE_OID, entry.def.schema.oid, 0), "n");
        if let Some(owner) = owner_of(&entry) {
            let column = (PG_CLASS_OID, owner.table, i32::from(owner.attribute));
            depends(rows, sequence, column, if owner.identity { "i" } else { "a" });
        }
    }
    for entry in sources.catalog.tables() {
        let schema = (PG_NAMESPACE_OID, entry.def.schema.oid, 0);
        let table = entry.def.oid;
        let column = |number: usize| {
            let number = entry.def.attribute_number(number as u16);
            (PG_CLASS_OID, table, i32::from(number))
        };
        depends(rows, (PG_CLASS_OID, table, 0), schema, "n");
        for (number, definition) in entry.def.columns.iter().enumerate() {
            if has_default(definition) {
                let default = (PG_ATTRDEF_OID, default_oid(table, number), 0);
                depends(rows, default, column(number), "a");
                let named = definition.default.iter().flat_map(ColumnDefault::relations);
                for relation in named {
                    depends(rows, default, (PG_CLASS_OID, relation, 0), "n");
                }
            }
        }
        for check in &entry.def.checks {
            for number in check.columns() {
                let constraint = (PG_CONSTRAINT_OID, check.oid, 0);
                depends(rows, constraint, column(usize::from(number)), "a");
                depends(rows, constraint, column(usize::from(number)), "n");
            }
        }
        for key in &entry.def.foreign_keys {
            let constraint = (PG_CONSTRAINT_OID, key.oid, 0);
            for number in &key.columns {
                depends(rows, constraint, (PG_CLASS_OID, table, i32::from(*number)), "a");
            }
            for number in &key.parent_columns {
                depends(
                    rows,
                    constraint,
                    (PG_CLASS_OID, key.parent, i32::from(*number)),
                    "n",
                );
            }
            depends(rows, constraint, (PG_CLASS_OID, key.index, 0), "n");
        }
        for index in entry.def.all_indexes() {
            let relation = (PG_CLASS_OID, index.oid, 0);
            let on_columns = match index.constraint {
                true => (PG_CONSTRAINT_OID, constraint_oid(index), 0),
                false => relation,
            };
            let mut read = Vec::new();
            index.each_read_column(|number| read.push(number));
            read.extend(&index.included);
            read.sort_unstable();
            read.dedup();
            for number in read {
                depends(rows, on_columns, column(usize::from(number)), "a");
            }
            if index.constraint {
                depends(rows, relation, on_columns, "i");
            }
        }
    }
}
