//! The known xids against a plain set, with every variant: random histories, initialisation, refusals.

mod support;

use clearway_machine::Native;
use clearway_txn::{
    KnownXids, KnownXidsError, KnownXidsOptions, KnownXidsState, RunningTransactions, RunningXids, Xid,
};
use proptest::prelude::*;
use support::known_xids::{Model, Step, begun, taken, xids};

const SESSIONS: u32 = 4;

fn each(capacity: u32) -> impl Iterator<Item = KnownXidsOptions> {
    KnownXidsOptions::each_variant(SESSIONS, capacity)
}

/// A step by numbers: what it does, and of which of the newest xids.
type Drawn = (u8, u64, u64, Vec<u64>);

fn step((kind, one, two, others): &Drawn, model: &Model) -> Step {
    // Those that run, and some that have ended or are not there yet.
    let running: Vec<u64> = model.running.iter().copied().collect();
    let pick = |number: u64| match running.len() as u64 {
        length if length > 0 && !number.is_multiple_of(8) => running[(number % length) as usize],
        _ => (model.next + 3).saturating_sub(number % 40),
    };
    let others: Vec<u64> = others.iter().map(|number| pick(*number)).collect();
    match kind {
        0..40 => Step::Add(model.next, model.next + one % 3),
        40..44 => Step::Add(model.next + one % 5_000, model.next + one % 5_000 + two % 90),
        44 => Step::Add(model.next + one % 1_000_000_000, model.next + one % 1_000_000_000),
        45 => Step::Add((model.next + 1).saturating_sub(one % 3), model.next + two % 2),
        46..80 => Step::Remove(pick(*one)),
        80..95 => Step::Tree(pick(*one), others),
        95..98 => Step::Preceding(pick(*one), others),
        _ => Step::Idle,
    }
}

/// K4: as long as one worker has what replay does, no other gets it, however often it asks.
#[test]
fn replay_is_one_workers_at_a_time() {
    for options in KnownXidsOptions::each_variant(1, 4) {
        let known = KnownXids::<Native>::new(options);
        let replay = known.replay().unwrap();
        for _ in 0..3 {
            assert!(known.replay().is_none());
        }
        drop(replay);
        assert!(known.replay().is_some());
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_variant_is_a_plain_set(
        drawn in prop::collection::vec(
            (0_u8..100, any::<u64>(), any::<u64>(), prop::collection::vec(any::<u64>(), 0..5)),
            1..400,
        ),
        capacity in prop_oneof![1_u32..20, 20_u32..600],
        first in 2_u64..100_000,
    ) {
        for options in each(capacity) {
            let known = begun::<Native>(options, &[], first);
            let mut replay = known.replay().unwrap();
            let mut model = Model::begun(&[], first, capacity);
            let mut running = RunningXids::default();
            for drawn in &drawn {
                let step = step(drawn, &model);
                let allowed = model.apply(&step);
                prop_assert_eq!(step.replay(&mut replay), allowed, "{:?} under {:?}", step, options);
                prop_assert_eq!(replay.running() as usize, model.running.len());
                prop_assert_eq!(taken(&known), model.snapshot(), "after {:?} under {:?}", step, options);
                let xmax = model.next.saturating_sub(drawn.2 % 100);
                known.snapshot_below(Xid(xmax), &mut running).unwrap();
                let expected = model.running_below(xmax);
                prop_assert_eq!(running.xids(), &expected[..], "below {} under {:?}", xmax, options);
                prop_assert_eq!(running.xmin(), expected.first().copied().unwrap_or(Xid(xmax)));
            }
        }
    }
}

/// One transaction stays open while 300,000 come and go: it becomes a straggler, entries are compacted, and the room
/// does not run out.
#[test]
fn an_old_transaction_outlives_many() {
    for options in each(200) {
        let known = begun::<Native>(options, &[], 1_000);
        let mut replay = known.replay().unwrap();
        replay.add(Xid(1_000), Xid(1_001)).unwrap();
        for xid in 1_002..301_002 {
            replay.add(Xid(xid), Xid(xid)).unwrap();
            replay.remove(Xid(xid));
        }
        replay.remove(Xid(1_000));
        assert_eq!(taken(&known), (Xid(301_002), vec![Xid(1_001)]), "{options:?}");
        replay.remove(Xid(1_001));
        assert_eq!((replay.running(), replay.range()), (0, 0), "{options:?}");
    }
}

/// More transactions become stragglers, and end, than there are places for.
#[test]
fn stragglers_make_room_for_others() {
    for options in each(150) {
        let known = begun::<Native>(options, &[], 8_192);
        let mut replay = known.replay().unwrap();
        let mut model = Model::begun(&[], 8_192, 150);
        for round in 0..40_u64 {
            let first = 8_192 + round * 20_000;
            let add = Step::Add(first, first + 59);
            assert!(model.apply(&add) && add.replay(&mut replay));
            // Of the last round's, which are stragglers by now, one stays.
            let Some(last) = round.checked_sub(1).map(|last| 8_192 + last * 20_000) else {
                continue;
            };
            for place in (3..60).rev() {
                let remove = Step::Remove(last + place);
                model.apply(&remove);
                remove.replay(&mut replay);
                assert_eq!(taken(&known), model.snapshot(), "{options:?}");
            }
            let all = Step::Preceding(first, vec![last]);
            model.apply(&all);
            all.replay(&mut replay);
            assert_eq!(taken(&known), model.snapshot(), "{options:?}");
        }
    }
}

/// The range obeys `known_xids_compaction` while one transaction stays open.
#[test]
fn the_array_is_compacted_by_its_rule() {
    for options in each(10_000) {
        let known = begun::<Native>(options, &[], 100);
        let mut replay = known.replay().unwrap();
        let mut longest = 0;
        for xid in 100..5_100 {
            replay.add(Xid(xid), Xid(xid)).unwrap();
            longest = longest.max(replay.range());
            if xid > 100 {
                replay.remove(Xid(xid));
            }
        }
        let name = format!("{:?} {:?}", options.variant, options.compaction);
        let expected = match name.as_str() {
            "Array Of2010" => 4 * u64::from(SESSIONS),
            "Array Of2022" => 128 + 1,
            _ => 5_000,
        };
        assert_eq!(longest, expected, "{name}");
        replay.idle();
        if name == "Array Of2022" {
            assert_eq!(replay.range(), 1);
        }
    }
}

/// An absent xid does no harm, and is no end: one that ends twice, one that was never added.
#[test]
fn an_absent_xid_changes_nothing() {
    for options in each(10) {
        let known = begun::<Native>(options, &[5], 8);
        let mut replay = known.replay().unwrap();
        replay.add(Xid(8), Xid(9)).unwrap();
        for xid in [4, 6, 10, 1 << 61] {
            replay.remove(Xid(xid));
            replay.remove_tree(Xid(xid), &xids(&[4, xid]));
            assert_eq!(taken(&known), (Xid(8), vec![Xid(5)]), "{options:?}");
        }
        replay.remove_tree(Xid(9), &xids(&[9, 9]));
        replay.remove(Xid(9));
        assert_eq!(taken(&known), (Xid(10), xids(&[5, 8])), "{options:?}");
        assert_eq!(replay.running(), 2);
    }
}

#[test]
fn wrong_order_and_lack_of_room_are_refused() {
    for options in each(4) {
        let known = begun::<Native>(options, &[100], 102);
        let mut replay = known.replay().unwrap();
        assert!(known.replay().is_none(), "two write");
        let refused = replay.add(Xid(101), Xid(103)).unwrap_err();
        assert_eq!(
            refused.to_string(),
            "xids are added in ascending order: 101 to 103 cannot follow 102, the next one expected"
        );
        assert!(replay.add(Xid(103), Xid(102)).is_err());
        assert!(replay.add(Xid(1 << 62), Xid(1 << 62)).is_err());
        replay.add(Xid(103), Xid(104)).unwrap();
        let refused = replay.add(Xid(105), Xid(106)).unwrap_err();
        assert_eq!(
            refused.to_string(),
            "no room for 2 more running transactions: 3 of at most 4 are known. The standby must allow as many sessions \
             as the primary"
        );
        // Nothing was added.
        assert_eq!((replay.running(), replay.next()), (3, Xid(105)));
        replay.add(Xid(105), Xid(105)).unwrap();
        drop(replay);
        assert!(known.replay().is_some());
    }
}

fn record<'a>(
    running: &'a [Xid],
    oldest_running: u64,
    next: u64,
    overflowed: bool,
) -> RunningTransactions<'a> {
    RunningTransactions {
        next: Xid(next),
        oldest_running: Xid(oldest_running),
        newest_ended: Xid(next - 1),
        running,
        overflowed,
        prepared: &[],
    }
}

#[test]
fn readers_wait_until_all_is_known() {
    for options in each(10) {
        let known = KnownXids::<Native>::new(options);
        let mut replay = known.replay().unwrap();
        let mut running = RunningXids::default();
        assert_eq!(replay.add(Xid(7), Xid(7)), Err(KnownXidsError::Unknown));
        assert_eq!(
            known.snapshot(&mut running).unwrap_err().to_string(),
            "the standby is not consistent yet: it waits for a record of the primary's running transactions"
        );
        // Subtransactions below 50 are missing; 50 to 52 come later.
        let state = replay.apply(&record(&xids(&[20, 30]), 20, 50, true));
        assert_eq!(state, Ok(KnownXidsState::Incomplete));
        replay.add(Xid(50), Xid(52)).unwrap();
        replay.remove(Xid(20));
        assert_eq!(
            known.snapshot(&mut running).unwrap_err().to_string(),
            "the standby is not consistent yet: a transaction on the primary with many subtransactions has to end first"
        );
        let state = replay.apply(&record(&xids(&[30, 51]), 30, 53, true));
        assert_eq!(state, Ok(KnownXidsState::Incomplete));
        // All of before 50 have ended.
        let state = replay.apply(&record(&xids(&[51]), 51, 53, true));
        assert_eq!(state, Ok(KnownXidsState::Complete));
        assert_eq!(taken(&known), (Xid(51), vec![]), "{options:?}");
        replay.remove(Xid(52));
        assert_eq!(taken(&known), (Xid(53), vec![Xid(51)]), "{options:?}");
    }
}

/// A later record that lists all takes the place of one that did not, though its xids are older.
#[test]
fn a_whole_record_takes_the_place_of_one_with_gaps() {
    for options in each(100) {
        let known = KnownXids::<Native>::new(options);
        let mut replay = known.replay().unwrap();
        replay.apply(&record(&xids(&[9_000]), 20, 10_000, true)).unwrap();
        replay.add(Xid(30_000), Xid(30_001)).unwrap();
        let listed = xids(&[20, 21, 9_000, 30_000]);
        let state = replay.apply(&record(&listed, 20, 40_000, false));
        assert_eq!(state, Ok(KnownXidsState::Complete));
        assert_eq!(taken(&known), (Xid(40_000), listed), "{options:?}");
        assert!(replay.add(Xid(39_999), Xid(39_999)).is_err());
        replay.add(Xid(40_000), Xid(40_000)).unwrap();
    }
}

/// A transaction without an end in the log goes with the next record, and a prepared one stays.
#[test]
fn a_record_removes_what_was_lost_and_no_prepared_one() {
    for options in each(10) {
        let known = begun::<Native>(options, &[100, 101, 102], 103);
        let mut replay = known.replay().unwrap();
        replay.add(Xid(103), Xid(104)).unwrap();
        let prepared = xids(&[101]);
        let record = RunningTransactions {
            prepared: &prepared,
            ..record(&[], 104, 105, false)
        };
        replay.apply(&record).unwrap();
        assert_eq!(taken(&known), (Xid(104), vec![Xid(101)]), "{options:?}");
        assert_eq!(replay.running(), 2);
    }
}

#[test]
fn a_record_that_cannot_be_true_is_refused() {
    let known = KnownXids::<Native>::new(KnownXidsOptions::for_sessions(1));
    let mut replay = known.replay().unwrap();
    let mut refused = |running: &[u64], oldest, newest_ended, next| {
        let running = xids(running);
        let record = RunningTransactions {
            newest_ended: Xid(newest_ended),
            ..record(&running, oldest, next, false)
        };
        replay.apply(&record).unwrap_err().to_string()
    };
    for (said, expected) in [
        (refused(&[5, 5], 5, 6, 7), "its xids are not in ascending order"),
        (refused(&[7], 5, 6, 7), "a running xid has not been handed out"),
        (refused(&[], 8, 6, 7), "a running xid has not been handed out"),
        (
            refused(&[4], 5, 6, 7),
            "an xid runs that is older than the oldest",
        ),
        (
            refused(&[5], 5, 7, 7),
            "an xid has ended that has not been handed out",
        ),
        (refused(&[], 1, 6, 7), "an xid is out of bounds"),
        (refused(&[], 5, 6, 1 << 62), "an xid is out of bounds"),
    ] {
        assert_eq!(
            said,
            format!("a record of running transactions contradicts itself: {expected}")
        );
    }
    let many: Vec<u64> = (5..71).collect();
    assert!(
        refused(&many, 5, 70, 71).starts_with("no room for 66 more running transactions: 0 of at most 65")
    );
    assert_eq!(known.state(), KnownXidsState::Unknown);
}
