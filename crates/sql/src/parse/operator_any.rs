//! `x OPERATOR(pg_catalog.=) ANY (…)` and ALL: sqlparser takes an operator with its schema between two operands only.

use sqlparser::ast::{BinaryOperator, Expr};
use sqlparser::dialect::{Dialect as _, PostgreSqlDialect, Precedence};
use sqlparser::keywords::Keyword;
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::Token;

/// The comparison that goes on behind `left`, if the next tokens are those of one.
pub(super) fn parse(parser: &mut Parser<'_>, left: &Expr) -> Option<Result<Expr, ParserError>> {
    let token = |number: usize| &parser.peek_nth_token_ref(number).token;
    let keyword = |number: usize| match token(number) {
        Token::Word(word) if word.quote_style.is_none() => word.keyword,
        _ => Keyword::NoKeyword,
    };
    if keyword(0) != Keyword::OPERATOR || *token(1) != Token::LParen {
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
    let compare_op = match token(at) {
        Token::Eq => BinaryOperator::Eq,
        Token::Neq => BinaryOperator::NotEq,
        Token::Lt => BinaryOperator::Lt,
        Token::LtEq => BinaryOperator::LtEq,
        Token::Gt => BinaryOperator::Gt,
        Token::GtEq => BinaryOperator::GtEq,
        _ => return None,
    };
    let quantifier = at + 2;
    let all = match keyword(quantifier) {
        Keyword::ANY | Keyword::SOME => false,
        Keyword::ALL => true,
        _ => return None,
    };
    if *token(at + 1) != Token::RParen || *token(quantifier + 1) != Token::LParen {
        return None;
    }
    for _ in 0..=quantifier {
        parser.advance_token();
    }
    let is_some =
        matches!(&parser.get_current_token().token, Token::Word(word) if word.keyword == Keyword::SOME);
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
