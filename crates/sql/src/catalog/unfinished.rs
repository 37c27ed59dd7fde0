//! Indexes of a table that no statement reads: those in the making, and those on their way out.
//!
//! CREATE INDEX CONCURRENTLY, REINDEX CONCURRENTLY and DROP INDEX CONCURRENTLY let other sessions write meanwhile. These have
//! to know of an index before it answers anything, and for some time after it has ceased to:
//!
//! | stage | an UPDATE that changes a key is | an INSERT makes an entry | a query reads it |
//! | --- | --- | --- | --- |
//! | building | not HOT | no | no |
//! | written | not HOT | yes | no |
//! | dead | not HOT | no | no |
//! | (one of [`TableDef::indexes`]) | not HOT | yes | yes |
//!
//! They are apart from the others, so that what reads indexes does not meet them. A statement that fails in the middle leaves
//! its index in the stage that it has reached: DROP INDEX takes it away, and REINDEX makes it whole.

use std::sync::Arc;

use crate::catalog::{IndexDef, TableDef};

/// An index that no statement reads.
#[derive(Debug, Clone)]
pub struct UnfinishedIndex {
    /// Its definition.
    pub index: Arc<IndexDef>,
    /// Its stage.
    pub stage: IndexStage,
}

/// The stage of an index that no statement reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IndexStage {
    /// It is made of the rows that there are, and nothing else is entered.
    Building,
    /// Each new row version is entered. It may lack others.
    Written,
    /// Nothing is entered any more.
    Dead,
}

impl IndexStage {
    /// The word that the catalog keeps.
    pub fn word(self) -> &'static str {
        match self {
            IndexStage::Building => "building",
            IndexStage::Written => "written",
            IndexStage::Dead => "dead",
        }
    }

    /// The stage of this word.
    pub fn from_word(word: &str) -> Option<IndexStage> {
        let all = [IndexStage::Building, IndexStage::Written, IndexStage::Dead];
        all.into_iter().find(|stage| stage.word() == word)
    }
}

impl TableDef {
    /// All of its indexes, with the stages of those that no statement reads.
    pub fn indexes_and_stages(&self) -> impl Iterator<Item = (&Arc<IndexDef>, Option<IndexStage>)> {
        let read = self.indexes.iter().map(|index| (index, None));
        let others = self.unfinished.iter();
        read.chain(others.map(|unfinished| (&unfinished.index, Some(unfinished.stage))))
    }

    /// All of its indexes.
    pub fn all_indexes(&self) -> impl Iterator<Item = &Arc<IndexDef>> {
        self.indexes_and_stages().map(|(index, _)| index)
    }

    /// The indexes that an INSERT makes entries in: those that are read, in their order, and others.
    pub fn written_indexes(&self) -> impl Iterator<Item = &Arc<IndexDef>> {
        let written = self.indexes_and_stages();
        let written = written.filter(|(_, stage)| matches!(stage, None | Some(IndexStage::Written)));
        written.map(|(index, _)| index)
    }

    /// True if it has indexes, of whatever stage.
    #[inline]
    pub fn has_indexes(&self) -> bool {
        !self.indexes.is_empty() || !self.unfinished.is_empty()
    }

    /// Changes the definition of each index.
    pub fn map_indexes<E>(
        &mut self,
        mut map: impl FnMut(&Arc<IndexDef>) -> Result<Arc<IndexDef>, E>,
    ) -> Result<(), E> {
        for index in &mut self.indexes {
            *index = map(index)?;
        }
        for unfinished in &mut self.unfinished {
            unfinished.index = map(&unfinished.index)?;
        }
        Ok(())
    }

    /// Makes all indexes such that statements read them, except those that are dead: their trees are made anew.
    pub fn finish_indexes(&mut self) {
        let unfinished = std::mem::take(&mut self.unfinished).into_iter();
        let (dead, finished): (Vec<_>, Vec<_>) =
            unfinished.partition(|other| other.stage == IndexStage::Dead);
        self.unfinished = dead;
        self.indexes.extend(finished.into_iter().map(|other| other.index));
    }
}
