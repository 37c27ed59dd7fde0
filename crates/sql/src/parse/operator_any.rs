//! `x OPERATOR(pg_catalog.=) ANY (…)` and ALL: sqlparser takes an operator with its schema between two operands only.
//! So it does with arithmetic (`x * ANY (…)`), which is an error of its own.

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

/// The operator at the front of the tokens, and how many of them it is.
fn operator(parser: &Parser<'_>) -> Option<(BinaryOperator, usize)> {
    let token = |number: usize| &parser.peek_nth_token_ref(number).token;
    let arithmetic = match token(0) {
        Token::Plus => Some(BinaryOperator::Plus),
        Token::Minus => Some(BinaryOperator::Minus),
        Token::Mul => Some(BinaryOperator::Multiply),
        Token::Div => Some(BinaryOperator::Divide),
        Token::Mod => Some(BinaryOperator::Modulo),
        Token::Caret => Some(BinaryOperator::PGExp),
        Token::StringConcat => Some(BinaryOperator::StringConcat),
        _ => None,
    };
    if let Some(operator) = arithmetic {
        return Some((operator, 1));
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
    let comparison = match token(at) {
        Token::Eq => BinaryOperator::Eq,
        Token::Neq => BinaryOperator::NotEq,
        Token::Lt => BinaryOperator::Lt,
        Token::LtEq => BinaryOperator::LtEq,
        Token::Gt => BinaryOperator::Gt,
        Token::GtEq => BinaryOperator::GtEq,
        _ => return None,
    };
    (*token(at + 1) == Token::RParen).then_some((comparison, at + 2))
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
