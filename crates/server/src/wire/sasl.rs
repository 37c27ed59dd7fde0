//! The messages of SCRAM (RFC 5802) as they arrive: attributes behind commas, in a fixed order.
//!
//! ```text
//! client first   n,,n=user,r=NONCE            "n": no channel binding; "y": the server has none; "p=type": with it
//! server first   r=NONCE+MORE,s=SALT,i=ITERATIONS
//! client final   c=BASE64,r=NONCE+MORE,p=PROOF    c: the header of client first, and the binding's data
//! server final   v=SIGNATURE
//! ```
//!
//! Nothing here looks at a password. A text that is not of this form is a [`SaslError`], whatever it is.

/// A message that is no message of SCRAM, or one that asks for what is not done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SaslError {
    /// It has another form.
    #[error("malformed SCRAM message")]
    Malformed,
    /// It asks to act for another role.
    #[error("client uses authorization identity, but it is not supported")]
    AuthorizationIdentity,
    /// It asks for an extension.
    #[error("client requires an unsupported SCRAM extension")]
    Extension,
}

/// The word of the client about channel binding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Binding<'a> {
    /// It has none.
    None,
    /// It has some, and thinks that the server has none.
    NotOffered,
    /// It binds by data of this type.
    Type(&'a str),
}

/// The first message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClientFirst<'a> {
    /// Channel binding.
    pub binding: Binding<'a>,
    /// The part up to the second comma, which the last message repeats.
    pub header: &'a str,
    /// The rest, which is signed.
    pub bare: &'a str,
    /// The client's nonce.
    pub nonce: &'a str,
}

/// The last message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClientFinal<'a> {
    /// Header and data of the binding, in base64.
    pub binding: &'a str,
    /// Both nonces.
    pub nonce: &'a str,
    /// The proof, in base64.
    pub proof: &'a str,
    /// The part that is signed.
    pub without_proof: &'a str,
}

/// True for what a nonce may have: what can be printed, but no comma.
fn is_nonce(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| matches!(byte, 0x21..=0x2b | 0x2d..=0x7e))
}

/// The value of the attribute that comes next, and the rest behind its comma.
fn attribute(text: &str, letter: char) -> Result<(&str, &str), SaslError> {
    let value = text.strip_prefix(letter).and_then(|text| text.strip_prefix('='));
    let value = value.ok_or(SaslError::Malformed)?;
    Ok(value.split_once(',').unwrap_or((value, "")))
}

impl<'a> ClientFirst<'a> {
    /// Reads the message.
    pub fn parse(text: &'a str) -> Result<ClientFirst<'a>, SaslError> {
        let (flag, rest) = text.split_once(',').ok_or(SaslError::Malformed)?;
        let binding = match flag {
            "n" => Binding::None,
            "y" => Binding::NotOffered,
            flag => match flag.strip_prefix("p=") {
                Some(name) if !name.is_empty() => Binding::Type(name),
                _ => return Err(SaslError::Malformed),
            },
        };
        let (identity, bare) = rest.split_once(',').ok_or(SaslError::Malformed)?;
        match identity {
            "" => {}
            other if other.starts_with("a=") => return Err(SaslError::AuthorizationIdentity),
            _ => return Err(SaslError::Malformed),
        }
        if bare.starts_with("m=") {
            return Err(SaslError::Extension);
        }
        // The name in it is not looked at: that of the start-up message counts.
        let (_, behind_name) = attribute(bare, 'n')?;
        let (nonce, _) = attribute(behind_name, 'r')?;
        if !is_nonce(nonce) {
            return Err(SaslError::Malformed);
        }
        Ok(ClientFirst {
            binding,
            header: &text[..text.len() - bare.len()],
            bare,
            nonce,
        })
    }
}

impl<'a> ClientFinal<'a> {
    /// Reads the message.
    pub fn parse(text: &'a str) -> Result<ClientFinal<'a>, SaslError> {
        let (without_proof, proof) = text.rsplit_once(",p=").ok_or(SaslError::Malformed)?;
        let (binding, rest) = attribute(without_proof, 'c')?;
        let (nonce, _) = attribute(rest, 'r')?;
        match is_nonce(nonce) && !proof.contains(',') {
            true => Ok(ClientFinal {
                binding,
                nonce,
                proof,
                without_proof,
            }),
            false => Err(SaslError::Malformed),
        }
    }
}

/// The mechanism and the data of the first answer (SASLInitialResponse).
pub fn initial_response(body: &[u8]) -> Result<(&str, &str), SaslError> {
    let end = body
        .iter()
        .position(|byte| *byte == 0)
        .ok_or(SaslError::Malformed)?;
    let text = |bytes| std::str::from_utf8(bytes).map_err(|_| SaslError::Malformed);
    let mechanism = text(&body[..end])?;
    let (length, data) = body[end + 1..]
        .split_first_chunk::<4>()
        .ok_or(SaslError::Malformed)?;
    match u32::from_be_bytes(*length) as usize == data.len() {
        true => Ok((mechanism, text(data)?)),
        false => Err(SaslError::Malformed),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_messages_of_an_exchange() {
        let first = ClientFirst::parse("n,,n=user,r=rOprNGfwEbeRWgbNEkqO").unwrap();
        assert_eq!((first.binding, first.header), (Binding::None, "n,,"));
        assert_eq!(
            (first.bare, first.nonce),
            ("n=user,r=rOprNGfwEbeRWgbNEkqO", "rOprNGfwEbeRWgbNEkqO")
        );
        let first = ClientFirst::parse("p=tls-server-end-point,,n=,r=x").unwrap();
        assert_eq!(first.binding, Binding::Type("tls-server-end-point"));
        assert_eq!(first.header, "p=tls-server-end-point,,");
        let last = ClientFinal::parse("c=biws,r=abc,p=dHzb").unwrap();
        assert_eq!((last.binding, last.nonce, last.proof), ("biws", "abc", "dHzb"));
        assert_eq!(last.without_proof, "c=biws,r=abc");
        assert_eq!(
            initial_response(b"SCRAM-SHA-256\0\0\0\0\x02n,"),
            Ok(("SCRAM-SHA-256", "n,"))
        );
    }

    #[test]
    fn what_is_not_of_the_form_is_refused() {
        for text in [
            "",
            "n",
            "n,",
            "n,,",
            "n,,n=a",
            "n,,n=a,r=",
            "x,,n=a,r=b",
            "p=,,n=a,r=b",
            "n,b,n=a,r=b",
            "n,,r=b,n=a",
        ] {
            assert_eq!(ClientFirst::parse(text), Err(SaslError::Malformed), "{text}");
        }
        assert_eq!(
            ClientFirst::parse("n,a=joe,n=a,r=b"),
            Err(SaslError::AuthorizationIdentity)
        );
        assert_eq!(ClientFirst::parse("n,,m=x,n=a,r=b"), Err(SaslError::Extension));
        for text in ["", "c=biws", "c=biws,r=a", "r=a,c=biws,p=x", "c=biws,r=,p=x"] {
            assert_eq!(ClientFinal::parse(text), Err(SaslError::Malformed), "{text}");
        }
        for body in [
            &b""[..],
            b"SCRAM",
            b"SCRAM\0",
            b"SCRAM\0\0\0\0\x02n",
            b"SCRAM\0\xff\xff\xff\xffn",
            b"\xff\0\0\0\0\0",
        ] {
            assert_eq!(initial_response(body), Err(SaslError::Malformed), "{body:?}");
        }
    }
}
