//! Calls with a grammar of their own, read as what they are: calls.
//!
//! | text | call |
//! | --- | --- |
//! | `extract(year from x)` | `extract('year', x)` |
//! | `trim(both y from x)`, `trim(leading from x)` | `btrim(x, y)`, `ltrim(x)` |
//! | `substring(x from a for b)`, `substring(x for b)` | `substring(x, a, b)`, `substring(x, 1, b)` |
//! | `position(x in y)` | `position(y, x)` |
//! | `overlay(x placing y from a for b)` | `overlay(x, y, a, b)` |
//!
//! So are they in PostgreSQL, which also names their columns. A definition keeps its expressions as texts of their trees, and
//! `extract(` and `position(` begin the grammars of the left column: in a tree these two names are in quotes, so that the text
//! is read as the call that it is. A literal behind the name of any type is one of that type
//! (`oid '1'`).

use sqlparser::ast::{self, Expr, Ident, ObjectName};
use sqlparser::dialect::{Dialect as _, PostgreSqlDialect, Precedence};
use sqlparser::keywords::Keyword;
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::{Span, Token, Word};

type Result<T, E = ParserError> = std::result::Result<T, E>;

/// The name of a function and its arguments.
type Call = (&'static str, Vec<Expr>);

/// The expression that begins here, if it is one of these.
pub(super) fn parse(parser: &mut Parser<'_>) -> Option<Result<Expr>> {
    let token = parser.peek_token_ref();
    let span = token.span;
    let Token::Word(word) = &token.token else {
        return None;
    };
    if word.quote_style.is_some() {
        return None;
    }
    let keyword = word.keyword;
    if keyword == Keyword::INTERVAL && is_precision(parser) {
        return Some(interval_with_precision(parser));
    }
    match parser.peek_nth_token_ref(1).token {
        Token::LParen => {}
        Token::Word(ref next)
            if keyword == Keyword::GROUPING
                && next.keyword == Keyword::SETS
                && parser.peek_nth_token_ref(2).token == Token::LParen =>
        {
            return Some(grouping_sets(parser));
        }
        Token::SingleQuotedString(_) if matches!(keyword, Keyword::NoKeyword | Keyword::NAME) => {
            let name = word.clone();
            return Some(typed_literal(parser, &name, span));
        }
        _ => return None,
    }
    let arguments: fn(&mut Parser<'_>) -> Result<Call> = match keyword {
        Keyword::EXTRACT => extract,
        Keyword::TRIM => trim,
        Keyword::SUBSTRING => substring,
        Keyword::SUBSTR => substr,
        Keyword::POSITION => position,
        Keyword::OVERLAY => overlay,
        _ => return None,
    };
    parser.advance_token();
    parser.advance_token();
    let call = arguments(parser).and_then(|(name, arguments)| {
        parser.expect_token(&Token::RParen)?;
        Ok(call(name, span, arguments))
    });
    Some(call)
}

/// True if `(p) '…'` follows the next token.
fn is_precision(parser: &Parser<'_>) -> bool {
    let token = |at: usize| &parser.peek_nth_token_ref(at).token;
    *token(1) == Token::LParen
        && matches!(token(2), Token::Number(..))
        && *token(3) == Token::RParen
        && matches!(token(4), Token::SingleQuotedString(_))
}

/// `interval(p) '…'`, of which sqlparser would lose the digits.
fn interval_with_precision(parser: &mut Parser<'_>) -> Result<Expr> {
    let data_type = parser.parse_data_type()?;
    let value = parser.parse_value()?;
    Ok(Expr::TypedString(ast::TypedString {
        data_type,
        value,
        uses_odbc_syntax: false,
    }))
}

fn call(name: &str, span: Span, arguments: Vec<Expr>) -> Expr {
    let unnamed = |argument| ast::FunctionArg::Unnamed(ast::FunctionArgExpr::Expr(argument));
    let name = match name {
        "extract" | "position" => Ident::with_quote_and_span('"', span, name),
        name => Ident::with_span(span, name),
    };
    Expr::Function(ast::Function {
        name: ObjectName::from(vec![name]),
        uses_odbc_syntax: false,
        parameters: ast::FunctionArguments::None,
        args: ast::FunctionArguments::List(ast::FunctionArgumentList {
            duplicate_treatment: None,
            args: arguments.into_iter().map(unnamed).collect(),
            clauses: Vec::new(),
        }),
        filter: None,
        null_treatment: None,
        over: None,
        within_group: Vec::new(),
    })
}

/// GROUPING SETS among the entries of another.
fn grouping_sets(parser: &mut Parser<'_>) -> Result<Expr> {
    for _ in 0..3 {
        parser.advance_token();
    }
    let sets = parser.parse_comma_separated(|parser| {
        if !parser.consume_token(&Token::LParen) {
            return Ok(vec![parser.parse_expr()?]);
        }
        if parser.consume_token(&Token::RParen) {
            return Ok(Vec::new());
        }
        let set = parser.parse_comma_separated(Parser::parse_expr)?;
        parser.expect_token(&Token::RParen)?;
        Ok(set)
    })?;
    parser.expect_token(&Token::RParen)?;
    Ok(Expr::GroupingSets(sets))
}

fn typed_literal(parser: &mut Parser<'_>, name: &Word, span: Span) -> Result<Expr> {
    parser.advance_token();
    Ok(Expr::TypedString(ast::TypedString {
        data_type: ast::DataType::Custom(
            ObjectName::from(vec![Ident::with_span(span, name.value.clone())]),
            Vec::new(),
        ),
        value: parser.parse_value()?,
        uses_odbc_syntax: false,
    }))
}

fn extract(parser: &mut Parser<'_>) -> Result<Call> {
    let field = parser.next_token();
    let name = match &field.token {
        Token::Word(word) if word.quote_style.is_some() => word.value.clone(),
        Token::Word(word) => word.value.to_lowercase(),
        Token::SingleQuotedString(text) => text.clone(),
        _ => return parser.expected("a field", field),
    };
    parser.expect_keyword_is(Keyword::FROM)?;
    let field = Expr::Value(ast::Value::SingleQuotedString(name).with_span(field.span));
    Ok(("extract", vec![field, parser.parse_expr()?]))
}

fn trim(parser: &mut Parser<'_>) -> Result<Call> {
    let sides = [Keyword::BOTH, Keyword::LEADING, Keyword::TRAILING];
    let name = match parser.parse_one_of_keywords(&sides) {
        Some(Keyword::LEADING) => "ltrim",
        Some(Keyword::TRAILING) => "rtrim",
        _ => "btrim",
    };
    let list = |parser: &mut Parser<'_>| parser.parse_comma_separated(Parser::parse_expr);
    if parser.parse_keyword(Keyword::FROM) {
        return Ok((name, list(parser)?));
    }
    let mut first = list(parser)?;
    if first.len() == 1 && parser.parse_keyword(Keyword::FROM) {
        let mut arguments = list(parser)?;
        arguments.append(&mut first);
        return Ok((name, arguments));
    }
    Ok((name, first))
}

fn substring(parser: &mut Parser<'_>) -> Result<Call> {
    // SIMILAR goes on with this call here, and is no operator of its own.
    let first = parser.parse_subexpr(PostgreSqlDialect {}.prec_value(Precedence::Like))?;
    let mut arguments = vec![first];
    if parser.consume_token(&Token::Comma) {
        arguments.extend(parser.parse_comma_separated(Parser::parse_expr)?);
    } else if parser.parse_keyword(Keyword::SIMILAR) {
        arguments.push(parser.parse_expr()?);
        parser.expect_keyword_is(Keyword::ESCAPE)?;
        arguments.push(parser.parse_expr()?);
    } else if parser.parse_keyword(Keyword::FROM) {
        arguments.push(parser.parse_expr()?);
        if parser.parse_keyword(Keyword::FOR) {
            arguments.push(parser.parse_expr()?);
        }
    } else if parser.parse_keyword(Keyword::FOR) {
        let length = parser.parse_expr()?;
        let start = match parser.parse_keyword(Keyword::FROM) {
            true => parser.parse_expr()?,
            false => Expr::Value(ast::Value::Number("1".to_owned(), false).with_empty_span()),
        };
        arguments.extend([start, length]);
    }
    Ok(("substring", arguments))
}

fn substr(parser: &mut Parser<'_>) -> Result<Call> {
    Ok(("substr", parser.parse_comma_separated(Parser::parse_expr)?))
}

fn position(parser: &mut Parser<'_>) -> Result<Call> {
    let part = parser.parse_subexpr(PostgreSqlDialect {}.prec_value(Precedence::Between))?;
    parser.expect_keyword_is(Keyword::IN)?;
    Ok(("position", vec![parser.parse_expr()?, part]))
}

fn overlay(parser: &mut Parser<'_>) -> Result<Call> {
    let mut arguments = parser.parse_comma_separated(Parser::parse_expr)?;
    if arguments.len() > 1 {
        return Ok(("overlay", arguments));
    }
    parser.expect_keyword_is(Keyword::PLACING)?;
    arguments.push(parser.parse_expr()?);
    parser.expect_keyword_is(Keyword::FROM)?;
    arguments.push(parser.parse_expr()?);
    if parser.parse_keyword(Keyword::FOR) {
        arguments.push(parser.parse_expr()?);
    }
    Ok(("overlay", arguments))
}
