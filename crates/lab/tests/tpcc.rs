//! TPC-C in about a second: tables of a few hundred rows, concurrent clients, and a check that finds what is broken.
//!
//! Mutations are in `crates/lab/mutations/tpcc.toml`.

mod repeated;

use std::collections::{BTreeSet, HashMap};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use clearway_engine::{Config, Discard, Engine, EngineError, SessionInfo, SqlState, Value};
use clearway_lab::result::BenchResult;
use clearway_lab::workload::tpcc::{
    self, Backend, Client, InProcess, Kind, Population, Statement, Totals, consistency,
};
use clearway_lab::workload::{Mix, Workload};
use clearway_lab::{BenchOptions, LabError, OtherPrograms, Variant, run_bench, table};

/// Tables that are loaded in a moment.
const TINY: Population = Population {
    warehouses: 2,
    items: 200,
    customers: 30,
};

fn options() -> BenchOptions {
    BenchOptions {
        scale: 1,
        population: Some(TINY),
        clients: vec![1, 4],
        duration: Duration::from_millis(400),
        rounds: 1,
        workloads: vec![Workload::Tpcc.into()],
        varied: None,
        variants: Variant::choose(&[], &[]).unwrap(),
        buffers: None,
        data: None,
        synchronous_commit: false,
        beside: OtherPrograms::default(),
        other_program: |_| Command::new("false"),
        seed: 7,
        command: "clearway bench --workload tpcc (test)".to_owned(),
        progress: false,
    }
}

/// The result of a run in which each cell of TPC-C has run each kind of transaction, and each other one has committed.
fn measured(options: BenchOptions) -> BenchResult {
    repeated::measured(options, |cell| {
        cell.transactions > 0 && cell.kinds.iter().all(|kind| kind.transactions > 0)
    })
}

/// Both presets, one client and several; the bench itself checks what was acknowledged and the consistency conditions.
#[test]
fn a_tiny_bench_of_all_five_transactions() {
    let result = measured(options());
    assert_eq!(result.cells.len(), 2 * 2);
    assert_eq!(result.parameters.warehouses, Some(2));
    for cell in &result.cells {
        let names: Vec<&str> = cell.kinds.iter().map(|kind| &*kind.kind).collect();
        assert_eq!(names, Kind::NAMES);
        let counted: u64 = cell.kinds.iter().map(|kind| kind.transactions).sum();
        assert_eq!(counted, cell.transactions);
        assert!(
            cell.kinds
                .iter()
                .all(|kind| kind.p99_us >= kind.p50_us && kind.p50_us > 0.0)
        );
        assert!(cell.kinds[0].per_minute > 0.0 && cell.kinds[0].per_minute < cell.tps * 60.0);
        assert_eq!(cell.ratio.is_some(), cell.variant == "clearway");
    }
    assert!(result.balances.is_empty());
    assert_eq!(result.consistency.len(), 2);
    for check in &result.consistency {
        assert!(
            check.new_orders > 0 && check.payments > 0 && check.delivered > 0,
            "{check:?}"
        );
    }
    let text = table::text(&result);
    assert!(text.contains("NOPM") && text.contains("stock-level"), "{text}");
    let out = tempfile::tempdir().unwrap();
    result.write(out.path()).unwrap();
    let page = std::fs::read_to_string(out.path().join("report.html")).unwrap();
    for part in [
        "TPC-C's transactions, 2 warehouses",
        "By transaction",
        "consistency of clearway",
    ] {
        assert!(page.contains(part), "{part}");
    }
    assert!(!page.contains("pgbench"));
}

#[test]
fn tpcc_beside_a_workload_of_pgbench() {
    let result = measured(BenchOptions {
        clients: vec![3],
        workloads: vec![Mix::from_name("tpcc+select-only").unwrap()],
        variants: Variant::choose(&["clearway".to_owned()], &[]).unwrap(),
        ..options()
    });
    let kinds: Vec<usize> = result.cells.iter().map(|cell| cell.kinds.len()).collect();
    assert_eq!(kinds, [5, 0]);
    assert_eq!((result.balances.len(), result.consistency.len()), (1, 1));
}

#[test]
fn a_directory_is_used_again_and_its_warehouses_are_checked() {
    let data = tempfile::tempdir().unwrap();
    let options = BenchOptions {
        clients: vec![2],
        duration: Duration::from_millis(50),
        variants: Variant::choose(&["clearway".to_owned()], &[]).unwrap(),
        data: Some(data.path().to_owned()),
        ..options()
    };
    run_bench(&options).unwrap();
    run_bench(&options).unwrap();
    let other = Population {
        warehouses: 3,
        ..TINY
    };
    let error = run_bench(&BenchOptions {
        population: Some(other),
        ..options
    })
    .unwrap_err();
    assert!(
        matches!(
            error,
            LabError::OtherWarehouses {
                found: 2,
                wanted: 3,
                ..
            }
        ),
        "{error}"
    );
}

/// Loading that was interrupted before its last table leaves no warehouse, and is not taken for a database.
#[test]
fn tables_that_are_loaded_in_part_are_refused() {
    let loaded = Loaded::new();
    assert_eq!(tpcc::loaded_warehouses(&loaded.engine).unwrap(), Some(2));
    loaded.run("delete from warehouse");
    assert_eq!(tpcc::loaded_warehouses(&loaded.engine).unwrap(), Some(0));
    loaded.run("drop table warehouse");
    assert_eq!(tpcc::loaded_warehouses(&loaded.engine).unwrap(), Some(0));
    loaded.run("drop table item");
    assert_eq!(tpcc::loaded_warehouses(&loaded.engine).unwrap(), None);
}

/// A session in which one statement fails before it runs.
#[derive(Debug)]
struct Failing {
    session: InProcess,
    /// Prepared statements until the one that fails; -1 if none does.
    until: i64,
    error: SqlState,
    /// The text of an unprepared statement that fails.
    refused: &'static str,
}

impl Failing {
    fn new(engine: &Arc<Engine>) -> Failing {
        Failing {
            session: InProcess::open(engine).unwrap(),
            until: -1,
            error: SqlState::SERIALIZATION_FAILURE,
            refused: "",
        }
    }
}

impl Backend for Failing {
    fn prepare(&mut self, sql: &str) -> Result<Statement, EngineError> {
        self.session.prepare(sql)
    }
    fn run(
        &mut self,
        statement: Statement,
        parameters: &[Value],
        rows: &mut Vec<Vec<Value>>,
    ) -> Result<(), EngineError> {
        self.until -= 1;
        match self.until {
            0 => Err(EngineError::new(self.error, "of the test")),
            _ => self.session.run(statement, parameters, rows),
        }
    }
    fn execute(&mut self, sql: &str) -> Result<Vec<Vec<Value>>, EngineError> {
        match sql == self.refused {
            true => Err(EngineError::new(self.error, "of the test")),
            false => self.session.execute(sql),
        }
    }
    fn copy(
        &mut self,
        table: &str,
        last: i64,
        line: &mut dyn FnMut(i64, &mut Vec<u8>),
        progress: &mut dyn FnMut(u64),
    ) -> Result<(), EngineError> {
        self.session.copy(table, last, line, progress)
    }
}

/// Loading that fails when almost all is there leaves tables that are refused. Mutation: fill `warehouse` before the
/// indexes are made (`mutations/tpcc.toml`).
#[test]
fn a_load_that_fails_late_is_known_to_be_in_part() {
    let directory = tempfile::tempdir().unwrap();
    let engine = Engine::open(directory.path(), Config::default()).unwrap();
    let mut backend = Failing {
        refused: "vacuum history",
        ..Failing::new(&engine)
    };
    tpcc::load_into(&mut backend, TINY, &mut |_| ()).unwrap_err();
    assert_eq!(tpcc::loaded_warehouses(&engine).unwrap(), Some(0));
}

/// A transaction that is rolled back for another's sake runs again with the same input, whichever of its statements
/// failed; any other error comes out. Mutation: do not roll back before it runs again → it runs in a transaction that is
/// open already (`mutations/tpcc.toml`).
#[test]
fn a_transaction_that_must_run_again_does() {
    let loaded = Loaded::new();
    let before = Totals::read(&loaded.engine).unwrap();
    let mut acknowledged = tpcc::Acknowledged::default();
    for (error, until) in [SqlState::SERIALIZATION_FAILURE, SqlState::DEADLOCK_DETECTED]
        .into_iter()
        .flat_map(|error| (1..60).map(move |until| (error, until)))
    {
        let backend = Failing {
            until,
            error,
            ..Failing::new(&loaded.engine)
        };
        let mut client = Client::on(Box::new(backend), TINY, 0, until as u64).unwrap();
        while client.retries == 0 {
            client.transaction().unwrap();
        }
        assert_eq!(client.retries, 1);
        acknowledged += client.acknowledged;
    }
    let after = Totals::read(&loaded.engine).unwrap();
    assert_eq!(after.faults(&before, &acknowledged), Vec::<String>::new());
    assert_eq!(loaded.violations(), Vec::<String>::new());
    let backend = Failing {
        until: 3,
        error: SqlState::DISK_FULL,
        ..Failing::new(&loaded.engine)
    };
    let mut client = Client::on(Box::new(backend), TINY, 0, 1).unwrap();
    assert_eq!(client.transaction().unwrap_err().sqlstate(), SqlState::DISK_FULL);
}

#[test]
fn warehouses_that_make_no_sense_are_refused() {
    let refused = |options: BenchOptions| run_bench(&options).unwrap_err().to_string();
    let none = Population {
        warehouses: 0,
        ..TINY
    };
    let zero = refused(BenchOptions {
        population: Some(none),
        ..options()
    });
    assert_eq!(zero, "--warehouses is 0, but must be 1 to 10000");
    let without = refused(BenchOptions {
        workloads: vec![Workload::SelectOnly.into()],
        ..options()
    });
    assert!(
        without.contains("--warehouses is for the workload tpcc"),
        "{without}"
    );
}

struct Loaded {
    engine: Arc<Engine>,
    _directory: tempfile::TempDir,
}

impl Loaded {
    fn new() -> Loaded {
        Loaded::with(TINY)
    }

    fn with(population: Population) -> Loaded {
        let directory = tempfile::tempdir().unwrap();
        let config = Config {
            synchronous_commit: false.into(),
            ..Config::default()
        };
        let engine = Engine::open(directory.path(), config).unwrap();
        tpcc::load(&engine, population, &mut |_| ()).unwrap();
        Loaded {
            engine,
            _directory: directory,
        }
    }

    fn run(&self, sql: &str) {
        let mut session = self.engine.session(SessionInfo::default()).unwrap();
        session.execute_simple(sql, &mut Discard::default()).unwrap();
    }

    fn violations(&self) -> Vec<String> {
        consistency::violations(&self.engine).unwrap()
    }
}

/// The loaded tables are consistent, and stay so under a client, whose own account agrees with them.
#[test]
fn a_client_keeps_the_tables_consistent() {
    let loaded = Loaded::new();
    assert_eq!(loaded.violations(), Vec::<String>::new());
    let before = Totals::read(&loaded.engine).unwrap();
    let mut client = Client::new(&loaded.engine, TINY, 0, 3).unwrap();
    let mut rolled_back = 0;
    for _ in 0..300 {
        let (kind, committed) = client.transaction().unwrap();
        if !committed {
            assert_eq!(kind, Kind::NewOrder);
            rolled_back += 1;
        }
    }
    // 45 of a hundred are new-orders, less those rolled back; the other kinds are 43 and 4.
    assert_eq!(client.acknowledged.new_orders, 3 * 45 - rolled_back);
    assert_eq!(client.acknowledged.payments, 3 * 43);
    assert_eq!(client.retries, 0);
    let after = Totals::read(&loaded.engine).unwrap();
    assert_eq!(after.faults(&before, &client.acknowledged), Vec::<String>::new());
    assert_eq!(loaded.violations(), Vec::<String>::new());
}

/// Eight clients of one warehouse, whose payments wait for one row and whose deliveries are after the same orders.
#[test]
fn clients_side_by_side_keep_the_tables_consistent() {
    let population = Population {
        warehouses: 1,
        ..TINY
    };
    let loaded = Loaded::with(population);
    let before = Totals::read(&loaded.engine).unwrap();
    let acknowledged = std::thread::scope(|scope| {
        let clients: Vec<_> = (0..8)
            .map(|place| {
                let engine = &loaded.engine;
                scope.spawn(move || {
                    let mut client = Client::new(engine, population, place, place as u64).unwrap();
                    for _ in 0..400 {
                        client.transaction().unwrap();
                    }
                    client.acknowledged
                })
            })
            .collect();
        let mut sum = tpcc::Acknowledged::default();
        for client in clients {
            sum += client.join().unwrap();
        }
        sum
    });
    assert_eq!(acknowledged.payments, 8 * 4 * 43);
    let after = Totals::read(&loaded.engine).unwrap();
    assert_eq!(after.faults(&before, &acknowledged), Vec::<String>::new());
    assert_eq!(loaded.violations(), Vec::<String>::new());
}

/// Each condition, broken by one statement in one place and mended again.
#[test]
fn every_violation_is_found() {
    let loaded = Loaded::new();
    let cases = [
        (
            "update district set d_ytd = d_ytd + 0.01 where d_w_id = 2 and d_id = 3",
            "update district set d_ytd = d_ytd - 0.01 where d_w_id = 2 and d_id = 3",
            "C1: w_ytd of warehouse 2 ",
        ),
        (
            "update warehouse set w_ytd = w_ytd + 1 where w_id = 1",
            "update warehouse set w_ytd = w_ytd - 1 where w_id = 1",
            "C1: w_ytd of warehouse 1 ",
        ),
        (
            "update district set d_next_o_id = 99 where d_w_id = 1 and d_id = 10",
            "update district set d_next_o_id = 31 where d_w_id = 1 and d_id = 10",
            "C2: d_next_o_id - 1 of warehouse 1, district 10 is 98, but max(o_id) is 30",
        ),
        (
            "update new_order set no_o_id = 40 where no_w_id = 2 and no_d_id = 1 and no_o_id = 30",
            "update new_order set no_o_id = 30 where no_w_id = 2 and no_d_id = 1 and no_o_id = 40",
            "C2: d_next_o_id - 1 of warehouse 2, district 1 is 30, but max(no_o_id) is 40",
        ),
        (
            "update new_order set no_o_id = 2 where no_w_id = 1 and no_d_id = 4 and no_o_id = 25",
            "update new_order set no_o_id = 25 where no_w_id = 1 and no_d_id = 4 and no_o_id = 2",
            "C3: new_order of warehouse 1, district 4 has 9 rows from no_o_id 2 to 30",
        ),
        (
            "update orders set o_ol_cnt = o_ol_cnt + 1 where o_w_id = 2 and o_d_id = 7 and o_id = 5",
            "update orders set o_ol_cnt = o_ol_cnt - 1 where o_w_id = 2 and o_d_id = 7 and o_id = 5",
            "C4: sum(o_ol_cnt) of warehouse 2, district 7 ",
        ),
        (
            "update order_line set ol_d_id = 9, ol_number = 99 where ol_w_id = 1 and ol_d_id = 8 and ol_o_id = 1 \
             and ol_number = 1",
            "update order_line set ol_d_id = 8, ol_number = 1 where ol_w_id = 1 and ol_d_id = 9 and ol_number = 99",
            "C4: sum(o_ol_cnt) of warehouse 1, district 8 ",
        ),
    ];
    for (damage, mend, found) in cases {
        loaded.run(damage);
        let violations = loaded.violations();
        assert!(
            violations.iter().any(|violation| violation.starts_with(found)),
            "{damage}: {violations:?}"
        );
        loaded.run(mend);
        assert_eq!(loaded.violations(), Vec::<String>::new(), "{mend}");
    }
}

/// Stock-level's join counts what its tables say, and reads the stock of each line by the primary key, whether the tables
/// were analysed or not. Mutations: count up to the threshold; count items as often as they were ordered; leave the
/// warehouse of the stock out → all of stock is read (`mutations/tpcc.toml`).
#[test]
fn stock_level_joins_by_the_primary_key() {
    let loaded = Loaded::with(Population { items: 2_000, ..TINY });
    let mut session = InProcess::open(&loaded.engine).unwrap();
    let pairs = |session: &mut InProcess, sql: &str| -> Vec<(i64, i64)> {
        let rows = session.execute(sql).unwrap();
        let number = |row: &[Value], column: usize| row[column].as_i64().unwrap();
        rows.iter().map(|row| (number(row, 0), number(row, 1))).collect()
    };
    // Some items are ordered twice, and some have just the threshold.
    loaded.run("update order_line set ol_i_id = 7 where ol_w_id = 2 and ol_d_id = 4 and ol_number = 1");
    loaded.run("update stock set s_quantity = 20 where s_w_id = 2 and s_i_id % 5 = 0");
    loaded.run("update stock set s_quantity = 19 where s_w_id = 2 and s_i_id = 7");
    let lines = pairs(
        &mut session,
        "select ol_i_id, ol_o_id from order_line where ol_w_id = 2 and ol_d_id = 4 and ol_o_id between 11 and 30",
    );
    let stock: HashMap<i64, i64> = pairs(
        &mut session,
        "select s_i_id, s_quantity from stock where s_w_id = 2",
    )
    .into_iter()
    .collect();
    let low: BTreeSet<i64> = lines
        .iter()
        .map(|(item, _)| *item)
        .filter(|item| stock[item] < 20)
        .collect();
    assert!(low.len() > 5, "{low:?}");

    let asked = [2, 4, 11, 31, 20].map(Value::Int4);
    session
        .execute(&format!("prepare low_stock as {}", tpcc::LOW_STOCK))
        .unwrap();
    for analysed in [false, true] {
        if analysed {
            loaded.run("analyze");
        }
        let mut rows = Vec::new();
        let statement = session.prepare(tpcc::LOW_STOCK).unwrap();
        session.run(statement, &asked, &mut rows).unwrap();
        assert_eq!(rows, [[Value::Int8(low.len() as i64)]]);
        let explain = "explain (analyze, costs off, timing off) execute low_stock(2, 4, 11, 31, 20)";
        let plan = session.execute(explain).unwrap();
        let plan: Vec<&str> = plan.iter().map(|row| row[0].as_str().unwrap()).collect();
        let plan = plan.join("\n");
        let (_, of_stock) = plan.split_once("Index Scan using stock_pkey").expect(&plan);
        assert!(
            of_stock.contains("((s_w_id = $1) AND (s_i_id = order_line.ol_i_id))"),
            "{plan}"
        );
        assert!(of_stock.contains(&format!("loops={}", lines.len())), "{plan}");
        assert!(!plan.contains("Seq Scan"), "{plan}");
    }
}

/// A district whose new orders have all been delivered is consistent; a client that finds no order leaves it out.
#[test]
fn nothing_to_deliver_is_no_fault() {
    let loaded = Loaded::new();
    loaded.run("delete from new_order");
    assert_eq!(loaded.violations(), Vec::<String>::new());
    let mut client = Client::new(&loaded.engine, TINY, 0, 3).unwrap();
    while client.transaction().unwrap().0 != Kind::Delivery {}
    assert_eq!(loaded.violations(), Vec::<String>::new());
}
