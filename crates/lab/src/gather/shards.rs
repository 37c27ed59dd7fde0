//! The shards of an experiment become the experiment.
//!
//! All of them have to be there, of the same experiment, machine and seeds. Their pieces go back to where
//! [`Shard`](crate::simulate::Shard) says that they come from: the first piece of each shard, then the second of each, and
//! so on.

use std::path::{Path, PathBuf};

use crate::error::{LabError, Result};
use crate::simulate::SimulationResult;

/// The whole of which these are all the shards, each with the directory that it comes from.
///
/// # Errors
/// [`LabError::NotOneResult`], with the directory: not a shard, a shard of another experiment, machine, seeds or division,
/// a shard twice, one that is missing, or one that lacks pieces.
pub(super) fn merge(shards: Vec<(PathBuf, SimulationResult)>) -> Result<SimulationResult> {
    let refuse = |directory: &Path, why: String| {
        Err(LabError::NotOneResult {
            directory: directory.to_owned(),
            why,
        })
    };
    let Some((first_directory, first)) = shards.first() else {
        return Err(LabError::NothingToReport);
    };
    let mut whole = SimulationResult {
        shard: None,
        points: Vec::new(),
        sweep: Vec::new(),
        ..first.clone()
    };
    let of = first.shard.map_or(1, |shard| shard.of);
    let points = whole.experiment.clients.len() * whole.experiment.variants.len() * whole.seeds.count();
    let (first_directory, mut places) = (first_directory.clone(), vec![None; of]);
    for (directory, result) in shards {
        let Some(shard) = result.shard else {
            return refuse(&directory, "it is a whole result, and no shard of one".to_owned());
        };
        let differs = [
            ("the experiment", result.experiment != whole.experiment),
            ("the machine", result.machine != whole.machine),
            ("the list of seeds", result.seeds != whole.seeds),
            ("the number of shards", shard.of != of),
        ];
        if let Some((what, _)) = differs.iter().find(|(_, differs)| *differs) {
            let first = first_directory.display();
            return refuse(&directory, format!("{what} is not that of {first}"));
        }
        if shard.number == 0 || shard.number > of {
            return refuse(&directory, format!("there is no shard {shard}"));
        }
        if let Some((other, _)) = places[shard.number - 1].replace((directory.clone(), result)) {
            let other: PathBuf = other;
            return refuse(&directory, format!("{} is shard {shard} too", other.display()));
        }
    }
    let mut parts = Vec::new();
    for (number, place) in (1..).zip(places) {
        let Some((directory, result)) = place else {
            return refuse(
                &first_directory,
                format!("it is one of {of} shards, but shard {number}/{of} is not given"),
            );
        };
        parts.push((directory, result.points.into_iter(), result.sweep.into_iter()));
    }
    for piece in 0.. {
        let (directory, points_of, sweep_of) = &mut parts[piece % of];
        if piece < points {
            match points_of.next() {
                Some(point) => whole.points.push(point),
                None => return refuse(directory, "points are missing in it".to_owned()),
            }
        } else {
            match sweep_of.next() {
                Some(change) => whole.sweep.push(change),
                None => break,
            }
        }
    }
    match parts
        .iter()
        .find(|(_, points, sweep)| points.len() + sweep.len() > 0)
    {
        Some((directory, ..)) => refuse(
            directory,
            "it has more than another, from which something is missing".to_owned(),
        ),
        None => {
            whole.summarize();
            Ok(whole)
        }
    }
}
