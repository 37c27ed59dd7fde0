//! The tables of a bench's database: loaded where they are not there yet, and checked when the bench is over.
//!
//! 1. A workload needs pgbench's tables or TPC-C's. Only those that are needed are loaded, and a directory may hold both.
//! 2. Tables that are there must have the size that was asked for; any other size is an error.
//! 3. The sums before the bench are kept. Afterwards they must have grown by the acknowledged commits, and
//!    TPC-C's consistency conditions must hold, or the bench is an error.

use std::path::Path;
use std::sync::Arc;

use clearway_engine::Engine;

use crate::error::{LabError, Result};
use crate::progress::progress_bar;
use crate::result::{BalanceCheck, ConsistencyCheck};
use crate::workload::pgbench::{self, Balances};
use crate::workload::tpcc::{self, Population, Totals, consistency};
use crate::workload::{Acknowledged, Sizes};

/// Violations that are named; a broken database may have one for each district.
const VIOLATIONS_SHOWN: usize = 5;

/// The tables that are wanted, their size, and if a bar shows the progress of loading.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wanted {
    pub(crate) pgbench: bool,
    pub(crate) tpcc: bool,
    pub(crate) sizes: Sizes,
    pub(crate) progress: bool,
}

/// The tables of one database.
#[derive(Debug)]
pub(crate) struct Tables {
    pgbench_before: Option<Balances>,
    tpcc_before: Option<Totals>,
    /// Sums of the transactions that were acknowledged to clients.
    pub(crate) acknowledged: Acknowledged,
}

impl Tables {
    /// Loads what is wanted and not there. `name` is the variant's.
    pub(crate) fn load(engine: &Arc<Engine>, directory: &Path, name: &str, wanted: Wanted) -> Result<Tables> {
        let mut tables = Tables {
            pgbench_before: None,
            tpcc_before: None,
            acknowledged: Acknowledged::default(),
        };
        if wanted.pgbench {
            load_pgbench(engine, directory, name, wanted)?;
            let sums = Balances::read(engine).map_err(while_loading("adding up the balances", name))?;
            tables.pgbench_before = Some(sums);
        }
        if wanted.tpcc {
            load_tpcc(engine, directory, name, wanted)?;
            let sums = Totals::read(engine).map_err(while_loading("adding up TPC-C's tables", name))?;
            tables.tpcc_before = Some(sums);
        }
        Ok(tables)
    }

    /// Checks what must hold after the bench.
    pub(crate) fn check(
        &self,
        engine: &Arc<Engine>,
        name: &str,
    ) -> Result<(Option<BalanceCheck>, Option<ConsistencyCheck>)> {
        let balances = match &self.pgbench_before {
            Some(before) => Some(self.check_pgbench(engine, name, before)?),
            None => None,
        };
        let consistency = match &self.tpcc_before {
            Some(before) => Some(self.check_tpcc(engine, name, before)?),
            None => None,
        };
        Ok((balances, consistency))
    }

    fn check_pgbench(&self, engine: &Arc<Engine>, name: &str, before: &Balances) -> Result<BalanceCheck> {
        let sums =
            Balances::read(engine).map_err(LabError::engine(format!("adding up the balances of {name}")))?;
        if let Some(what) = sums.fault(before, &self.acknowledged.pgbench) {
            return Err(LabError::Unbalanced {
                variant: name.to_owned(),
                what,
            });
        }
        Ok(BalanceCheck::new(name, &sums, &self.acknowledged.pgbench))
    }

    fn check_tpcc(&self, engine: &Arc<Engine>, name: &str, before: &Totals) -> Result<ConsistencyCheck> {
        let while_checking = || LabError::engine(format!("checking the consistency of {name}"));
        let sums = Totals::read(engine).map_err(while_checking())?;
        let mut faults = consistency::violations(engine).map_err(while_checking())?;
        faults.extend(sums.faults(before, &self.acknowledged.tpcc));
        if !faults.is_empty() {
            let more = faults.len().saturating_sub(VIOLATIONS_SHOWN);
            faults.truncate(VIOLATIONS_SHOWN);
            if more > 0 {
                faults.push(format!("and {more} more"));
            }
            return Err(LabError::Inconsistent {
                variant: name.to_owned(),
                what: faults.join("; "),
            });
        }
        Ok(ConsistencyCheck::new(name, &self.acknowledged.tpcc))
    }
}

fn while_loading(what: &str, name: &str) -> impl FnOnce(clearway_engine::EngineError) -> LabError {
    LabError::engine(format!("{what} for {name}"))
}

fn load_pgbench(engine: &Arc<Engine>, directory: &Path, name: &str, wanted: Wanted) -> Result<()> {
    let scale = wanted.sizes.scale;
    let found = pgbench::loaded_scale(engine).map_err(while_loading("looking for pgbench's tables", name))?;
    match found {
        Some(found) if found == i64::from(scale) => Ok(()),
        Some(found) => Err(LabError::OtherScale {
            path: directory.to_owned(),
            found,
            wanted: scale,
        }),
        None => {
            let accounts = u64::from(scale) * pgbench::ACCOUNTS_PER_BRANCH as u64;
            let bar = progress_bar(wanted.progress, accounts, "{human_pos}/{human_len} accounts");
            bar.set_message(format!("loading {name}"));
            pgbench::load(engine, scale, &mut |rows| bar.set_position(rows))
                .map_err(while_loading("loading pgbench's tables", name))?;
            bar.finish_and_clear();
            Ok(())
        }
    }
}

fn load_tpcc(engine: &Arc<Engine>, directory: &Path, name: &str, wanted: Wanted) -> Result<()> {
    let population: Population = wanted.sizes.population;
    let found = tpcc::loaded_warehouses(engine).map_err(while_loading("looking for TPC-C's tables", name))?;
    match found {
        Some(found) if found == i64::from(population.warehouses) => Ok(()),
        Some(found) => Err(LabError::OtherWarehouses {
            path: directory.to_owned(),
            found,
            wanted: population.warehouses,
        }),
        None => {
            let bar = progress_bar(
                wanted.progress,
                tpcc::steps(population),
                "{human_pos}/{human_len} rows",
            );
            bar.set_message(format!("loading {name}"));
            tpcc::load(engine, population, &mut |rows| bar.set_position(rows))
                .map_err(while_loading("loading TPC-C's tables", name))?;
            bar.finish_and_clear();
            Ok(())
        }
    }
}
