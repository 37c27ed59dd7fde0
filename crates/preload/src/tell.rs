//! Lines on standard error and in files, without an allocation.

use core::fmt::{self, Write};
use std::os::raw::c_int;

use crate::platform;

/// A file descriptor that text is written to. What the system refuses is lost.
pub(crate) struct Descriptor {
    descriptor: c_int,
    bytes: [u8; 512],
    length: usize,
}

impl Descriptor {
    pub(crate) fn new(descriptor: c_int) -> Self {
        Self {
            descriptor,
            bytes: [0; 512],
            length: 0,
        }
    }

    pub(crate) fn flush(&mut self) {
        let mut rest = &self.bytes[..self.length];
        while !rest.is_empty() {
            match platform::write(self.descriptor, rest) {
                Some(written) if written > 0 => rest = &rest[written..],
                _ => break,
            }
        }
        self.length = 0;
    }
}

impl Write for Descriptor {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let mut rest = text.as_bytes();
        while !rest.is_empty() {
            if self.length == self.bytes.len() {
                self.flush();
            }
            let taken = rest.len().min(self.bytes.len() - self.length);
            self.bytes[self.length..self.length + taken].copy_from_slice(&rest[..taken]);
            self.length += taken;
            rest = &rest[taken..];
        }
        Ok(())
    }
}

/// Writes a line to standard error, after the library's name.
pub(crate) fn tell(text: fmt::Arguments<'_>) {
    let mut standard_error = Descriptor::new(libc::STDERR_FILENO);
    let _ = writeln!(standard_error, "libclearway_pthread: {text}");
    standard_error.flush();
}
