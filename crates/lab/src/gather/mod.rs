//! Results of several runs: put together, or set side by side.
//!
//! A run of `clearway simulate`, `bench` or `bench latches` leaves a directory with a file of JSON. From several of them
//! [`gather`] makes one result with one report: the shards of an experiment become the experiment, and benches of
//! different points become one bench. [`compare`] sets two of the same kind side by side, point by point.

mod benches;
mod compare;
mod shards;

use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;

pub use compare::{Comparison, compare};

use crate::error::{LabError, Result};
use crate::result::{self, BenchResult};
use crate::simulate::{self, SimulationResult};

/// Several results as one.
#[derive(Debug)]
pub enum Gathered {
    /// An experiment on each of its machines, with what the names of their files have more: nothing for the first, and
    /// `-MACHINE` for the others.
    Simulation(Vec<(String, SimulationResult)>),
    /// A bench.
    Bench(Box<BenchResult>),
}

impl Gathered {
    /// Writes `result.json` and `report.html` into `directory`, as the run itself would have.
    pub fn write(&self, directory: &Path) -> Result<()> {
        match self {
            Self::Simulation(results) => {
                for (suffix, result) in results {
                    let files = [
                        (&*format!("result{suffix}.json"), simulate::json(result)),
                        (&*format!("report{suffix}.html"), simulate::html(result)?),
                    ];
                    result::write_files(directory, &files)?;
                }
                Ok(())
            }
            Self::Bench(result) => result.write(directory),
        }
    }

    /// The table for a terminal.
    pub fn text(&self) -> String {
        match self {
            Self::Simulation(results) => {
                let text = |(_, result): &(String, SimulationResult)| {
                    format!("on {}:\n\n{}", result.machine.name, simulate::text(result))
                };
                results.iter().map(text).collect::<Vec<_>>().join("\n")
            }
            Self::Bench(result) => crate::table::text(result),
        }
    }
}

/// The result of which those in `directories` are the parts.
///
/// # Errors
/// A directory without a result, or with one that is no part of the same whole; it is named.
pub fn gather(directories: &[PathBuf]) -> Result<Gathered> {
    let Some(first) = directories.first() else {
        return Err(LabError::NothingToReport);
    };
    let of_simulation = is_simulation(first)?;
    for directory in &directories[1..] {
        if is_simulation(directory)? != of_simulation {
            return Err(LabError::NotOneResult {
                directory: directory.clone(),
                why: format!(
                    "one of it and {} is an experiment, and the other a bench",
                    first.display()
                ),
            });
        }
    }
    if of_simulation {
        let merge = |suffix: String| {
            let parts = read_all(directories, &format!("result{suffix}.json"))?;
            Ok((suffix, shards::merge(parts)?))
        };
        let results = suffixes(first)?.into_iter().map(merge);
        return Ok(Gathered::Simulation(results.collect::<Result<_>>()?));
    }
    let results = read_all(directories, "result.json")?;
    Ok(Gathered::Bench(Box::new(benches::merge(results)?)))
}

/// The parts of names between `result` and `.json` in `directory`, sorted; `result.json` is the first.
fn suffixes(directory: &Path) -> Result<Vec<String>> {
    let refused = || LabError::io("cannot list", directory);
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory).map_err(refused())? {
        let name = entry
            .map_err(refused())?
            .file_name()
            .to_string_lossy()
            .into_owned();
        let suffix = name
            .strip_prefix("result")
            .and_then(|rest| rest.strip_suffix(".json"));
        found.extend(suffix.map(str::to_owned));
    }
    found.sort();
    Ok(found)
}

fn read_all<R: DeserializeOwned>(directories: &[PathBuf], file: &str) -> Result<Vec<(PathBuf, R)>> {
    let read = |directory: &PathBuf| Ok((directory.clone(), read(&directory.join(file))?));
    directories.iter().map(read).collect()
}

/// True if the result in `directory` is an experiment's.
fn is_simulation(directory: &Path) -> Result<bool> {
    let value: serde_json::Value = read(&directory.join("result.json"))?;
    Ok(value.get("points").is_some())
}

fn read<R: DeserializeOwned>(path: &Path) -> Result<R> {
    let text = std::fs::read_to_string(path).map_err(LabError::io("cannot read the result", path))?;
    serde_json::from_str(&text).map_err(|error| LabError::NotAResult {
        path: path.to_owned(),
        why: error.to_string(),
    })
}
