//! Keeping neighbours off each other's cache lines.

use core::ops::{Deref, DerefMut};

/// A value alone on its cache lines.
///
/// 128 bytes, because Intel's adjacent-line prefetcher moves lines in pairs and Apple's cores use 128-byte
/// lines.
#[derive(Debug, Default)]
#[repr(C, align(128))]
pub struct Padded<T>(pub T);

impl<T> Deref for Padded<T> {
    type Target = T;
    #[inline(always)]
    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T> DerefMut for Padded<T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut T {
        &mut self.0
    }
}
