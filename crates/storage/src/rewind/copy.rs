//! Steps 3 to 5: fetching pages, log and control file.

use std::path::Path;
use std::sync::Arc;

use super::changed::{ChangedPages, Fates};
use super::source::{LOG_BYTES_MAX, PAGES_MAX, RewindSource, SourceEnd, SourceRelation};
use super::switch::{self, new_name, sync_names};
use super::{Plan, Rewind};
use crate::disk::{DiskFile, OpenMode, SyncPurpose};
use crate::error::{Result, StorageError};
use crate::files::control_file::{self, Control, State};
use crate::files::data_directory::{CONTROL, LOG, RELATIONS};
use crate::page::{self, Lsn, PAGE_HEADER, PAGE_SIZE, PageId, RelId};
use crate::wal::SEGMENT_SIZE;
use crate::wal::segment_name::segment_name_in;
use crate::wal::timeline::History;

/// The progress of a rewind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RewindProgress {
    /// Relations that are as the server's.
    pub relations_done: usize,
    /// Relations of the server.
    pub relations: usize,
    /// Pages that were fetched.
    pub pages: u64,
    /// Bytes of log that were fetched.
    pub log_bytes: u64,
}

/// The amount that a rewind fetches, or would fetch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RewindSummary {
    /// The position where the logs part.
    pub fork: Lsn,
    /// The end of the directory's log before.
    pub own_end: Lsn,
    /// Pages fetched.
    pub pages: u64,
    /// Pages of the server's files.
    pub pages_total: u64,
    /// Files that the server does not have.
    pub removed: u64,
    /// Bytes of log fetched; of a plan, 0.
    pub log_bytes: u64,
}

/// A relation's pages to fetch.
struct RelationPlan {
    relation: SourceRelation,
    /// The file is made anew, because nothing here is a part of it.
    whole: bool,
    /// Pages from here on are fetched (P3).
    kept: u32,
}

fn path_of(dir: &Path, rel: RelId) -> std::path::PathBuf {
    dir.join(RELATIONS).join(rel.0.to_string())
}

impl Rewind {
    /// Counts the pages that the plan would fetch. Nothing is changed.
    pub fn look<S: RewindSource>(&self, source: &mut S, plan: &Plan) -> Result<RewindSummary, S::Error> {
        let relations = source.relations()?;
        let mut summary = self.summary(plan);
        for &relation in &relations {
            let planned = self.relation(relation)?;
            self.each_batch(source, plan, &planned, |_, batch| {
                summary.pages += batch.len() as u64;
                Ok(())
            })?;
            summary.pages_total += u64::from(relation.blocks);
        }
        summary.removed = self.not_at_server(&relations)?.len() as u64;
        Ok(summary)
    }

    fn summary(&self, plan: &Plan) -> RewindSummary {
        RewindSummary {
            fork: plan.fork,
            own_end: self.log.end(),
            pages: 0,
            pages_total: 0,
            removed: 0,
            log_bytes: 0,
        }
    }

    /// Steps 3 to 7.
    pub fn run<S: RewindSource>(
        self,
        source: &mut S,
        plan: &Plan,
        mut progress: impl FnMut(RewindProgress),
    ) -> Result<RewindSummary, S::Error> {
        let (disk, dir) = (Arc::clone(&self.disk), self.dir.clone());
        plan.marker.write(&*disk, &dir, self.fsync)?;
        switch::remove_new(&*disk, &dir)?;
        let relations = source.relations()?;
        let mut summary = self.summary(plan);
        let mut state = RewindProgress {
            relations: relations.len(),
            ..RewindProgress::default()
        };
        for &relation in &relations {
            let planned = self.relation(relation)?;
            self.fetch_relation(source, plan, &planned, |pages| {
                state.pages += pages;
                progress(state);
            })?;
            state.relations_done += 1;
            summary.pages_total += u64::from(relation.blocks);
        }
        progress(state);
        for rel in self.not_at_server(&relations)? {
            switch::remove(&*disk, &path_of(&dir, rel))?;
            summary.removed += 1;
        }
        sync_names(&*disk, &dir.join(RELATIONS), self.fsync)?;
        let end = source.finish()?;
        summary.log_bytes = self.fetch_log(source, plan, &end, |bytes| {
            state.log_bytes += bytes;
            progress(state);
        })?;
        summary.pages = state.pages;
        switch::complete(&*disk, &dir, self.fsync, plan.marker.clone())?;
        Ok(summary)
    }

    /// The relations that only the directory has a file of.
    fn not_at_server(&self, relations: &[SourceRelation]) -> Result<Vec<RelId>> {
        let mut found: Vec<RelId> = switch::names(&*self.disk, &self.dir.join(RELATIONS))?
            .iter()
            .filter_map(|name| name.parse().ok().map(RelId))
            .collect();
        let at_server: std::collections::HashSet<RelId> = relations.iter().map(|found| found.rel).collect();
        found.retain(|rel| *rel >= RelId::FIRST_NORMAL && !at_server.contains(rel));
        Ok(found)
    }

    /// The part of a relation that is kept at most.
    fn relation(&self, relation: SourceRelation) -> Result<RelationPlan> {
        let path = path_of(&self.dir, relation.rel);
        let length = match self.disk.open(&path, OpenMode::Existing) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
            file => {
                let length = file.and_then(|file| file.length());
                Some(length.map_err(|error| StorageError::io("open", &path, error))?)
            }
        };
        let known = self.log.scanned().lengths.get(&relation.rel).copied();
        let (kept, whole) = match (length, known) {
            // A file that has lost its end holds nothing that counts, either.
            (Some(length), Some(known)) if length / PAGE_SIZE as u64 >= u64::from(known) => (known, false),
            _ => (0, true),
        };
        Ok(RelationPlan {
            relation,
            whole,
            kept,
        })
    }

    /// Calls `fetch` with the numbers of pages that are fetched, at most [`PAGES_MAX`] at a time.
    fn each_batch<S: RewindSource>(
        &self,
        source: &mut S,
        plan: &Plan,
        planned: &RelationPlan,
        mut fetch: impl FnMut(&mut S, &[u32]) -> Result<(), S::Error>,
    ) -> Result<(), S::Error> {
        let SourceRelation { rel, blocks: end } = planned.relation;
        let kept = planned.kept.min(end);
        let mut blocks = Vec::with_capacity(PAGES_MAX);
        let mut push = |source: &mut S, block: u32| -> Result<(), S::Error> {
            blocks.push(block);
            if blocks.len() == PAGES_MAX {
                fetch(source, &blocks)?;
                blocks.clear();
            }
            Ok(())
        };
        if rel == RelId::COMMIT_LOG {
            // P5.
            for first in (0..kept).step_by(PAGES_MAX) {
                for block in
                    self.differing_statuses(source, first, PAGES_MAX.min((kept - first) as usize) as u32)?
                {
                    push(source, block)?;
                }
            }
        } else if let Some(fates) = plan.fates.as_ref().filter(|_| kept > 0) {
            // P1, P2 and P6.
            let file = self.own_file(rel)?;
            for block in 0..kept {
                if self.is_fetched(fates, &plan.changed, &*file, PageId { rel, block })? {
                    push(source, block)?;
                }
            }
        } else {
            // P1 and P2.
            for block in plan
                .changed
                .pages
                .blocks_of(rel)
                .take_while(|&block| block < kept)
            {
                push(source, block)?;
            }
        }
        // P3 and P4.
        for block in kept..end {
            push(source, block)?;
        }
        if !blocks.is_empty() {
            fetch(source, &blocks)?;
        }
        Ok(())
    }

    fn own_file(&self, rel: RelId) -> Result<Arc<dyn DiskFile>> {
        let path = path_of(&self.dir, rel);
        self.disk
            .open(&path, OpenMode::Existing)
            .map_err(|error| StorageError::io("open", &path, error))
    }

    fn is_fetched(
        &self,
        fates: &Fates,
        changed: &ChangedPages,
        file: &dyn DiskFile,
        page: PageId,
    ) -> Result<bool> {
        if changed.pages.contains(page) {
            return Ok(true);
        }
        let mut bytes = [0; PAGE_SIZE];
        file.read_exact_at(&mut bytes, u64::from(page.block) * PAGE_SIZE as u64)
            .map_err(|error| StorageError::io("read", &path_of(&self.dir, page.rel), error))?;
        Ok(fates.may_be_on(&bytes))
    }

    /// The pages of the commit log, of `count` from `first` on, whose statuses are not the server's. One that was torn is
    /// among them, whatever its statuses: no record may repair it.
    fn differing_statuses<S: RewindSource>(
        &self,
        source: &mut S,
        first: u32,
        count: u32,
    ) -> Result<Vec<u32>, S::Error> {
        let file = self.own_file(RelId::COMMIT_LOG)?;
        let theirs = source.status_sums(first, count)?;
        let mut differing = Vec::new();
        for block in first..first + count {
            let mut bytes = [0; PAGE_SIZE];
            file.read_exact_at(&mut bytes, u64::from(block) * PAGE_SIZE as u64)
                .map_err(|error| StorageError::io("read", &path_of(&self.dir, RelId::COMMIT_LOG), error))?;
            let place = PageId {
                rel: RelId::COMMIT_LOG,
                block,
            };
            let is_torn = page::verify(place, &bytes).is_err();
            if is_torn || theirs.get((block - first) as usize) != Some(&status_sum(&bytes)) {
                differing.push(block);
            }
        }
        Ok(differing)
    }

    /// Fetches the pages of a relation that may differ. The relation may be dropped meanwhile: then what is here of it is
    /// that of a dropped relation.
    fn fetch_relation<S: RewindSource>(
        &self,
        source: &mut S,
        plan: &Plan,
        planned: &RelationPlan,
        mut fetched: impl FnMut(u64),
    ) -> Result<(), S::Error> {
        let rel = planned.relation.rel;
        let path = path_of(&self.dir, rel);
        let written = if planned.whole {
            new_name(&path)
        } else {
            path.clone()
        };
        let fail = |action: &'static str| {
            let written = written.clone();
            move |error| StorageError::io(action, &written, error)
        };
        let mut file: Option<Arc<dyn DiskFile>> = None;
        if planned.whole {
            let made = self.disk.open(&written, OpenMode::Truncate);
            file = Some(made.map_err(fail("create"))?);
        }
        let mut dropped = false;
        self.each_batch(source, plan, planned, |source, batch| {
            let Some(pages) = source.pages(rel, batch)?.filter(|_| !dropped) else {
                dropped = true;
                return Ok(());
            };
            if pages.len() != batch.len() * PAGE_SIZE {
                let problem = format!("{} bytes came for {} pages", pages.len(), batch.len());
                return Err(StorageError::RewindSource { problem }.into());
            }
            let file = match &mut file {
                Some(file) => file,
                none => none.insert(self.own_file(rel)?),
            };
            for (&block, page) in batch.iter().zip(pages.chunks_exact(PAGE_SIZE)) {
                let offset = u64::from(block) * PAGE_SIZE as u64;
                file.write_at(page, offset).map_err(fail("write"))?;
            }
            fetched(batch.len() as u64);
            Ok(())
        })?;
        if dropped {
            drop(file);
            switch::remove(&*self.disk, &written)?;
            return Ok(switch::remove(&*self.disk, &path)?);
        }
        if let Some(file) = file.filter(|_| self.fsync) {
            file.sync_all(SyncPurpose::CopiedFile).map_err(fail("sync"))?;
        }
        if planned.whole {
            switch::name(&*self.disk, &path)?;
        }
        Ok(())
    }

    /// Fetches the log from the redo position to the end, and writes the control file; the bytes of log.
    fn fetch_log<S: RewindSource>(
        &self,
        source: &mut S,
        plan: &Plan,
        end: &SourceEnd,
        mut fetched: impl FnMut(u64),
    ) -> Result<u64, S::Error> {
        let log = self.dir.join(LOG);
        let control = self.control(plan, end)?;
        let history = Self::history(control.timeline, end)?;
        let mut total = 0;
        for number in plan.start.redo.0 / SEGMENT_SIZE..=(end.position.0 - 1) / SEGMENT_SIZE {
            let path = new_name(&log.join(segment_name_in(&history, number)));
            let fail = |error| StorageError::io("write", &path, error);
            let file = self.disk.open(&path, OpenMode::Truncate).map_err(fail)?;
            let start = number * SEGMENT_SIZE;
            // The first segment from its beginning on, because it is compared with the server's before each stream. Zeros
            // behind the end, as the tail of a log has: a write there needs no room.
            let mut piece = vec![0; LOG_BYTES_MAX];
            for offset in (0..SEGMENT_SIZE).step_by(LOG_BYTES_MAX) {
                let (from, upto) = (start + offset, start + offset + LOG_BYTES_MAX as u64);
                let there = upto.min(end.position.0).saturating_sub(from);
                piece.fill(0);
                if there > 0 {
                    source.log(Lsn(from), &mut piece[..there as usize])?;
                    total += there;
                    fetched(there);
                }
                file.write_at(&piece, offset).map_err(fail)?;
            }
            if self.fsync {
                file.sync_all(SyncPurpose::CopiedFile).map_err(fail)?;
            }
        }
        for (name, text) in &end.history_files {
            switch::write_new(&*self.disk, &log.join(name), self.fsync, text.as_bytes())?;
        }
        let image = control_file::image(control);
        switch::write_new(&*self.disk, &self.dir.join(CONTROL), self.fsync, &image)?;
        sync_names(&*self.disk, &log, self.fsync)?;
        sync_names(&*self.disk, &self.dir, self.fsync)?;
        Ok(total)
    }

    /// The content of the new control file: the server's, for a standby.
    fn control(&self, plan: &Plan, end: &SourceEnd) -> Result<Control> {
        if end.position < plan.start.checkpoint_end {
            return Err(StorageError::RewindSource {
                problem: format!(
                    "the copy ends at {}, before {}, where its checkpoint ends",
                    end.position, plan.start.checkpoint_end
                ),
            });
        }
        let control = control_file::of_image(&end.control, &self.dir.join(CONTROL))?;
        let wanted = (
            self.log.system_identifier(),
            plan.marker.timeline,
            plan.start.redo,
            end.position,
        );
        let found = (
            control.system_identifier,
            control.timeline,
            control.redo,
            control.backup_end,
        );
        if wanted != found {
            return Err(StorageError::RewindSource {
                problem: "its control file is not of the database, the timeline or the checkpoint that it has told of"
                    .to_owned(),
            });
        }
        Ok(Control {
            state: State::Standby,
            ..control
        })
    }

    fn history(timeline: u32, end: &SourceEnd) -> Result<History> {
        let name = crate::wal::timeline::history_file_name(timeline);
        // R2 of `received_copy`: names come from another machine.
        for (name, _) in &end.history_files {
            if crate::wal::timeline::timeline_of_history_file(name).is_none() {
                return Err(StorageError::InvalidCopy {
                    dir: LOG.into(),
                    problem: format!("the server sends \"{name}\" as the name of a timeline's history"),
                });
            }
        }
        let text = end.history_files.iter().find(|(found, _)| *found == name);
        let text = text.map_or("", |(_, text)| text);
        History::parse(text, timeline).map_err(|problem| StorageError::MalformedHistory {
            file: name.into(),
            line: problem.line,
            problem: problem.problem,
        })
    }
}

/// The CRC-32C of the statuses on a page of the commit log. The header is left out: it holds the position of an image that
/// each side has logged by itself.
pub fn status_sum(page: &[u8]) -> u32 {
    crc32c::crc32c(page.get(PAGE_HEADER..).unwrap_or_default())
}
