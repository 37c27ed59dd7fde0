//! `include/clearway.h` is what cbindgen makes of this crate. With `CLEARWAY_WRITE_HEADER=1` the file is written anew.

use std::path::Path;

#[test]
fn the_header_is_that_of_this_code() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let config = cbindgen::Config::from_file(root.join("cbindgen.toml")).unwrap();
    let made = cbindgen::Builder::new()
        .with_crate(root)
        .with_config(config)
        .generate()
        .unwrap();
    let mut text = Vec::new();
    made.write(&mut text);
    let text = String::from_utf8(text).unwrap();
    let header = root.join("include/clearway.h");
    if std::env::var_os("CLEARWAY_WRITE_HEADER").is_some() {
        std::fs::write(&header, &text).unwrap();
    }
    let there = std::fs::read_to_string(&header).unwrap_or_default();
    assert!(
        there == text,
        "include/clearway.h is not that of this code: CLEARWAY_WRITE_HEADER=1 cargo test -p clearway-capi --test header"
    );
}
