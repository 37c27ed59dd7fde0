//! The thread that replays.

use std::panic::{self, AssertUnwindSafe};
use std::sync::atomic::Ordering::SeqCst;
use std::sync::atomic::fence;
use std::sync::{Arc, Weak};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use clearway_machine::WaitEvent;

use super::replay::{ReplayThreads, Replayer};
use super::restartpoint::restartpoint_loop;
use crate::commit::end_record::time_us as end_time_us;
use crate::commit::wall_clock;
use crate::error::{Result, StorageError};
use crate::page::Lsn;
use crate::replication::standby_state::{ReplayObserver, ReplayVariant, Standby, lock};
use crate::storage::Storage;
use crate::storage::background::BackgroundKind;
use crate::wal::reader::LogReader;
use crate::wal::record::{Record, RecordKind};

/// Records between two notices to those that wait for replay.
const NOTICE_RECORDS: u32 = 256;
/// The thread looks at least so often whether its storage is still there.
const LOOK: Duration = Duration::from_millis(200);

/// Replays the records between two positions, of which each is the end of one, as long as they `may_be_replayed`; the position
/// that it comes to.
pub(crate) fn replay_stretch(
    storage: &Storage,
    replayer: &mut Replayer<'_>,
    from: Lsn,
    to: Lsn,
    mut may_be_replayed: impl FnMut(&Record<'_>) -> bool,
    mut replayed: impl FnMut(RecordKind),
) -> Result<Lsn> {
    let mut reader = LogReader::up_to(storage.wal.device(), from, to).linked(replayer.link());
    loop {
        let start = reader.position();
        let next = reader.next_record();
        let next = next.map_err(|error| StorageError::io("read the log in", replayer.log_dir(), error))?;
        let Some((record, end)) = next else { break };
        if !may_be_replayed(&record) {
            replayer.complete()?;
            return Ok(start);
        }
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

/// The time from which on a record may be replayed under a delay, in microseconds since 2000: that of a commit, by its own time.
/// Other records have none, so that what a transaction has changed is there when its commit is due.
fn due(record: &Record<'_>, delay: Duration) -> i64 {
    if delay.is_zero() || record.kind != RecordKind::COMMIT {
        return i64::MIN;
    }
    let delay_us = i64::try_from(delay.as_micros()).unwrap_or(i64::MAX);
    end_time_us(record.payload).map_or(i64::MIN, |time_us| time_us.saturating_add(delay_us))
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
    // The time from which on the next record may be replayed.
    let mut due_us = i64::MIN;
    loop {
        let is_paused = standby.hold.is_wanted() && !tracker.is_ending();
        standby.hold.set_paused(is_paused);
        let delay_us = match tracker.is_ending() {
            true => 0,
            false => due_us.saturating_sub(wall_clock::now_us()).max(0),
        };
        let is_held = is_paused || delay_us > 0;
        // A record may be received in part: nothing can be done until it is whole.
        let has_received = || tracker.whole() != position;
        let goes_on = || match is_paused {
            true => !standby.hold.is_wanted(),
            false => delay_us == 0 && has_received() || standby.hold.is_wanted(),
        };
        let has_more = || tracker.is_stopping() || tracker.is_ending() || goes_on();
        // What is held back on purpose does not lag either.
        let was_up_to_date = !has_received() || is_held;
        let event = match (is_paused, delay_us > 0, tracker.is_fed()) {
            (true, _, _) => WaitEvent::RecoveryPause,
            (false, true, _) => WaitEvent::RecoveryApplyDelay,
            (false, false, true) => WaitEvent::RecoveryWalStream,
            (false, false, false) => WaitEvent::RecoveryRetry,
        };
        let look = match delay_us {
            0 => LOOK,
            delay_us => LOOK.min(Duration::from_micros(delay_us.unsigned_abs())),
        };
        let woken = tracker.wait(look, event, has_more);
        let Some(storage) = storage.upgrade() else { return };
        if tracker.is_stopping() {
            return;
        }
        if !woken || standby.hold.is_wanted() && !tracker.is_ending() {
            continue;
        }
        // Before the next look whether a pause is wanted: one who asks for it from now on does not find the last one. The fence
        // pairs with that of `notify`.
        standby.hold.set_paused(false);
        fence(SeqCst);
        // A standby does not lag while its primary is idle.
        if was_up_to_date {
            standby.is_up_to_date();
        }
        let is_ending = tracker.is_ending();
        let replayed = Replayer::new(&storage, &standby, threads.as_mut()).and_then(|mut replayer| {
            let whole = tracker.whole();
            let mut count = 0;
            due_us = i64::MIN;
            let may_be_replayed = |record: &Record<'_>| {
                if tracker.is_ending() {
                    return true;
                }
                let at = due(record, standby.options.apply_delay);
                let is_due = at == i64::MIN || at <= wall_clock::now_us();
                // Of what is not replayed alone: a clock that is set back later delays nothing that was due.
                due_us = if is_due { i64::MIN } else { at };
                is_due && !standby.hold.is_wanted()
            };
            let replayed = |_| {
                count += 1;
                if count % NOTICE_RECORDS == 0 {
                    tracker.notify();
                }
            };
            let reached = replay_stretch(
                &storage,
                &mut replayer,
                position,
                whole,
                may_be_replayed,
                replayed,
            );
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
        let is_done = tracker.whole() == whole && reached == whole;
        if is_done {
            standby.is_up_to_date();
        }
        tracker.notify();
        if is_ending && is_done {
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
