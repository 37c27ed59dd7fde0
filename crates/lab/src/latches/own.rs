//! Latches of a program's own, in `bench latches` and in a latch-mix.
//!
//! A program that links this crate [adds](add_latch) its latch under a name. From then on the name stands for it in
//! [`LatchBenchOptions::latches`](super::LatchBenchOptions::latches) and in the file of an experiment (`latch =
//! "ticket"`), beside the latches that are here already. The repository's `examples/own-latch` is such a program.
//!
//! A latch that is generic over [`Machine`](clearway_machine::Machine) is added as two types: on
//! [`Native`](clearway_machine::Native) it is measured, on [`Simulated`](clearway_sim::Simulated) it is simulated.
//!
//! # Rules
//! 1. A latch is added before the options that name it are checked and before the experiment that names it is loaded.
//! 2. It stays for the life of the process, so a name means one latch in all results of the process.

use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use clearway_latch::LwLockOptions;
use clearway_machine::Padded;

use super::catalogue::{self, Entry, Modes};
use super::native::{Pair, PairUnderLatch};
use super::point;
use super::simulated::{LatchWithWords, RunsSection, SpinKind, with_words};
use crate::error::{LabError, Result};

/// A latch that can be measured and simulated.
pub trait OwnLatch {
    /// A free one.
    fn idle() -> Self;

    /// Runs `section` while the latch is held shared. A mutex has no readers: they take it as writers do.
    fn read<R>(&self, section: impl FnOnce() -> R) -> R;

    /// Runs `section` while the latch is held exclusively.
    fn write<R>(&self, section: impl FnOnce() -> R) -> R;
}

/// The role of a latch's readers, which decides what `bench latches` compares it with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OwnLatchKind {
    /// They hold it together.
    ReaderWriter,
    /// There are none: `bench latches` measures it with a read share of 0 only.
    Mutex,
}

/// Adds a latch under `name`; `text` says in a sentence what it is. `N` is measured, `S` is simulated.
///
/// # Errors
/// A name that a latch has already, and one that a command line or an experiment file cannot hold: it must be of
/// lower-case letters, digits, `-` and `_`.
pub fn add_latch<N, S>(name: &str, text: &str, kind: OwnLatchKind) -> Result<()>
where
    N: OwnLatch + Sync + 'static,
    S: OwnLatch + 'static,
{
    let fits = |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit() || "-_".contains(letter);
    if name.is_empty() || !name.chars().all(fits) {
        return Err(LabError::BadLatchName {
            name: name.to_owned(),
        });
    }
    let is_new = catalogue::add(Entry {
        name: name.to_owned().leak(),
        text: text.to_owned().leak(),
        modes: match kind {
            OwnLatchKind::ReaderWriter => Modes::ReaderWriter,
            OwnLatchKind::Mutex => Modes::Mutex,
        },
        bytes: size_of::<N>(),
        measure: |_: LwLockOptions, point| point::measure(point, &Padded(WithPair::<N>::idle()).0),
        simulated: Some(|_: LwLockOptions, _: SpinKind| -> Rc<dyn LatchWithWords> {
            with_words(OnMachine(S::idle()))
        }),
    });
    if is_new {
        Ok(())
    } else {
        Err(LabError::LatchNameTaken {
            name: name.to_owned(),
        })
    }
}

/// A latch with its data, which are atomic words, so that a latch that does not exclude shows as torn data and is no
/// undefined behaviour.
struct WithPair<L> {
    latch: L,
    words: [AtomicU64; 2],
}

impl<L: OwnLatch> WithPair<L> {
    fn idle() -> Self {
        Self {
            latch: L::idle(),
            words: Default::default(),
        }
    }

    #[inline]
    fn pair(&self) -> Pair {
        Pair([self.words[0].load(Relaxed), self.words[1].load(Relaxed)])
    }
}

impl<L: OwnLatch + Sync> PairUnderLatch for WithPair<L> {
    #[inline]
    fn read<R>(&self, look: impl Fn(&Pair) -> R) -> R {
        self.latch.read(|| look(&self.pair()))
    }
    #[inline]
    fn write<R>(&self, change: impl FnOnce(&mut Pair) -> R) -> R {
        self.latch.write(|| {
            let mut pair = self.pair();
            let result = change(&mut pair);
            self.words[0].store(pair.0[0], Relaxed);
            self.words[1].store(pair.0[1], Relaxed);
            result
        })
    }
}

/// A latch on the simulated machine.
struct OnMachine<L>(L);

impl<L: OwnLatch> RunsSection for OnMachine<L> {
    fn read(&self, section: &dyn Fn()) {
        self.0.read(section);
    }
    fn write(&self, section: &dyn Fn()) {
        self.0.write(section);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use clearway_latch::SpinPolicy;

    use super::*;
    use crate::latches::{LatchBenchOptions, run_latch_bench};

    /// Lets everybody in.
    struct Open;

    impl OwnLatch for Open {
        fn idle() -> Self {
            Self
        }
        fn read<R>(&self, section: impl FnOnce() -> R) -> R {
            section()
        }
        fn write<R>(&self, section: impl FnOnce() -> R) -> R {
            section()
        }
    }

    #[test]
    fn names_that_are_taken_or_cannot_be_written_are_refused() {
        let add =
            |name: &str| add_latch::<Open, Open>(name, "Lets everybody in.", OwnLatchKind::ReaderWriter);
        for taken in ["lwlock", "lwlock-single-cas", "std-mutex"] {
            assert!(
                matches!(add(taken), Err(LabError::LatchNameTaken { .. })),
                "{taken}"
            );
        }
        for bad in ["", "Open", "an open one", "a,b"] {
            assert!(matches!(add(bad), Err(LabError::BadLatchName { .. })), "{bad}");
        }
    }

    /// A latch that is none does not pass for a fast one.
    #[test]
    fn a_latch_that_does_not_exclude_ends_the_bench() {
        add_latch::<Open, Open>("open", "Lets everybody in.", OwnLatchKind::ReaderWriter).unwrap();
        let options = LatchBenchOptions {
            threads: vec![4],
            sections: vec![Duration::from_micros(1)],
            read_shares: vec![50.0],
            latches: vec!["open".to_owned()],
            spin: SpinPolicy::Adaptive,
            duration: Duration::from_millis(100),
            rounds: 3,
            seed: 1,
            command: "test".to_owned(),
            progress: false,
        };
        let error = run_latch_bench(&options).unwrap_err();
        assert!(matches!(error, LabError::Torn { .. }), "{error}");
    }
}
