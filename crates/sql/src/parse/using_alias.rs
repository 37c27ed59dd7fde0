//! `JOIN … USING (a) AS x`, which sqlparser does not read: the alias becomes the last name in the parentheses, with a quote
//! that no text can have.

use sqlparser::ast;
use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan, Whitespace};

/// The quote of an alias.
const MARK: char = '\u{3}';

/// The columns of USING, and the alias behind it with the quotes that it was written with.
pub(crate) fn using_alias(columns: &[ast::ObjectName]) -> (&[ast::ObjectName], Option<ast::Ident>) {
    if let [columns @ .., last] = columns
        && let [ast::ObjectNamePart::Identifier(ident)] = last.0.as_slice()
        && ident.quote_style == Some(MARK)
    {
        // The name is in its own quotes or none.
        let unquoted = ident
            .value
            .strip_prefix('"')
            .and_then(|name| name.strip_suffix('"'));
        let alias = match unquoted {
            Some(name) => ast::Ident::with_quote('"', name),
            None => ast::Ident::new(&*ident.value),
        };
        let span = ident.span;
        return (columns, Some(ast::Ident { span, ..alias }));
    }
    (columns, None)
}

/// Mends the aliases in a list of tokens.
pub(super) fn mend(tokens: &mut Vec<TokenWithSpan>) {
    let keyword = |token: &TokenWithSpan| match &token.token {
        Token::Word(word) if word.quote_style.is_none() => Some(word.keyword),
        _ => None,
    };
    let meant = |tokens: &[TokenWithSpan], from: usize| {
        (from..tokens.len()).find(|at| !matches!(tokens[*at].token, Token::Whitespace(_)))
    };
    let mut at = 0;
    while at < tokens.len() {
        let here = at;
        at += 1;
        if keyword(&tokens[here]) != Some(Keyword::USING) {
            continue;
        }
        let Some(open) = meant(tokens, here + 1) else {
            return;
        };
        if tokens[open].token != Token::LParen {
            continue;
        }
        // Names alone: `USING (SELECT …) AS x` of DELETE and MERGE is no list of columns.
        let in_list = |at: &usize| {
            matches!(
                tokens[*at].token,
                Token::Whitespace(_) | Token::Word(_) | Token::Comma
            )
        };
        let Some(close) = (open + 1..tokens.len()).find(|at| !in_list(at)) else {
            return;
        };
        let words = tokens[open..close]
            .iter()
            .filter(|token| matches!(token.token, Token::Word(_)));
        let commas = tokens[open..close]
            .iter()
            .filter(|token| token.token == Token::Comma);
        if tokens[close].token != Token::RParen || words.count() != commas.count() + 1 {
            continue;
        }
        let Some(word) = meant(tokens, close + 1) else {
            return;
        };
        let Some(name) = meant(tokens, word + 1) else {
            return;
        };
        if keyword(&tokens[word]) != Some(Keyword::AS) {
            continue;
        }
        let Token::Word(alias) = &tokens[name].token else {
            continue;
        };
        let (written, span) = (alias.to_string(), tokens[name].span);
        for gone in [word, name] {
            tokens[gone].token = Token::Whitespace(Whitespace::Space);
        }
        let added = [Token::Comma, Token::make_word(&written, Some(MARK))];
        let added = added.map(|token| TokenWithSpan { token, span });
        tokens.splice(close..close, added);
    }
}
