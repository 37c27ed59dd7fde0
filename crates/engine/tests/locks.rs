//! Advisory locks, the view of all locks, and the end of what another session does.

mod common;

use std::time::{Duration, Instant};

use clearway_engine::{Collected, Config, SqlState};
use clearway_txn::{LockKind, LockMode, LockTag};
use common::{Fixture, config, error, query, run};

/// Mutations seen caught: those of `mutations/locks.toml`.
#[test]
fn advisory_locks_of_sessions_and_of_transactions() {
    let fixture = Fixture::new("");
    fixture.play(
        "
        alice: select pg_advisory_lock(1) is null, pg_advisory_lock(1) is null => f|f
        bob:   select pg_try_advisory_lock(1), pg_try_advisory_lock_shared(1) => f|f
        bob:   select pg_try_advisory_lock(0, 1), pg_advisory_unlock(0, 1) => t|t
        alice: select pg_advisory_unlock(1) => t
        bob:   select pg_try_advisory_lock(1) => f
        alice: begin => BEGIN
        alice: select pg_advisory_xact_lock(1) is null, pg_advisory_unlock(1) => f|t
        # The session has given it back, and the transaction has not.
        alice: select pg_advisory_unlock(1) => f
        bob:   select pg_try_advisory_lock(1) => f
        alice: savepoint s => SAVEPOINT
        alice: select pg_advisory_xact_lock(2) is null, pg_advisory_lock(3) is null => f|f
        alice: rollback to s => ROLLBACK
        bob:   select pg_try_advisory_lock(1), pg_try_advisory_lock(2), pg_try_advisory_lock(3) => f|t|f
        bob:   select pg_advisory_lock(1) is null => waits
        alice: rollback => ROLLBACK
        bob    => f
        bob:   select objid, mode, granted from pg_locks where locktype = 'advisory' order by 1 => \
               1|ExclusiveLock|t, 2|ExclusiveLock|t, 3|ExclusiveLock|t
        bob:   select pg_advisory_unlock_all() is null => f
        bob:   select count(*) from pg_locks where locktype = 'advisory' => 1
        alice: select pg_try_advisory_lock_shared(4) => t
        bob:   select pg_try_advisory_lock_shared(4), pg_try_advisory_xact_lock(4) => t|f
        alice: discard all => DISCARD ALL
        bob:   select pg_try_advisory_xact_lock(3), pg_try_advisory_xact_lock(4) => t|t
        ",
    );
    let mut gone = fixture.session();
    query(&mut gone, "select pg_advisory_lock(9)");
    drop(gone);
    let mut other = fixture.session();
    assert_eq!(query(&mut other, "select pg_try_advisory_lock(9)"), "t");
}

#[test]
fn a_deadlock_of_advisory_locks_names_its_processes() {
    let fixture = Fixture::new("");
    let (mut alice, mut bob) = (fixture.session(), fixture.session());
    query(&mut alice, "begin; select pg_advisory_xact_lock(1)");
    query(&mut bob, "begin; select pg_advisory_xact_lock(2)");
    let engine = &fixture.engine;
    let numbers = [&alice, &bob].map(|session| session.cancel_key().0);
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| run(&mut alice, "select pg_advisory_xact_lock(2) is null"));
        let started = Instant::now();
        let waits = |one: &clearway_engine::SessionActivity| one.wait_event == Some("advisory");
        while !engine.activity().iter().any(waits) {
            assert!(started.elapsed() < Duration::from_secs(60));
            std::thread::sleep(Duration::from_millis(1));
        }
        let mut watcher = fixture.session();
        let blocking = format!("select pg_blocking_pids({}) = array[{}]", numbers[0], numbers[1]);
        assert_eq!(query(&mut watcher, &blocking), "t");
        assert_eq!(
            query(
                &mut watcher,
                "select objid, granted, waitstart > now() - interval '1 minute' from pg_locks \
                 where locktype = 'advisory' and not granted",
            ),
            "2|f|t"
        );
        query(&mut bob, "set deadlock_timeout = '10ms'");
        let refused = error(&mut bob, "select pg_advisory_xact_lock(1)");
        assert_eq!(refused.sqlstate(), SqlState::DEADLOCK_DETECTED);
        let detail = refused.detail().unwrap();
        let [a, b] = numbers;
        for part in [
            format!("Process {b} waits for ExclusiveLock on advisory lock ["),
            format!(",0,1,1]; blocked by process {a}."),
        ] {
            assert!(detail.contains(&part), "{detail}");
        }
        assert_eq!(waiting.join().unwrap(), "f");
    });
}

/// A program in which the engine runs locks objects of its own beside the engine's tables.
#[test]
fn locks_of_the_programs_own_have_its_names() {
    let fixture = Fixture::new("");
    let (alice, mut bob) = (fixture.session(), fixture.session());
    let locks = &fixture.engine.storage().locks;
    let bucket = LockTag::own(LockKind::named("bucket").unwrap(), 5 << 32 | 7);
    assert!(locks.try_acquire(alice.proc(), bucket, LockMode::Exclusive));
    assert_eq!(
        query(
            &mut bob,
            "select locktype, relation is null, classid, objid, objsubid is null, mode, granted from pg_locks \
             where locktype = 'bucket'",
        ),
        "bucket|t|5|7|t|ExclusiveLock|t"
    );
    locks.release_all(alice.proc());
    assert_eq!(
        query(
            &mut bob,
            "select count(*) from pg_locks where locktype = 'bucket'"
        ),
        "0"
    );
}

#[test]
fn a_session_ends_what_another_does() {
    let fixture = Fixture::new("create role member login; create role other login");
    let mut victim = fixture.session();
    let number = victim.cancel_key().0;
    let mut boss = fixture.session();
    let [cancel, terminate] =
        ["cancel", "terminate"].map(|verb| format!("select pg_{verb}_backend({number})"));
    // Of a statement that has not begun nothing is left.
    assert_eq!(query(&mut boss, &cancel), "t");
    query(&mut victim, "select 1");
    std::thread::scope(|scope| {
        let sleeping = scope.spawn(|| run(&mut victim, "select pg_sleep(60)"));
        let started = Instant::now();
        while !sleeping.is_finished() {
            assert!(started.elapsed() < Duration::from_secs(60));
            query(&mut boss, &cancel);
            std::thread::sleep(Duration::from_millis(5));
        }
        assert_eq!(sleeping.join().unwrap(), "ERROR 57014");
    });
    query(&mut boss, "set role member");
    for (sql, message) in [
        (&cancel, "must be a superuser to cancel superuser query"),
        (&terminate, "must be a superuser to terminate superuser process"),
    ] {
        assert_eq!(error(&mut boss, sql).message(), message);
    }
    query(&mut boss, "reset role");
    let mut out = Collected::default();
    boss.execute_simple("select pg_terminate_backend(1000000)", &mut out)
        .unwrap();
    assert_eq!(
        out.notices[0].message,
        "PID 1000000 is not a PostgreSQL backend process"
    );
    assert_eq!(
        run(&mut boss, "select pg_terminate_backend(1, -1)"),
        "ERROR 22003"
    );
    assert!(!victim.is_terminated());
    assert_eq!(query(&mut boss, &terminate), "t");
    // It stays so, whatever begins, and whichever session cancels.
    query(&mut boss, &cancel);
    for _ in 0..2 {
        assert_eq!(run(&mut victim, "select 1"), "ERROR 57P01");
    }
    assert!(victim.is_terminated());
}

/// A role that may not change a table is told so at once: waiting for the table's lock, it would keep others away.
#[test]
fn a_role_without_the_right_does_not_queue_for_a_table() {
    let fixture = Fixture::new(
        "create table t (a int primary key); create view v as select 1; create sequence s; create role bob",
    );
    let mut stories = String::from(
        "
        alice: begin => BEGIN
        alice: lock table t in access share mode => LOCK TABLE
        bob:   set role bob => SET
        ",
    );
    for statement in [
        "truncate t",
        "drop table t",
        "alter table t add column b int",
        "alter table t rename to u",
        "create index on t (a)",
        "drop index t_pkey",
        "reindex table t",
        "reindex index t_pkey",
    ] {
        stories += &format!("bob: {statement} => ERROR 42501\n");
    }
    stories += "bob: begin => BEGIN\nbob: lock table t => ERROR 42501\n";
    fixture.play(&stories);
    fixture.play(
        "
        alice: begin => BEGIN
        alice: lock table v in access share mode => LOCK TABLE
        alice: select nextval('s') => 1
        bob:   set role bob => SET
        bob:   drop view v => ERROR 42501
        bob:   alter sequence s maxvalue 5 => ERROR 42501
        bob:   drop sequence s => ERROR 42501
        ",
    );
}

/// Sequences that are counted by, and statements that change them.
#[test]
fn a_sequence_does_not_change_while_others_count() {
    let fixture = Fixture::new("create sequence s; create table t (a serial, b int); create sequence u");
    fixture.play(
        "
        alice: begin => BEGIN
        alice: savepoint p => SAVEPOINT
        alice: select nextval('s') => 1
        # The number stays given out, and the sequence locked.
        alice: rollback to p => ROLLBACK
        bob:   alter sequence s maxvalue 2 => waits
        alice: select nextval('s'), nextval('s') => 2|3
        alice: commit => COMMIT
        bob    => ERROR 22023
        bob:   begin => BEGIN
        bob:   alter sequence s maxvalue 3 => ALTER SEQUENCE
        alice: select nextval('s') => waits
        bob:   commit => COMMIT
        # By the definition from before the wait it would be 4.
        alice  => ERROR 2200H
        alice: begin => BEGIN
        alice: insert into t (b) values (1) => INSERT 0 1
        alice: select setval('u', 7) => 7
        bob:   alter sequence t_a_seq increment 5 => waits
        carol: drop sequence u => waits
        alice: rollback => ROLLBACK
        bob    => ALTER SEQUENCE
        carol  => DROP SEQUENCE
        ",
    );
}

/// VACUUM has a place of its own in the lock table; what it waits for and holds is the session's all the same.
#[test]
fn a_wait_of_vacuum_is_shown_as_its_sessions() {
    let fixture = Fixture::new("create table t (a int)");
    fixture.play(
        "
        alice: begin => BEGIN
        alice: lock table t in share update exclusive mode => LOCK TABLE
        bob:   vacuum t => waits
        carol: select pg_blocking_pids(w.pid) = array[h.pid], pg_blocking_pids(h.pid) \
               from pg_locks w join pg_locks h on h.relation = w.relation and h.granted \
               where not w.granted and w.relation = 't'::regclass => t|{}
        carol: begin => BEGIN
        carol: lock table t in share update exclusive mode => waits
        dave:  select cardinality(pg_blocking_pids(pid)), 0 = any(pg_blocking_pids(pid)) from pg_stat_activity \
               where query like 'lock table t%' and wait_event_type = 'Lock' => 2|f
        alice: commit => COMMIT
        bob    => VACUUM
        carol  => LOCK TABLE
        ",
    );
}

/// A session that vacuums, or makes an index beside others, queues for no lock itself. So the search of one that waits for it
/// finds no circle: its own does, after its own time, by whatever means the others wait.
#[test]
fn a_circle_through_a_session_that_queues_for_no_lock_is_a_deadlock() {
    let config = Config {
        deadlock_timeout: "1h".parse().unwrap(),
        ..config()
    };
    let setup = "create table t (a int); create table u (a int)";
    Fixture::with_config(setup, config.clone()).play(
        "
        alice: select count(pg_advisory_lock(7)) => 1
        bob:   begin => BEGIN
        bob:   lock table t in share update exclusive mode => LOCK TABLE
        bob:   select count(pg_advisory_xact_lock(7)) => waits
        alice: set deadlock_timeout = '5ms' => SET
        alice: vacuum t => ERROR 40P01
        alice: select pg_advisory_unlock(7) => t
        bob    => 1
        alice: vacuum t => waits
        bob:   commit => COMMIT
        alice  => VACUUM
        ",
    );
    Fixture::with_config(setup, config.clone()).play(
        "
        alice: select count(pg_advisory_lock(7)) => 1
        bob:   begin => BEGIN
        bob:   insert into t values (1) => INSERT 0 1
        bob:   select count(pg_advisory_xact_lock(7)) => waits
        alice: set deadlock_timeout = '5ms' => SET
        alice: create index concurrently by_a on t (a) => ERROR 40P01
        alice: select pg_advisory_unlock(7) => t
        bob    => 1
        bob:   commit => COMMIT
        alice: drop index concurrently by_a => DROP INDEX
        ",
    );
    // Alice waits for Dave, he for Carol, she for Bob by no lock, and he for Alice.
    Fixture::with_config(setup, config).play(
        "
        alice: select count(pg_advisory_lock(7)) => 1
        carol: select count(pg_advisory_lock(8)) => 1
        bob:   begin => BEGIN
        bob:   insert into u values (1) => INSERT 0 1
        bob:   select count(pg_advisory_xact_lock(7)) => waits
        carol: create index concurrently by_a on u (a) => waits
        dave:  begin => BEGIN
        dave:  lock table t in share update exclusive mode => LOCK TABLE
        dave:  select count(pg_advisory_xact_lock(8)) => waits
        alice: set deadlock_timeout = '5ms' => SET
        alice: vacuum t => ERROR 40P01
        alice: select pg_advisory_unlock(7) => t
        bob    => 1
        cancel: carol
        carol  => ERROR 57014
        carol: select pg_advisory_unlock(8) => t
        dave   => 1
        ",
    );
}

/// EXPLAIN locks tables as the statement does that it explains: a plan holds until the transaction ends.
#[test]
fn explain_locks_what_its_statement_would() {
    let fixture = Fixture::new("create table t (a int); create table u (a int); create table w (a int)");
    let mut session = fixture.session();
    for (statement, locks) in [
        ("select * from t", "t AccessShareLock"),
        ("select * from t for share", "t RowShareLock"),
        (
            "insert into t select a from u",
            "t RowExclusiveLock, u AccessShareLock",
        ),
        ("update t set a = 1", "t RowExclusiveLock"),
        (
            "delete from t using u where u.a = t.a",
            "t RowExclusiveLock, u AccessShareLock",
        ),
        (
            "with gone as (delete from w returning a) select * from t, gone",
            "t AccessShareLock, w RowExclusiveLock",
        ),
    ] {
        query(&mut session, "begin");
        query(&mut session, &format!("explain {statement}"));
        let held = "select string_agg(relation::regclass || ' ' || max, ', ' order by relation) \
                    from (select relation, max(mode) from pg_locks where relation in ('t'::regclass, 'u'::regclass, 'w'::regclass) \
                          group by relation) locks";
        assert_eq!(query(&mut session, held), locks, "{statement}");
        query(&mut session, "rollback");
    }
    fixture.play(
        "
        alice: begin => BEGIN
        alice: lock table t => LOCK TABLE
        bob:   explain (costs off) select * from t => waits
        alice: commit => COMMIT
        bob    => Seq Scan on t
        ",
    );
}

/// A definition of a table that is in use keeps no definition of another table waiting, nor its own table when it waits
/// for a definition.
#[test]
fn a_definition_waits_with_none_of_its_locks() {
    let fixture = Fixture::new("create table t (a int primary key); create table u (a int)");
    for statement in [
        "alter table t add check (a > 0)",
        "create index on t (a)",
        "create index concurrently on t (a)",
        "reindex table t",
        "reindex table concurrently t",
        "reindex schema public",
        "truncate t",
        "drop table t",
    ] {
        let tag = statement.split(" t").next().unwrap();
        let tag = match tag.split(' ').next().unwrap() {
            "alter" => "ALTER TABLE",
            "create" => "CREATE INDEX",
            "reindex" => "REINDEX",
            "truncate" => "TRUNCATE TABLE",
            _ => "DROP TABLE",
        };
        fixture.play(&format!(
            "
            alice: begin => BEGIN
            alice: lock table t in share update exclusive mode => LOCK TABLE
            bob:   {statement} => waits
            carol: alter table u add b int => ALTER TABLE
            carol: alter table u drop b => ALTER TABLE
            alice: rollback => ROLLBACK
            bob    => {tag}
            "
        ));
    }
}

/// ANALYZE in a block keeps its statistics in the catalog, and waits for its table without the catalog's lock. What waits
/// between a sample and its end has no test.
#[test]
fn analyze_waits_for_its_table_without_the_catalog() {
    let fixture = Fixture::new("create table t (a int); create table u (a int)");
    fixture.play(
        "
        alice: begin => BEGIN
        alice: lock table t in share update exclusive mode => LOCK TABLE
        bob:   begin => BEGIN
        bob:   analyze t => waits
        carol: alter table u add b int => ALTER TABLE
        alice: rollback => ROLLBACK
        bob    => ANALYZE
        bob:   commit => COMMIT
        ",
    );
}

/// REINDEX of a schema goes on to the next table without the locks of one that is gone by then.
#[test]
fn a_table_that_was_dropped_keeps_no_lock() {
    let fixture = Fixture::new("create table t (a int primary key); create table u (a int primary key)");
    fixture.play(
        "
        alice: begin => BEGIN
        alice: lock table t => LOCK TABLE
        dave:  begin => BEGIN
        dave:  lock table u => LOCK TABLE
        bob:   reindex schema public => waits
        alice: drop table t => DROP TABLE
        alice: commit => COMMIT
        carol: create table v (b int) => CREATE TABLE
        dave:  commit => COMMIT
        bob    => REINDEX
        ",
    );
}

/// Bob has got the table's lock, and Carol's block has the catalog's: they do not wait for each other.
///
/// Mutation seen caught: the locks that the statement has got are kept while it waits for another.
#[test]
fn a_block_defines_a_table_whose_definition_waits_for_the_block() {
    let fixture = Fixture::new("create table t (a int)");
    fixture.play(
        "
        alice: begin => BEGIN
        alice: lock table t in access share mode => LOCK TABLE
        bob:   begin => BEGIN
        bob:   alter table t add b int => waits
        carol: begin => BEGIN
        carol: create table u (a int) => CREATE TABLE
        alice: commit => COMMIT
        carol: alter table t add c int => ALTER TABLE
        carol: commit => COMMIT
        bob    => ALTER TABLE
        bob:   commit => COMMIT
        alice: select count(b), count(c) from t => 0|0
        ",
    );
}

/// The catalog and the table are busy in turns. Behind the last of its waits Bob takes the catalog first, as all do.
///
/// Mutation seen caught: the lock that was waited for last is kept.
#[test]
fn a_definition_that_has_waited_often_takes_the_catalog_first() {
    let fixture = Fixture::new("create table t (a int); create table u (a int)");
    fixture.play(
        "
        carol: begin => BEGIN
        carol: alter table u add b int => ALTER TABLE
        bob:   alter table t add b int => waits for the catalog
        alice: begin => BEGIN
        alice: lock table t => LOCK TABLE
        carol: rollback => ROLLBACK
        bob    => waits for table t
        carol: begin => BEGIN
        carol: alter table u add b int => ALTER TABLE
        alice: rollback => ROLLBACK
        bob    => waits for the catalog
        alice: begin => BEGIN
        alice: lock table t => LOCK TABLE
        carol: rollback => ROLLBACK
        bob    => waits for table t
        carol: begin => BEGIN
        carol: alter table u add b int => ALTER TABLE
        alice: rollback => ROLLBACK
        bob    => waits for the catalog
        carol: alter table t add c int => ALTER TABLE
        carol: commit => COMMIT
        bob    => ALTER TABLE
        alice: select count(b), count(c) from t => 0|0
        ",
    );
}

/// The table and the catalog are busy in turns. From the fifth time on the session keeps what it has.
#[test]
fn a_definition_that_has_waited_often_waits_with_what_it_has() {
    let fixture = Fixture::new("create table t (a int); create table u (a int)");
    let mut story = String::from(
        "
        alice: begin => BEGIN
        alice: lock table t => LOCK TABLE
        bob:   alter table t add b int => waits for table t
        ",
    );
    for _ in 0..2 {
        story += "
        carol: begin => BEGIN
        carol: alter table u add b int => ALTER TABLE
        alice: rollback => ROLLBACK
        # Bob has given the table back.
        bob    => waits for the catalog
        alice: begin => BEGIN
        alice: lock table t => LOCK TABLE
        carol: rollback => ROLLBACK
        bob    => waits for table t
        ";
    }
    story += "
        # The catalog was Bob's when he looked for the table, and still is.
        dave:  alter table u add b int => waits
        alice: rollback => ROLLBACK
        bob    => ALTER TABLE
        dave   => ALTER TABLE
        ";
    fixture.play(&story);
}

/// ALTER TYPE … CASCADE changes the tables of the type under their locks, and those alone that the type has by then.
#[test]
fn a_change_of_a_type_locks_its_typed_tables() {
    let fixture = Fixture::new("create type ty as (a int); create table t of ty; create table u (a int)");
    fixture.play(
        "
        alice: begin => BEGIN
        alice: insert into t values (1) => INSERT 0 1
        bob:   alter type ty add attribute b int cascade => waits for table t
        alice: commit => COMMIT
        bob    => ALTER TYPE
        alice: select a, b is null from t => 1|t

        # A table that becomes one meanwhile is changed too.
        alice: begin => BEGIN
        alice: alter table u add b int => ALTER TABLE
        alice: alter table u of ty => ALTER TABLE
        bob:   alter type ty rename attribute b to c cascade => waits
        alice: commit => COMMIT
        bob    => ALTER TYPE
        alice: select count(c) from u => 0
        alice: insert into u (a, c) values (1, 2) => INSERT 0 1
        ",
    );
}
