//! The catalogue of jams: queues that databases are known for, each an experiment of its own, `clearway simulate jam/NAME`.
//! Stories, versions and figures: `docs/jams.md`.
//!
//! A jam is a file of an experiment with less in it: the variants that show the jam and its cure, the first of them the
//! baseline; one client, which shows the price of the cure, and as many as jam; one machine.

use crate::error::{LabError, Result};

/// The beginning of a jam's name where the name of an experiment is asked for.
pub const JAM_PREFIX: &str = "jam/";

/// One jam.
#[derive(Debug, Clone, Copy)]
pub struct Jam {
    /// Its name, without [`JAM_PREFIX`].
    pub name: &'static str,
    /// One line: who waits for what.
    pub story: &'static str,
    /// The experiment's file.
    pub(super) text: &'static str,
    /// Changes of its numbers, as `--set` has them.
    pub(super) settings: &'static [&'static str],
    pub(super) clients: &'static [usize],
    /// Its variants, the jammed one first.
    pub(super) variants: &'static [&'static str],
}

macro_rules! experiment {
    ($path:literal) => {
        include_str!(concat!("../../experiments/", $path, ".toml"))
    };
}

/// All jams, in the order of `docs/jams.md`.
pub static JAMS: [Jam; 13] = [
    Jam {
        name: "latch-queue",
        story: "workers that leave a latch's wait list search it from the head, while it is locked",
        text: experiment!("numa-simple-update"),
        settings: &[],
        clients: &[1, 200, 434],
        variants: &["queued-scan", "queued", "single-cas"],
    },
    Jam {
        name: "buffer-mapping",
        story: "reads that miss wait for the list of free frames and the clock hand, then for 16 latches of the map",
        text: experiment!("by-path/buffer-mapping-2014"),
        settings: &[],
        clients: &[1, 64, 128],
        variants: &[
            "9.4",
            "9.4, chash",
            "9.4, atomic hand",
            "9.5",
            "chash, atomic hand",
            "concurrent, atomic hand",
        ],
    },
    Jam {
        name: "free-frame",
        story: "reads that miss wait for the latch of the clock hand, whose holder sweeps",
        text: experiment!("by-path/buffer-clock"),
        settings: &[],
        clients: &[1, 32, 64],
        variants: &["latched", "hand", "atomic"],
    },
    Jam {
        name: "commit-log",
        story: "commits and readers of statuses wait for the commit log's one latch",
        text: experiment!("by-path/commit-log-2017"),
        settings: &["work_us=25", "client_us=0", "measure_ms=20"],
        clients: &[1, 128],
        variants: &[
            "10",
            "11",
            "queued, latch",
            "queued, group of 17",
            "queued, atomic",
        ],
    },
    Jam {
        name: "log-flush",
        story: "commits sleep at the log's write latch, and each release wakes them all",
        text: experiment!("by-path/log-flush-2017"),
        settings: &["work_us=100", "measure_ms=20", "warm_up_ms=10"],
        clients: &[1, 128],
        variants: &["10", "10, split", "10, group", "queued, group"],
    },
    Jam {
        name: "leaving-the-array",
        story: "transactions that end wait for the array of running transactions, one by one",
        text: experiment!("proc-clear"),
        settings: &[],
        clients: &[1, 434],
        variants: &[
            "queued-scan single",
            "queued-scan group",
            "single-cas single",
            "single-cas group",
        ],
    },
    Jam {
        name: "read-that-writes",
        story: "reads of cached rows wait for the cache lines of latches and pin counters that each of them writes",
        text: experiment!("point-select"),
        settings: &[],
        clients: &[1, 144],
        variants: &["classic", "pinned reads", "scanned snapshots", "clearway"],
    },
    Jam {
        name: "idle-connections",
        story: "each snapshot looks at two thousand sessions that do nothing",
        text: experiment!("point-select"),
        settings: &["idle_sessions=2000"],
        clients: &[1, 36],
        variants: &["scanned snapshots", "clearway", "csn"],
    },
    Jam {
        name: "hot-row",
        story: "transactions that lock one row wait until the one before has its commit on disk",
        text: experiment!("by-path/hot-row"),
        settings: &[],
        clients: &[1, 32],
        variants: &["after-flush", "early"],
    },
    Jam {
        name: "foreign-key",
        story: "children of one parent wait for its page, under which sets of its sharers are made",
        text: experiment!("hot-parent"),
        settings: &[],
        clients: &[1, 128],
        variants: &["multixact, one latch", "multixact, banks", "shared"],
    },
    Jam {
        name: "standby-snapshot",
        story: "a standby's readers walk over transactions that have ended, and its replay waits for them",
        text: experiment!("standby-long-transaction"),
        settings: &["range_xids=100000"],
        clients: &[1, 16],
        variants: &["array 2010", "array 2022", "bitmap"],
    },
    Jam {
        name: "index-latch",
        story: "writers of one index wake each other at its latch, and the woken find it taken",
        text: experiment!("innodb-update-index"),
        settings: &[],
        clients: &[1, 40],
        variants: &["cas-loop", "fetch-add-bts", "single-wake"],
    },
    Jam {
        name: "snapshot-latch",
        story: "statements of TPC-C wait for the cache line of one latch, which they share",
        text: experiment!("read-biased-tpcc"),
        settings: &["arrays=0"],
        clients: &[1, 384],
        variants: &["plain", "read-biased", "csn"],
    },
];

impl Jam {
    /// The jam of this name, without [`JAM_PREFIX`].
    ///
    /// # Errors
    /// [`LabError::UnknownName`], with the names that there are.
    pub fn find(name: &str) -> Result<&'static Self> {
        JAMS.iter()
            .find(|jam| jam.name == name)
            .ok_or_else(|| LabError::UnknownName {
                what: "jam",
                name: name.to_owned(),
                available: JAMS.map(|jam| jam.name).join(", "),
            })
    }

    /// The name of its experiment.
    pub fn full_name(&self) -> String {
        format!("{JAM_PREFIX}{}", self.name)
    }
}
