//! `search_path`: which schemas a name without one is looked for in.

/// The schemas that there are.
const SCHEMAS: [&str; 3] = ["public", "pg_catalog", "information_schema"];

/// The schemas that a path names, in its order, without those that there are not.
fn schemas_of(path: &str) -> impl Iterator<Item = &'static str> {
    path.split(',').filter_map(|name| {
        let name = name.trim();
        SCHEMAS.into_iter().find(|schema| match name.strip_prefix('"') {
            Some(quoted) => quoted.strip_suffix('"') == Some(*schema),
            None => name.eq_ignore_ascii_case(schema),
        })
    })
}

/// True if `search_path` names the schema that all users' tables are in.
pub fn path_has_public(path: &str) -> bool {
    schemas_of(path).any(|schema| schema == "public")
}

/// The schema that `current_schema` tells: the first of the path that there is.
pub fn first_schema(path: &str) -> Option<&'static str> {
    schemas_of(path).next()
}

/// The schemas that `current_schemas` tells: those of the path that there are, and `pg_catalog`, which is searched first
/// where the path does not name it, if that is asked for.
pub(crate) fn all_schemas(path: &str, with_implicit: bool) -> Vec<&'static str> {
    let mut schemas: Vec<&'static str> = Vec::new();
    for schema in schemas_of(path) {
        if !schemas.contains(&schema) {
            schemas.push(schema);
        }
    }
    if with_implicit && !schemas.contains(&"pg_catalog") {
        schemas.insert(0, "pg_catalog");
    }
    schemas
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_schema_that_there_is_is_the_current_one() {
        for (path, schema) in [
            ("\"$user\", public", Some("public")),
            ("pg_catalog", Some("pg_catalog")),
            ("nowhere, PG_Catalog, public", Some("pg_catalog")),
            ("\"PUBLIC\", \"public\"", Some("public")),
            ("nowhere", None),
            ("", None),
        ] {
            assert_eq!(first_schema(path), schema, "{path}");
        }
    }

    #[test]
    fn the_catalog_is_searched_first_unless_the_path_names_it() {
        assert_eq!(all_schemas("\"$user\", public", true), ["pg_catalog", "public"]);
        assert_eq!(all_schemas("public, nowhere, public", false), ["public"]);
        assert_eq!(all_schemas("public, pg_catalog", true), ["public", "pg_catalog"]);
    }
}
