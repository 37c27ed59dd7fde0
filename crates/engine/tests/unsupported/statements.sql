insert into t values (1, 2) on conflict do nothing
insert into t values (1, 2) on conflict (id) do update set x = excluded.x
insert into t as u (id) values (1)
merge into t using u on t.id = u.id when matched then delete
merge into only t using u on true when not matched then do nothing
create function f(a int) returns int language sql as 'select a'
create or replace function f(a int) returns int language plpgsql as $$ begin return a; end $$
create function f(a int, variadic b int[]) returns setof t language sql immutable strict parallel safe cost 10 as $$ select 1 $$
create function f(a int default 1) returns int begin atomic select a; end
create function g() returns int language sql return 1
create function f(int) returns int language c as 'obj', 'link'
create function f(out a int, inout b text) language sql as 'select 1, b'
create function f() returns table (a int, b text) language sql stable as 'select 1, 2'
create function f() returns trigger language plpgsql as $$ begin return new; end $$
create procedure p() language sql as 'select 1'
create aggregate agg (int) (sfunc = int4pl, stype = int)
create aggregate agg (order by anyelement) (sfunc = f, stype = internal)
create operator === (leftarg = int, rightarg = int, function = int4eq)
create operator class oc for type int using btree as operator 1 <
create operator class oc default for type text using hash as function 1 hashtext(text)
create operator family f using btree
create operator ~~~ (rightarg = int, procedure = f)
create cast (int as text) without function
create cast (int as text) with function f(int) as implicit
create cast (text as int) with inout as assignment
create trigger tr before insert on t for each row execute function f()
create trigger tr after update of x on t referencing old table as o new table as n for each statement execute function f()
create constraint trigger tr after insert on t deferrable for each row execute function f()
create event trigger et on ddl_command_start execute function f()
create event trigger et on sql_drop when tag in ('DROP TABLE') execute function f()
create rule r as on insert to t do instead nothing
create policy p on t for select using (true)
create policy p on t as restrictive for insert to public with check (x > 1)
create policy p on t for all to current_user using (true) with check (true)
create role r login password 'x'
create user u with password 'x'
create group g
create extension hstore
create extension hstore with schema public version '1.8' cascade
create extension if not exists "uuid-ossp" with schema public
create language plperl
create schema if not exists s authorization joe
create schema s create trigger tr before insert on t execute function f()
create database d
create tablespace ts location '/tmp'
create tablespace ts owner joe location '/tmp' with (seq_page_cost = 1)
create domain dom as int check (value > 0)
create domain dom as int collate "de_DE"
create type ty as enum ('a', 'b')
create type ty as (a point, b text)
create type ty (input = f, output = g)
create type ty as range (subtype = int4)
create type ty
create view v as select 1
create or replace view v as select 1
create or replace procedure p(inout a int) language plpgsql as $$ begin commit; end $$
create or replace trigger tr instead of delete on v for each row when (old.x > 1) execute procedure f('a')
create or replace rule r as on update to t where new.x > 1 do also (delete from t; notify r)
create or replace trusted procedural language plperl handler h inline i validator v
create or replace transform for int language plperl (to sql with function f(internal))
create temp view v as select 1
create recursive view v (n) as select 1
create materialized view v as select 1
create materialized view if not exists v as select 1 with no data
create materialized view v (a) tablespace ts as select 1 with no data
create materialized view v with (fillfactor = 70) as table t
create table u (a int) partition by range (a)
create table u (a int) partition by hash (a)
create table u partition of t for values in (1)
create table u partition of t default
create table u () inherits (t)
create table u as select 1
create table u as execute p
create temp table u (a int)
create temporary table u (a int) on commit drop
create global temporary table u (a int)
create table u (a int, exclude using gist (a with =))
create table u (a int, constraint c check (a > 0) no inherit)
create table u (a text collate "C")
create table u (a int[])
create table u (a int) tablespace fast
create table u (a int) using heap
create table u (a int) with (autovacuum_enabled = false)
create table u (a int compression pglz)
create table u of ty
create table if not exists u of ty (primary key (a))
create table u (a int primary key using index tablespace ts)
alter table t add unique (x) using index tablespace ts
select x is document from t
select x is not document from t
create table u (a int unique nulls not distinct)
create table u (a int, unique (a) include (b), b int)
create table u (a int, unique using index i)
create table u partition of t for values from (1) to (10)
create table u partition of t for values with (modulus 4, remainder 1)
create table u (a int, b text) partition by list (lower(b))
create table u (a int) inherits (t) partition by range (a)
create table u (like t including all, primary key (id)) inherits (t)
create table u (a int, exclude (a with =) where (a > 0))
create table u (a int, check (a > 0) no inherit)
create table u (a text compression lz4)
create foreign table ft (a int) server s
create foreign table ft (a int options (c 'd') not null) server s options (b 'e')
create foreign table ft partition of t default server s
create foreign data wrapper w
create foreign data wrapper w handler h validator v options (a 'b')
create server s foreign data wrapper w
create server if not exists s type 'a' version '1' foreign data wrapper w options (host 'x')
create user mapping for u server s
create user mapping if not exists for current_user server s options (user 'x')
create publication p for all tables
create publication p for table t (id, x) where (x > 1), tables in schema s with (publish = 'insert')
create publication p
create subscription s connection '' publication p
create subscription s connection 'host=x' publication p, q with (enabled = false)
create statistics st (ndistinct) on id, x from t
create statistics if not exists st (mcv, dependencies) on id, (x + 1) from t
create text search configuration c (copy = simple)
create text search dictionary d (template = simple)
create text search template tt (lexize = f)
create text search parser tp (start = f, gettoken = f, end = f, lextypes = f)
create collation c (locale = 'C')
create collation c (provider = icu, locale = 'de', deterministic = false)
create collation if not exists c from "C"
create conversion c for 'UTF8' to 'LATIN1' from f
create transform for int language sql (from sql with function f(internal))
create access method am type index handler f
create access method am type table handler f
create index on t using gin (x)
create index on t using spgist (x)
create index i on t (x desc nulls last)
create index i on only t (x)
create unique index on t using brin (x)
create index i on t (x) tablespace fast
create index i on t (x) with (deduplicate_items = off)
create index i on t using gist (x) with (buffering = on)
create index i on t using spgist (x)
create index concurrently i on t using brin (x)
create index if not exists i on only t using btree (x) tablespace ts
create default conversion c for 'UTF8' to 'LATIN1' from f
create unlogged sequence s
alter table t add constraint c exclude using gist (x with =)
alter table t alter column x set (n_distinct = 5)
alter table t alter column x set generated by default
alter table t alter column x drop expression
alter table t alter constraint c deferrable
alter table t validate constraint c
alter table t set schema s
alter table t set tablespace fast
alter table t set logged
alter table t set unlogged
alter table t set (autovacuum_enabled = false)
alter table t reset (fillfactor)
alter table t set access method heap
alter table t enable trigger all
alter table t disable trigger tr
alter table t enable row level security
alter table t force row level security
alter table t enable rule r
alter table t inherit u
alter table t no inherit u
alter table t of ty
alter table t not of
alter table t attach partition u for values in (1)
alter table t detach partition u concurrently
alter table t add exclude using gist (x with =)
alter table t alter x reset (n_distinct, n_distinct_inherited)
alter table t alter constraint c initially deferred
alter table t set access method h
alter table t disable trigger user
alter table t enable replica trigger tr
alter table t enable always trigger tr
alter table t disable row level security
alter table t no force row level security
alter table t disable rule r
alter table t enable always rule r
alter table t attach partition u default
alter table t detach partition u finalize
alter table all in tablespace a set tablespace b
alter table all in tablespace a owned by joe set tablespace b nowait
alter table if exists t set schema s
alter index i set (fillfactor = 70)
alter index i attach partition j
alter index i depends on extension e
alter index i set tablespace ts
alter index all in tablespace a set tablespace b
alter view v rename to w
alter view v alter column a set default 1
alter materialized view v rename to w
alter materialized view v set schema s
alter materialized view v depends on extension e
alter function f(int) rename to g
alter function f(int) immutable
alter function f(int) owner to joe
alter function f set schema s
alter function f() security definer set work_mem from current
alter procedure p() owner to joe
alter procedure p(int) rename to q
alter routine r() owner to joe
alter routine r depends on extension e
alter aggregate a(int) rename to b
alter aggregate a(*) owner to joe
alter type ty add value 'c' after 'b'
alter type ty rename value 'a' to 'b'
alter type ty add attribute c int
alter type ty set (storage = plain)
alter domain d add check (value > 1)
alter role r set work_mem = '1MB'
alter role r superuser
alter user u password 'x'
alter group g add user u
alter database d set work_mem = '1MB'
alter database d rename to e
alter schema s rename to u
alter system set work_mem = '1MB'
alter system set work_mem to default
alter system reset all
alter extension e update to '2'
alter extension e set schema s
alter extension e add table t
alter extension e drop function f(int)
alter default privileges in schema s grant select on tables to joe
alter policy p on t using (true)
alter policy p on t rename to q
alter trigger tr on t rename to ts
alter event trigger e disable
alter event trigger e owner to joe
alter rule r on t rename to s
alter rule r on t rename to q
alter operator === (int, int) owner to joe
alter operator === (none, int) set (restrict = none)
alter operator class oc using btree rename to od
alter operator family f using btree add operator 1 < (int, int)
alter publication p add table t
alter publication p set (publish = 'update')
alter publication p drop tables in schema s
alter subscription s disable
alter subscription s refresh publication with (copy_data = false)
alter subscription s connection 'x'
alter server s options (set host 'x')
alter server s version '2'
alter foreign table ft add column a int
alter foreign table if exists ft options (add a 'b')
alter foreign data wrapper w no handler
alter foreign data wrapper w options (drop a)
alter user mapping for u server s options (set a 'b')
alter tablespace ts rename to tt
alter tablespace ts set (random_page_cost = 1)
alter text search configuration c rename to d
alter text search configuration c add mapping for word with d
alter text search dictionary d (stopwords = 'x')
alter text search parser p set schema s
alter collation c refresh version
alter collation c rename to d
alter conversion c rename to d
alter conversion c set schema s
alter language l rename to m
alter language l owner to joe
alter large object 1 owner to joe
alter statistics st rename to su
alter statistics st set statistics 100
alter sequence s set logged
alter sequence s set unlogged
drop view v
drop function f(int)
drop function if exists f, g(int) cascade
drop schema s cascade
drop type ty
drop materialized view v
drop role r
drop trigger tr on t
drop extension e
drop extension if exists e, f cascade
drop owned by joe
drop text search configuration c
drop text search dictionary d
drop text search template tt
drop index concurrently i
drop procedure p(int) restrict
drop routine r
drop aggregate a(int)
drop operator === (int, int)
drop operator class oc using btree
drop operator family f using btree
drop cast if exists (int as text)
drop event trigger et
drop rule r on t cascade
drop policy if exists p on t
drop language l
drop tablespace ts
drop foreign table ft
drop foreign data wrapper w
drop server s cascade
drop user mapping if exists for u server s
drop publication p
drop subscription s
drop statistics st
drop collation c
drop conversion c
drop transform for int language sql
drop access method am
grant select on t to joe
grant select on large object 1 to joe
grant all on all tables in schema public to joe with grant option
grant all on tablespace ts to joe
grant a to b
grant execute on function f(int) to joe
grant usage on language plpgsql to joe
grant usage on type ty to public
grant usage on foreign server s to joe
grant set on parameter work_mem to joe
revoke select on t from joe
revoke grant option for select on t from joe cascade
revoke execute on all functions in schema public from public
revoke usage on foreign data wrapper w from joe
comment on function f(int) is 'x'
comment on trigger tr on t is 'x'
comment on operator + (int, int) is 'x'
comment on cast (int as text) is 'x'
comment on large object 1 is 'x'
comment on rule r on t is 'x'
security label on table t is 'x'
security label for p on column t.x is null
do $$ begin null; end $$
do language plpgsql $$ begin null; end $$
call p(1)
load 'x'
reassign owned by a to b
refresh materialized view v
refresh materialized view concurrently v with no data
refresh materialized view concurrently v
reindex (tablespace a) table t
reindex (tablespace ts) database postgres
cluster t using i
cluster t
cluster verbose t
cluster
import foreign schema s from server r into t
import foreign schema s limit to (a) from server r into public options (a 'b')
discard sequences
prepare transaction 'x'
prepare transaction 'y'
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
select * from generate_series(1, 2) with ordinality
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
select b'101'
select x'1F'
select U&'d\0061'
select 1 operator(pg_catalog.+) 2
select @ -5
select |/ 4
select * from t for update of t nowait
select * from t for no key update
select * from t for key share skip locked
select * from t tablesample bernoulli (100)
select * from xmltable('/a' passing x columns b int path 'c')
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
copy t (id) to program 'cat'
explain analyze select 1
explain (format json) select 1
explain create table u as select 1
explain declare c cursor for select 1
explain (analyze, wal) select 1
vacuum full t
vacuum full
vacuum (full, verbose) t
vacuum (full, analyze) t
vacuum (parallel 2) t
analyze t (x)
checkpoint
start transaction read write, not deferrable
abort
end
commit and chain
prepare p as select 1
prepare p (int) as insert into t values ($1)
deallocate all
select nextval('s')
select xmlforest(x as a) from t
select xmlserialize(content x as text) from t
select to_tsvector('english', 'a b')
select to_tsvector('a b') @@ to_tsquery('a')
select id from t where 'a b'::text @@ 'a'::text
select ts_rank(null, null)
alter table t alter column x set (n_distinct = 1)
alter table t alter column x reset (n_distinct)
create index on t using spgist (x)
alter index i reset (fillfactor)
cluster (verbose) t using i
alter table t cluster on i, inherit u
create text search parser p (start = f, gettoken = g, end = h, lextypes = l)
create text search template tp (lexize = l)
alter foreign data wrapper w options (add a 'b')
create user mapping for public server s
drop user mapping if exists for public server s
alter event trigger e enable always
drop access method if exists am
