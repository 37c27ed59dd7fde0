//! A scheduler of shuttle that lets a thread run on for a while.
//!
//! Shuttle's own random scheduler draws a thread at each step, so that while one takes five steps the others
//! take about five each. A whole insertion, which takes hundreds, never fits between two steps of another
//! that way. Its scheduler by priorities, which could do that, sends a thread to the back at each yield, and
//! each access to a page is one.
//!
//! Here a thread keeps its turn, with the same chance at each step. How long turns are is drawn for each execution.

use shuttle::scheduler::{RandomScheduler, Schedule, Scheduler, Task, TaskId};
use shuttle::{Config, Runner};

/// Steps in a turn, about.
const TURNS: [u64; 4] = [2, 10, 50, 250];

struct LongTurns {
    random: RandomScheduler,
    turn: u64,
}

impl Scheduler for LongTurns {
    fn new_execution(&mut self) -> Option<Schedule> {
        let schedule = self.random.new_execution()?;
        self.turn = TURNS[self.random.next_u64() as usize % TURNS.len()];
        Some(schedule)
    }

    fn next_task(
        &mut self,
        runnable: &[&Task],
        current: Option<TaskId>,
        is_yielding: bool,
    ) -> Option<TaskId> {
        let goes_on = current.filter(|current| runnable.iter().any(|task| task.id() == *current));
        if goes_on.is_some() && !self.random.next_u64().is_multiple_of(self.turn) {
            return goes_on;
        }
        self.random.next_task(runnable, current, is_yielding)
    }

    fn next_u64(&mut self) -> u64 {
        self.random.next_u64()
    }
}

/// Runs `case` under `executions` schedules. A failure prints its seed, to be replayed with `SHUTTLE_RANDOM_SEED`.
pub fn check(case: impl Fn() + Send + Sync + 'static, executions: usize) {
    let scheduler = LongTurns {
        random: RandomScheduler::new(executions),
        turn: 1,
    };
    Runner::new(scheduler, Config::default()).run(case);
}
