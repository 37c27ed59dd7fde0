//! SEARCH and CYCLE behind a common table expression, which sqlparser does not read: each becomes one more common table
//! expression, whose name has a quote that no text can have. Its columns are the names, its query has the constants.
//!
//! ```text
//! with recursive t as (…) search depth first by a, b set s     is read as   with recursive t as (…), «search depth»(s, a, b) as (select null)
//! with recursive t as (…) cycle a set m to 1 default 0 using p              with recursive t as (…), «cycle»(m, p, a) as (select 1, 0)
//! ```

use sqlparser::ast;
use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Span, Token, TokenWithSpan};

/// The quote of a clause's name.
const MARK: char = '\u{6}';

const DEPTH: &str = "search depth";
const BREADTH: &str = "search breadth";
const CYCLE: &str = "cycle";

/// SEARCH DEPTH | BREADTH FIRST BY … SET …
#[derive(Debug, Clone)]
pub(crate) struct Search {
    pub(crate) breadth: bool,
    pub(crate) by: Vec<ast::Ident>,
    pub(crate) set: ast::Ident,
    /// The place of the clause.
    pub(crate) span: Span,
}

/// CYCLE … SET … \[TO … DEFAULT …\] USING …
#[derive(Debug, Clone)]
pub(crate) struct Cycle {
    pub(crate) by: Vec<ast::Ident>,
    pub(crate) mark: ast::Ident,
    /// TO and DEFAULT, if they are written.
    pub(crate) values: Option<(ast::Expr, ast::Expr)>,
    pub(crate) path: ast::Ident,
    /// The place of the clause.
    pub(crate) span: Span,
}

impl Cycle {
    /// TO and DEFAULT, if they say more than nothing does.
    pub(crate) fn written_values(&self) -> Option<&(ast::Expr, ast::Expr)> {
        let is = |tree: &ast::Expr, wanted: bool| matches!(tree, ast::Expr::Value(value) if value.value == ast::Value::Boolean(wanted));
        let plain = |values: &&(ast::Expr, ast::Expr)| is(&values.0, true) && is(&values.1, false);
        self.values.as_ref().filter(|values| !plain(values))
    }
}

/// The clauses behind a common table expression.
#[derive(Debug, Clone, Default)]
pub(crate) struct Clauses {
    pub(crate) search: Option<Search>,
    pub(crate) cycle: Option<Cycle>,
}

impl Clauses {
    pub(crate) fn is_empty(&self) -> bool {
        self.search.is_none() && self.cycle.is_none()
    }
}

/// The common table expressions of a WITH, each with its clauses.
pub(crate) fn with_clauses(with: &ast::With) -> Vec<(&ast::Cte, Clauses)> {
    let mut read: Vec<(&ast::Cte, Clauses)> = Vec::with_capacity(with.cte_tables.len());
    for cte in &with.cte_tables {
        let name = &cte.alias.name;
        match read.last_mut() {
            Some((_, clauses)) if name.quote_style == Some(MARK) => read_clause(cte, clauses),
            _ => read.push((cte, Clauses::default())),
        }
    }
    read
}

fn read_clause(cte: &ast::Cte, clauses: &mut Clauses) {
    let names: Vec<ast::Ident> = cte
        .alias
        .columns
        .iter()
        .map(|column| column.name.clone())
        .collect();
    let span = cte.alias.name.span;
    match (cte.alias.name.value.as_str(), names.as_slice()) {
        (CYCLE, [mark, path, by @ ..]) => {
            clauses.cycle = Some(Cycle {
                by: by.to_vec(),
                mark: mark.clone(),
                values: values_of(&cte.query),
                path: path.clone(),
                span,
            });
        }
        (kind, [set, by @ ..]) => {
            clauses.search = Some(Search {
                breadth: kind == BREADTH,
                by: by.to_vec(),
                set: set.clone(),
                span,
            });
        }
        _ => {}
    }
}

fn values_of(query: &ast::Query) -> Option<(ast::Expr, ast::Expr)> {
    let ast::SetExpr::Select(select) = &*query.body else {
        return None;
    };
    match select.projection.as_slice() {
        [
            ast::SelectItem::UnnamedExpr(value),
            ast::SelectItem::UnnamedExpr(default),
        ] => Some((value.clone(), default.clone())),
        _ => None,
    }
}

/// The tokens from a place on that mean something, with their numbers.
struct Reader<'t> {
    tokens: &'t [TokenWithSpan],
    at: usize,
}

impl Reader<'_> {
    /// The number of the next token, which is not a blank.
    fn next(&mut self) -> Option<usize> {
        while let Some(token) = self.tokens.get(self.at) {
            self.at += 1;
            if !matches!(token.token, Token::Whitespace(_)) {
                return Some(self.at - 1);
            }
        }
        None
    }

    fn word(&mut self, text: &str) -> Option<()> {
        let at = self.next()?;
        is_word(&self.tokens[at], text).then_some(())
    }

    fn name(&mut self) -> Option<TokenWithSpan> {
        let at = self.next()?;
        let token = &self.tokens[at];
        matches!(token.token, Token::Word(_)).then(|| token.clone())
    }

    /// Names with commas between them, and the word behind them.
    fn names_up_to(&mut self, word: &str) -> Option<Vec<TokenWithSpan>> {
        let mut names = vec![self.name()?];
        loop {
            let at = self.next()?;
            match &self.tokens[at] {
                comma if comma.token == Token::Comma => names.push(self.name()?),
                end if is_word(end, word) => return Some(names),
                _ => return None,
            }
        }
    }

    /// A constant, and the word behind it.
    fn constant_up_to(&mut self, word: &str) -> Option<Vec<TokenWithSpan>> {
        let start = self.at;
        loop {
            let at = self.next()?;
            let token = &self.tokens[at];
            if is_word(token, word) {
                return (at > start).then(|| self.tokens[start..at].to_vec());
            }
            // A constant has no parentheses but those of a type's modifier, and no query.
            if is_word(token, "select") || token.token == Token::SemiColon {
                return None;
            }
        }
    }
}

fn is_word(token: &TokenWithSpan, text: &str) -> bool {
    matches!(&token.token, Token::Word(word)
        if word.quote_style.is_none() && word.value.eq_ignore_ascii_case(text))
}

/// Mends the clauses in a list of tokens.
pub(super) fn mend(tokens: &mut Vec<TokenWithSpan>) {
    if !tokens
        .iter()
        .any(|token| is_word(token, "recursive") || is_word(token, "with"))
    {
        return;
    }
    let mut closed = false;
    let mut at = 0;
    while at < tokens.len() {
        if closed && let Some((end, replacement)) = clause_at(tokens, at) {
            let length = replacement.len();
            tokens.splice(at..end, replacement);
            // The replacement ends with a parenthesis, as what was before it.
            at += length;
            continue;
        }
        match &tokens[at].token {
            Token::Whitespace(_) => {}
            token => closed = *token == Token::RParen,
        }
        at += 1;
    }
}

/// A clause that begins at a token: its end, and what it becomes.
fn clause_at(tokens: &[TokenWithSpan], at: usize) -> Option<(usize, Vec<TokenWithSpan>)> {
    let span = tokens[at].span;
    let mut reader = Reader { tokens, at: at + 1 };
    if is_word(&tokens[at], "search") {
        let order = reader.next()?;
        let kind = match &tokens[order] {
            token if is_word(token, "depth") => DEPTH,
            token if is_word(token, "breadth") => BREADTH,
            _ => return None,
        };
        reader.word("first")?;
        reader.word("by")?;
        let by = reader.names_up_to("set")?;
        let names = std::iter::once(reader.name()?).chain(by).collect();
        return Some((reader.at, replaced(kind, names, Vec::new(), span)));
    }
    if !is_word(&tokens[at], "cycle") {
        return None;
    }
    let by = reader.names_up_to("set")?;
    let mark = reader.name()?;
    let mut values = Vec::new();
    let next = reader.next()?;
    if is_word(&tokens[next], "to") {
        values = reader.constant_up_to("default")?;
        values.push(TokenWithSpan {
            token: Token::Comma,
            span,
        });
        values.extend(reader.constant_up_to("using")?);
    } else if !is_word(&tokens[next], "using") {
        return None;
    }
    let path = reader.name()?;
    let names = [mark, path].into_iter().chain(by).collect();
    Some((reader.at, replaced(CYCLE, names, values, span)))
}

/// `, «kind»(names) as (select values)`
fn replaced(
    kind: &str,
    names: Vec<TokenWithSpan>,
    values: Vec<TokenWithSpan>,
    span: Span,
) -> Vec<TokenWithSpan> {
    let own = |token: Token| TokenWithSpan { token, span };
    let mut made = vec![
        own(Token::Comma),
        own(Token::make_word(kind, Some(MARK))),
        own(Token::LParen),
    ];
    for (number, name) in names.into_iter().enumerate() {
        if number > 0 {
            made.push(own(Token::Comma));
        }
        made.push(name);
    }
    let word = |keyword: Keyword| own(Token::make_keyword(&format!("{keyword:?}")));
    made.extend([
        own(Token::RParen),
        word(Keyword::AS),
        own(Token::LParen),
        word(Keyword::SELECT),
    ]);
    if values.is_empty() {
        made.push(word(Keyword::NULL));
    }
    made.extend(values);
    made.push(own(Token::RParen));
    made
}
