//! Traces of a short window in Chrome's JSON format, which Perfetto reads.
//!
//! | process | tracks | slices |
//! | --- | --- | --- |
//! | CPUs: workers | a CPU | the worker that it runs, from where it gets the CPU to where it leaves it; none: idle |
//! | CPUs: activity | a CPU | what its time goes to; all of the time is in one |
//! | workers: spans | a worker | spans of the program (see [`crate::span`]) |
//! | workers: waits | a worker | its sleeps, by the wait event that it had published; with the latch, and who woke it |
//!
//! A flow goes from the slice of a worker that wakes another to the slice in which that one runs again.
//!
//! Invariant: a flow is written only if both of its slices are. What began before the window or was not over at its end is
//! cut off there.

use std::io::{self, Write};

use clearway_machine::{WaitClass, WaitEvent};

use crate::account::Activity;

/// One piece of a track.
#[derive(Debug, Clone)]
struct Slice {
    cpu: u16,
    start: u64,
    end: u64,
    what: SliceKind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SliceKind {
    Ran { worker: u32, client: bool },
    Activity(Activity),
    Span { worker: u32, name: &'static str },
}

/// A sleep.
#[derive(Debug, Clone)]
pub(crate) struct Sleep {
    pub(crate) worker: u32,
    pub(crate) start: u64,
    pub(crate) end: u64,
    pub(crate) event: WaitEvent,
    /// The latch that it waited for, if it waited for one that has a name.
    pub(crate) latch: Option<String>,
    /// The worker that ended it, and the CPU of that; none: a timer or a device.
    pub(crate) waker: Option<(u32, u16)>,
}

/// The events in a window of simulated time.
#[derive(Debug, Clone)]
pub struct Trace {
    from: u64,
    to: u64,
    slices: Vec<Slice>,
    sleeps: Vec<Sleep>,
    /// The last activity of each CPU, which the next may extend.
    last: Vec<Option<usize>>,
}

impl Trace {
    pub(crate) fn new(from: u64, to: u64, cpus: usize) -> Self {
        Self {
            from,
            to,
            slices: Vec::new(),
            sleeps: Vec::new(),
            last: vec![None; cpus],
        }
    }

    fn push(&mut self, cpu: usize, start: u64, end: u64, what: SliceKind) -> Option<usize> {
        if start >= end || end <= self.from || start >= self.to {
            return None;
        }
        self.slices.push(Slice {
            cpu: cpu as u16,
            start: start.max(self.from),
            end: end.min(self.to),
            what,
        });
        Some(self.slices.len() - 1)
    }

    #[inline]
    pub(crate) fn activity(&mut self, cpu: usize, activity: Activity, start: u64, duration: u64) {
        let end = start + duration;
        if end <= self.from || start >= self.to {
            return;
        }
        let what = SliceKind::Activity(activity);
        if let Some(last) = self.last[cpu] {
            let slice = &mut self.slices[last];
            if slice.end == start && slice.what == what {
                slice.end = end.min(self.to);
                return;
            }
        }
        self.last[cpu] = self.push(cpu, start, end, what);
    }

    pub(crate) fn ran(&mut self, cpu: usize, worker: u32, client: bool, start: u64, end: u64) {
        self.push(cpu, start, end, SliceKind::Ran { worker, client });
    }

    pub(crate) fn span(&mut self, worker: u32, name: &'static str, start: u64, end: u64) {
        self.push(0, start, end, SliceKind::Span { worker, name });
    }

    pub(crate) fn slept(&mut self, mut sleep: Sleep) {
        if sleep.end <= self.from || sleep.start >= self.to {
            return;
        }
        if sleep.end > self.to {
            sleep.waker = None;
        }
        sleep.start = sleep.start.max(self.from);
        sleep.end = sleep.end.min(self.to);
        self.sleeps.push(sleep);
    }

    /// For each flow: the CPU and time at which it begins, and those at which it ends. A worker that is woken runs in the
    /// first of its slices after that.
    fn flows(&self) -> Vec<((u16, u64), (u16, u64))> {
        let mut runs: Vec<(u32, &Slice)> = self
            .slices
            .iter()
            .filter_map(|slice| match slice.what {
                SliceKind::Ran { worker, .. } => Some((worker, slice)),
                _ => None,
            })
            .collect();
        runs.sort_by_key(|(worker, slice)| (*worker, slice.start));
        // The slices of a worker do not overlap: the last that began by then, and the first that begins later.
        let around = |worker: u32, time: u64| {
            let after = runs.partition_point(|(other, slice)| (*other, slice.start) < (worker, time));
            let of_worker = |place: usize| runs.get(place).filter(|(other, _)| *other == worker);
            let begun = after + usize::from(of_worker(after).is_some_and(|(_, slice)| slice.start == time));
            (begun.checked_sub(1).and_then(of_worker), of_worker(after))
        };
        let flow = |sleep: &Sleep| {
            let (waker, cpu) = sleep.waker?;
            let (_, from) = around(waker, sleep.end).0?;
            let (_, to) = around(sleep.worker, sleep.end).1?;
            let is_within = from.cpu == cpu && from.start <= sleep.end && sleep.end <= from.end;
            is_within.then_some(((cpu, sleep.end), (to.cpu, to.start)))
        };
        self.sleeps.iter().filter_map(flow).collect()
    }

    /// Writes the trace as JSON for Perfetto (ui.perfetto.dev) or chrome://tracing.
    pub fn write(&self, out: &mut impl Write) -> io::Result<()> {
        let mut slices: Vec<&Slice> = self.slices.iter().collect();
        slices.sort_by_key(|slice| (slice.start, slice.cpu, std::cmp::Reverse(slice.end)));
        write!(out, "{{\"displayTimeUnit\":\"ns\",\"traceEvents\":[")?;
        let processes = [
            "CPUs: workers",
            "CPUs: activity",
            "workers: spans",
            "workers: waits",
        ];
        for (process, name) in processes.iter().enumerate() {
            writeln!(
                out,
                "{{\"ph\":\"M\",\"pid\":{process},\"name\":\"process_name\",\"args\":{{\"name\":\"{name}\"}}}},"
            )?;
        }
        let microseconds =
            |picoseconds: u64| format!("{}.{:06}", picoseconds / 1_000_000, picoseconds % 1_000_000);
        for sleep in &self.sleeps {
            let event = sleep.event;
            let mut arguments = serde_json::Map::new();
            if let Some(latch) = &sleep.latch {
                arguments.insert("latch".to_owned(), latch.as_str().into());
            }
            if let Some((waker, _)) = sleep.waker {
                arguments.insert("woken by worker".to_owned(), waker.into());
            }
            let name = match event.class() {
                WaitClass::None => "asleep".to_owned(),
                class => format!("{}:{}", class.name(), event.name()),
            };
            writeln!(
                out,
                "{{\"ph\":\"X\",\"pid\":3,\"tid\":{},\"ts\":{},\"dur\":{},\"name\":\"{name}\",\"args\":{}}},",
                sleep.worker,
                microseconds(sleep.start),
                microseconds(sleep.end - sleep.start),
                serde_json::Value::Object(arguments)
            )?;
        }
        for (number, ((from, start), (to, end))) in self.flows().into_iter().enumerate() {
            for (phase, cpu, time) in [("s", from, start), ("f\",\"bp\":\"e", to, end)] {
                writeln!(
                    out,
                    "{{\"ph\":\"{phase}\",\"id\":{number},\"cat\":\"wake\",\"name\":\"wakes\",\"pid\":0,\"tid\":{cpu},\"ts\":{}}},",
                    microseconds(time)
                )?;
            }
        }
        for (number, slice) in slices.iter().enumerate() {
            let (process, track, name) = match slice.what {
                SliceKind::Ran { worker, client } => (
                    0,
                    u32::from(slice.cpu),
                    format!("{}{worker}", if client { "client " } else { "worker " }),
                ),
                SliceKind::Activity(activity) => (1, u32::from(slice.cpu), activity.name().to_owned()),
                SliceKind::Span { worker, name } => (2, worker, name.to_owned()),
            };
            writeln!(
                out,
                "{{\"ph\":\"X\",\"pid\":{process},\"tid\":{track},\"ts\":{},\"dur\":{},\"name\":{}}}{}",
                microseconds(slice.start),
                microseconds(slice.end - slice.start),
                serde_json::Value::String(name),
                if number + 1 == slices.len() { "" } else { "," }
            )?;
        }
        writeln!(out, "]}}")
    }

    /// Number of pieces.
    pub fn len(&self) -> usize {
        self.slices.len()
    }

    /// True if nothing happened in the window.
    pub fn is_empty(&self) -> bool {
        self.slices.is_empty()
    }
}
