//! Gives the crate the commit it was built from, for the provenance of results.

use std::path::Path;
use std::process::Command;

fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_owned())
}

fn main() {
    let commit = match git(&["rev-parse", "--short=12", "HEAD"]) {
        Some(commit) => {
            let changed =
                git(&["status", "--porcelain", "--untracked-files=no"]).is_some_and(|s| !s.is_empty());
            if changed {
                format!("{commit} with uncommitted changes")
            } else {
                commit
            }
        }
        None => "unknown (built outside a git checkout)".to_owned(),
    };
    println!("cargo:rustc-env=CLEARWAY_COMMIT={commit}");
    // Any crate: also whether there are uncommitted changes must be up to date.
    println!("cargo:rerun-if-changed=..");
    for path in ["HEAD", "index", "logs/HEAD"] {
        if let Some(path) = git(&["rev-parse", "--git-path", path]).filter(|path| Path::new(path).exists()) {
            println!("cargo:rerun-if-changed={path}");
        }
    }
}
