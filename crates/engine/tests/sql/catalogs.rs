//! The tables of the system: what they say of users' tables and of themselves.

use crate::common::{Fixture, query, run};

/// A table with everything that there is: a serial column, defaults, constraints, an index.
fn orders() -> Fixture {
    Fixture::new(
        "create table orders (
           id serial primary key,
           code varchar(10) not null default 'x',
           price numeric(8,2),
           at timestamptz(3),
           unique (code, price));
         create index orders_at on orders (at, \"id\");
         create table \"Odd name\" (\"A b\" int primary key)",
    )
}

#[test]
fn every_system_table_can_be_read_and_describes_itself() {
    let fixture = orders();
    let mut session = fixture.session();
    let listed = query(
        &mut session,
        "select relnamespace, relname, relnatts from pg_class where relkind in ('r', 'v') and relnamespace <> 2200",
    );
    let mut count = 0;
    for table in listed.split(", ") {
        let [schema, name, columns] = table.split('|').collect::<Vec<_>>()[..] else {
            panic!("{table}");
        };
        let schema = if schema == "11" {
            "pg_catalog"
        } else {
            "information_schema"
        };
        let read = run(&mut session, &format!("select * from {schema}.{name}"));
        assert!(!read.starts_with("ERROR"), "{schema}.{name}: {read}");
        let number = format!("select oid from pg_class where relname = '{name}' and relkind in ('r', 'v')");
        let number = query(&mut session, &number);
        let described = format!("select count(*) from pg_attribute where attrelid = {number} and attnum > 0");
        let described = query(&mut session, &described);
        assert_eq!(described, columns, "{name}");
        count += 1;
    }
    assert!(count > 120, "{count} system tables");
}

#[test]
fn system_tables_have_the_numbers_of_postgresql() {
    orders().play(
        "alice: select oid, relkind, relnamespace, relam from pg_class where relname = 'pg_class' => 1259|r|11|2
         alice: select oid from pg_class where relname in ('pg_attribute', 'pg_type', 'pg_proc', 'pg_namespace') order by oid => 1247, 1249, 1255, 2615
         alice: select relkind, relnamespace from pg_class where relname = 'columns' => v|13207
         alice: select attnum, attname, atttypid, attnotnull from pg_attribute where attrelid = 1259 and attnum between 0 and 2 => 1|oid|26|t, 2|relname|19|t
         alice: select oid, nspname from pg_namespace order by oid => 11|pg_catalog, 99|pg_toast, 2200|public, 13207|information_schema
         alice: select * from information_schema.pg_class => ERROR 42P01
         alice: select count(*) from columns => ERROR 42P01
         alice: select count(*) from pg_catalog.columns => ERROR 42P01
         alice: delete from pg_class => ERROR 42809",
    );
}

#[test]
fn tables_indexes_and_sequences_are_relations() {
    orders().play(
        "alice: select relname, relkind, relnatts, relhasindex, relam, relreplident from pg_class where relnamespace = 2200 order by relname => Odd name|r|1|t|2|d, Odd name_pkey|i|1|f|403|n, orders|r|4|t|2|d, orders_at|i|2|f|403|n, orders_code_price_key|i|2|f|403|n, orders_id_seq|S|3|f|0|n, orders_pkey|i|1|f|403|n
         alice: select reltuples, relpages from pg_class where relname = 'orders' => 0|0
         alice: insert into orders (price) values (1), (2) => INSERT 0 2
         alice: vacuum orders => VACUUM
         alice: select reltuples, relpages from pg_class where relname = 'orders' => 2|1
         alice: select last_value, is_called from orders_id_seq => 2|t
         alice: select schemaname, sequencename, min_value, max_value, last_value from pg_sequences => public|orders_id_seq|1|2147483647|2
         alice: select seqtypid, seqstart, seqincrement, seqmax, seqcycle from pg_sequence => 23|1|1|2147483647|f
         alice: select tablename, hasindexes from pg_tables where schemaname = 'public' order by 1 => Odd name|t, orders|t",
    );
}

#[test]
fn columns_have_types_defaults_and_constraints() {
    orders().play(
        "alice: select attname, atttypid, atttypmod, attlen, attbyval, attalign, attstorage, attnotnull, atthasdef, attcollation from pg_attribute where attrelid = 16385 order by attnum => 
         alice: select contype, conname, condeferrable from pg_constraint order by conname => p|Odd name_pkey|f, u|orders_code_price_key|f, p|orders_pkey|f
         alice: select indisunique, indisprimary, indnatts, indisvalid from pg_index order by indexrelid => t|t|1|t, t|f|2|t, f|f|2|t, t|t|1|t
         alice: select c.relname, i.indkey, i.indclass, i.indcollation, i.indoption from pg_index i join pg_class c on c.oid = i.indexrelid where c.relname in ('orders_at', 'orders_code_price_key') order by 1 => orders_at|4 1|3127 1978|0 0|0 0, orders_code_price_key|2 3|3126 3125|100 0|0 0
         alice: select conname, conkey, confkey is null from pg_constraint order by 1 => Odd name_pkey|{1}|t, orders_code_price_key|{2,3}|t, orders_pkey|{1}|t
         alice: select a.attname from pg_index i join pg_attribute a on a.attrelid = i.indrelid and a.attnum = any(i.indkey) join pg_class c on c.oid = i.indrelid where i.indisprimary and c.relname = 'orders' => id
         alice: create table packed (a int) with (fillfactor = 70) => CREATE TABLE
         alice: select reloptions from pg_class where relname = 'packed' => {fillfactor=70}
         alice: drop table packed => DROP TABLE
         alice: select indexdef from pg_indexes where indexname = 'orders_at' => CREATE INDEX orders_at ON public.orders USING btree (at, id)
         alice: select indexdef from pg_indexes where tablename = 'Odd name' => CREATE UNIQUE INDEX \"Odd name_pkey\" ON public.\"Odd name\" USING btree (\"A b\")
         alice: select adnum from pg_attrdef order by adnum => 1, 2
         alice: select deptype, refobjsubid from pg_depend where classid = 2604 order by 1, 2 => a|1, a|2, n|0
         alice: select deptype, count(*) from pg_depend group by deptype order by 1 => a|9, i|7, n|4",
    );
}

#[test]
fn what_a_transaction_has_made_is_seen_by_it_alone() {
    orders().play(
        "alice: begin => BEGIN
         alice: create table fresh (a int primary key) => CREATE TABLE
         alice: select relname from pg_class where relname like 'fresh%' order by 1 => fresh, fresh_pkey
         bob:   select relname from pg_class where relname like 'fresh%' =>
         alice: rollback => ROLLBACK
         alice: select relname from pg_class where relname like 'fresh%' =>",
    );
}

#[test]
fn types_have_the_numbers_of_postgresql() {
    orders().play(
        "alice: select oid, typname, typlen, typbyval, typcategory, typispreferred, typalign, typstorage, typcollation from pg_type where typname in ('int4', 'text', 'name', 'numeric') order by oid => 19|name|64|f|S|f|c|p|950, 23|int4|4|t|N|f|i|p|0, 25|text|-1|f|S|t|i|x|100, 1700|numeric|-1|f|N|f|i|m|0
         alice: select oid, opcname from pg_opclass where opcintype = 23 => 1978|int4_ops
         alice: select amname, amtype from pg_am order by oid => heap|t, btree|i
         alice: select oid, oprresult, oprcom, oprnegate from pg_operator where oprname = '=' and oprleft = 23 and oprright = 23 => 96|16|96|518
         alice: select oid, prorettype, pronargs, proargtypes from pg_proc where proname = 'lower' => 870|25|1|25
         alice: select a.typname, e.typname, e.typarray from pg_type a join pg_type e on e.oid = a.typelem where a.typname = '_int4' => _int4|int4|1007
         alice: select enumvals from pg_settings where name = 'bytea_output' => {hex,escape}
         alice: select current_schemas(true), current_schemas(false) => {pg_catalog,public}|{public}
         alice: select castcontext from pg_cast where castsource = 23 and casttarget = 20 => i",
    );
}

#[test]
fn the_information_schema_tells_of_tables() {
    orders().play(
        "alice: select table_schema, table_name, table_type, is_insertable_into from information_schema.tables where table_schema = 'public' order by 2 => public|Odd name|BASE TABLE|YES, public|orders|BASE TABLE|YES
         alice: select table_type from information_schema.tables where table_name = 'pg_class' => BASE TABLE
         alice: select column_name, ordinal_position, column_default, is_nullable, data_type, character_maximum_length, numeric_precision, numeric_scale, datetime_precision, udt_name from information_schema.columns where table_name = 'orders' order by 2 => id|1|nextval('orders_id_seq'::regclass)|NO|integer||32|0||int4, code|2|'x'::character varying|NO|character varying|10||||varchar, price|3||YES|numeric||8|2||numeric, at|4||YES|timestamp with time zone||||3|timestamptz
         alice: select constraint_name, constraint_type from information_schema.table_constraints where table_name = 'orders' and constraint_type <> 'CHECK' order by 1 => orders_code_price_key|UNIQUE, orders_pkey|PRIMARY KEY
         alice: select column_name, ordinal_position from information_schema.key_column_usage where constraint_name = 'orders_code_price_key' order by 2 => code|1, price|2
         alice: select check_clause from information_schema.check_constraints where constraint_schema = 'public' order by 1 => \"A b\" IS NOT NULL, code IS NOT NULL, id IS NOT NULL
         alice: select schema_name from information_schema.schemata order by 1 => information_schema, pg_catalog, pg_toast, public
         alice: select sequence_name, data_type, maximum_value from information_schema.sequences => orders_id_seq|integer|2147483647
         alice: select count(*) from information_schema.referential_constraints => 0
         alice: set search_path to '' => SET
         alice: select column_default from information_schema.columns where table_name = 'orders' and column_name = 'id' => nextval('public.orders_id_seq'::regclass)",
    );
}
