//! `search_path`: the schemas that a name without one is looked for in.
//!
//! A path is a list of names. Which of them there are, and which number each has, only the catalog knows: a schema may
//! come and go while the path stays. So a path is kept as its names, and what looks a name up asks the catalog for each.
//! Two schemas are searched although no path names them: that of the session's temporary tables, and `pg_catalog`; both
//! before all others, unless the path says where.

/// The schema of the system's tables.
pub const PG_CATALOG: &str = "pg_catalog";
/// The name by which a session calls the schema of its temporary tables.
pub const PG_TEMP: &str = "pg_temp";

/// A list of schemas, as a setting has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SearchPath(Vec<PathEntry>);

/// An entry of a path.
#[derive(Debug, Clone, PartialEq, Eq)]
enum PathEntry {
    /// `"$user"`: the schema of the user's name.
    User,
    Named(String),
}

impl SearchPath {
    /// This path behind another schema.
    pub fn behind(&self, schema: &str) -> SearchPath {
        let first = PathEntry::Named(schema.to_owned());
        SearchPath([first].into_iter().chain(self.0.iter().cloned()).collect())
    }

    /// The path that a setting's text says.
    pub fn parse(text: &str) -> SearchPath {
        let mut entries = Vec::new();
        let mut rest = text.trim_start();
        while !rest.is_empty() {
            let (name, after) = match rest.strip_prefix('"') {
                Some(quoted) => quoted_name(quoted),
                None => {
                    let (name, after) = rest.split_at(rest.find(',').unwrap_or(rest.len()));
                    (name.trim_end().to_lowercase(), after)
                }
            };
            match name.as_str() {
                "" => {}
                "$user" => entries.push(PathEntry::User),
                _ => entries.push(PathEntry::Named(name)),
            }
            rest = after.trim_start();
            rest = rest.strip_prefix(',').unwrap_or(rest).trim_start();
        }
        SearchPath(entries)
    }

    /// The names on the path, in its order.
    pub fn names<'a>(&'a self, user: &'a str) -> impl Iterator<Item = &'a str> {
        self.0.iter().map(move |entry| match entry {
            PathEntry::User => user,
            PathEntry::Named(name) => name,
        })
    }

    /// The names that are searched, in their order, with those that the path need not name.
    pub fn searched<'a>(&'a self, user: &'a str) -> impl Iterator<Item = &'a str> {
        let unnamed = move |name: &&str| !self.names(user).any(|known| known == *name);
        let implicit = [PG_TEMP, PG_CATALOG].into_iter().filter(unnamed);
        implicit.chain(self.names(user))
    }
}

/// A name up to its closing quote, and what is behind that.
fn quoted_name(text: &str) -> (String, &str) {
    let mut name = String::new();
    let mut characters = text.char_indices();
    while let Some((at, character)) = characters.next() {
        if character == '"' {
            if !text[at + 1..].starts_with('"') {
                return (name, &text[at + 1..]);
            }
            characters.next();
        }
        name.push(character);
    }
    (name, "")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(path: &str) -> Vec<String> {
        let path = SearchPath::parse(path);
        path.names("joe").map(str::to_owned).collect()
    }

    #[test]
    fn names_are_in_lower_case_unless_they_are_quoted() {
        assert_eq!(names("\"$user\", public"), ["joe", "public"]);
        assert_eq!(
            names("Nowhere,PG_Catalog , \"A, \"\"b\""),
            ["nowhere", "pg_catalog", "A, \"b"]
        );
        assert!(names("").is_empty() && names("\"\"").is_empty());
        assert_eq!(names("\"open"), ["open"]);
    }

    #[test]
    fn temporary_tables_and_the_catalog_are_searched_first_unless_the_path_says_where() {
        let searched = |path: &str| -> Vec<String> {
            let path = SearchPath::parse(path);
            path.searched("joe").map(str::to_owned).collect()
        };
        assert_eq!(searched("public"), ["pg_temp", "pg_catalog", "public"]);
        assert_eq!(
            searched("public, pg_catalog"),
            ["pg_temp", "public", "pg_catalog"]
        );
        assert_eq!(searched("s, pg_temp"), ["pg_catalog", "s", "pg_temp"]);
    }
}
