//! The buffer of a connection's read side: what has arrived, and room for more.
//!
//! It grows little by little to the length that a message claims to have: never to more than twice what is there. So a
//! claim costs its sender as many bytes as it costs us.

use std::ops::Range;

use crate::wire::frame::Frame;

/// A buffer longer than this is given back once it is empty.
const BUFFER_BYTES_KEPT: usize = 1 << 20;

#[derive(Debug)]
pub(crate) struct ReadBuffer {
    bytes: Vec<u8>,
    /// Bytes that have arrived and are not consumed.
    filled: Range<usize>,
    /// The buffer's size at first, and again after a long message.
    usual_bytes: usize,
}

impl ReadBuffer {
    pub(crate) fn new(usual_bytes: usize) -> ReadBuffer {
        ReadBuffer {
            bytes: vec![0; usual_bytes],
            filled: 0..0,
            usual_bytes,
        }
    }

    /// Bytes that have arrived and are not consumed.
    pub(crate) fn filled(&self) -> &[u8] {
        &self.bytes[self.filled.clone()]
    }

    pub(crate) fn consume(&mut self, count: usize) {
        self.filled.start += count;
        debug_assert!(self.filled.start <= self.filled.end);
    }

    /// Consumes the frame at the front. Its body can be had until the next call of [`room`](Self::room).
    pub(crate) fn consume_frame(&mut self, frame: Frame) -> Frame {
        let start = self.filled.start;
        self.consume(frame.body.end);
        Frame {
            kind: frame.kind,
            body: start + frame.body.start..start + frame.body.end,
        }
    }

    /// The body of a frame that was consumed.
    pub(crate) fn body(&self, frame: &Frame) -> &[u8] {
        &self.bytes[frame.body.clone()]
    }

    /// Bytes that the next call of [`room`](Self::room) allocates, if they are many.
    pub(crate) fn growth(&self, total: usize) -> usize {
        let is_full = !self.filled.is_empty() && self.filled.len() == self.bytes.len();
        if is_full { self.grown(total) } else { 0 }
    }

    fn grown(&self, total: usize) -> usize {
        total.min(2 * self.bytes.len()).max(self.filled.end + 1)
    }

    /// The room for the next bytes: not empty, and in the end long enough for `total` bytes from the front on.
    pub(crate) fn room(&mut self, total: usize) -> &mut [u8] {
        if self.filled.is_empty() {
            self.filled = 0..0;
            if self.bytes.len() > BUFFER_BYTES_KEPT {
                self.bytes = vec![0; self.usual_bytes];
            }
        } else if self.filled.start > 0 && self.filled.start + total > self.bytes.len() {
            self.bytes.copy_within(self.filled.clone(), 0);
            self.filled = 0..self.filled.len();
        }
        if self.filled.end == self.bytes.len() {
            let wanted = self.grown(total);
            self.bytes.reserve_exact(wanted - self.bytes.len());
            self.bytes.resize(wanted, 0);
        }
        &mut self.bytes[self.filled.end..]
    }

    /// Takes all that has arrived out.
    pub(crate) fn take(&mut self) -> Vec<u8> {
        let taken = self.filled().to_vec();
        self.filled = 0..0;
        taken
    }

    /// Notes that `count` bytes were put into the room.
    pub(crate) fn arrived(&mut self, count: usize) {
        self.filled.end += count;
    }
}
