//! The marks of readers, for those that look: `pg_locks`.

use clearway_machine::Machine;

use super::Serializable;
use super::target::Target;
use crate::ProcId;

/// The object of a mark that is listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MarkedObject {
    /// A table.
    Relation(u32),
    /// A page of a table.
    Page(u32, u32),
    /// A version of a row.
    Row(u32, u32, u16),
    /// Keys of an index.
    Keys(u32),
}

/// A mark of a reader.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ListedMark {
    /// The session of the transaction; `None`: one that has been summarised.
    pub proc: Option<ProcId>,
    /// False if the transaction has committed.
    pub runs: bool,
    /// The object.
    pub object: MarkedObject,
}

impl<M: Machine> Serializable<M> {
    /// All marks of readers. They need not have been there at one moment.
    pub fn listed(&self) -> Vec<ListedMark> {
        let marks = self.marks.listed();
        let graph = self.graph.shared();
        let listed = marks.into_iter().filter_map(|mark| {
            let node = mark.owner.map(|owner| graph.node(owner));
            let (proc, runs) = match node {
                None => (None, false),
                Some(node) => node.map(|node| (Some(node.proc), !node.is_finished()))?,
            };
            let object = match mark.target {
                Target::Relation(rel) => MarkedObject::Relation(rel),
                Target::Page(rel, block) => MarkedObject::Page(rel, block),
                Target::Row(rel, block, slot) => MarkedObject::Row(rel, block, slot),
                Target::Key(index, _) | Target::Range(index, ..) => MarkedObject::Keys(index),
            };
            Some(ListedMark { proc, runs, object })
        });
        listed.collect()
    }
}
