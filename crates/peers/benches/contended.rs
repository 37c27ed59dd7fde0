//! Some threads and one lock: throughput, long times to acquire, CPU time, and the cells that a latch of ours loses.
//!
//!     cargo bench -p clearway-peers --bench contended
//!     cargo bench -p clearway-peers --bench contended -- --help

mod locks;

use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use clearway_peers::host_use::HostUse;
use clearway_peers::losses::losses;
use clearway_peers::measure::Point;
use clearway_peers::schedule::{Subject, measure_all};
use clearway_peers::section::Section;
use clearway_peers::table::{CELLS_HEAD, LOSSES_HEAD, Place, cell_line, loss_line};

/// Clearway's latches beside the locks of other libraries, under contention.
///
/// Prints a table of all cells, and one of those in which another lock makes more than 1.1 times the acquisitions of a latch of
/// ours, or has a 99th percentile below half of it. With the defaults it measures for five minutes.
#[derive(Parser)]
struct Arguments {
    /// Numbers of threads, separated by commas.
    #[arg(long, value_delimiter = ',', default_value = "1,2,4,16,64", value_parser = clap::value_parser!(u16).range(1..=512))]
    threads: Vec<u16>,
    /// Lengths of the section in nanoseconds, at most 10,000,000.
    #[arg(long, value_delimiter = ',', default_value = "0,100,1000", value_parser = clap::value_parser!(u64).range(0..=10_000_000))]
    section_ns: Vec<u64>,
    /// Shares of reads in percent.
    #[arg(long, value_delimiter = ',', default_value = "0,50,95,100", value_parser = clap::value_parser!(u32).range(0..=100))]
    reads: Vec<u32>,
    /// Locks by name; default: all.
    #[arg(long, value_delimiter = ',')]
    locks: Vec<String>,
    /// Time of one measurement, in milliseconds.
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u64).range(1..=60_000))]
    duration_ms: u64,
    /// Measurements of each cell.
    #[arg(long, default_value_t = 7, value_parser = clap::value_parser!(u16).range(1..=1_000))]
    rounds: u16,
    /// Seed of the choice between reads and writes.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// One short round of two threads and empty sections: that it runs. Its figures mean nothing.
    #[arg(long)]
    smoke: bool,
    /// Given by cargo bench; without it, as under cargo test, the bench is a smoke.
    #[arg(long, hide = true)]
    bench: bool,
}

impl Arguments {
    fn shortened(mut self) -> Self {
        if self.smoke || !self.bench {
            (self.threads, self.section_ns) = (vec![2], vec![0]);
            (self.duration_ms, self.rounds) = (2, 1);
        }
        self
    }

    /// The locks that are asked for, or the first name that is of none.
    fn subjects(&self) -> Result<Vec<Subject>, String> {
        let all = locks::subjects();
        if self.locks.is_empty() {
            return Ok(all);
        }
        let find = |name: &String| {
            all.iter()
                .find(|subject| subject.name == name)
                .copied()
                .ok_or_else(|| {
                    let names: Vec<_> = all.iter().map(|subject| subject.name).collect();
                    format!("there is no lock {name}; there are: {}", names.join(", "))
                })
        };
        self.locks.iter().map(find).collect()
    }

    fn places(&self) -> Vec<Place> {
        let mut places = Vec::new();
        for &section_ns in &self.section_ns {
            for &threads in &self.threads {
                places.extend(self.reads.iter().map(|&reads_percent| Place {
                    section_ns,
                    threads: usize::from(threads),
                    reads_percent,
                }));
            }
        }
        places
    }
}

fn main() -> ExitCode {
    match bench(&Arguments::parse().shortened()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("contended: {message}");
            ExitCode::FAILURE
        }
    }
}

fn bench(arguments: &Arguments) -> Result<(), String> {
    let subjects = arguments.subjects()?;
    let places = arguments.places();
    let mut lost = Vec::new();
    let before = HostUse::now();
    println!("{CELLS_HEAD}");
    for &place in &places {
        let point = Point {
            threads: place.threads,
            section: Section::of(Duration::from_nanos(place.section_ns)),
            reads_percent: place.reads_percent,
            duration: Duration::from_millis(arguments.duration_ms),
            seed: arguments.seed,
        };
        let cells = measure_all(&subjects, &point, usize::from(arguments.rounds))
            .map_err(|failed| failed.to_string())?;
        cells
            .iter()
            .for_each(|cell| println!("{}", cell_line(place, cell)));
        lost.extend(losses(&cells).into_iter().map(|loss| (place, loss)));
    }
    let steady = lost.iter().filter(|(_, loss)| loss.is_steady()).count();
    println!(
        "\n{} lost figures at {} points, {steady} of them in three quarters of the rounds:\n\n{LOSSES_HEAD}",
        lost.len(),
        places.len()
    );
    for (place, loss) in &lost {
        println!("{}", loss_line(*place, loss));
    }
    println!("\nNo write was torn or lost.");
    let share = before.and_then(|before| HostUse::now()?.share_since(&before));
    if let Some(share) = share {
        println!("Other programs used {:.0} % of the CPUs.", share * 100.0);
    }
    Ok(())
}
