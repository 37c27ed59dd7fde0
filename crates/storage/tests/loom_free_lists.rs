//! The lists of free frames under loom: the shipped file, by itself, so that every schedule of two workers on one list
//! is seen. What the pool does with the entries is in `loom_frames.rs`.
//!
//! Mutations (`mutations/buffer.toml`): a change of a list that does not count (the story at the top of the file), an
//! entry pushed `Relaxed`, an entry that is pushed although the frame is listed.

#![cfg(feature = "loom")]

#[path = "../src/buffer/clock/free_lists.rs"]
#[allow(dead_code, reason = "one of its functions is for the clock")]
mod free_lists;

use std::sync::Arc;

use clearway_machine::{Loom, Machine};
use free_lists::FreeLists;
use loom::thread;

fn explore(case: impl Fn(Arc<FreeLists<Loom>>) + Copy + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(move || {
        Loom::workers();
        case(Arc::new(FreeLists::full(1, 3)));
    });
}

/// Takes what is left. A list that has become a ring would not end.
fn rest(lists: &FreeLists<Loom>) -> Vec<u32> {
    let rest: Vec<u32> = std::iter::from_fn(|| lists.pop(0)).take(4).collect();
    assert!(rest.len() <= 3, "a list of three frames has more: {rest:?}");
    rest
}

/// One worker takes an entry; the other takes two and enters one of them again: the story of the file's header. No
/// frame is taken twice without being entered in between, and none is missing.
#[test]
fn loom_no_entry_comes_twice() {
    explore(|lists| {
        let other = {
            let lists = Arc::clone(&lists);
            thread::spawn(move || lists.pop(0))
        };
        let mine = [lists.pop(0), lists.pop(0)];
        let again = mine[0].expect("three entries, and at most two were taken");
        lists.push(0, again);
        let theirs = other.join().unwrap().expect("an entry for each pop");
        let kept = mine[1].expect("an entry for each pop");
        let mut all = rest(&lists);
        all.extend([theirs, kept]);
        all.sort_unstable();
        assert_eq!(all, [0, 1, 2]);
    });
}

/// Two workers free one frame each, with the list empty: both are in it.
#[test]
fn loom_two_entries_at_once_are_both_listed() {
    explore(|lists| {
        assert_eq!(rest(&lists), [0, 1, 2]);
        let other = {
            let lists = Arc::clone(&lists);
            thread::spawn(move || {
                lists.push(0, 1);
                lists.pop(0)
            })
        };
        lists.push(0, 2);
        let theirs = other
            .join()
            .unwrap()
            .expect("what it entered, or what was entered before it");
        let mut all = rest(&lists);
        all.push(theirs);
        all.sort_unstable();
        assert_eq!(all, [1, 2]);
    });
}

/// Two workers free the same frame: it is listed once.
#[test]
fn loom_a_frame_is_listed_once() {
    explore(|lists| {
        assert_eq!(rest(&lists), [0, 1, 2]);
        let other = {
            let lists = Arc::clone(&lists);
            thread::spawn(move || lists.push(0, 1))
        };
        lists.push(0, 1);
        other.join().unwrap();
        assert_eq!(rest(&lists), [1]);
    });
}
