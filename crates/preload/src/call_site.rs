//! Functions that know where their call returns to.
//!
//! A compiler gives no safe way to the return address. So a function that is exported is two instructions that pass it on as one
//! argument more, and jump: the frame of the function behind it is the one that the program's call made, and unwinds as that.

/// Exports functions by the names of POSIX. Each has the number of its arguments, and the function that gets them with the
/// address that the call returns to behind them.
macro_rules! exported {
    ($($name:ident($($argument:ident: $type:ty),*), $count:tt => $behind:path;)*) => { $(
        #[doc = concat!("POSIX's `", stringify!($name), "`.")]
        #[unsafe(naked)]
        #[unsafe(no_mangle)]
        pub unsafe extern "C-unwind" fn $name($($argument: $type),*) -> std::os::raw::c_int {
            crate::call_site::with_call_site!($count, $behind)
        }
    )* };
}

#[cfg(target_arch = "x86_64")]
macro_rules! with_call_site {
    (1, $behind:path) => { core::arch::naked_asm!("mov rsi, [rsp]", "jmp {}", sym $behind) };
    (2, $behind:path) => { core::arch::naked_asm!("mov rdx, [rsp]", "jmp {}", sym $behind) };
    (3, $behind:path) => { core::arch::naked_asm!("mov rcx, [rsp]", "jmp {}", sym $behind) };
    (4, $behind:path) => { core::arch::naked_asm!("mov r8, [rsp]", "jmp {}", sym $behind) };
}

#[cfg(target_arch = "aarch64")]
macro_rules! with_call_site {
    (1, $behind:path) => { core::arch::naked_asm!("mov x1, x30", "b {}", sym $behind) };
    (2, $behind:path) => { core::arch::naked_asm!("mov x2, x30", "b {}", sym $behind) };
    (3, $behind:path) => { core::arch::naked_asm!("mov x3, x30", "b {}", sym $behind) };
    (4, $behind:path) => { core::arch::naked_asm!("mov x4, x30", "b {}", sym $behind) };
}

pub(crate) use {exported, with_call_site};
