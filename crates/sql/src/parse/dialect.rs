//! PostgreSQL's grammar where sqlparser's dialect of that name differs from it.
//!
//! Each difference gave another answer, not an error:
//!
//! | text | in PostgreSQL | in sqlparser |
//! | --- | --- | --- |
//! | `-2 ^ 2` | `(-2) ^ 2`: a sign binds more tightly than any operator of two operands | `-(2 ^ 2)` |
//! | `@ -5 + 3` | `@ (-5 + 3)`: other operators before their operand bind less tightly than `+` | `(@ -5) + 3` |
//! | `select x isnull` | `x is null` | `x`, in a column called `isnull` |
//! | `select 'a'`, and `'b'` on the next line | `'ab'` | `'a'`, in a column called `b` |
//! | `select 123abc`, `1_000`, `0x1f`, `$1a` | an error: junk behind a number | `123`, in a column called `abc`; `1000`; a string of bits |
//!
//! Others gave an error: COLLATE behind a cast, NULLS NOT DISTINCT behind a column (`column_nulls`), `between symmetric a
//! and b` (a mark on the word, [`mark_symmetric`]), `U&'…' uescape '…'`, the calls with a grammar of their own
//! (`special_call`), lists that begin with a query (`in_list`), ANY behind an operator with its schema (`operator_any`),
//! `.*` behind parentheses or before an operator (`row_wildcards`), ONLY and `*` beside tables' names (`children`),
//! GROUPING SETS inside GROUPING SETS, `GROUP BY DISTINCT` (a key of its own, [`mark_distinct_groups`]), parts of arrays
//! that are assigned to (`assigned_parts`), forms of MERGE (`merge`), the columns of ON DELETE SET NULL (`set_columns`),
//! CURRENT OF (`current_of`), names of joins behind USING (`using_alias`), ROWS FROM (`rows_from`), VALUES behind ANY
//! (`quantified_values`), targets of ON CONFLICT (`conflict_target`), DO SELECT (`conflict_select`), VARIADIC, `(values
//! (1))` and `((select 1) union select 2)` (`set_operand`) as values.
//!
//! The first two are rules of precedence ([`Dialect`]); the others are mended in the list of tokens ([`tokens`]). So are
//! locks of rows (`row_locks`). `TABLE x`, whose name sqlparser keeps without its quotes, is written out there.

use std::any::TypeId;

use sqlparser::ast::{Expr, Ident, UnaryOperator};
use sqlparser::dialect::{Dialect, PostgreSqlDialect, Precedence};
use sqlparser::keywords::Keyword;
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::{Token, TokenWithSpan, Tokenizer, TokenizerError, Whitespace};

/// The word in front of an array that stands for the last arguments of a call. It is reserved: nothing else begins so.
pub(crate) const VARIADIC: &str = "variadic";

/// sqlparser's dialect with PostgreSQL's precedence of operators before their operand.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Grammar;

const BASE: PostgreSqlDialect = PostgreSqlDialect {};

/// Methods that answer as sqlparser's dialect does. They are all that it answers otherwise than by default.
macro_rules! as_base {
    ($($method:ident($($argument:ident: $type:ty),*) -> $result:ty;)*) => {
        $(fn $method(&self, $($argument: $type),*) -> $result {
            BASE.$method($($argument),*)
        })*
    };
}

impl Dialect for Grammar {
    fn dialect(&self) -> TypeId {
        BASE.dialect()
    }

    fn parse_prefix(&self, parser: &mut Parser<'_>) -> Option<Result<Expr, ParserError>> {
        let (op, stronger_than) = match parser.peek_token_ref().token {
            Token::Minus => (UnaryOperator::Minus, Precedence::AtTz),
            Token::Plus => (UnaryOperator::Plus, Precedence::AtTz),
            Token::AtSign => (UnaryOperator::PGAbs, Precedence::PgOther),
            Token::PGSquareRoot => (UnaryOperator::PGSquareRoot, Precedence::PgOther),
            Token::PGCubeRoot => (UnaryOperator::PGCubeRoot, Precedence::PgOther),
            Token::Tilde => (UnaryOperator::BitwiseNot, Precedence::PgOther),
            Token::Word(ref word) if word.quote_style == Some(SYMMETRIC_MARK) => {
                let prefix = Ident::new("symmetric");
                parser.advance_token();
                let low = parser.parse_subexpr(self.prec_value(Precedence::Between));
                return Some(low.map(|low| Expr::Prefixed {
                    prefix,
                    value: Box::new(low),
                }));
            }
            Token::LParen if is_values(&parser.peek_nth_token_ref(1).token) => {
                parser.advance_token();
                let query = parser.parse_query();
                return Some(query.and_then(|query| {
                    parser.expect_token(&Token::RParen)?;
                    Ok(Expr::Subquery(query))
                }));
            }
            Token::LParen => return super::set_operand::parse(parser),
            Token::Word(ref word) if word.quote_style.is_none() && word.keyword == Keyword::VARIADIC => {
                let prefix = Ident::with_span(parser.peek_token_ref().span, VARIADIC);
                parser.advance_token();
                let array = parser.parse_expr();
                return Some(array.map(|array| Expr::Prefixed {
                    prefix,
                    value: Box::new(array),
                }));
            }
            _ => return super::special_call::parse(parser),
        };
        parser.advance_token();
        let operand = parser.parse_subexpr(self.prec_value(stronger_than));
        Some(operand.map(|operand| Expr::UnaryOp {
            op,
            expr: Box::new(operand),
        }))
    }

    fn parse_infix(
        &self,
        parser: &mut Parser<'_>,
        left: &Expr,
        _precedence: u8,
    ) -> Option<Result<Expr, ParserError>> {
        if parser.parse_keyword(Keyword::COLLATE) {
            let collation = parser.parse_object_name(false);
            return Some(collation.map(|collation| Expr::Collate {
                expr: Box::new(left.clone()),
                collation,
            }));
        }
        super::in_list::parse(parser, left).or_else(|| super::operator_any::parse(parser, left))
    }

    /// `INSERT … SELECT 1 ON CONFLICT …`: the last value is not named "on", a word that only AS makes a name.
    fn is_column_alias(&self, kw: &Keyword, parser: &mut Parser<'_>) -> bool {
        *kw != Keyword::ON && PostgreSqlDialect {}.is_column_alias(kw, parser)
    }

    /// Words of other databases' FROM clauses name a table like any other.
    fn is_table_alias(&self, kw: &Keyword, parser: &mut Parser<'_>) -> bool {
        FREE_TABLE_ALIASES.contains(kw) || PostgreSqlDialect {}.is_table_alias(kw, parser)
    }

    as_base! {
        identifier_quote_style(identifier: &str) -> Option<char>;
        is_delimited_identifier_start(ch: char) -> bool;
        is_identifier_start(ch: char) -> bool;
        is_identifier_part(ch: char) -> bool;
        is_reserved_for_identifier(kw: Keyword) -> bool;
        is_custom_operator_part(ch: char) -> bool;
        get_next_precedence(parser: &Parser<'_>) -> Option<Result<u8, ParserError>>;
        prec_value(prec: Precedence) -> u8;
        supports_unicode_string_literal() -> bool;
        supports_filter_during_aggregation() -> bool;
        supports_group_by_expr() -> bool;
        supports_alter_user_as_alter_role() -> bool;
        allow_extract_custom() -> bool;
        allow_extract_single_quotes() -> bool;
        supports_create_index_with_clause() -> bool;
        supports_explain_with_utility_options() -> bool;
        supports_listen_notify() -> bool;
        supports_exclude_constraint() -> bool;
        supports_factorial_operator() -> bool;
        supports_bitwise_shift_operators() -> bool;
        supports_comment_on() -> bool;
        supports_load_extension() -> bool;
        supports_named_fn_args_with_colon_operator() -> bool;
        supports_named_fn_args_with_expr_name() -> bool;
        supports_empty_projections() -> bool;
        supports_nested_comments() -> bool;
        supports_string_escape_constant() -> bool;
        supports_numeric_literal_underscores() -> bool;
        supports_array_typedef_with_brackets() -> bool;
        supports_geometric_types() -> bool;
        supports_order_by_using_operator() -> bool;
        supports_set_names() -> bool;
        supports_alter_column_type_using() -> bool;
        supports_left_associative_joins_without_parens() -> bool;
        supports_notnull_operator() -> bool;
        supports_interval_options() -> bool;
        supports_insert_table_alias() -> bool;
        supports_create_table_like_parenthesized() -> bool;
        supports_select_wildcard_with_alias() -> bool;
        supports_comma_separated_trim() -> bool;
        supports_xml_expressions() -> bool;
        supports_aliased_function_args() -> bool;
        supports_comment_optimizer_hint() -> bool;
    }
}

/// Words that sqlparser takes for the beginning of a clause or a join of other databases behind a table.
const FREE_TABLE_ALIASES: [Keyword; 16] = [
    Keyword::ANTI,
    Keyword::ASOF,
    Keyword::CONNECT,
    Keyword::FORMAT,
    Keyword::GLOBAL,
    Keyword::MATCH_CONDITION,
    Keyword::MATCH_RECOGNIZE,
    Keyword::OPEN,
    Keyword::OUTPUT,
    Keyword::PARTITION,
    Keyword::PIVOT,
    Keyword::PREWHERE,
    Keyword::QUALIFY,
    Keyword::SEMI,
    Keyword::SETTINGS,
    Keyword::UNPIVOT,
];

/// TOP is a name: sqlparser reads a limit of other databases there, whatever the dialect.
fn free_top(tokens: &mut [TokenWithSpan]) {
    for token in tokens {
        if let Token::Word(word) = &mut token.token
            && word.keyword == Keyword::TOP
        {
            word.keyword = Keyword::NoKeyword;
        }
    }
}

/// True for the word VALUES, which cannot begin an expression.
fn is_values(token: &Token) -> bool {
    matches!(token, Token::Word(word) if word.quote_style.is_none() && word.keyword == Keyword::VALUES)
}

/// The tokens of a text: strings that go on in the next line are one, and ISNULL is IS NULL.
pub(super) fn tokens(text: &str) -> Result<Vec<TokenWithSpan>, TokenizerError> {
    let mut tokens = Tokenizer::new(&Grammar, text).tokenize_with_location()?;
    super::number_junk::refuse(&tokens, text)?;
    super::string_forms::decode(&mut tokens, text)?;
    join_strings(&mut tokens);
    mark_symmetric(&mut tokens);
    free_top(&mut tokens);
    super::in_list::mark(&mut tokens);
    super::conflict_select::mend(&mut tokens);
    super::row_locks::mend(&mut tokens);
    super::fetch_first::mend(&mut tokens);
    write_out_table_queries(&mut tokens);
    mark_distinct_groups(&mut tokens);
    super::children::leave_out(&mut tokens);
    super::row_wildcards::mend(&mut tokens);
    super::assigned_parts::mark(&mut tokens, text);
    super::conflict_target::mend(&mut tokens, text);
    super::window_frame::mend(&mut tokens);
    super::merge::mend(&mut tokens);
    super::using_alias::mend(&mut tokens);
    super::rows_from::mend(&mut tokens);
    super::quantified_values::mend(&mut tokens);
    super::overriding::mend(&mut tokens);
    super::identity_options::mend(&mut tokens);
    super::long_value_parameters::mend(&mut tokens);
    super::search_cycle::mend(&mut tokens);
    super::set_columns::mend(&mut tokens);
    super::current_of::mend(&mut tokens);
    super::column_nulls::mend(&mut tokens);
    Ok(with_is_null(tokens))
}

/// The quote of the word SYMMETRIC behind BETWEEN, which no text can have.
const SYMMETRIC_MARK: char = '[';

/// Marks the word SYMMETRIC behind BETWEEN, and leaves out ASYMMETRIC.
///
/// In the tree, the lower bound has the prefix `symmetric`.
fn mark_symmetric(tokens: &mut [TokenWithSpan]) {
    let mut behind_between = false;
    for token in tokens {
        match &mut token.token {
            Token::Whitespace(_) => {}
            Token::Word(word) if word.quote_style.is_none() => {
                if behind_between && word.value.eq_ignore_ascii_case("symmetric") {
                    word.quote_style = Some(SYMMETRIC_MARK);
                } else if behind_between && word.value.eq_ignore_ascii_case("asymmetric") {
                    token.token = Token::Whitespace(Whitespace::Space);
                    continue;
                }
                behind_between =
                    matches!(&token.token, Token::Word(word) if word.keyword == Keyword::BETWEEN);
            }
            _ => behind_between = false,
        }
    }
}

/// Words that may stand behind a column called `table`, and not behind TABLE.
const BEHIND_A_COLUMN: &[Keyword] = &[
    Keyword::FROM,
    Keyword::WHERE,
    Keyword::GROUP,
    Keyword::HAVING,
    Keyword::ORDER,
    Keyword::LIMIT,
    Keyword::OFFSET,
    Keyword::FETCH,
    Keyword::FOR,
    Keyword::UNION,
    Keyword::INTERSECT,
    Keyword::EXCEPT,
    Keyword::RETURNING,
];

/// `TABLE x` where a query stands becomes `SELECT * FROM x`.
fn write_out_table_queries(tokens: &mut Vec<TokenWithSpan>) {
    let keyword = |token: &Token| match token {
        Token::Word(word) if word.quote_style.is_none() => Some(word.keyword),
        _ => None,
    };
    let meant: Vec<usize> = (0..tokens.len())
        .filter(|at| !matches!(tokens[*at].token, Token::Whitespace(_)))
        .collect();
    let head = meant.first().and_then(|at| keyword(&tokens[*at].token));
    let begins_query = |at: usize| match at.checked_sub(1).map(|before| &tokens[meant[before]].token) {
        None | Some(Token::LParen | Token::RParen | Token::SemiColon) => true,
        Some(before) => match keyword(before) {
            Some(
                Keyword::UNION | Keyword::INTERSECT | Keyword::EXCEPT | Keyword::ALL | Keyword::DISTINCT,
            ) => true,
            Some(Keyword::AS) => head == Some(Keyword::CREATE),
            _ => head == Some(Keyword::INSERT) && matches!(before, Token::Word(_)),
        },
    };
    let is_query = |at: &usize| {
        keyword(&tokens[meant[*at]].token) == Some(Keyword::TABLE)
            && begins_query(*at)
            && meant.get(at + 1).is_some_and(|next| {
                let next = &tokens[*next].token;
                matches!(next, Token::Word(_))
                    && keyword(next).is_none_or(|word| !BEHIND_A_COLUMN.contains(&word))
            })
    };
    let queries: Vec<usize> = (0..meant.len()).filter(is_query).map(|at| meant[at]).collect();
    for at in queries.into_iter().rev() {
        let span = tokens[at].span;
        let written = [
            Token::make_keyword("SELECT"),
            Token::Mul,
            Token::make_keyword("FROM"),
        ];
        let written = written.map(|token| TokenWithSpan { token, span });
        tokens.splice(at..=at, written);
    }
}

/// The quote of the word DISTINCT behind GROUP BY, which no text can have.
pub(crate) const DISTINCT_MARK: char = '`';

/// Makes DISTINCT behind GROUP BY a key of its own, with the blank behind it as a comma, and leaves out ALL.
fn mark_distinct_groups(tokens: &mut [TokenWithSpan]) {
    let is_keyword = |token: &TokenWithSpan, keyword: Keyword| match &token.token {
        Token::Word(word) => word.quote_style.is_none() && word.keyword == keyword,
        _ => false,
    };
    let mut behind = 0;
    for number in 0..tokens.len() {
        let token = &tokens[number];
        match &token.token {
            Token::Whitespace(_) => {}
            _ if is_keyword(token, Keyword::GROUP) => behind = 1,
            _ if behind == 1 && is_keyword(token, Keyword::BY) => behind = 2,
            _ if behind == 2 && is_keyword(token, Keyword::ALL) => {
                tokens[number].token = Token::Whitespace(Whitespace::Space);
            }
            _ if behind == 2 && is_keyword(token, Keyword::DISTINCT) => {
                if let Some(TokenWithSpan {
                    token: blank @ Token::Whitespace(_),
                    ..
                }) = tokens.get_mut(number + 1)
                {
                    *blank = Token::Comma;
                    tokens[number].token = Token::make_word("distinct", Some(DISTINCT_MARK));
                }
                behind = 0;
            }
            _ => behind = 0,
        }
    }
}

/// Appends each string to the one before it, if only blanks and comments to the end of a line stand between them, and a
/// line ends there. What was appended leaves a blank.
fn join_strings(tokens: &mut [TokenWithSpan]) {
    // The string that may go on, and whether a line has ended since.
    let mut open: Option<(usize, bool)> = None;
    for number in 0..tokens.len() {
        let (before, rest) = tokens.split_at_mut(number);
        let token = &mut rest[0].token;
        open = match (&*token, open) {
            (
                Token::Whitespace(Whitespace::Newline | Whitespace::SingleLineComment { .. }),
                Some((first, _)),
            ) => Some((first, true)),
            (Token::Whitespace(Whitespace::Space | Whitespace::Tab), open) => open,
            (Token::SingleQuotedString(more), Some((first, true))) => match &mut before[first].token {
                // The escapes of an appended string would be those of the first: one that has any stays by itself,
                // which is a syntax error.
                Token::EscapedStringLiteral(_) if more.contains('\\') => None,
                Token::SingleQuotedString(text) | Token::EscapedStringLiteral(text) => {
                    text.push_str(more);
                    *token = Token::Whitespace(Whitespace::Space);
                    Some((first, false))
                }
                _ => None,
            },
            (Token::SingleQuotedString(_) | Token::EscapedStringLiteral(_), _) => Some((number, false)),
            _ => None,
        };
    }
}

fn with_is_null(tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    let operators: Vec<usize> = (0..tokens.len())
        .filter(|number| is_isnull(&tokens, *number))
        .collect();
    if operators.is_empty() {
        return tokens;
    }
    let mut operators = operators.into_iter().peekable();
    let mut all = Vec::with_capacity(tokens.len() + operators.len());
    for (number, token) in tokens.into_iter().enumerate() {
        if operators.next_if_eq(&number).is_none() {
            all.push(token);
            continue;
        }
        all.extend(["IS", "NULL"].map(|keyword| TokenWithSpan {
            token: Token::make_keyword(keyword),
            span: token.span,
        }));
    }
    all
}

/// True if a token is the operator ISNULL: not a name after AS or a point, and not a function.
fn is_isnull(tokens: &[TokenWithSpan], number: usize) -> bool {
    let Token::Word(word) = &tokens[number].token else {
        return false;
    };
    if word.quote_style.is_some() || !word.value.eq_ignore_ascii_case("isnull") {
        return false;
    }
    let significant = |token: &&TokenWithSpan| !matches!(token.token, Token::Whitespace(_));
    let before = tokens[..number].iter().rev().find(significant);
    let after = tokens[number + 1..].iter().find(significant);
    let is_name = match before.map(|token| &token.token) {
        Some(Token::Word(word)) => word.keyword == Keyword::AS,
        Some(Token::Period) => true,
        _ => false,
    };
    !is_name && after.is_none_or(|token| token.token != Token::LParen)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The text of an expression with brackets around each operator's operands.
    fn shape(expr: &Expr) -> String {
        match expr {
            Expr::UnaryOp { op, expr } => format!("({op}{})", shape(expr)),
            Expr::BinaryOp { left, op, right } => format!("({} {op} {})", shape(left), shape(right)),
            other => other.to_string(),
        }
    }

    fn parsed(text: &str) -> String {
        let mut parser = Parser::new(&Grammar).with_tokens_with_locations(tokens(text).unwrap());
        shape(&parser.parse_expr().unwrap())
    }

    #[test]
    fn signs_bind_more_tightly_than_operators_between_operands() {
        assert_eq!(parsed("-2 ^ 2"), "((-2) ^ 2)");
        assert_eq!(parsed("2 ^ -3 ^ 2"), "((2 ^ (-3)) ^ 2)");
        assert_eq!(parsed("- -a * b"), "((-(-a)) * b)");
        assert_eq!(parsed("-a::int"), "(-a::INT)");
        assert_eq!(parsed("-a - -b"), "((-a) - (-b))");
    }

    #[test]
    fn other_operators_before_their_operand_bind_less_tightly_than_sums() {
        assert_eq!(parsed("@ -5 + 3"), "(@((-5) + 3))");
        assert_eq!(parsed("|/ a * b + c"), "(|/((a * b) + c))");
        assert_eq!(parsed("@ a || b"), "((@a) || b)");
        assert_eq!(parsed("@ a < b"), "((@a) < b)");
    }

    #[test]
    fn isnull_is_an_operator_unless_it_is_a_name() {
        assert_eq!(parsed("a isnull and b"), "(a IS NULL AND b)");
        assert_eq!(parsed("t.isnull + isnull(a)"), "(t.isnull + isnull(a))");
        let tokens = tokens("select 1 as isnull, 2 \"isnull\"").unwrap();
        assert!(
            tokens
                .iter()
                .all(|token| token.token != Token::make_keyword("NULL"))
        );
    }

    #[test]
    fn strings_go_on_in_the_next_line_only() {
        assert_eq!(parsed("'a' \n\t 'b'"), "'ab'");
        assert_eq!(parsed("'a' -- so\n'b'\n'c'"), "'abc'");
        assert_eq!(parsed("E'a\\n'\n'b'"), "E'a\\nb'");
        for text in ["'a' 'b'", "'a' /* \n */ 'b'", "E'a'\n'\\n'", "'a'\n+ 'b'"] {
            let is_string =
                |token: &&TokenWithSpan| !matches!(token.token, Token::Whitespace(_) | Token::Plus);
            assert_eq!(
                tokens(text).unwrap().iter().filter(is_string).count(),
                2,
                "{text}"
            );
        }
    }
}
