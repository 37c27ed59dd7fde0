//! `pg_trigger`: what checks foreign keys and deferrable unique keys. In PostgreSQL these are four triggers a foreign key,
//! two on each table, and one a unique key; here the session checks them itself, and the rows tell which.

use super::Sources;
use super::rows::{NULL, Rows, array, boolean, int2, oid, text};
use clearway_sql::value::{DataType, Value};
use clearway_sql::{CheckTime, ForeignKeyDef, IndexDef, ReferentialAction, TableDef};

/// The bits of `tgtype`: for each row, after what.
const ROW: i16 = 1;
const INSERT: i16 = 4;
const DELETE: i16 = 8;
const UPDATE: i16 = 16;

/// The function that checks a new row of the referencing table; the next one is that for an updated row.
const CHECK_INSERTED: u32 = 1_644;

/// The function that checks a key of a deferrable unique constraint.
const CHECK_UNIQUE: u32 = 1_250;

/// A trigger's function, its kind, and whether its check may be put off.
struct Event {
    function: u32,
    kind: i16,
    is_deferrable: bool,
}

/// True for the functions of these triggers, which no statement can call.
pub(super) fn has_function(oid: u32) -> bool {
    oid == CHECK_UNIQUE || (CHECK_INSERTED..=1_655).contains(&oid)
}

/// The function of an action after a DELETE; that after an UPDATE is the next one.
fn after_delete(action: ReferentialAction) -> u32 {
    match action {
        ReferentialAction::Cascade => 1_646,
        ReferentialAction::Restrict => 1_648,
        ReferentialAction::SetNull => 1_650,
        ReferentialAction::SetDefault => 1_652,
        ReferentialAction::NoAction => 1_654,
    }
}

/// The number of one of a constraint's triggers: one that no relation has, made of the constraint's.
fn trigger_oid(constraint: u32, number: u32) -> u32 {
    1 << 31 | (constraint.wrapping_mul(4).wrapping_add(number) & (u32::MAX >> 1))
}

/// `pg_trigger`
pub(super) fn triggers(sources: &Sources<'_>, rows: &mut Rows) {
    for entry in sources.catalog.tables() {
        for key in &entry.def.foreign_keys {
            of_key(&entry.def, key, rows);
        }
        let indexes = entry.def.indexes.iter();
        for index in indexes.filter(|index| index.check_time.deferrable) {
            of_unique_key(&entry.def, index, rows);
        }
    }
}

fn of_key(table: &TableDef, key: &ForeignKeyDef, rows: &mut Rows) {
    let of_action = |action: ReferentialAction, next: u32, event: i16| Event {
        function: after_delete(action) + next,
        kind: ROW | event,
        is_deferrable: action.is_deferrable(),
    };
    let of_check = |next: u32, event: i16| Event {
        function: CHECK_INSERTED + next,
        kind: ROW | event,
        is_deferrable: true,
    };
    let events = [
        (key.parent, table.oid, 'a', of_action(key.on_delete, 0, DELETE)),
        (key.parent, table.oid, 'a', of_action(key.on_update, 1, UPDATE)),
        (table.oid, key.parent, 'c', of_check(0, INSERT)),
        (table.oid, key.parent, 'c', of_check(1, UPDATE)),
    ];
    for (number, (relation, other, letter, event)) in (0..).zip(events) {
        let number = trigger_oid(key.oid, number);
        Trigger {
            number,
            relation,
            name: format!("RI_ConstraintTrigger_{letter}_{number}"),
            event,
            other,
            index: key.index,
            constraint: key.oid,
            time: key.check_time,
        }
        .push(rows);
    }
}

fn of_unique_key(table: &TableDef, index: &IndexDef, rows: &mut Rows) {
    let number = trigger_oid(index.oid, 0);
    let kind = if index.primary { "PK" } else { "Unique" };
    Trigger {
        number,
        relation: table.oid,
        name: format!("{kind}_ConstraintTrigger_{number}"),
        event: Event {
            function: CHECK_UNIQUE,
            kind: ROW | INSERT | UPDATE,
            is_deferrable: true,
        },
        other: 0,
        index: index.oid,
        // The constraint has its index's number.
        constraint: index.oid,
        time: index.check_time,
    }
    .push(rows);
}

/// A row of `pg_trigger`.
struct Trigger {
    number: u32,
    relation: u32,
    name: String,
    event: Event,
    /// The other table of a foreign key.
    other: u32,
    index: u32,
    constraint: u32,
    time: CheckTime,
}

impl Trigger {
    fn push(self, rows: &mut Rows) {
        let (event, time) = (self.event, self.time);
        rows.push([
            ("oid", oid(self.number)),
            ("tgrelid", oid(self.relation)),
            ("tgparentid", oid(0)),
            ("tgname", text(&self.name)),
            ("tgfoid", oid(event.function)),
            ("tgtype", int2(event.kind)),
            ("tgenabled", text("O")),
            ("tgisinternal", boolean(true)),
            ("tgconstrrelid", oid(self.other)),
            ("tgconstrindid", oid(self.index)),
            ("tgconstraint", oid(self.constraint)),
            ("tgdeferrable", boolean(event.is_deferrable && time.deferrable)),
            (
                "tginitdeferred",
                boolean(event.is_deferrable && time.initially_deferred),
            ),
            ("tgnargs", int2(0)),
            ("tgattr", array(DataType::Int2Vector, std::iter::empty())),
            ("tgargs", Value::Bytes(Box::default())),
            ("tgqual", NULL),
            ("tgoldtable", NULL),
            ("tgnewtable", NULL),
        ]);
    }
}
