//! The number of sessions that wait for each one, directly or behind others.
//!
//! A session's blockers are all those that are ahead of it in a queue, so a queue of n sessions has n²/2 edges, and following
//! them from each session anew would take n³ steps a look. Warshall's algorithm (1962) over rows of bits takes n³/64 steps at
//! most, circles included:
//!
//! 1. Row `b` has a bit for each session that waits for `b` directly.
//! 2. For each session `w` in turn, a row with bit `w` takes over all bits of row `w`. From then on it has each session that
//!    waits for `b` by way of the sessions up to `w`.
//! 3. A row's bits are counted but for its own: a session in a circle of waits does not wait for itself.

use std::collections::HashMap;

use super::sample::Session;

/// Sets [`Session::waiters`] of all.
pub(super) fn count(sessions: &mut [Session]) {
    let numbers: HashMap<i64, usize> = sessions
        .iter()
        .enumerate()
        .map(|(number, session)| (session.pid, number))
        .collect();
    let mut rows = vec![Bits::new(sessions.len()); sessions.len()];
    for (waiter, session) in sessions.iter().enumerate() {
        // A blocker need not be a client's session, nor be there still.
        for blocker in session.blockers.iter().filter_map(|pid| numbers.get(pid)) {
            rows[*blocker].set(waiter);
        }
    }
    for between in 0..rows.len() {
        if rows[between].is_empty() {
            continue;
        }
        let taken = rows[between].clone();
        for row in rows.iter_mut().filter(|row| row.has(between)) {
            row.add(&taken);
        }
    }
    for (number, session) in sessions.iter_mut().enumerate() {
        session.waiters = rows[number].count() - usize::from(rows[number].has(number));
    }
}

/// A set of numbers below a limit.
#[derive(Clone)]
struct Bits(Vec<u64>);

impl Bits {
    fn new(limit: usize) -> Bits {
        Bits(vec![0; limit.div_ceil(64)])
    }

    fn set(&mut self, number: usize) {
        self.0[number / 64] |= 1 << (number % 64);
    }

    fn has(&self, number: usize) -> bool {
        self.0[number / 64] & 1 << (number % 64) != 0
    }

    fn is_empty(&self) -> bool {
        self.0.iter().all(|word| *word == 0)
    }

    fn add(&mut self, other: &Bits) {
        for (word, more) in self.0.iter_mut().zip(&other.0) {
            *word |= more;
        }
    }

    fn count(&self) -> usize {
        self.0.iter().map(|word| word.count_ones() as usize).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Waiters of sessions that have these numbers and blockers.
    fn waiters(sessions: impl IntoIterator<Item = (i64, Vec<i64>)>) -> Vec<usize> {
        let mut sessions: Vec<_> = sessions
            .into_iter()
            .map(|(pid, blockers)| Session {
                pid,
                blockers,
                ..Session::default()
            })
            .collect();
        count(&mut sessions);
        sessions.iter().map(|session| session.waiters).collect()
    }

    #[test]
    fn those_behind_others_count() {
        assert_eq!(
            waiters([(7, vec![]), (8, vec![7]), (9, vec![8]), (5, vec![])]),
            [2, 1, 0, 0]
        );
        // One that waits for two, which wait for one.
        let fork = [(1, vec![]), (2, vec![1]), (3, vec![1]), (4, vec![2, 3])];
        assert_eq!(waiters(fork), [3, 1, 1, 0]);
        // In whatever order they are listed.
        let fork = [(4, vec![2, 3]), (3, vec![1]), (2, vec![1]), (1, vec![])];
        assert_eq!(waiters(fork), [0, 1, 1, 3]);
    }

    #[test]
    fn a_circle_of_waits_has_an_end() {
        assert_eq!(waiters([(1, vec![2]), (2, vec![1])]), [1, 1]);
        let circle = [
            (1, vec![3]),
            (2, vec![1]),
            (3, vec![2]),
            (4, vec![3]),
            (5, vec![5]),
        ];
        assert_eq!(waiters(circle), [3, 3, 3, 0, 0]);
    }

    #[test]
    fn what_is_no_session_has_no_row() {
        assert_eq!(waiters([(1, vec![0]), (2, vec![1, 77])]), [1, 0]);
        assert!(waiters([]).is_empty());
    }

    /// Each is blocked by all that are ahead of it in the queue; following them from each anew would be 10⁹ steps and more.
    #[test]
    fn a_long_queue_is_counted() {
        const SESSIONS: i64 = 2_000;
        let counted = waiters((0..SESSIONS).map(|pid| (pid, (0..pid).collect())));
        assert!(
            counted
                .iter()
                .rev()
                .enumerate()
                .all(|(behind, waiters)| *waiters == behind)
        );
        // A chain: each is blocked by the one ahead of it.
        let counted = waiters((0..SESSIONS).map(|pid| (pid, vec![pid - 1])));
        assert!(
            counted
                .iter()
                .rev()
                .enumerate()
                .all(|(behind, waiters)| *waiters == behind)
        );
    }
}
