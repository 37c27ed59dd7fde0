//! Tests of what is kept for followers, slots and over stops.

use super::*;
use crate::disk::NativeDisk;
use crate::wal::timeline::History;

const AT: fn(u64) -> Lsn = |segment| Lsn(segment * SEGMENT_SIZE);

fn open(dir: &Path, slot_bytes_max: Option<u64>, kept_from: Lsn) -> Arc<LogRetention> {
    let limits = RetentionLimits {
        keep_bytes: 0,
        slot_bytes_max,
    };
    let history = SharedHistory::new(History::first());
    let opened = LogRetention::open(
        Arc::new(NativeDisk),
        dir,
        true,
        limits,
        kept_from,
        history,
        Arc::default(),
    );
    Arc::new(opened.unwrap())
}

#[test]
fn log_stays_for_followers_and_slots_and_no_longer() {
    let dir = tempfile::tempdir().unwrap();
    let retention = open(dir.path(), None, AT(1));
    let follower = retention.follow(7, Lsn(AT(2).0 + 5), None).unwrap();
    assert_eq!(retention.release(AT(9), AT(9)).unwrap(), AT(2));
    retention.create_slot("archive", None, Some(AT(1))).unwrap();
    assert_eq!(
        retention.slot("archive").unwrap().restart,
        Some(AT(2)),
        "what is there"
    );
    follower.advance(AT(5), true);
    assert_eq!(
        retention.release(AT(9), AT(9)).unwrap(),
        AT(2),
        "the slot needs it"
    );
    drop(follower);
    let follower = retention.follow(7, AT(2), Some("archive")).unwrap();
    follower.advance(AT(6), true);
    follower.replied(AT(6), Lsn(AT(3).0 + 8), Lsn(0), 1);
    assert_eq!(retention.release(AT(9), AT(9)).unwrap(), AT(3));
    // More than it was sent cannot be durable there.
    follower.replied(AT(9), AT(9), AT(9), 2);
    assert_eq!(retention.release(AT(9), AT(9)).unwrap(), AT(6));
    drop(follower);
    retention.drop_slot("archive").unwrap();
    assert_eq!(retention.release(AT(9), AT(9)).unwrap(), AT(9));
    assert!(matches!(
        retention.follow(7, AT(8), None),
        Err(StorageError::LogRemoved { .. })
    ));
}

#[test]
fn slots_keep_log_that_will_be_asked_for_again() {
    let dir = tempfile::tempdir().unwrap();
    let retention = open(dir.path(), None, AT(1));
    for (name, position) in [("ahead", AT(6)), ("behind", AT(5))] {
        retention.create_slot(name, None, Some(AT(1))).unwrap();
        let follower = retention.follow(7, AT(1), Some(name)).unwrap();
        follower.advance(position, true);
        follower.replied(position, position, position, 1);
    }
    let end = Lsn(AT(6).0 - 8);
    retention.log_was_taken_back(end);
    let restart = |name| retention.slot(name).unwrap().restart;
    assert_eq!((restart("ahead"), restart("behind")), (Some(end), Some(AT(5))));
    retention.drop_slot("behind").unwrap();
    assert_eq!(retention.release(AT(9), AT(9)).unwrap(), AT(5));
}

/// A standby that has failed to replay what is durable there may need it again; one that replays nothing does not.
#[test]
fn a_slot_keeps_what_was_not_replayed() {
    let dir = tempfile::tempdir().unwrap();
    let retention = open(dir.path(), None, AT(1));
    retention.create_slot("standby", None, Some(AT(1))).unwrap();
    let follower = retention.follow(7, AT(1), Some("standby")).unwrap();
    follower.advance(AT(6), true);
    let restart = || retention.slot("standby").unwrap().restart;
    follower.replied(AT(6), AT(5), AT(3), 1);
    assert_eq!(restart(), Some(AT(3)));
    follower.replied(AT(6), AT(6), AT(3), 1);
    assert_eq!(restart(), Some(AT(3)));
    assert_eq!(retention.release(AT(9), AT(9)).unwrap(), AT(3));
    follower.replied(AT(6), AT(6), AT(6), 1);
    assert_eq!(restart(), Some(AT(6)));
    retention.create_slot("archive", None, Some(AT(6))).unwrap();
    let follower = retention.follow(8, AT(6), Some("archive")).unwrap();
    follower.advance(AT(8), true);
    follower.replied(AT(8), AT(7), Lsn(0), 1);
    assert_eq!(retention.slot("archive").unwrap().restart, Some(AT(7)));
}

/// After a crash a slot asks for nothing that was removed (R2), and temporary ones are gone.
#[test]
fn slots_outlive_the_process() {
    let dir = tempfile::tempdir().unwrap();
    let retention = open(dir.path(), None, AT(1));
    retention.create_slot("standby_1", None, Some(AT(1))).unwrap();
    retention.create_slot("unused", None, None).unwrap();
    retention
        .create_slot("for_a_backup", Some(7), Some(AT(1)))
        .unwrap();
    let follower = retention.follow(7, AT(1), Some("standby_1")).unwrap();
    follower.advance(AT(4), true);
    follower.replied(AT(4), AT(4), AT(4), 1);
    retention.session_ended(7);
    assert_eq!(retention.release(AT(9), AT(9)).unwrap(), AT(4));
    drop(retention);
    let retention = open(dir.path(), None, AT(4));
    let slots = retention.slots();
    assert_eq!(slots.len(), 2);
    assert_eq!((slots[0].restart, slots[0].lost), (Some(AT(4)), false));
    assert_eq!((slots[1].restart, slots[1].lost), (None, false));
    assert_eq!(retention.release(AT(9), AT(9)).unwrap(), AT(4));
}

/// Alice makes a slot that reserves nothing, and Bob archives through it. The server stops before the log has grown by a
/// segment: the slot still says where Bob is, and Bob goes on (R5).
#[test]
fn a_slot_keeps_its_position_although_no_log_was_removed() {
    let dir = tempfile::tempdir().unwrap();
    let restart = || open(dir.path(), None, AT(1)).slot("bob").unwrap().restart;
    let retention = open(dir.path(), None, AT(1));
    retention.create_slot("bob", None, None).unwrap();
    let bob = retention.follow(7, AT(1), Some("bob")).unwrap();
    let (first, second) = (Lsn(AT(1).0 + 800), Lsn(AT(1).0 + 1600));
    bob.advance(second, true);
    bob.replied(first, first, first, 1);
    assert_eq!(restart(), Some(first), "at once: a crash may follow");
    bob.replied(second, second, second, 2);
    assert_eq!(retention.release(Lsn(AT(1).0 + 64), second).unwrap(), AT(1));
    assert_eq!(restart(), Some(second), "by the checkpoint of an orderly stop");
}

#[test]
fn a_slot_that_holds_too_much_is_lost() {
    let dir = tempfile::tempdir().unwrap();
    let retention = open(dir.path(), Some(2 * SEGMENT_SIZE), AT(1));
    retention.create_slot("slow", None, Some(AT(1))).unwrap();
    let follower = retention.follow(7, AT(1), Some("slow")).unwrap();
    assert_eq!(retention.release(AT(3), AT(3)).unwrap(), AT(1));
    assert!(follower.is_lost().is_ok());
    assert_eq!(retention.release(AT(4), AT(4)).unwrap(), AT(4));
    assert!(matches!(follower.is_lost(), Err(StorageError::LogRemoved { .. })));
    drop(follower);
    assert!(matches!(
        retention.follow(7, AT(4), Some("slow")),
        Err(StorageError::SlotLost { .. })
    ));
    drop(retention);
    assert!(open(dir.path(), None, AT(4)).slots()[0].lost);
}

#[test]
fn what_cannot_be_done_with_slots() {
    let dir = tempfile::tempdir().unwrap();
    let retention = open(dir.path(), None, AT(1));
    let code = |result: Result<()>| result.unwrap_err().sqlstate();
    let long = "x".repeat(64);
    for (name, expected) in [
        ("", "42602"),
        ("Upper", "42602"),
        ("a-b", "42602"),
        (&long, "42622"),
    ] {
        assert_eq!(code(retention.create_slot(name, None, None)), expected);
    }
    retention.create_slot("one", None, None).unwrap();
    assert_eq!(code(retention.create_slot("one", None, None)), "42710");
    assert_eq!(code(retention.drop_slot("two")), "42704");
    let follower = retention.follow(7, AT(1), Some("one")).unwrap();
    assert_eq!(code(retention.drop_slot("one")), "55006");
    assert_eq!(code(retention.follow(8, AT(1), Some("one")).map(drop)), "55006");
    drop(follower);
    for number in 1..SLOTS_MAX {
        retention.create_slot(&format!("s{number}"), None, None).unwrap();
    }
    assert_eq!(code(retention.create_slot("more", None, None)), "53400");
    retention.drop_slot("one").unwrap();
}
