//! A copy of a log that is being written, as a crash at one moment would leave it.
//!
//! A record says up to where the log was durable when it was inserted. A copy that is made from the beginning may hold
//! such a record and lack one before that position, because it was written after the copy had passed there. No crash
//! leaves that, and recovery refuses it. So the copy begins at the end of the log: what lies before is newer.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::Path;

const BLOCK: usize = 4_096;

/// Copies a log that is being written, the last block first.
pub fn copy_log(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    let mut names: Vec<_> = fs::read_dir(from)
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    names.sort();
    for name in names.iter().rev() {
        // A segment may be recycled while we look.
        let Ok(segment) = File::open(from.join(name)) else {
            continue;
        };
        let copy = File::create(to.join(name)).unwrap();
        let blocks = segment.metadata().unwrap().len().div_ceil(BLOCK as u64);
        for offset in (0..blocks).rev().map(|block| block * BLOCK as u64) {
            copy.write_all_at(&block_at_an_instant(&segment, offset), offset)
                .unwrap();
        }
    }
}

/// A block of a file that only grows: read twice with the same result, it was so between the two.
fn block_at_an_instant(file: &File, offset: u64) -> Vec<u8> {
    let read = || {
        let mut block = vec![0; BLOCK];
        let length = file.read_at(&mut block, offset).unwrap();
        block.truncate(length);
        block
    };
    let mut before = read();
    loop {
        let after = read();
        if after == before {
            return after;
        }
        before = after;
    }
}
