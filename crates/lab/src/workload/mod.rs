//! The workloads, by name.

pub mod pgbench;

use crate::error::{LabError, Result};

/// A workload of the bench: one of pgbench's built-in transactions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Workload {
    /// One SELECT by primary key.
    SelectOnly,
    /// UPDATE an account, SELECT it, INSERT into the history.
    SimpleUpdate,
    /// As before, and UPDATE a teller and a branch: branches are few, so their rows are fought over.
    TpcbLike,
}

impl Workload {
    /// All of them, in the order in which they are run.
    pub const ALL: &'static [Workload] = &[Workload::SelectOnly, Workload::SimpleUpdate, Workload::TpcbLike];

    /// pgbench's name for it.
    pub const fn name(self) -> &'static str {
        match self {
            Workload::SelectOnly => "select-only",
            Workload::SimpleUpdate => "simple-update",
            Workload::TpcbLike => "tpcb-like",
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

    /// Whether it changes anything.
    pub const fn writes(self) -> bool {
        !matches!(self, Workload::SelectOnly)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_name_gets_the_list() {
        assert_eq!(Workload::from_name("tpcb-like").unwrap(), Workload::TpcbLike);
        let error = Workload::from_name("tpcc").unwrap_err().to_string();
        assert_eq!(
            error,
            "there is no workload \"tpcc\"; available: select-only, simple-update, tpcb-like"
        );
    }
}
