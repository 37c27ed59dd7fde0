//! Traces of a short window in Chrome's JSON format, which Perfetto reads.
//!
//! Two tracks a CPU: the worker that it runs, and its activity. Spans of the program (see [`crate::span`])
//! nest in the first.

use std::io::{self, Write};

use crate::account::Activity;

/// One piece of a track.
#[derive(Debug, Clone)]
struct Slice {
    cpu: u16,
    start: u64,
    end: u64,
    what: What,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum What {
    Ran { worker: u32, client: bool },
    Activity(Activity),
    Span { worker: u32, name: &'static str },
}

/// The events in a window of simulated time.
#[derive(Debug, Clone)]
pub struct Trace {
    from: u64,
    to: u64,
    slices: Vec<Slice>,
    /// The last activity of each CPU, which the next may extend.
    last: Vec<Option<usize>>,
}

impl Trace {
    pub(crate) fn new(from: u64, to: u64, cpus: usize) -> Self {
        Self {
            from,
            to,
            slices: Vec::new(),
            last: vec![None; cpus],
        }
    }

    fn push(&mut self, cpu: usize, start: u64, end: u64, what: What) -> Option<usize> {
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
        let what = What::Activity(activity);
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
        self.push(cpu, start, end, What::Ran { worker, client });
    }

    pub(crate) fn span(&mut self, worker: u32, name: &'static str, start: u64, end: u64) {
        self.push(0, start, end, What::Span { worker, name });
    }

    /// Writes the trace as JSON for Perfetto (ui.perfetto.dev) or chrome://tracing.
    pub fn write(&self, out: &mut impl Write) -> io::Result<()> {
        let mut slices: Vec<&Slice> = self.slices.iter().collect();
        slices.sort_by_key(|slice| (slice.start, slice.cpu, std::cmp::Reverse(slice.end)));
        write!(out, "{{\"displayTimeUnit\":\"ns\",\"traceEvents\":[")?;
        for (process, name) in [(0, "CPUs: workers"), (1, "CPUs: activity"), (2, "workers: spans")] {
            writeln!(
                out,
                "{{\"ph\":\"M\",\"pid\":{process},\"name\":\"process_name\",\"args\":{{\"name\":\"{name}\"}}}},"
            )?;
        }
        for (number, slice) in slices.iter().enumerate() {
            let (process, track, name) = match slice.what {
                What::Ran { worker, client } => (
                    0,
                    u32::from(slice.cpu),
                    format!("{}{worker}", if client { "client " } else { "worker " }),
                ),
                What::Activity(activity) => (1, u32::from(slice.cpu), activity.name().to_owned()),
                What::Span { worker, name } => (2, worker, name.to_owned()),
            };
            let microseconds =
                |picoseconds: u64| format!("{}.{:06}", picoseconds / 1_000_000, picoseconds % 1_000_000);
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

    /// How many pieces there are.
    pub fn len(&self) -> usize {
        self.slices.len()
    }

    /// Whether nothing happened in the window.
    pub fn is_empty(&self) -> bool {
        self.slices.is_empty()
    }
}
