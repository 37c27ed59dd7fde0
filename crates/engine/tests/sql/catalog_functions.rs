//! Functions about the catalog: definitions, names, visibility, privileges, sizes, sequences.

use crate::common::Fixture;

fn orders() -> Fixture {
    Fixture::new(
        "create table orders (id serial primary key, code varchar(10) default 'x', price numeric(8,2), unique (code, price));
         create index orders_price on orders (price)",
    )
}

#[test]
fn definitions_are_told_as_sql() {
    orders().play(
        "alice: select pg_get_indexdef(oid) from pg_class where relname = 'orders_price' => CREATE INDEX orders_price ON public.orders USING btree (price)
         alice: select pg_get_indexdef(oid, 0, true) from pg_class where relname = 'orders_price' => CREATE INDEX orders_price ON orders USING btree (price)
         alice: select pg_get_indexdef(oid, 2, true), pg_get_indexdef(oid, 3, false) from pg_class where relname = 'orders_code_price_key' => price|
         alice: select conname, pg_get_constraintdef(oid) from pg_constraint order by 1 => orders_code_price_key|UNIQUE (code, price), orders_pkey|PRIMARY KEY (id)
         alice: select pg_get_function_arguments(oid), pg_get_function_result(oid) from pg_proc where proname in ('lower', 'repeat', 'pg_backend_pid') order by 1 => |integer, text|text, text, integer|text
         alice: select pg_get_indexdef(1), pg_get_constraintdef(1, true), pg_get_viewdef(1259) => ||
         alice: select attname, format_type(atttypid, atttypmod) from pg_attribute where attname in ('code', 'price') and attnum < 4 order by 1, 2 => code|character varying(10), code|character varying(10), price|numeric(8,2), price|numeric(8,2), price|numeric(8,2)
         alice: select pg_get_serial_sequence('orders', 'id'), pg_get_serial_sequence('public.orders', 'code') => public.orders_id_seq|
         alice: select pg_get_serial_sequence('orders', 'nothing') => ERROR 42703
         alice: select pg_get_serial_sequence('nothing', 'id') => ERROR 42P01
         alice: select obj_description(1259, 'pg_class') is null, col_description(1259, 1) is null => t|t",
    );
}

#[test]
fn what_the_search_path_leads_to_is_visible() {
    orders().play(
        "alice: select relname, pg_table_is_visible(oid) from pg_class where relname in ('orders', 'orders_pkey', 'orders_id_seq', 'pg_class', 'columns') order by 1 => columns|f, orders|t, orders_id_seq|t, orders_pkey|t, pg_class|t
         alice: select pg_table_is_visible(1) is null, pg_type_is_visible(23), pg_function_is_visible(870) => t|t|t
         alice: set search_path to pg_catalog => SET
         alice: select relname, pg_table_is_visible(oid) from pg_class where relname in ('orders', 'pg_class') order by 1 => orders|f, pg_class|t",
    );
}

#[test]
fn the_one_user_may_do_everything_with_what_exists() {
    orders().play(
        "alice: select has_table_privilege('orders', 'select, INSERT'), has_table_privilege(1, 'select') is null => t|t
         alice: select has_table_privilege('orders', 'fly') => ERROR 22023
         alice: select has_table_privilege('nothing', 'select') => ERROR 42P01
         alice: select has_table_privilege('nobody', 'orders', 'select') => ERROR 42704
         alice: select has_schema_privilege('public', 'create'), has_schema_privilege(current_user, 'pg_catalog', 'usage') => t|t
         alice: select has_schema_privilege('nowhere', 'usage') => ERROR 3F000
         alice: select has_database_privilege(current_database(), 'connect') => t
         alice: select has_database_privilege('nowhere', 'connect') => ERROR 3D000
         alice: select has_column_privilege('orders', 'code', 'update') => t
         alice: select has_column_privilege('orders', 'colour', 'update') => ERROR 42703
         alice: select pg_has_role(10, 'member'), pg_get_userbyid(99) => t|unknown (OID=99)",
    );
}

#[test]
fn sizes_follow_the_pages() {
    orders().play(
        "alice: select pg_relation_size('orders'), pg_table_size('orders'), pg_relation_size('orders', 'vm') => 0|0|0
         alice: insert into orders (price) values (1) => INSERT 0 1
         alice: select pg_size_pretty(pg_relation_size('orders')) => 8192 bytes
         alice: select pg_total_relation_size('orders') = pg_relation_size('orders') + pg_indexes_size('orders') => t
         alice: select pg_database_size(current_database()) >= pg_total_relation_size('orders') => t
         alice: select pg_relation_size('nothing') => ERROR 42P01
         alice: select pg_relation_size('orders', 'spoon') => ERROR 22023
         alice: select pg_relation_size(1) is null => t",
    );
}

#[test]
fn sequences_tell_and_take_numbers() {
    orders().play(
        "alice: select currval('orders_id_seq') => ERROR 55000
         alice: select lastval() => ERROR 55000
         alice: insert into orders (price) values (1), (2) => INSERT 0 2
         alice: select currval('orders_id_seq'), lastval() => 2|2
         bob:   select currval('orders_id_seq') => ERROR 55000
         alice: select nextval('public.orders_id_seq') => 3
         bob:   select nextval('orders_id_seq') => 4
         alice: select currval('orders_id_seq') => 3
         alice: select setval('orders_id_seq', 10) => 10
         alice: select currval('orders_id_seq'), lastval() => 10|10
         bob:   insert into orders (price) values (3) returning id => 11
         alice: select setval(pg_get_serial_sequence('orders', 'id'), 20, false) => 20
         alice: insert into orders (price) values (4) returning id => 20
         alice: select pg_sequence_last_value('orders_id_seq') => 20
         alice: select setval('orders_id_seq', 0) => ERROR 22003
         alice: select nextval('orders') => ERROR 42809
         alice: select nextval('nothing') => ERROR 42P01
         alice: begin read only => BEGIN
         alice: select nextval('orders_id_seq') => ERROR 25006
         alice: rollback => ROLLBACK
         alice: discard all => DISCARD ALL
         alice: select lastval() => ERROR 55000",
    );
}

#[test]
fn texts_and_names_are_quoted() {
    orders().play(
        "alice: select quote_ident('Order'), quote_ident('id'), quote_literal('it''s'), quote_nullable(null) => \"Order\"|id|'it''s'|NULL
         alice: select pg_encoding_to_char(6), pg_char_to_encoding('utf-8'), pg_my_temp_schema(), inet_client_addr() is null => UTF8|6|0|t
         alice: select pg_postmaster_start_time() <= now(), pg_conf_load_time() <= now() => t|t",
    );
}

/// The questions of psql and of drivers, which join the catalogs.
#[test]
fn catalogs_are_joined() {
    orders().play(
        "alice: select n.nspname, c.relname, pg_get_userbyid(c.relowner) = current_user from pg_catalog.pg_class c left join pg_catalog.pg_namespace n on n.oid = c.relnamespace where c.relkind in ('r', 'p') and n.nspname <> 'pg_catalog' and pg_catalog.pg_table_is_visible(c.oid) order by 1, 2 => public|orders|t
         alice: select c2.relname, i.indisprimary, pg_catalog.pg_get_constraintdef(con.oid, true) from pg_catalog.pg_class c, pg_catalog.pg_class c2, pg_catalog.pg_index i left join pg_catalog.pg_constraint con on (conrelid = i.indrelid and conindid = i.indexrelid and contype in ('p', 'u', 'x')) where c.relname = 'orders' and c.oid = i.indrelid and i.indexrelid = c2.oid order by 2 desc, 1 => orders_pkey|t|PRIMARY KEY (id), orders_code_price_key|f|UNIQUE (code, price), orders_price|f|
         alice: select a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull from pg_attribute a where a.attrelid = (select oid from pg_class where relname = 'orders') and a.attnum > 0 and not a.attisdropped order by a.attnum => id|integer|t, code|character varying(10)|f, price|numeric(8,2)|f
         alice: select t.oid, typarray from pg_type t join pg_namespace ns on typnamespace = ns.oid where typname = 'hstore' =>
         alice: select count(*) from pg_proc p join pg_type t on t.oid = p.prorettype where p.proname = 'lower' => 1
         alice: select relname from pg_class where oid in (select indexrelid from pg_index where indisprimary) => orders_pkey",
    );
}

/// The question of pgbench at the start of a run: the place of its table on the search path, and its partitions.
#[test]
fn the_question_of_pgbench_runs_as_sql() {
    Fixture::new("create table pgbench_accounts (aid int primary key)").play(
        "alice: select o.n, p.partstrat, pg_catalog.count(i.inhparent) from pg_catalog.pg_class as c join pg_catalog.pg_namespace as n on (n.oid = c.relnamespace) cross join lateral (select pg_catalog.array_position(pg_catalog.current_schemas(true), n.nspname)) as o(n) left join pg_catalog.pg_partitioned_table as p on (p.partrelid = c.oid) left join pg_catalog.pg_inherits as i on (c.oid = i.inhparent) where c.relname = 'pgbench_accounts' and o.n is not null group by 1, 2 order by 1 asc limit 1 => 2||0",
    );
}

/// The question of a driver: which types are arrays of which.
#[test]
fn a_driver_learns_the_arrays() {
    orders().play(
        "alice: select count(*) > 10 from (select b.oid, b.typarray from pg_catalog.pg_type a left join pg_catalog.pg_type b on b.oid = a.typelem where a.typcategory = 'A' group by b.oid, b.typarray order by b.oid) as arrays => t",
    );
}

#[test]
fn names_lead_to_objects_and_back() {
    orders().play(
        "alice: select to_regclass('orders'), to_regclass('nothing') is null, to_regtype('integer'), to_regtype('nothing') is null, to_regnamespace('public'), to_regproc('version') => orders|t|integer|t|public|version
         alice: select pg_typeof(1), pg_typeof('a'), pg_typeof(1.5), pg_typeof(array[1]) => integer|unknown|numeric|integer[]
         alice: select relname from pg_class where oid = 'public.orders'::regclass => orders
         alice: select typinput, typoutput from pg_type where oid = 'int4'::regtype => int4in|int4out
         alice: select oid from pg_type where typinput = 'array_in'::regproc and typname = '_int4' => 1007
         alice: select nextval('orders_id_seq'::regclass), pg_relation_size('orders'::regclass) => 1|0
         alice: select data_type from pg_sequences => integer
         alice: select pg_relation_is_publishable('orders'::regclass), pg_relation_is_publishable('pg_class'::regclass), pg_relation_is_publishable(1) is null => t|f|t
         alice: select a.attname, (select pg_catalog.pg_get_expr(d.adbin, d.adrelid, true) from pg_catalog.pg_attrdef d where d.adrelid = a.attrelid and d.adnum = a.attnum and a.atthasdef) from pg_catalog.pg_attribute a where a.attrelid = 'orders'::regclass and a.attnum = 1 => id|nextval('orders_id_seq'::regclass)
         alice: select relacl is null from pg_class where relname = 'orders' => t
         alice: select typname as name, oid, typarray as array_oid, oid::regtype::text as regtype, typdelim as delimiter from pg_type t where t.oid = to_regtype('int4') order by t.oid => int4|23|1007|integer|,",
    );
}
