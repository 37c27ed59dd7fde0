//! A commit log in memory alone: for tests and simulations, in which no crash follows.

use std::io;

use crate::{COMMIT_LOG_PAGE_SIZE, StatusDevice};

/// A device that reads nothing and forgets what is written.
#[derive(Debug, Clone, Copy)]
pub struct NoPages;

impl StatusDevice for NoPages {
    fn read_page(&self, _: u32, _: &mut [u8; COMMIT_LOG_PAGE_SIZE]) -> io::Result<bool> {
        Ok(false)
    }
    fn write_page(&self, _: u32, _: &[u8; COMMIT_LOG_PAGE_SIZE], _: u64) -> io::Result<()> {
        Ok(())
    }
}
