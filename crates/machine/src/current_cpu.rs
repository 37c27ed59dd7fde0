//! The number of the CPU that the calling thread runs on.
//!
//! Linux writes it into the thread's *restartable sequences* area each time that it gives the thread a CPU, if the thread
//! has registered one. glibc registers one for each thread since 2.35, inside of the thread's own storage, and says
//! where: at `__rseq_offset` from the thread pointer, if `__rseq_size` is not 0. Reading it is one load. Elsewhere, and
//! in a thread whose registration failed, glibc is asked, which calls `getcpu` in the kernel's vDSO.
//!
//! Two symbols are looked up once. They are not linked, because the program must start on an older glibc too.

/// The number of the CPU, out of date as soon as it is there.
#[inline]
pub(crate) fn current_cpu() -> u32 {
    match in_rseq_area() {
        Some(cpu) => cpu,
        None => by_getcpu(),
    }
}

/// By the vDSO's `getcpu`, or a system call. 0 if the kernel has neither.
#[cold]
#[inline(never)]
pub(crate) fn by_getcpu() -> u32 {
    // SAFETY: no arguments; any thread may call it at any time.
    u32::try_from(unsafe { libc::sched_getcpu() }).unwrap_or(0)
}

#[cfg(all(
    target_os = "linux",
    target_env = "gnu",
    target_pointer_width = "64",
    any(target_arch = "x86_64", target_arch = "aarch64")
))]
pub(crate) use self::rseq::in_rseq_area;

/// By the restartable sequences area: there is none.
#[cfg(not(all(
    target_os = "linux",
    target_env = "gnu",
    target_pointer_width = "64",
    any(target_arch = "x86_64", target_arch = "aarch64")
)))]
#[inline(always)]
pub(crate) fn in_rseq_area() -> Option<u32> {
    None
}

#[cfg(all(
    target_os = "linux",
    target_env = "gnu",
    target_pointer_width = "64",
    any(target_arch = "x86_64", target_arch = "aarch64")
))]
mod rseq {
    use core::arch::asm;
    use core::sync::atomic::AtomicIsize;
    use core::sync::atomic::Ordering::Relaxed;

    /// `cpu_id` in the kernel's `struct rseq`, after `cpu_id_start`. Below zero in a thread that is not registered.
    const CPU_ID_OFFSET: isize = 4;

    /// Not looked up yet. No offset is as far as this or the next.
    const UNKNOWN: isize = isize::MIN;
    /// glibc has registered no area.
    const NONE: isize = isize::MIN + 1;

    /// Offset of `cpu_id` from the thread pointer; or one of the two above.
    static OFFSET: AtomicIsize = AtomicIsize::new(UNKNOWN);

    /// The CPU by the calling thread's area.
    #[inline]
    pub(crate) fn in_rseq_area() -> Option<u32> {
        // Relaxed: the number is all that is published.
        let mut offset = OFFSET.load(Relaxed);
        if offset <= NONE {
            if offset == NONE {
                return None;
            }
            offset = look_up();
            if offset == NONE {
                return None;
            }
        }
        let cpu: i32;
        // SAFETY: `offset` is glibc's own, so at this distance from the thread pointer each thread that glibc has
        // made has an area of at least 20 bytes, aligned to 32, for as long as it runs: glibc reserves it in the
        // thread's static storage, also if the registration fails. A thread that runs Rust's standard library was made by
        // glibc. The kernel writes the area while the thread is not running in user mode, so this aligned load, a
        // single instruction, races with nothing. It is assembly and no volatile read because no Rust object is there.
        unsafe {
            #[cfg(target_arch = "x86_64")]
            asm!("mov {cpu:e}, dword ptr fs:[{offset}]", cpu = lateout(reg) cpu, offset = in(reg) offset,
                options(nostack, readonly, preserves_flags));
            #[cfg(target_arch = "aarch64")]
            asm!("mrs {base}, tpidr_el0", "ldr {cpu:w}, [{base}, {offset}]", base = out(reg) _,
                cpu = lateout(reg) cpu, offset = in(reg) offset, options(nostack, readonly, preserves_flags));
        }
        u32::try_from(cpu).ok()
    }

    /// Asks the dynamic linker once.
    #[cold]
    #[inline(never)]
    fn look_up() -> isize {
        let symbol = |name: &core::ffi::CStr| {
            // SAFETY: the name ends with a zero byte; the default scope may be searched at any time.
            unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) }
        };
        let (offset, size) = (symbol(c"__rseq_offset"), symbol(c"__rseq_size"));
        let found = if offset.is_null() || size.is_null() {
            NONE
        } else {
            // SAFETY: glibc declares them as `const ptrdiff_t` and `const unsigned int`, sets them before the program's
            // first instruction, and never unloads itself.
            let (offset, size) = unsafe { (*offset.cast::<isize>(), *size.cast::<libc::c_uint>()) };
            if size == 0 { NONE } else { offset + CPU_ID_OFFSET }
        };
        OFFSET.store(found, Relaxed);
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Native;

    // Mutation seen to fail here: another field of the area is read.
    #[test]
    fn a_thread_that_stays_on_a_cpu_is_told_that_cpu() {
        for cpu in Native::cpus_allowed().unwrap() {
            std::thread::spawn(move || {
                Native::stay_on(cpu).unwrap();
                assert_eq!(by_getcpu() as usize, cpu);
                assert_eq!(current_cpu() as usize, cpu);
                if let Some(number) = in_rseq_area() {
                    assert_eq!(number as usize, cpu);
                }
            })
            .join()
            .unwrap();
        }
    }
}
