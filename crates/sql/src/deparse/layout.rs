//! Lines and their indentation.

/// Columns that a clause's content is to the right of its keyword's.
pub(super) const STEP: i32 = 8;
/// Columns that JOIN is indented by.
pub(super) const JOIN: i32 = 4;
/// Columns that an entry of a list, and a part of CASE, is indented by.
pub(super) const ENTRY: i32 = 4;
/// From this indentation on, more levels add less.
const LIMIT: i32 = 40;

/// A text as it grows.
#[derive(Debug, Default)]
pub(super) struct Layout {
    text: String,
    pub(super) level: i32,
}

impl Layout {
    /// An empty text at a level.
    pub(super) fn at(level: i32) -> Layout {
        Layout {
            text: String::new(),
            level,
        }
    }

    /// An empty text at the same level.
    pub(super) fn beside(&self) -> Layout {
        Layout {
            text: String::new(),
            level: self.level,
        }
    }

    pub(super) fn finish(self) -> String {
        self.text
    }

    pub(super) fn push(&mut self, text: &str) {
        self.text.push_str(text);
    }

    /// Takes blanks off the end.
    pub(super) fn trim(&mut self) {
        let kept = self.text.trim_end_matches(' ').len();
        self.text.truncate(kept);
    }

    /// A new line that begins with a keyword; `before` and `after` change the level around it, `plus` is for this line
    /// alone.
    pub(super) fn keyword(&mut self, keyword: &str, before: i32, after: i32, plus: i32) {
        self.level += before;
        self.trim();
        self.text.push('\n');
        let mut blanks = self.level.max(0);
        if self.level >= LIMIT {
            blanks = (LIMIT + (self.level - LIMIT) / (STEP / 2)) % LIMIT;
        }
        for _ in 0..blanks + plus {
            self.text.push(' ');
        }
        self.text.push_str(keyword);
        self.level = (self.level + after).max(0);
    }

    /// A clause of a query.
    pub(super) fn clause(&mut self, keyword: &str, plus: i32) {
        self.keyword(keyword, -STEP, STEP, plus);
    }
}
