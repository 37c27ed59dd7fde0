//! `x <<= ANY (…)`, `x OPERATOR(pg_catalog.=) ALL (…)`: sqlparser takes ANY and ALL behind comparisons and their kin
//! alone. An operator that gives no truth value (`x * ANY (…)`) is an error of its own, which the binder tells.

use sqlparser::ast::{BinaryOperator, Expr};
use sqlparser::dialect::{Dialect as _, PostgreSqlDialect, Precedence};
use sqlparser::keywords::Keyword;
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::Token;

fn keyword(parser: &Parser<'_>, number: usize) -> Keyword {
    match &parser.peek_nth_token_ref(number).token {
        Token::Word(word) if word.quote_style.is_none() => word.keyword,
        _ => Keyword::NoKeyword,
    }
}

/// The symbol of a token that is an operator.
fn symbol(token: &Token) -> Option<String> {
    // Words, numbers and quoted texts have other characters.
    let shown = match token {
        Token::Word(_) | Token::SingleQuotedString(_) | Token::Whitespace(_) | Token::EOF => return None,
        token => token.to_string(),
    };
    let is_operator = !shown.is_empty() && shown.chars().all(|c| "+-*/<>=~!@#%^&|`?".contains(c));
    is_operator.then_some(shown)
}

/// A comparison, which sqlparser takes with ANY and ALL without a schema.
pub(crate) fn comparison(symbol: &str) -> Option<BinaryOperator> {
    Some(match symbol {
        "=" => BinaryOperator::Eq,
        "<>" | "!=" => BinaryOperator::NotEq,
        "<" => BinaryOperator::Lt,
        "<=" => BinaryOperator::LtEq,
        ">" => BinaryOperator::Gt,
        ">=" => BinaryOperator::GtEq,
        _ => return None,
    })
}

/// The operator at the front of the tokens, and how many of them it is.
fn operator(parser: &Parser<'_>) -> Option<(BinaryOperator, usize)> {
    let token = |number: usize| &parser.peek_nth_token_ref(number).token;
    if let Some(symbol) = symbol(token(0)) {
        return match comparison(&symbol) {
            Some(_) => None,
            None => Some((BinaryOperator::Custom(symbol), 1)),
        };
    }
    if keyword(parser, 0) != Keyword::OPERATOR || *token(1) != Token::LParen {
        return None;
    }
    let mut at = 2;
    if let (Token::Word(schema), Token::Period) = (token(2), token(3)) {
        // Any other schema is refused where the operator is read as usual.
        if !schema.value.eq_ignore_ascii_case("pg_catalog") {
            return None;
        }
        at = 4;
    }
    let symbol = symbol(token(at))?;
    let operator = comparison(&symbol).unwrap_or(BinaryOperator::Custom(symbol));
    (*token(at + 1) == Token::RParen).then_some((operator, at + 2))
}

/// The operator with ANY or ALL that goes on behind `left`, if the next tokens are those of one.
pub(super) fn parse(parser: &mut Parser<'_>, left: &Expr) -> Option<Result<Expr, ParserError>> {
    let (compare_op, quantifier) = operator(parser)?;
    let (all, is_some) = match keyword(parser, quantifier) {
        Keyword::ANY => (false, false),
        Keyword::SOME => (false, true),
        Keyword::ALL => (true, false),
        _ => return None,
    };
    if parser.peek_nth_token_ref(quantifier + 1).token != Token::LParen {
        return None;
    }
    for _ in 0..=quantifier {
        parser.advance_token();
    }
    let left = Box::new(left.clone());
    // The brackets are those of a list of one or of a query, which an operand's rules read.
    let right = parser.parse_subexpr(PostgreSqlDialect {}.prec_value(Precedence::DoubleColon));
    Some(right.map(|right| {
        let right = Box::new(right);
        match all {
            true => Expr::AllOp {
                left,
                compare_op,
                right,
            },
            false => Expr::AnyOp {
                left,
                compare_op,
                right,
                is_some,
            },
        }
    }))
}
