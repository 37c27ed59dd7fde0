//! What an access costs, and who has the line then.
//!
//! # Order
//! A hit takes effect when it is issued. A miss is issued at one instant and takes effect at another, when the line leaves
//! its former owner; both are events in the order of simulated time, so the effects of all accesses have one order that
//! respects each worker's own: the memory is sequentially consistent. Until the line leaves, its owner goes on using it, as
//! long as what it does ends before: on a large machine this is why the second try of a failed compare-and-swap usually
//! succeeds, and on a small ring, where the line leaves as soon as a locked instruction has ended, why it does not, and why
//! not even a load comes in between. A line that leaves for a load may still be read.
//!
//! Where `owner_rmws` says so (costs calibrated on the host itself), an owner stops before: read-modify-writes back to back are
//! fewer in a turn than spaced ones that take as long. Why is not known; it was measured. How many they are is drawn for each turn.
//!
//! # Queueing
//! Transfers of a line that change who may write it come one after the other, first come first served; `busy_until` is
//! the end of the last, `heir` who has the line then, `departures` when each takes the line from the one before. Each costs
//! the way from the heir before it, whoever that will be. Reads of a line that is shared go in parallel.
//!
//! # Two hardware threads of one core
//! They have one cache, and yet a line passes between them as between two: who has not looked since the other wrote, and who
//! writes what the other has looked at, waits for a transfer (`smt`), which queues with the others, leaves the line in the core
//! and takes it from the other thread at once, no message having to go anywhere. So it was measured, on one machine, while both
//! want the line back to back. With time between it costs nothing there, which the model does not know (docs/simulator.md,
//! "Here").
//!
//! # Stores
//! A store costs its CPU nothing but its place in the store buffer. It is visible at once, and the line is fetched behind
//! the CPU's back; fences and read-modify-writes wait for it (`drained_at`). Whoever looks at the line meanwhile waits until it
//! has arrived there and fetches it, though he had a copy: else a value would pass from core to core at the price of a hit. That
//! in this way a waiting store is seen early is the one liberty taken with time; never with order.
//!
//! # Far atomics
//! Where the machine has them ([`Costs::far_atomic`](crate::costs::Costs)), a read-modify-write without acquire order, of a
//! line that its core does not hold alone, does not fetch the line. A message goes to the home; the home gets the line from
//! whoever has it, performs the operation and keeps the line; a message brings the answer. Requests meet at the home, so a
//! line under far atomics alone is limited by how long each occupies the home, not by the way between cores. The next load,
//! store or near atomic fetches the line from the home with two messages instead of three.
//!
//! An atomic whose result nobody looks at is *posted*: it keeps its CPU no longer than a store does, until [`POSTED_MAX`] are
//! under way. Like a store it is visible at once, and fences wait for its answer.
//!
//! # What is not here
//! The capacity of caches (a line once fetched stays), the bandwidth of links and memory, out-of-order overlap of misses
//! (but for runs over neighbouring lines), weak memory, and arbitration other than first come first served.

use crate::account::Activity;
use crate::costs::Cores;
use crate::kernel::Kernel;
use crate::lines::{Departure, HOME, LINE, NO_CORE, NO_CPU};

/// What an access does to its line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Access {
    #[default]
    Load,
    Store,
    /// A store that waits until it is visible.
    StoreFenced,
    /// A read-modify-write.
    Modify,
    /// One without acquire order, which may be far.
    ModifyFar,
    /// One whose result nobody looks at, besides.
    Post,
}

/// How many posted atomics a core has under way. Three are enough for two cores to keep a home busy; how many more makes no
/// difference to a line's throughput.
const POSTED_MAX: usize = 16;

/// A miss on its way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Transfer {
    line: usize,
    ends: u64,
    /// Whom a load fetches from if a store of his was still under way when the load was issued.
    /// [`HOME`] if a read-modify-write is done there.
    heir: u16,
}

/// How far an access has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// To its end.
    Done,
    /// The store buffer is empty now; the access begins again.
    Drained,
    /// The clock stands where the line arrives: [`Kernel::arrive`] is next.
    Transfer(Transfer),
}

impl Kernel {
    /// Issues an access by the running worker, at the earliest instant of all (K1).
    pub(crate) fn access(&mut self, address: usize, access: Access) -> Step {
        let cpu_number = usize::from(self.current);
        let core = usize::from(self.costs.core_of[cpu_number]);
        let socket = self.costs.socket_of_core[core];
        let number = self.lines.find(address, socket);
        let start = self.cpus[cpu_number].clock;
        let line = &mut self.lines.lines[number];
        if line.busy_until <= start && line.heir != NO_CORE && line.heir != line.owner {
            // A store has arrived since.
            line.owner = line.heir;
            line.sharers = Default::default();
        }
        line.counters.accesses += 1;
        if access == Access::Load {
            self.issue_load(number, address, cpu_number, core)
        } else {
            self.issue_write(number, address, access, cpu_number, core)
        }
    }

    fn issue_load(&mut self, number: usize, address: usize, cpu_number: usize, core: usize) -> Step {
        let (line, cpu, costs) = (
            &mut self.lines.lines[number],
            &mut self.cpus[cpu_number],
            &self.costs,
        );
        let polls = std::mem::take(&mut cpu.paused) && cpu.polled == address;
        let before = std::mem::replace(&mut cpu.loaded_line, address / LINE);
        cpu.polled = address;
        cpu.polled_version = line.version;
        // What this CPU has in its store buffer it reads from there.
        let forwarded = usize::from(line.heir) == core && cpu.drained_at >= line.busy_until;
        let start = cpu.clock;
        let owned = usize::from(line.owner) == core
            && !line.leaves_before(cpu_number, start, start + costs.load_hit, true)
            && line.is_with(cpu_number, costs);
        if owned || line.sharers.has(core) || forwarded {
            let activity = if polls { Activity::Spin } else { Activity::Latch };
            self.advance(cpu_number, activity, costs.load_hit);
            return Step::Done;
        }
        let begin = start.max(line.busy_until);
        let heir = usize::from(line.heir);
        let storing = if line.heir == line.owner {
            NO_CORE
        } else {
            line.heir
        };
        let (cost, serial) = if heir == core {
            (costs.smt, false)
        } else if line.heir != NO_CORE {
            line.heir = NO_CORE;
            line.reader = core as u16;
            (costs.load_from(core, heir, line.home), true)
        } else if line.owner != NO_CORE {
            // Another load is fetching it from there at this moment.
            (costs.load_from(core, usize::from(line.owner), line.home), false)
        } else if !line.sharers.is_empty() {
            (costs.load_from_nearest(core, &line.sharers, line.home), false)
        } else if line.fetcher == NO_CORE {
            line.fetcher = core as u16;
            (costs.fetch_from_memory(core, line.home), true)
        } else if usize::from(line.fetcher) == core {
            (costs.smt, false)
        } else {
            (costs.load_from(core, usize::from(line.fetcher), line.home), false)
        };
        let cost = if before + 1 == address / LINE {
            costs.streamed(cost)
        } else {
            cost
        };
        let ends = begin + cost;
        if serial || heir == core {
            line.busy_until = ends;
        }
        line.counters.misses += 1;
        line.counters.queue_ps += begin - start;
        line.counters.transfer_ps += cost;
        let arrives = begin + if heir == core { 0 } else { costs.departure(cost) };
        if serial {
            line.departures.push_back(Departure {
                at: arrives,
                to: cpu_number as u16,
                leaves_copy: true,
            });
        }
        self.advance(cpu_number, Activity::Stall, arrives - start);
        Step::Transfer(Transfer {
            line: number,
            ends,
            heir: if serial { storing } else { NO_CORE },
        })
    }

    fn issue_write(
        &mut self,
        number: usize,
        address: usize,
        access: Access,
        cpu_number: usize,
        core: usize,
    ) -> Step {
        let (line, cpu, costs) = (
            &mut self.lines.lines[number],
            &mut self.cpus[cpu_number],
            &self.costs,
        );
        let start = cpu.clock;
        if cpu.drained_at > start
            && access != Access::Store
            && !(access == Access::Post && costs.far_atomic > 0)
        {
            let wait = cpu.drained_at - start;
            cpu.drained_at = 0;
            self.advance(cpu_number, Activity::Stall, wait);
            return Step::Drained;
        }
        let hit = if access == Access::Store {
            costs.store_hit
        } else {
            costs.rmw_hit
        };
        let owned = usize::from(line.owner) == core;
        let alone = line.owner == NO_CORE
            && line.heir == NO_CORE
            && line.busy_until <= start
            && line.sharers.is_only(core);
        let leaves = line.leaves_before(cpu_number, start, start + hit, false);
        let turn_is_over = costs.owner_rmws_1024 > 0 && line.owner_rmws == 0 && !line.departures.is_empty();
        let leaves_before_done = access != Access::Store && (leaves || turn_is_over);
        if (owned && !leaves_before_done && line.is_only_with(cpu_number, costs)) || alone {
            if alone {
                line.owner = core as u16;
                line.heir = core as u16;
                line.sharers = Default::default();
                self.limit_owner(number);
            }
            self.written(number, address, access, cpu_number, start);
            self.advance(cpu_number, Activity::Latch, hit);
            return Step::Done;
        }
        if matches!(access, Access::ModifyFar | Access::Post) && self.costs.far_atomic > 0 {
            return self.issue_far(number, address, access, cpu_number, core);
        }
        // Stores leave their buffer in order.
        let from = start.max(cpu.drained_at);
        let begin = from.max(line.busy_until);
        let heir = usize::from(line.heir);
        let cost = if heir == core {
            costs.smt
        } else if line.heir != NO_CORE {
            costs.take_from(core, heir, line.home)
        } else {
            let mut others = line.sharers;
            others.remove(core);
            if line.owner != NO_CORE {
                // A load is under way, after which its core and the owner share the line.
                if line.owner != HOME {
                    others.add(usize::from(line.owner));
                }
                others.add(usize::from(line.reader));
                others.remove(core);
            }
            if !others.is_empty() {
                costs.take_from_all(core, &others, line.home)
            } else if line.sharers.has(core) || usize::from(line.fetcher) == core {
                hit
            } else if line.fetcher != NO_CORE {
                costs.take_from(core, usize::from(line.fetcher), line.home)
            } else {
                costs.fetch_from_memory(core, line.home)
            }
        }
        .max(hit);
        let ends = begin + cost;
        line.busy_until = ends;
        line.heir = core as u16;
        line.counters.misses += 1;
        line.counters.queue_ps += begin - from;
        line.counters.transfer_ps += cost;
        let arrives = begin + if heir == core { 0 } else { costs.departure(cost) };
        line.departures.push_back(Departure {
            at: arrives,
            to: cpu_number as u16,
            leaves_copy: false,
        });
        if access == Access::Store {
            cpu.drained_at = ends;
            // What it writes is to be seen from now on, so nobody may see it in a copy of his own: who looks, fetches.
            line.owner = core as u16;
            line.sharers = Default::default();
            self.written(number, address, access, cpu_number, start);
            self.advance(cpu_number, Activity::Latch, hit);
            return Step::Done;
        }
        self.advance(cpu_number, Activity::Stall, arrives - start);
        Step::Transfer(Transfer {
            line: number,
            ends,
            heir: NO_CORE,
        })
    }

    /// A read-modify-write that is done where the line is at home.
    #[cold]
    fn issue_far(
        &mut self,
        number: usize,
        address: usize,
        access: Access,
        cpu_number: usize,
        core: usize,
    ) -> Step {
        let (line, cpu, costs, posted) = (
            &mut self.lines.lines[number],
            &mut self.cpus[cpu_number],
            &self.costs,
            &mut self.posted[cpu_number],
        );
        let start = cpu.clock;
        if access == Access::Post {
            while posted.front().is_some_and(|answered| *answered <= start) {
                posted.pop_front();
            }
            if posted.len() == POSTED_MAX {
                let wait = posted[0] - start;
                self.advance(cpu_number, Activity::Stall, wait);
                return Step::Drained;
            }
        }
        let message = costs.message(core, line.home);
        let asked = start + message;
        let begin = asked.max(line.busy_until);
        let mut holders = Cores::default();
        if line.heir < HOME {
            holders.add(usize::from(line.heir));
        } else if line.heir == NO_CORE {
            holders = line.sharers;
            if line.owner != NO_CORE {
                // A load is under way, after which its core and the owner share the line.
                holders.add(usize::from(line.reader));
            }
            if line.owner < HOME {
                holders.add(usize::from(line.owner));
            }
            if holders.is_empty() && line.fetcher != NO_CORE {
                holders.add(usize::from(line.fetcher));
            }
        }
        let recall = if line.heir == HOME {
            0
        } else {
            costs.recall(&holders, line.home)
        };
        let done = begin + recall + costs.far_atomic;
        let ends = done + message;
        line.busy_until = done;
        line.heir = HOME;
        line.counters.misses += 1;
        line.counters.queue_ps += begin - asked;
        line.counters.transfer_ps += ends - begin + message;
        if !holders.is_empty() {
            line.departures.push_back(Departure {
                at: begin + recall / 2,
                to: NO_CPU,
                leaves_copy: false,
            });
        }
        if access == Access::Post {
            cpu.drained_at = cpu.drained_at.max(ends);
            posted.push_back(ends);
            // To be seen from now on, as a store is: who looks, fetches.
            line.owner = HOME;
            line.sharers = Default::default();
            let hit = costs.store_hit;
            self.written(number, address, access, cpu_number, start);
            self.advance(cpu_number, Activity::Latch, hit);
            return Step::Done;
        }
        self.advance(cpu_number, Activity::Stall, done - start);
        Step::Transfer(Transfer {
            line: number,
            ends,
            heir: HOME,
        })
    }

    /// The line of a miss arrives now; the access takes effect.
    pub(crate) fn arrive(&mut self, address: usize, access: Access, transfer: Transfer) {
        let cpu_number = usize::from(self.current);
        let core = usize::from(self.costs.core_of[cpu_number]);
        let line = &mut self.lines.lines[transfer.line];
        let now = self.cpus[cpu_number].clock;
        let hit = if access == Access::Load {
            if transfer.heir != NO_CORE && line.owner != transfer.heir {
                // The store has taken the line from all others before it went on to here.
                line.owner = NO_CORE;
                line.sharers = Default::default();
                if transfer.heir != HOME {
                    line.sharers.add(usize::from(transfer.heir));
                }
                let watchers = std::mem::replace(&mut line.watchers, NO_CPU);
                if watchers != NO_CPU {
                    self.release_watchers(watchers, cpu_number, now);
                }
            }
            let line = &mut self.lines.lines[transfer.line];
            if line.owner != NO_CORE && usize::from(line.owner) != core {
                if line.owner != HOME {
                    line.sharers.add(usize::from(line.owner));
                }
                line.owner = NO_CORE;
            }
            if line.owner == NO_CORE {
                line.sharers.add(core);
            }
            line.both_threads |= self.costs.sibling_of[cpu_number] == Some(line.writer);
            self.cpus[cpu_number].polled_version = line.version;
            self.costs.load_hit
        } else {
            line.owner = if transfer.heir == HOME { HOME } else { core as u16 };
            line.sharers = Default::default();
            self.limit_owner(transfer.line);
            self.written(transfer.line, address, access, cpu_number, now);
            self.costs.rmw_hit
        };
        let rest = transfer.ends.saturating_sub(now);
        let latch = hit.min(rest);
        self.advance(cpu_number, Activity::Latch, latch);
        self.advance(cpu_number, Activity::Stall, rest - latch);
    }

    /// The line has a new owner: how many read-modify-writes it will do if others ask for the line.
    #[inline]
    fn limit_owner(&mut self, number: usize) {
        let limit = self.costs.owner_rmws_1024;
        if limit > 0 {
            // One more or one fewer, a quarter of the turns each, or workers would march in step for ever.
            let drawn = limit.saturating_sub(512) + self.random.below(2048);
            self.lines.lines[number].owner_rmws = (drawn / 1024).max(1);
        }
    }

    /// The line has been written at `at`: whoever polls it will see.
    fn written(&mut self, number: usize, address: usize, access: Access, cpu_number: usize, at: u64) {
        let line = &mut self.lines.lines[number];
        line.version = line.version.wrapping_add(1);
        line.writer = cpu_number as u16;
        line.both_threads = false;
        line.owner_rmws = line.owner_rmws.saturating_sub(1);
        let cpu = &mut self.cpus[cpu_number];
        cpu.paused = false;
        if !matches!(access, Access::Store | Access::StoreFenced) {
            cpu.polled = address;
            cpu.polled_version = line.version;
        }
        // Also of a line that is ours: then the other hardware thread is who polls it.
        let watchers = std::mem::replace(&mut line.watchers, NO_CPU);
        if watchers != NO_CPU {
            self.release_watchers(watchers, cpu_number, at);
        }
    }
}
