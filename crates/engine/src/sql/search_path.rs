//! `search_path`: which schemas a name without one is looked for in.

/// True if `search_path` names the schema that all users' tables are in.
pub(crate) fn path_has_public(path: &str) -> bool {
    path.split(',').any(|name| match name.trim() {
        quoted if quoted.starts_with('"') => quoted.trim_matches('"') == "public",
        name => name.eq_ignore_ascii_case("public"),
    })
}
