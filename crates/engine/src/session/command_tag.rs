//! The command tag of the statement that has run, with the count of its rows where it has one.
//!
//! The usual tags are constants, also those with a count of one digit; only the others are made.

use std::fmt::Write as _;

/// Tags with the counts 0 to 9.
pub(super) type CountedTags = [&'static str; 10];

macro_rules! counted {
    ($($name:ident = $tag:literal),* $(,)?) => {
        $(static $name: CountedTags = [
            concat!($tag, " 0"), concat!($tag, " 1"), concat!($tag, " 2"), concat!($tag, " 3"), concat!($tag, " 4"),
            concat!($tag, " 5"), concat!($tag, " 6"), concat!($tag, " 7"), concat!($tag, " 8"), concat!($tag, " 9"),
        ];)*

        /// The tags of those that begin with `tag`, if they are usual.
        pub(super) fn counted_tags(tag: &str) -> Option<&'static CountedTags> {
            match tag {
                $($tag => Some(&$name),)*
                _ => None,
            }
        }
    };
}

counted! {
    SELECT = "SELECT",
    INSERT = "INSERT 0",
    UPDATE = "UPDATE",
    DELETE = "DELETE",
}

/// A session's last tag.
#[derive(Debug, Default)]
pub(super) struct CommandTag {
    constant: &'static str,
    /// Used while `constant` is empty, and kept for the next.
    made: String,
}

impl CommandTag {
    /// A tag without a count, or a constant with one.
    #[inline]
    pub(super) fn put(&mut self, tag: &'static str) {
        self.constant = tag;
    }

    /// A tag with a count.
    pub(super) fn count(&mut self, tag: &str, rows: u64) {
        self.constant = "";
        self.made.clear();
        self.made.push_str(tag);
        let _ = write!(self.made, " {rows}");
    }

    #[inline]
    pub(super) fn as_str(&self) -> &str {
        match self.constant {
            "" => &self.made,
            constant => constant,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constants_are_what_would_be_made() {
        for tag in ["SELECT", "INSERT 0", "UPDATE", "DELETE"] {
            let mut made = CommandTag::default();
            for rows in 0..10 {
                made.count(tag, rows);
                assert_eq!(counted_tags(tag).unwrap()[rows as usize], made.as_str());
            }
            made.put("BEGIN");
            assert_eq!(made.as_str(), "BEGIN");
            made.count(tag, 12_345);
            assert_eq!(made.as_str(), format!("{tag} 12345"));
        }
        assert_eq!(counted_tags("COPY"), None);
    }
}
