//! Statements, one by one, errors with their SQLSTATEs included; a file a subject.

#[path = "../common/mod.rs"]
mod common;

mod activity;
mod aggregates;
mod alter_table;
mod arrays;
mod catalog_functions;
mod catalogs;
mod changes;
mod check_constraints;
mod comments;
mod computed_indexes;
mod conflict_select;
mod copy;
mod date_settings;
mod definitions;
mod explain;
mod folding;
mod indexes_and_sequences;
mod json_records;
mod late_values;
mod merge_joins;
mod names;
mod network;
mod pages;
mod plan_log;
mod plans;
mod prepared;
mod registered;
mod roles;
mod schemas;
mod select;
mod server_counts;
mod settings;
mod statements;
mod temporary;
mod transactions;
mod views;
mod with;

use common::Fixture;

/// A shop with three items, and a log.
fn shop() -> Fixture {
    Fixture::new(
        "create table items (id int primary key, name varchar(20) not null, price numeric(8,2), stock smallint default 0);
         insert into items values (1, 'apple', 0.50, 100), (2, 'bread', 2.25, 10), (3, 'cheese', 7.80, null);
         create table log (at int, what text)",
    )
}
