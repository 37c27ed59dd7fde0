//! The thread that replays.

use std::panic::{self, AssertUnwindSafe};
use std::sync::{Arc, Weak};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use clearway_machine::WaitEvent;

use super::replay::{ReplayThreads, Replayer};
use super::restartpoint::restartpoint_loop;
use crate::error::{Result, StorageError};
use crate::page::Lsn;
use crate::replication::standby_state::{ReplayObserver, ReplayVariant, Standby, lock};
use crate::storage::Storage;
use crate::storage::background::BackgroundKind;
use crate::wal::reader::LogReader;
use crate::wal::record::RecordKind;

/// Records between two notices to those that wait for replay.
const NOTICE_RECORDS: u32 = 256;
/// The thread looks at least so often whether its storage is still there.
const LOOK: Duration = Duration::from_millis(200);

/// Replays the records between two positions, of which each is the end of one; the second position.
pub(crate) fn replay_stretch(
    storage: &Storage,
    replayer: &mut Replayer<'_>,
    from: Lsn,
    to: Lsn,
    mut replayed: impl FnMut(RecordKind),
) -> Result<Lsn> {
    let mut reader = LogReader::up_to(storage.wal.device(), from, to).linked(replayer.link());
    loop {
        let start = reader.position();
        let next = reader.next_record();
        let next = next.map_err(|error| StorageError::io("read the log in", replayer.log_dir(), error))?;
        let Some((record, end)) = next else { break };
        replayer.replay(&record, start, end)?;
        replayed(record.kind);
    }
    replayer.complete()?;
    let position = reader.position();
    if position < to {
        return Err(StorageError::CorruptFile {
            file: storage.segment_path(position),
            offset: position.0 % crate::wal::SEGMENT_SIZE,
            problem: format!(
                "no whole log record at position {position}, although log up to {to} was received here: the disk has \
                 changed it; start this server again, which has it sent again from there on, or take a new base backup \
                 into an empty directory"
            ),
        });
    }
    Ok(position)
}

/// The body of the thread that replays: to the end of replay and, if that has failed, on to the end of the standby, so that
/// views show a replay that has failed rather than none.
fn replay_thread(storage: Weak<Storage>, standby: Arc<Standby>) {
    let replays = AssertUnwindSafe(|| replay_loop(storage.clone(), Arc::clone(&standby)));
    // Nothing that was being changed is used again: after a failure nothing is replayed, and the standby is not promoted.
    if panic::catch_unwind(replays).is_err() {
        standby.fail(&standby.failed("the thread that replays has panicked"));
    }
    let tracker = &standby.progress;
    let is_over = || tracker.is_stopping() || tracker.is_ending() || storage.strong_count() == 0;
    while tracker.has_failed() && !is_over() {
        tracker.wait_failed(LOOK, is_over);
    }
}

/// Replays as log is received, until it is stopped; or ended, which is when all that was received is replayed.
fn replay_loop(storage: Weak<Storage>, standby: Arc<Standby>) {
    let tracker = &standby.progress;
    let mut threads = match standby.options.replay {
        ReplayVariant::Serial => None,
        ReplayVariant::Parallel => match ReplayThreads::start(standby.options.replay_workers) {
            Ok(threads) => Some(threads),
            Err(error) => return standby.fail(&error),
        },
    };
    let mut position = tracker.get().replayed;
    loop {
        // A record may be received in part: nothing can be done until it is whole.
        let has_received = || tracker.whole() != position;
        let has_more = || tracker.is_stopping() || tracker.is_ending() || has_received();
        let was_up_to_date = !has_received();
        let event = match tracker.is_fed() {
            true => WaitEvent::RecoveryWalStream,
            false => WaitEvent::RecoveryRetry,
        };
        let woken = tracker.wait(LOOK, event, has_more);
        let Some(storage) = storage.upgrade() else { return };
        if tracker.is_stopping() {
            return;
        }
        if !woken {
            continue;
        }
        // A standby does not lag while its primary is idle.
        if was_up_to_date {
            standby.is_up_to_date();
        }
        let is_ending = tracker.is_ending();
        let replayed = Replayer::new(&storage, &standby, threads.as_mut()).and_then(|mut replayer| {
            let whole = tracker.whole();
            let mut count = 0;
            let reached = replay_stretch(&storage, &mut replayer, position, whole, |_| {
                count += 1;
                if count % NOTICE_RECORDS == 0 {
                    tracker.notify();
                }
            });
            replayer.idle();
            reached.map(|reached| (reached, whole))
        });
        let (reached, whole) = match replayed {
            Ok(reached) => reached,
            Err(error) => {
                if !tracker.is_stopping() {
                    standby.fail(&error);
                }
                return;
            }
        };
        position = reached;
        if tracker.whole() == whole {
            standby.is_up_to_date();
        }
        tracker.notify();
        if is_ending && tracker.whole() == whole {
            return;
        }
    }
}

impl Storage {
    /// Starts to replay what is received, and to make restartpoints. `observer` learns of it; called once.
    pub fn start_replay(self: &Arc<Self>, observer: Arc<dyn ReplayObserver>) -> Result<()> {
        let Some(standby) = self.standby() else {
            return Ok(());
        };
        if standby.observer.set(observer).is_err() {
            return Err(standby.failed("replay was started before"));
        }
        standby.is_up_to_date();
        type Body = fn(Weak<Storage>, Arc<Standby>);
        let start = |name: &str, kind: BackgroundKind, body: Body| -> Result<JoinHandle<()>> {
            let (weak, standby) = (Arc::downgrade(self), Arc::clone(standby));
            let background = Arc::clone(&self.background);
            thread::Builder::new()
                .name(name.into())
                .spawn(move || {
                    let _entered = background.enter(kind);
                    body(weak, standby);
                })
                .map_err(|error| StorageError::io("start a thread for", self.dir(), error))
        };
        let replay = start("replay", BackgroundKind::Replay, replay_thread)?;
        *lock(&standby.replay_thread) = Some(replay);
        self.keep_thread(start(
            "restartpoints",
            BackgroundKind::Checkpointer,
            restartpoint_loop,
        )?);
        Ok(())
    }
}
