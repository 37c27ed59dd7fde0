//! Log records: the meaning of each kind, and its effect.
//!
//! Records are read three times: at a start by the pass that finds the log's end (`open::recovery::scan`), by recovery, and
//! by a standby that replays. All three read a payload through [`Meaning`], the one place that knows the kinds and the
//! forms of their payloads. Recovery and a standby do what it says by [`apply()`], the one place that knows what is done; the
//! differences between the two are in their [`ReplayPolicy`].
//!
//! | kind | says | logged by | recovery | a standby |
//! | --- | --- | --- | --- | --- |
//! | `Change` | bytes of pages change | `change` | its pages change, latched all at once | the same; definitions that changed are remembered |
//! | `Commit`, `Abort` | a transaction has ended, and when | `commit` | its status | the same; then sessions see it |
//! | `CreateRel` | a relation number was handed out, and its file made | `storage::relations` | the file is made again | the same, unless the relation is temporary |
//! | `StatusPage` | a page of the commit log as it was about to be written | `files::status_pages` | the page is healed | the same |
//! | `Checkpoint` | a checkpoint is complete | `open::checkpoint` | nothing: the first pass has read it | a restartpoint may be made there |
//! | `Lengths` | how many pages relations have | `open::checkpoint` | nothing: the first pass has read it | empty pages are added |
//! | `Running`, `Cleanup` | which transactions run; which versions go | `open::checkpoint`, heaps | not read | the known xids; sessions in the way |
//! | `Nothing` | nothing | the log writer | nothing | nothing |
//! | the program's own | what the program has logged | `storage::own_log` | the program's redo (`wal::own_records`) | the same, after all before it |
//!
//! | file | holds |
//! | --- | --- |
//! | `meaning` | kinds and payloads, decoded |
//! | `own` | the program's redo, and the error for what nothing here replays |
//! | `apply` | what a record does, and the policy |
//! | `pages` | changing pages |

mod apply;
mod meaning;
mod own;
pub mod pages;

pub(crate) use self::apply::{ReplayPolicy, TransactionEnd, apply, enter_status, interpret};
pub(crate) use self::meaning::{CheckpointRecord, ForStandbys, Meaning, PageParts};
pub(crate) use self::own::unknown;
