//! The workloads, by name.

pub(crate) mod client;
mod copy;
mod one_number;
pub mod pgbench;
pub mod tpcc;

pub use client::{Acknowledged, Sizes};
use one_number::{number_of, one_number};

use crate::error::{LabError, Result};

/// A workload of the bench: one of pgbench's built-in transactions, or TPC-C's mix of five.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Workload {
    /// One SELECT by primary key.
    SelectOnly,
    /// UPDATE an account, SELECT it, INSERT into the history.
    SimpleUpdate,
    /// As before, and UPDATE a teller and a branch: branches are few, so their rows are fought over.
    TpcbLike,
    /// TPC-C's five transactions in its standard mix, on tables of their own.
    Tpcc,
}

impl Workload {
    /// All of them, in the order in which they are listed.
    pub const ALL: &'static [Workload] = &[
        Workload::SelectOnly,
        Workload::SimpleUpdate,
        Workload::TpcbLike,
        Workload::Tpcc,
    ];

    /// Those on pgbench's tables, in the order in which they are run.
    pub const PGBENCH: &'static [Workload] =
        &[Workload::SelectOnly, Workload::SimpleUpdate, Workload::TpcbLike];

    /// Its name: pgbench's, where it is one of its transactions.
    pub const fn name(self) -> &'static str {
        match self {
            Workload::SelectOnly => "select-only",
            Workload::SimpleUpdate => "simple-update",
            Workload::TpcbLike => "tpcb-like",
            Workload::Tpcc => "tpcc",
        }
    }

    /// The workload of this name.
    pub fn from_name(name: &str) -> Result<Workload> {
        Workload::ALL
            .iter()
            .copied()
            .find(|workload| workload.name() == name)
            .ok_or_else(|| LabError::UnknownName {
                what: "workload",
                name: name.to_owned(),
                available: Workload::ALL
                    .iter()
                    .map(|workload| workload.name())
                    .collect::<Vec<_>>()
                    .join(", "),
            })
    }

    /// Its kinds of transaction by name; none if there is one kind.
    pub fn kinds(self) -> &'static [&'static str] {
        match self {
            Workload::Tpcc => tpcc::Kind::NAMES,
            _ => &[],
        }
    }

    /// True if it changes anything.
    pub const fn writes(self) -> bool {
        !matches!(self, Workload::SelectOnly)
    }
}

/// Workloads that run side by side in one engine, each with a part of the clients; mostly one alone.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Mix {
    /// Clients take these in turn, so a workload that is here twice has twice the clients.
    turns: Vec<Workload>,
}

impl Mix {
    /// The mix of this name: that of a workload, or several with `+` between them.
    pub fn from_name(name: &str) -> Result<Mix> {
        let turns = name.split('+').map(Workload::from_name).collect::<Result<_>>()?;
        Ok(Mix { turns })
    }

    /// `tpcb-like+select-only`.
    pub fn name(&self) -> String {
        let names: Vec<&str> = self.turns.iter().map(|workload| workload.name()).collect();
        names.join("+")
    }

    /// Clients that it needs, so that each workload has one.
    pub fn clients_min(&self) -> usize {
        self.turns.len()
    }

    /// The workload of a client.
    pub fn workload_of(&self, client: usize) -> Workload {
        self.turns[client % self.turns.len()]
    }

    /// True if this is one of its workloads.
    pub fn has(&self, workload: Workload) -> bool {
        self.turns.contains(&workload)
    }

    /// Number of clients before this one that run the same workload.
    pub fn place_of(&self, client: usize) -> usize {
        let workload = self.workload_of(client);
        (0..client)
            .filter(|other| self.workload_of(*other) == workload)
            .count()
    }

    /// Its workloads, each once.
    pub fn parts(&self) -> Vec<Workload> {
        let mut parts = Vec::new();
        for workload in &self.turns {
            if !parts.contains(workload) {
                parts.push(*workload);
            }
        }
        parts
    }

    /// The name of a part in tables.
    pub fn part_name(&self, part: Workload) -> String {
        match self.turns[..] {
            [_] => part.name().to_owned(),
            _ => format!("{} in {}", part.name(), self.name()),
        }
    }
}

impl From<Workload> for Mix {
    fn from(workload: Workload) -> Mix {
        Mix {
            turns: vec![workload],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_take_the_workloads_of_a_mix_in_turn() {
        let mix = Mix::from_name("tpcb-like+select-only+select-only").unwrap();
        let of_clients: Vec<Workload> = (0..5).map(|client| mix.workload_of(client)).collect();
        let (write, read) = (Workload::TpcbLike, Workload::SelectOnly);
        assert_eq!(of_clients, [write, read, read, write, read]);
        let places: Vec<usize> = (0..5).map(|client| mix.place_of(client)).collect();
        assert_eq!(places, [0, 0, 1, 1, 2]);
        assert_eq!(mix.parts(), [write, read]);
        assert_eq!(
            mix.part_name(read),
            "select-only in tpcb-like+select-only+select-only"
        );
        assert_eq!(Mix::from(read).part_name(read), "select-only");
        assert!(Mix::from_name("select-only+").is_err());
    }

    #[test]
    fn a_wrong_name_gets_the_list() {
        assert_eq!(Workload::from_name("tpcb-like").unwrap(), Workload::TpcbLike);
        let error = Workload::from_name("tpch").unwrap_err().to_string();
        assert_eq!(
            error,
            "there is no workload \"tpch\"; available: select-only, simple-update, tpcb-like, tpcc"
        );
    }
}
