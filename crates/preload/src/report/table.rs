//! The text of the table.

use core::cmp::Reverse;
use core::ffi::CStr;
use core::fmt::{self, Write};
use core::sync::atomic::Ordering::Relaxed;
use std::os::raw::c_void;

use super::counts::{self, Row};
use crate::setting::Setting;

/// Rows that are written: those with the longest waits.
const ROWS_WRITTEN: usize = 50;

/// A time, in the unit in which it has one to three digits before the point.
struct Time(u64);

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (unit, per_unit) = match self.0 {
            0..1_000 => ("ns", 1),
            1_000..1_000_000 => ("us", 1_000),
            1_000_000..1_000_000_000 => ("ms", 1_000_000),
            _ => ("s", 1_000_000_000),
        };
        let (whole, tenth) = (self.0 / per_unit, self.0 % per_unit * 10 / per_unit);
        let digits = whole.checked_ilog10().unwrap_or(0) as usize + 1;
        let digits = if per_unit == 1 { digits } else { digits + 2 };
        let width = f.width().unwrap_or(0).saturating_sub(digits + 1 + unit.len());
        write!(f, "{:width$}{whole}", "")?;
        if per_unit > 1 {
            write!(f, ".{tenth}")?;
        }
        write!(f, " {unit}")
    }
}

/// An address in the program: its file and offset, and the symbol that it lies in, if the loader knows one. `back` is what is
/// taken off an address that a call returns to, so that it lies in the call.
struct Address {
    address: usize,
    back: usize,
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // SAFETY: all zeros are such a value, which the loader fills in; what it points to stays while the library does.
        let mut found: libc::Dl_info = unsafe { core::mem::zeroed() };
        let address = (self.address - self.back) as *const c_void;
        // SAFETY: as above.
        if unsafe { libc::dladdr(address, &mut found) } == 0 || found.dli_fname.is_null() {
            return write!(f, "{:#x}", self.address);
        }
        // SAFETY: a string of the loader.
        let path = unsafe { CStr::from_ptr(found.dli_fname) }.to_bytes();
        let name = path.rsplit(|byte| *byte == b'/').next().unwrap_or(path);
        write!(
            f,
            "{}+{:#x}",
            name.escape_ascii(),
            self.address - found.dli_fbase.addr()
        )?;
        if !found.dli_sname.is_null() {
            // SAFETY: as above.
            let symbol = unsafe { CStr::from_ptr(found.dli_sname) }.to_bytes();
            write!(f, " {}", symbol.escape_ascii())?;
            let offset = self.address - self.back - found.dli_saddr.addr();
            if offset > 0 && self.back == 0 {
                write!(f, "+{offset:#x}")?;
            }
        }
        Ok(())
    }
}

fn waited(row: &Row) -> u64 {
    row.waited_ns.load(Relaxed)
}

/// Writes the table of what was counted so far. Nothing, if that is nothing.
pub(super) fn write(out: &mut impl Write, program: &CStr) -> fmt::Result {
    let all = counts::rows().count();
    if all == 0 {
        return Ok(());
    }
    // SAFETY: no arguments.
    let process = unsafe { libc::getpid() };
    let latch = Setting::current().name();
    writeln!(
        out,
        "{} (process {process}), mutexes by {}: {all} pairs of latch and call site",
        program.to_bytes().escape_ascii(),
        latch.to_bytes().escape_ascii()
    )?;
    writeln!(
        out,
        "{:>12} {:>7} {:>9} {:>9} {:>9} {:>9} {:>9}  mode   latch, call site",
        "acquired", "waited", "in all", "p50", "p99", "max", "held max"
    )?;
    // Chosen one after the other, since there is nowhere to sort them.
    let mut last = None;
    for _ in 0..ROWS_WRITTEN {
        let key = |row: &Row| {
            (
                Reverse(waited(row)),
                Reverse(row.acquisitions.load(Relaxed)),
                core::ptr::from_ref(row).addr(),
            )
        };
        let next = counts::rows()
            .map(|row| (key(row), row))
            .filter(|(key, _)| last.is_none_or(|last| *key > last))
            .min_by_key(|(key, _)| *key);
        let Some((key, row)) = next else {
            break;
        };
        last = Some(key);
        write_row(out, row)?;
    }
    if all > ROWS_WRITTEN {
        writeln!(out, "{:>12} pairs with shorter waits", all - ROWS_WRITTEN)?;
    }
    Ok(())
}

fn write_row(out: &mut impl Write, row: &Row) -> fmt::Result {
    let (acquisitions, contended) = (row.acquisitions.load(Relaxed), row.contended.load(Relaxed));
    // In hundredths of a percent.
    let share = (u128::from(contended) * 10_000 / u128::from(acquisitions.max(1))) as u64;
    write!(out, "{acquisitions:>12} {:>3}.{:02}% ", share / 100, share % 100)?;
    if contended == 0 {
        write!(out, "{:>9} {:>9} {:>9} {:>9} ", "", "", "", "")?;
    } else {
        let times = [
            waited(row),
            row.wait_ns_at(50),
            row.wait_ns_at(99),
            row.wait_ns_max.load(Relaxed),
        ];
        for time in times {
            write!(out, "{:>9} ", Time(time))?;
        }
    }
    match row.hold_ns_max.load(Relaxed) {
        0 => write!(out, "{:>9} ", "")?,
        held => write!(out, "{:>9} ", Time(held))?,
    }
    if row.latch() == 0 {
        return writeln!(out, " {:5}  all those that the table has no room for", "");
    }
    let (latch, site) = (
        Address {
            address: row.latch(),
            back: 0,
        },
        Address {
            address: row.site(),
            back: 1,
        },
    );
    writeln!(out, " {:5}  {latch}, {site}", row.mode())
}
