insert into t (id, x) overriding system value values (1, 2)
insert into t (id, x) overriding user value values (1, 2)
insert into t values (1, 2) on conflict do nothing
insert into t values (1, 2) on conflict (id) do update set x = excluded.x
insert into t as u (id) values (1)
merge into t using u on t.id = u.id when matched then delete
create function f(a int) returns int language sql as 'select a'
create or replace function f(a int) returns int language plpgsql as $$ begin return a; end $$
create function f(a int, variadic b int[]) returns setof t language sql immutable strict parallel safe cost 10 as $$ select 1 $$
create function g() returns int language sql return 1
create procedure p() language sql as 'select 1'
create aggregate agg (int) (sfunc = int4pl, stype = int)
create operator === (leftarg = int, rightarg = int, function = int4eq)
create operator class oc for type int using btree as operator 1 <
create operator family f using btree
create cast (int as text) without function
create trigger tr before insert on t for each row execute function f()
create constraint trigger tr after insert on t deferrable for each row execute function f()
create event trigger et on ddl_command_start execute function f()
create rule r as on insert to t do instead nothing
create policy p on t for select using (true)
create role r login password 'x'
create user u with password 'x'
create group g
create extension hstore
create extension if not exists "uuid-ossp" with schema public
create language plperl
create schema s create table t (a int)
create schema if not exists s authorization joe
create database d
create tablespace ts location '/tmp'
create domain dom as int check (value > 0)
create type ty as enum ('a', 'b')
create type ty as (a int, b text)
create type ty as range (subtype = int4)
create type ty
create sequence s
create sequence if not exists s increment by 2 minvalue 1 cache 5 cycle owned by t.id
create temp sequence s
create view v as select 1
create or replace view v as select 1
create temp view v as select 1
create recursive view v (n) as select 1
create materialized view v as select 1
create materialized view if not exists v as select 1 with no data
create table u (a int) partition by range (a)
create table u (a int) partition by hash (a)
create table u partition of t for values in (1)
create table u partition of t default
create table u () inherits (t)
create table u as select 1
create table u as execute p
create temp table u (a int)
create temporary table u (a int) on commit drop
create unlogged table u (a int)
create global temporary table u (a int)
create table u (a int, exclude using gist (a with =))
create table u (a int check (a > 0))
create table u (a int, constraint c check (a > 0) no inherit)
create table u (a int references t (id))
create table u (a int references t (id) match full on delete cascade deferrable initially deferred)
create table u (a int, foreign key (a) references t (id) on update set null)
create table u (a int generated always as (b + 1) stored, b int)
create table u (a text collate "C")
create table u (a int[])
create table u (a int) tablespace fast
create table u (a int) using heap
create table u (a int) with (autovacuum_enabled = false)
create table u (a int compression pglz)
create table u of ty
create table u (a int unique nulls not distinct)
create table u (a int, unique (a) include (b), b int)
create table u (a int, unique using index i)
create foreign table ft (a int) server s
create foreign data wrapper w
create server s foreign data wrapper w
create user mapping for u server s
create publication p for all tables
create subscription s connection '' publication p
create statistics st (ndistinct) on id, x from t
create text search configuration c (copy = simple)
create text search dictionary d (template = simple)
create collation c (locale = 'C')
create conversion c for 'UTF8' to 'LATIN1' from f
create transform for int language sql (from sql with function f(internal))
create access method am type index handler f
create index on t using gin (x)
create index on t using hash (x)
create index i on t (lower(x))
create index i on t (x) where x > 0
create index i on t (x) include (id)
create index i on t (x collate "C" text_pattern_ops)
create index i on t (x desc nulls last)
create index i on only t (x)
create unique index i on t (x) nulls not distinct
create index i on t (x) tablespace fast
create index i on t (x) with (deduplicate_items = off)
alter table t add column y int
alter table t add constraint c check (x > 0)
alter table t add constraint c foreign key (x) references t (id) not valid
alter table t add constraint c unique using index i
alter table t add constraint c exclude using gist (x with =)
alter table t drop column x
alter table t drop column if exists x cascade
alter table t alter column x type bigint using x::bigint
alter table t alter column x set default 1
alter table t alter column x drop default
alter table t alter column x set not null
alter table t alter column x set statistics 100
alter table t alter column x set storage external
alter table t alter column x set compression lz4
alter table t alter column x set (n_distinct = 5)
alter table t alter column x add generated always as identity
alter table t alter column x drop identity if exists
alter table t alter column x set generated by default
alter table t alter column x drop expression
alter table t alter constraint c deferrable
alter table t validate constraint c
alter table t rename to u
alter table t rename column x to y
alter table t rename constraint c to d
alter table t set schema s
alter table t set tablespace fast
alter table t set logged
alter table t set unlogged
alter table t set (autovacuum_enabled = false)
alter table t reset (fillfactor)
alter table t set without cluster
alter table t set without oids
alter table t set access method heap
alter table t cluster on i
alter table t owner to joe
alter table t enable trigger all
alter table t disable trigger tr
alter table t enable row level security
alter table t force row level security
alter table t enable rule r
alter table t replica identity full
alter table t inherit u
alter table t no inherit u
alter table t of ty
alter table t not of
alter table t attach partition u for values in (1)
alter table t detach partition u concurrently
alter table all in tablespace a set tablespace b
alter index i rename to j
alter index i set (fillfactor = 70)
alter index i attach partition j
alter index i alter column 1 set statistics 10
alter sequence s restart with 5
alter sequence s owned by none
alter view v rename to w
alter view v alter column a set default 1
alter materialized view v rename to w
alter function f(int) rename to g
alter function f(int) immutable
alter procedure p() owner to joe
alter routine r() owner to joe
alter aggregate a(int) rename to b
alter type ty add value 'c' after 'b'
alter type ty rename value 'a' to 'b'
alter type ty add attribute c int
alter domain d add check (value > 1)
alter role r set work_mem = '1MB'
alter role r superuser
alter user u password 'x'
alter group g add user u
alter database d set work_mem = '1MB'
alter database d rename to e
alter schema s rename to u
alter system set work_mem = '1MB'
alter system reset all
alter extension e update to '2'
alter default privileges in schema s grant select on tables to joe
alter policy p on t using (true)
alter trigger tr on t rename to ts
alter event trigger e disable
alter rule r on t rename to s
alter operator === (int, int) owner to joe
alter publication p add table t
alter subscription s disable
alter server s options (set host 'x')
alter foreign table ft add column a int
alter foreign data wrapper w no handler
alter user mapping for u server s options (set a 'b')
alter tablespace ts rename to tt
alter text search configuration c rename to d
alter collation c refresh version
alter conversion c rename to d
alter language l rename to m
alter large object 1 owner to joe
alter statistics st rename to su
drop view v
drop function f(int)
drop schema s cascade
drop sequence if exists s
drop type ty
drop materialized view v
drop role r
drop trigger tr on t
drop extension e
drop owned by joe
drop text search configuration c
drop index concurrently i
grant select on t to joe
grant all on all tables in schema public to joe with grant option
grant a to b
revoke select on t from joe
revoke grant option for select on t from joe cascade
comment on function f(int) is 'x'
security label on table t is 'x'
listen c
notify c
notify c, 'payload'
unlisten *
do $$ begin null; end $$
do language plpgsql $$ begin null; end $$
call p(1)
load 'x'
reassign owned by a to b
refresh materialized view v
refresh materialized view concurrently v with no data
reindex table t
reindex (verbose) index concurrently i
reindex database d
cluster t using i
cluster verbose t
cluster
import foreign schema s from server r into t
discard sequences
declare c cursor for select 1
declare c binary insensitive scroll cursor with hold for select 1
fetch next from c
fetch all c
move forward 5 from c
close c
close all
savepoint a
release savepoint a
rollback to savepoint a
prepare transaction 'x'
commit prepared 'x'
rollback prepared 'x'
set role joe
set session authorization joe
set local role none
reset role
reset session authorization
set xml option document
set transaction snapshot 'x'
select * from t order by id fetch first 3 rows only
select * from t order by id fetch first 3 rows with ties
select * from t offset 2 rows fetch next row only
select * from t tablesample bernoulli (10)
select * from t tablesample system (10) repeatable (1)
select * from t, lateral (select 1) u
select * from t left join lateral (select 1) u on true
select * from t join t u using (id)
select * from t natural join t u
select * from t cross join t u
select * from t full outer join t u on true
select x, count(*) from t group by grouping sets ((x), ())
select x, count(*) from t group by rollup (x)
select x, count(*) from t group by cube (x)
select x from t group by distinct x
select sum(x) over (partition by id order by x) from t
select sum(x) over w from t window w as (order by x)
select sum(x) over (order by x rows between unbounded preceding and current row exclude ties) from t
select count(*) filter (where x > 1) from t
select string_agg(x::text, ',' order by x) from t
select percentile_cont(0.5) within group (order by x) from t
select distinct on (x) * from t
select all x from t
select * from only t
select * from t *
select * from rows from (generate_series(1, 2), generate_series(1, 3)) as r
select * from generate_series(1, 2) with ordinality
select * from json_to_record('{}') as r(a int)
with u as (select 1) select * from u
with recursive u(n) as (select 1 union all select n + 1 from u) select * from u limit 3
with u as materialized (select 1) select * from u
with u as (delete from t returning *) select * from u
select 1 union select 2
select 1 intersect all select 2
select 1 except select 2
values (1), (2)
table t
select (select 1)
select exists (select 1)
select x in (select 1) from t
select x = any (select 1) from t
select x = any (array[1, 2]) from t
select array[1, 2]
select array(select 1)
select row(1, 2)
select (1, 2) = (3, 4)
select (row(1, 2)).f1
select x[1] from t
select x[1:2] from t
select '{"a": 1}'::json -> 'a'
select x at time zone 'UTC' from t
select cast(x as text) collate "C" from t
select x is distinct from 1 from t
select x similar to 'a' from t
select x ~ 'a' from t
select overlay('abc' placing 'x' from 1)
select position('a' in 'b')
select substring('a' from 1 for 2)
select trim(both 'x' from 'xax')
select extract(year from now())
select normalize('a', nfc)
select xmlelement(name foo)
select treat(x as int) from t
select collation for ('a')
select current_user
select session_user
select current_role
select current_catalog
select localtimestamp
select current_time
select interval '1 day'
select interval '1' day
select b'101'
select x'1F'
select U&'d\0061'
select 1 operator(pg_catalog.+) 2
select @ -5
select |/ 4
select * from t for update of t nowait
select * from t for no key update
select * from t for key share skip locked
select * into u from t
select into u from t
select from t
update t set x = 1 from u where t.id = u.id
update t set (x, id) = (1, 2)
update t set (x, id) = row (1, 2)
update t set x[1] = 2
update only t set x = 1
update t set x = 1 where current of c
delete from t using u where t.id = u.id
delete from only t
delete from t where current of c
truncate only t restart identity cascade
copy t to '/tmp/x'
copy t from program 'cat'
copy t to stdout (format binary)
explain analyze select 1
explain (analyze, buffers) select 1
explain (format json) select 1
explain create table u as select 1
explain declare c cursor for select 1
vacuum full t
vacuum (full, verbose) t
vacuum (parallel 2) t
analyze t (x)
checkpoint
begin isolation level serializable
start transaction isolation level serializable
set transaction isolation level serializable
set session characteristics as transaction isolation level serializable
set default_transaction_isolation to serializable
start transaction read write, not deferrable
abort
end
commit and chain
prepare p as select 1
prepare p (int) as insert into t values ($1)
deallocate all
select pg_notify('a', 'b')
select nextval('s')
