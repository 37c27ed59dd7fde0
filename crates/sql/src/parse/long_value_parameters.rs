//! `toast.name` among the storage parameters of CREATE TABLE, which sqlparser takes for no name: it becomes a quoted one.

use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan, Whitespace};

use super::identity_options::is_blank;
use crate::storage_parameters::OF_LONG_VALUES;

/// Mends the parameters in the tokens of a statement.
pub(super) fn mend(tokens: &mut [TokenWithSpan]) {
    let is =
        |token: &TokenWithSpan, keyword| matches!(&token.token, Token::Word(word) if word.keyword == keyword);
    let told: Vec<usize> = (0..tokens.len()).filter(|at| !is_blank(&tokens[*at])).collect();
    let begins = told.first().is_some_and(|at| is(&tokens[*at], Keyword::CREATE));
    if !begins || !told.iter().take(4).any(|at| is(&tokens[*at], Keyword::TABLE)) {
        return;
    }
    let mut depth = 0_u32;
    let mut inside = false;
    for place in 0..told.len() {
        match tokens[told[place]].token {
            Token::LParen => {
                depth += 1;
                inside |= depth == 1 && place > 0 && is(&tokens[told[place - 1]], Keyword::WITH);
            }
            Token::RParen => {
                depth = depth.saturating_sub(1);
                inside &= depth > 0;
            }
            Token::Period if inside && depth == 1 => {
                if let (Some(before), Some(behind)) = (told.get(place - 1), told.get(place + 1)) {
                    join(tokens, [*before, told[place], *behind]);
                }
            }
            _ => {}
        }
    }
}

/// Makes one name of three tokens, if they are a parameter of long values.
fn join(tokens: &mut [TokenWithSpan], [space, dot, name]: [usize; 3]) {
    let (Token::Word(before), Token::Word(behind)) = (&tokens[space].token, &tokens[name].token) else {
        return;
    };
    if !format!("{}.", before.value).eq_ignore_ascii_case(OF_LONG_VALUES) {
        return;
    }
    let mut whole = before.clone();
    whole.value = format!("{OF_LONG_VALUES}{}", behind.value.to_ascii_lowercase());
    whole.quote_style = Some('"');
    whole.keyword = Keyword::NoKeyword;
    tokens[space].token = Token::Word(whole);
    for left_out in [dot, name] {
        tokens[left_out].token = Token::Whitespace(Whitespace::Space);
    }
}
