//! Relations: making, dropping and listing them.

use std::sync::atomic::Ordering;

use clearway_txn::Xid;

use super::Storage;
use crate::error::Result;
use crate::files::created::{CreatedRelation, Lifetime};
use crate::page::RelId;
use crate::wal::record::RecordKind;

impl Storage {
    /// Hands out a relation number and makes its empty file. Until something durable names the relation, the
    /// caller is responsible for dropping it.
    pub fn create_rel(&self) -> Result<RelId> {
        self.create(Lifetime::Lasting)
    }

    /// [`create_rel`](Self::create_rel) for rows of a session's own, which is gone after a crash. No standby makes its file,
    /// and each passes over what is logged of its pages.
    pub fn create_temporary_rel(&self) -> Result<RelId> {
        self.create(Lifetime::Temporary)
    }

    fn create(&self, lifetime: Lifetime) -> Result<RelId> {
        self.make_log_room()?;
        let rel = RelId(self.next_rel.fetch_add(1, Ordering::Relaxed));
        self.files.create(rel)?;
        let payload = CreatedRelation { rel, lifetime }.encode();
        self.wal
            .insert_any(RecordKind::CREATE_REL, Xid::INVALID, &payload);
        Ok(rel)
    }

    /// Removes a relation that is no longer in use: its pages in memory and its file. To remove it twice is
    /// harmless.
    pub fn drop_rel(&self, rel: RelId) -> Result<()> {
        self.fsm.forget(rel);
        self.settled_pages.forget(rel);
        self.pool.discard(rel);
        self.files.remove(rel)
    }

    /// True if the number was handed out by [`create_rel`](Self::create_rel), as far as the log tells.
    pub fn was_handed_out(&self, rel: RelId) -> bool {
        rel.0 < self.next_rel.load(Ordering::Relaxed)
    }

    /// The numbers of all relations on disk, the commit log's included.
    pub fn list_rels(&self) -> Result<Vec<RelId>> {
        self.files.list()
    }

    /// Number of pages of `rel`.
    pub fn block_count(&self, rel: RelId) -> Result<u32> {
        self.files.blocks(rel)
    }

    /// Pages of a relation that were read from its file into the buffer pool, since the start, the making of the file, or the
    /// last [`reset_pages_read`](Self::reset_pages_read); 0 of one that there is not.
    pub fn pages_read(&self, rel: RelId) -> u64 {
        self.files.reads(rel)
    }

    /// Counts the pages that are read of a relation anew; `None`: of each.
    pub fn reset_pages_read(&self, rel: Option<RelId>) {
        self.files.reset_reads(rel);
    }
}
