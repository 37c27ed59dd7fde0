//! CREATE TABLE … AS, CREATE TABLE … OF, and the LIKE clauses of CREATE TABLE.
//!
//! They are read here because sqlparser knows them in part only. CREATE TABLE … AS is the clause that says where the rows
//! go, and a query behind its AS, which is parsed as any statement is. LIKE clauses stand among the columns: they are cut
//! out, and what is left is a CREATE TABLE that sqlparser takes. So is OF with its type, and NOT VALID. What is cut out
//! leaves blanks, so that places stay.
//!
//! ```text
//! create table t (a int, like other including all, b int)
//! create table t (a int,                           b int)      and: LIKE other after 1 column
//! ```

use crate::error::{EngineError, Result, SqlState};
use crate::lex::{Kind, Token};
use crate::parse::unsupported::MODIFIERS;
use crate::parse::utility::reader::{Name, Reader};
use crate::parse::{Tree, parse_mended, parse_one, parse_sql, typed_table};
use crate::plan::{ControlStatement, IntoTable};
use crate::storage_parameters::StorageParameters;

/// A LIKE clause as written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LikeClause {
    /// The columns that are written before it.
    pub after_columns: usize,
    pub source: Name,
    pub including: LikeOptions,
}

/// The options of a LIKE clause that there is something of.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct LikeOptions {
    pub defaults: bool,
    pub identity: bool,
    pub generated: bool,
    pub indexes: bool,
    pub constraints: bool,
    pub comments: bool,
    pub storage: bool,
    pub compression: bool,
}

/// The words that a table's constraint begins with.
const CONSTRAINT_WORDS: [&str; 6] = ["constraint", "primary", "unique", "check", "foreign", "exclude"];

/// True if a statement that begins with these words may be one that is read here.
pub(super) fn is_create_table(words: &[&str]) -> bool {
    let mut after = words.iter().skip(1).skip_while(|word| MODIFIERS.contains(word));
    words.first() == Some(&"create") && after.next() == Some(&"table")
}

impl Reader<'_> {
    /// CREATE TABLE with AS, OF, LIKE or NOT VALID; `None` for one with none of them.
    pub(super) fn create_table(&mut self) -> Result<Option<Tree>> {
        self.expect("create")?;
        let mut into = IntoTable::default();
        loop {
            match self.peek_word() {
                "temp" | "temporary" => into.temporary = true,
                "unlogged" => into.unlogged = true,
                "local" | "global" => {}
                _ => break,
            }
            self.at += 1;
        }
        self.expect("table")?;
        into.if_not_exists = self.eat("if not exists");
        let Ok(name) = self.name() else { return Ok(None) };
        (into.schema, into.name, into.position) = (name.schema, name.name, name.position);
        let columns_at = self.at;
        if self.eat("of") {
            return self.of_type(columns_at).map(Some);
        }
        if self.read_into(&mut into)? {
            return self.rows_for(into).map(Some);
        }
        self.at = columns_at;
        self.with_like()
    }

    /// The clause from the column names to AS; false if this is no CREATE TABLE … AS.
    fn read_into(&mut self, into: &mut IntoTable) -> Result<bool> {
        if self.eat_symbol('(') {
            loop {
                let Ok((name, _)) = self.identifier() else {
                    return Ok(false);
                };
                into.columns.push(name);
                if self.eat_symbol(')') {
                    break;
                }
                if !self.eat_symbol(',') {
                    return Ok(false);
                }
            }
        }
        if self.eat("with") {
            into.parameters = StorageParameters::of(self.storage_parameters()?)?;
        } else {
            let _ = self.eat("without oids");
        }
        if self.eat("on commit") {
            into.on_commit = Some(self.on_commit()?);
        }
        Ok(self.eat("as"))
    }

    /// The query or EXECUTE behind AS.
    fn rows_for(&mut self, mut into: IntoTable) -> Result<Tree> {
        into.with_data = !self.eat_last(&["with", "no", "data"]);
        if into.with_data {
            self.eat_last(&["with", "data"]);
        }
        if self.eat("execute") {
            into.is_execute = true;
            let (name, arguments) = self.executed()?;
            return Ok(Tree::Control(ControlStatement::ExecuteInto {
                name,
                arguments,
                into: Box::new(into),
            }));
        }
        let begins = matches!(self.peek_word(), "select" | "values" | "with" | "table");
        if !begins && self.peek() != Some(&Kind::Symbol('(')) {
            return Err(self.syntax_error());
        }
        let (text, offset) = self.rest();
        Ok(Tree::CreateTableAs {
            into: Box::new(into),
            query: Box::new(parse_one(&text, offset)?),
        })
    }

    /// Takes these words away from the end, if they are there.
    fn eat_last(&mut self, words: &[&str]) -> bool {
        let Some(start) = self.tokens.len().checked_sub(words.len()) else {
            return false;
        };
        let last = &self.tokens[start..];
        let found = last
            .iter()
            .zip(words)
            .all(|(token, wanted)| matches!(&token.kind, Kind::Word(word) if word == wanted));
        if found {
            self.text = &self.text[..last[0].start];
            self.tokens.truncate(start);
        }
        found
    }

    /// The LIKE clauses among the columns, and the statement without them and without NOT VALID; `None` if there are none.
    fn with_like(&mut self) -> Result<Option<Tree>> {
        if !self.eat_symbol('(') {
            return Ok(None);
        }
        let elements = self.elements();
        let is_like = |element: &[Token]| matches!(element, [first, ..] if is_word(first, "like"));
        let mut likes = Vec::new();
        let (mut columns, mut kept) = (0, 0);
        let mut cut = self.not_valid(&elements)?;
        let has_like = elements.iter().any(|range| is_like(&self.tokens[range.clone()]));
        if !has_like && cut.is_empty() {
            return Ok(None);
        }
        for range in elements {
            let element = &self.tokens[range.clone()];
            let comma = range.start - 1;
            if is_like(element) {
                let end = element.last().map_or(0, |token| token.end);
                cut.push(element[0].start..end);
                self.at = range.start + 1;
                likes.push(self.like_clause(columns, range.end)?);
            } else {
                columns += usize::from(!is_constraint(element));
                kept += 1;
                if kept > 1 || !has_like {
                    continue;
                }
            }
            // The comma before it goes too, and that before the first column which is kept.
            if self.tokens[comma].kind == Kind::Symbol(',') {
                cut.push(self.tokens[comma].start..self.tokens[comma].end);
            }
        }
        cut.sort_by_key(|range| range.start);
        let tree = parse_sql(&blanked(self.text, &cut), self.offset)?;
        self.at = self.tokens.len();
        Ok(Some(Tree::CreateTable {
            tree,
            likes,
            of: None,
        }))
    }

    /// A typed table, behind its OF, which is the token `of_at`.
    fn of_type(&mut self, of_at: usize) -> Result<Tree> {
        let of = self.name()?;
        let of_clause = self.tokens[of_at].start..self.tokens[self.at - 1].end;
        let mut cut = Vec::new();
        let has_list = self.eat_symbol('(');
        if has_list {
            let elements = self.elements();
            cut = self.not_valid(&elements)?;
            for element in elements {
                let first = self.tokens[element.clone()].first();
                if first.is_none_or(|first| is_word(first, "like")) {
                    self.at = element.start;
                    return Err(self.syntax_error());
                }
            }
        }
        cut.insert(0, of_clause);
        let text = blanked(self.text, &cut);
        let tree = parse_mended(&text, self.offset, |tokens| {
            if has_list {
                typed_table::mend(tokens);
            }
        })?;
        self.at = self.tokens.len();
        Ok(Tree::CreateTable {
            tree,
            likes: Vec::new(),
            of: Some(of),
        })
    }

    /// The places of NOT VALID behind the constraints of a table that is made: there are no rows that they could be false
    /// of, so they are valid, as in PostgreSQL. 0A000 for constraints that have an index.
    fn not_valid(&self, elements: &[std::ops::Range<usize>]) -> Result<Vec<std::ops::Range<usize>>> {
        let mut found = Vec::new();
        for range in elements {
            let element = &self.tokens[range.clone()];
            if !is_constraint(element) {
                continue;
            }
            let kind = match element {
                [constraint, _, kind, ..] if is_word(constraint, "constraint") => kind,
                _ => &element[0],
            };
            let indexed = match () {
                () if is_word(kind, "unique") => Some("UNIQUE"),
                () if is_word(kind, "primary") => Some("PRIMARY KEY"),
                () => None,
            };
            let mut depth = 0;
            for pair in element.windows(2) {
                match pair[0].kind {
                    Kind::Symbol('(') => depth += 1,
                    Kind::Symbol(')') => depth -= 1,
                    _ => {}
                }
                // In parentheses `valid` is a column.
                if depth > 0 || !is_word(&pair[0], "not") || !is_word(&pair[1], "valid") {
                    continue;
                }
                if let Some(indexed) = indexed {
                    return Err(EngineError::new(
                        SqlState::FEATURE_NOT_SUPPORTED,
                        format!("{indexed} constraints cannot be marked NOT VALID"),
                    ));
                }
                found.push(pair[0].start..pair[1].end);
            }
        }
        Ok(found)
    }

    /// The tokens of each element of a list in parentheses, behind the opening one.
    fn elements(&self) -> Vec<std::ops::Range<usize>> {
        let mut elements = Vec::new();
        let (mut start, mut depth) = (self.at, 0);
        for (number, token) in self.tokens.iter().enumerate().skip(self.at) {
            match token.kind {
                Kind::Symbol('(' | '[') => depth += 1,
                Kind::Symbol(')') if depth == 0 => {
                    elements.push(start..number);
                    break;
                }
                Kind::Symbol(')' | ']') => depth -= 1,
                Kind::Symbol(',') if depth == 0 => {
                    elements.push(start..number);
                    start = number + 1;
                }
                _ => {}
            }
        }
        elements
    }

    /// A LIKE clause behind its LIKE, up to the token `end`.
    fn like_clause(&mut self, after_columns: usize, end: usize) -> Result<LikeClause> {
        let source = self.name()?;
        let mut including = LikeOptions::default();
        while self.at < end {
            let wanted = match self.peek_word() {
                "including" => true,
                "excluding" => false,
                _ => return Err(self.syntax_error()),
            };
            self.at += 1;
            match self.peek_word() {
                "all" => {
                    including = LikeOptions {
                        defaults: wanted,
                        identity: wanted,
                        generated: wanted,
                        indexes: wanted,
                        constraints: wanted,
                        comments: wanted,
                        storage: wanted,
                        compression: wanted,
                    }
                }
                "defaults" => including.defaults = wanted,
                "identity" => including.identity = wanted,
                "generated" => including.generated = wanted,
                "indexes" => including.indexes = wanted,
                "comments" => including.comments = wanted,
                "constraints" => including.constraints = wanted,
                "storage" => including.storage = wanted,
                "compression" => including.compression = wanted,
                // There is nothing of these here.
                "statistics" => {}
                _ => return Err(self.syntax_error()),
            }
            self.at += 1;
        }
        Ok(LikeClause {
            after_columns,
            source,
            including,
        })
    }
}

/// True for the constraint of a table, of the elements of CREATE TABLE.
fn is_constraint(element: &[Token]) -> bool {
    element.first().is_some_and(
        |token| matches!(&token.kind, Kind::Word(word) if CONSTRAINT_WORDS.contains(&word.as_str())),
    )
}

fn is_word(token: &Token, wanted: &str) -> bool {
    matches!(&token.kind, Kind::Word(word) if word == wanted)
}

/// The text with blanks in the place of these bytes: one for each character, so that places in it stay.
fn blanked(text: &str, cut: &[std::ops::Range<usize>]) -> String {
    let mut left = String::with_capacity(text.len());
    let mut at = 0;
    for range in cut {
        left.push_str(&text[at..range.start]);
        let blanks = text[range.clone()].chars();
        left.extend(blanks.map(|character| if character == '\n' { '\n' } else { ' ' }));
        at = range.end;
    }
    left.push_str(&text[at..]);
    left
}

/// 42601 for more names than a query has columns.
pub(crate) fn too_many_names() -> EngineError {
    EngineError::new(SqlState::SYNTAX_ERROR, "too many column names were specified")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse::utility::parse;

    fn read(sql: &str) -> Option<Tree> {
        parse(sql, 0).unwrap()
    }

    #[test]
    fn a_query_behind_as_makes_the_rows() {
        let Some(Tree::CreateTableAs { into, query }) = read(
            "create table if not exists s.t (a, \"B\") with (fillfactor = 70) as select 1, 2 with no data",
        ) else {
            panic!("no CREATE TABLE AS");
        };
        assert_eq!((into.schema.as_deref(), &*into.name), (Some("s"), "t"));
        assert_eq!(into.columns, ["a", "B"]);
        assert!(into.if_not_exists && !into.with_data);
        assert_eq!(into.parameters.get("fillfactor"), Some("70"));
        assert_eq!(query.text.trim(), "select 1, 2");
        assert!(matches!(
            read("create temp table t as execute p (1)"),
            Some(Tree::Control(ControlStatement::ExecuteInto { into, .. })) if into.temporary && into.with_data
        ));
        assert!(read("create table t (a int)").is_none());
        assert!(read("create table t (a int, b int) with (fillfactor = 70)").is_none());
        assert!(parse("create table t as insert into u values (1)", 0).is_err());
    }

    #[test]
    fn like_clauses_are_cut_out_from_among_the_columns() {
        let likes = |sql: &str| match read(sql) {
            Some(Tree::CreateTable { likes, .. }) => likes,
            other => panic!("{sql}: {other:?}"),
        };
        let found =
            likes("create table t (a int, like s.u including all excluding indexes, primary key (a), b int)");
        let [like] = &found[..] else { panic!("{found:?}") };
        assert_eq!((like.after_columns, &*like.source.name), (1, "u"));
        assert!(like.including.defaults && like.including.identity && !like.including.indexes);
        assert_eq!(likes("create table t (like u, like v)").len(), 2);
        let found = likes("create table t (like u, a int, b int, like v)");
        assert_eq!((found[0].after_columns, found[1].after_columns), (0, 2));
        assert!(parse("create table t (like u including nonsense)", 0).is_err());
    }
}
