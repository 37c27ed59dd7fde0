//! The cost of an access, and which core has the line afterwards.
//!
//! # Order
//! A hit takes effect when it is issued. A miss is issued at one instant and takes effect at another, when
//! the line leaves its former owner. Both are events in the order of simulated time, so the effects of all
//! accesses have one order that respects each worker's own: the memory is sequentially consistent. Until the
//! line leaves, its owner still uses it, for accesses that end before. On a large machine this is why the
//! second try of a failed compare-and-swap usually succeeds. On a small ring the line leaves as soon as a
//! locked instruction has ended, so there the second try fails, and not even a load fits in between. A line
//! that leaves for a load may still be read.
//!
//! With `owner_rmws` (costs calibrated on the host itself), an owner stops earlier: it gets fewer
//! read-modify-writes in a turn if they are back to back than if they are spaced and take as long. The reason
//! is unknown; it was measured. Their number is drawn for each turn.
//!
//! # Queueing
//! Transfers of a line that change its writer come one after the other, first come first served. `busy_until`
//! is the end of the last, `heir` the core that has the line then, `departures` the instants at which each
//! transfer takes the line from the core before. Each costs the distance from the heir before it. Reads of a
//! shared line go in parallel.
//!
//! # Two hardware threads of one core
//! They have one cache, and yet a line passes between them as between two cores. A thread that has not read
//! the line since the other wrote it, or that writes what the other has read, waits for a transfer (`smt`).
//! Such a transfer queues with the others, leaves the line in the core, and takes it from the other thread at
//! once, since no message has to travel. That was measured, on one machine, while both threads want the line
//! back to back. With time between the accesses it costs nothing there, which the model does not reproduce
//! (docs/log.md, "Here").
//!
//! # Stores
//! A store costs its CPU only its entry in the store buffer. It is visible at once, and the line is fetched
//! in the background; fences and read-modify-writes wait for it (`drained_at`). A core that reads the line
//! meanwhile waits until the line has arrived there and fetches it, even if the core had a copy. Otherwise a
//! value would pass from core to core at the price of a hit. So a waiting store is seen early; that is the
//! model's only liberty with time, and it takes none with order.
//!
//! # Far atomics
//! Where the machine has them ([`Costs::far_atomic`](crate::costs::Costs)), a read-modify-write without
//! acquire order, of a line that its core does not hold alone, does not fetch the line. A message goes to the
//! home. The home gets the line from the core that has it, performs the operation and keeps the line; a
//! message brings the answer. Requests meet at the home, so a line under far atomics alone is limited by the
//! time that each occupies the home, not by the distance between cores. The next load, store or near atomic
//! fetches the line from the home with two messages instead of three.
//!
//! An atomic whose result is unused is *posted*: it occupies its CPU no longer than a store does, until
//! [`POSTED_MAX`] are in flight. Like a store it is visible at once, and fences wait for its answer.
//!
//! # Not modelled
//! The capacity of caches (a line once fetched stays), the bandwidth of links and memory, out-of-order
//! overlap of misses (except for runs over neighbouring lines), weak memory, and arbitration other than first
//! come first served.

use super::Kernel;
use crate::account::Activity;
use crate::costs::{Cores, Costs, HOME};
use crate::lines::{Departure, LINE, Line, NO_CORE, NO_CPU};

/// The kind of an access.
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
    /// An addition without order whose result is unused.
    Post,
}

/// The most posted atomics that a core has in flight. With three, two cores keep a home busy; more make no
/// difference to a line's throughput.
const POSTED_MAX: usize = 16;

/// A miss in flight.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Transfer {
    line: usize,
    ends: u64,
    /// Source core of a load if that core's store was in flight when the load was issued.
    /// [`HOME`] if a read-modify-write is done there.
    heir: u16,
}

/// The progress of an access.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// It has ended.
    Done,
    /// The store buffer is empty now; the access begins again.
    Drained,
    /// The clock is at the line's arrival: [`Kernel::arrive`] is next.
    Transfer(Transfer),
}

/// The cost of taking a line from all that have it or will have it, for a write by `core` that costs `hit` on a line of
/// its own.
#[inline(always)]
fn cost_of_taking(line: &Line, core: usize, hit: u64, costs: &Costs) -> u64 {
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
    };
    cost.max(hit)
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
        let worker = self.cpus[cpu_number].running;
        line.used.note(self.line_account, worker, access != Access::Load);
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
        // A CPU reads its own store buffer first.
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
        let cost = cost_of_taking(line, core, hit, costs);
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
            // The value is visible from now on, so no core may read an old copy: each reader fetches the
            // line.
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
            // Visible from now on, as a store is: each reader fetches the line.
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

    /// The line has been written at `at`: ends the polls of its watchers.
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
        // Also of a line of this core: then the other hardware thread polls it.
        let watchers = std::mem::replace(&mut line.watchers, NO_CPU);
        if watchers != NO_CPU {
            self.release_watchers(watchers, cpu_number, at);
        }
    }
}
