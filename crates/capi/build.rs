//! The name by which programs find the shared library: its number changes when a program that was linked before would break.

fn main() {
    if std::env::var("CARGO_CFG_TARGET_OS").as_deref() == Ok("linux") {
        println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libclearway_capi.so.0");
    }
    println!("cargo:rerun-if-changed=build.rs");
}
