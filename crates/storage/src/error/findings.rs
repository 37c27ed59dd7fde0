//! The findings of a check.

use std::fmt;
use std::path::PathBuf;

use crate::page::{PAGE_SIZE, RelId};

/// The most findings listed for one relation; more are only counted.
const FINDINGS_MAX: usize = 100;

/// One fault in a relation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The relation.
    pub rel: RelId,
    /// Its file.
    pub file: PathBuf,
    /// The page; `None`: the file as a whole.
    pub block: Option<u32>,
    /// The fault.
    pub problem: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let file = self.file.display();
        match self.block {
            Some(block) => write!(
                f,
                "page {block} of {file} (offset {}): {}",
                u64::from(block) * PAGE_SIZE as u64,
                self.problem
            ),
            None => write!(f, "{file}: {}", self.problem),
        }
    }
}

/// Result of the check of one relation.
#[derive(Debug)]
pub struct Findings {
    rel: RelId,
    file: PathBuf,
    list: Vec<Finding>,
    count: u64,
}

impl Findings {
    /// An empty list of findings for `rel`, whose file is `file`.
    pub fn new(rel: RelId, file: PathBuf) -> Self {
        Self {
            rel,
            file,
            list: Vec::new(),
            count: 0,
        }
    }

    /// Adds a finding about a page, or about the file.
    pub(crate) fn add(&mut self, block: Option<u32>, problem: impl Into<String>) {
        self.count += 1;
        if self.list.len() < FINDINGS_MAX {
            self.list.push(Finding {
                rel: self.rel,
                file: self.file.clone(),
                block,
                problem: problem.into(),
            });
        }
    }

    /// Adds a finding about page `block`.
    pub(crate) fn page(&mut self, block: u32, problem: impl Into<String>) {
        self.add(Some(block), problem);
    }

    /// True if the check found nothing.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Number of findings, including those not listed.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The first findings.
    pub fn list(&self) -> &[Finding] {
        &self.list
    }
}

/// Called now and then with the number of pages read since the last call; an error ends the check.
pub type Progress<'p, E> = &'p mut dyn FnMut(u32) -> std::result::Result<(), E>;
