//! The setting `DateStyle`: the form that dates are shown in, and the order in which their numbers are read.

/// The form that dates and timestamps are shown in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum DateStyle {
    /// `1997-12-17 07:37:16-08`
    #[default]
    Iso,
    /// `12/17/1997 07:37:16 PST`
    Sql,
    /// `17.12.1997 07:37:16 PST`
    German,
    /// `Wed Dec 17 07:37:16 1997 PST`
    Postgres,
}

/// The order in which the numbers of a date are read, and shown where the style leaves a choice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum FieldOrder {
    /// Month, day, year.
    #[default]
    Mdy,
    /// Day, month, year.
    Dmy,
    /// Year, month, day.
    Ymd,
}

/// The reason why a text is no value of `DateStyle`, as the detail of the error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StyleFault {
    /// It is no list of words.
    Syntax,
    /// A word means nothing.
    Unknown(String),
    /// Two words contradict each other.
    Conflict,
}

impl StyleFault {
    /// The detail of the error.
    pub fn detail(&self) -> String {
        match self {
            StyleFault::Syntax => "List syntax is invalid.".to_owned(),
            StyleFault::Unknown(word) => format!("Unrecognized key word: \"{word}\"."),
            StyleFault::Conflict => "Conflicting \"datestyle\" specifications.".to_owned(),
        }
    }
}

impl DateStyle {
    fn shown(self) -> &'static str {
        match self {
            DateStyle::Iso => "ISO",
            DateStyle::Sql => "SQL",
            DateStyle::German => "German",
            DateStyle::Postgres => "Postgres",
        }
    }
}

impl FieldOrder {
    fn shown(self) -> &'static str {
        match self {
            FieldOrder::Mdy => "MDY",
            FieldOrder::Dmy => "DMY",
            FieldOrder::Ymd => "YMD",
        }
    }
}

/// Style and order as SHOW shows them.
pub fn shown_date_style(style: DateStyle, order: FieldOrder) -> String {
    format!("{}, {}", style.shown(), order.shown())
}

/// Style and order after SET to a list of words: a part that no word is about stays. The word `default` takes what is
/// open from `reset`, the value that RESET goes back to.
pub fn changed_date_style(
    words: &str,
    now: (DateStyle, FieldOrder),
    reset: (DateStyle, FieldOrder),
) -> Result<(DateStyle, FieldOrder), StyleFault> {
    let (mut style, mut order) = (None, None);
    // German brings an order, which another word may change.
    let mut brought = None;
    let mut take_reset = false;
    for word in words_of(words)? {
        let begins = |start: &str| {
            word.get(..start.len())
                .is_some_and(|begin| begin.eq_ignore_ascii_case(start))
        };
        let is = |name: &str| word.eq_ignore_ascii_case(name);
        if is("iso") {
            put(&mut style, DateStyle::Iso)?;
        } else if is("sql") {
            put(&mut style, DateStyle::Sql)?;
        } else if begins("postgres") {
            put(&mut style, DateStyle::Postgres)?;
        } else if is("german") {
            put(&mut style, DateStyle::German)?;
            brought = Some(FieldOrder::Dmy);
        } else if is("ymd") {
            put(&mut order, FieldOrder::Ymd)?;
        } else if is("dmy") || begins("euro") {
            put(&mut order, FieldOrder::Dmy)?;
        } else if is("mdy") || is("us") || begins("noneuro") {
            put(&mut order, FieldOrder::Mdy)?;
        } else if is("default") {
            take_reset = true;
        } else {
            return Err(StyleFault::Unknown(word));
        }
    }
    let open = if take_reset { reset } else { now };
    Ok((style.unwrap_or(open.0), order.or(brought).unwrap_or(open.1)))
}

/// Takes a part that no other word has set to something else.
fn put<T: Copy + PartialEq>(part: &mut Option<T>, value: T) -> Result<(), StyleFault> {
    match part.replace(value) {
        Some(before) if before != value => Err(StyleFault::Conflict),
        _ => Ok(()),
    }
}

/// The words of a list; each may be in double quotes.
fn words_of(list: &str) -> Result<Vec<String>, StyleFault> {
    if list.trim().is_empty() {
        return Ok(Vec::new());
    }
    list.split(',')
        .map(|word| {
            let word = word.trim();
            let bare = match word.strip_prefix('"') {
                Some(quoted) => quoted.strip_suffix('"').ok_or(StyleFault::Syntax)?,
                None => word,
            };
            let is_one = !bare.is_empty() && !bare.contains('"');
            let is_one = is_one && (word.starts_with('"') || !bare.contains(char::is_whitespace));
            match (is_one, word.starts_with('"')) {
                (false, _) => Err(StyleFault::Syntax),
                (true, true) => Ok(bare.to_owned()),
                (true, false) => Ok(bare.to_lowercase()),
            }
        })
        .collect()
}

/// Style and order of a value that SHOW shows.
pub(super) fn read_shown(text: &str) -> (DateStyle, FieldOrder) {
    changed_date_style(text, Default::default(), Default::default()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(words: &str) -> Result<String, StyleFault> {
        let now = (DateStyle::Postgres, FieldOrder::Ymd);
        let reset = (DateStyle::Iso, FieldOrder::Mdy);
        changed_date_style(words, now, reset).map(|(style, order)| shown_date_style(style, order))
    }

    #[test]
    fn a_part_that_no_word_is_about_stays() {
        assert_eq!(set("dmy").unwrap(), "Postgres, DMY");
        assert_eq!(set("SQL").unwrap(), "SQL, YMD");
        assert_eq!(set("iso, us").unwrap(), "ISO, MDY");
        assert_eq!(set("PostgreSQL, European").unwrap(), "Postgres, DMY");
        assert_eq!(set("noneuropean").unwrap(), "Postgres, MDY");
        assert_eq!(set("").unwrap(), "Postgres, YMD");
    }

    #[test]
    fn german_brings_an_order_that_another_word_changes() {
        assert_eq!(set("german").unwrap(), "German, DMY");
        assert_eq!(set("german, mdy").unwrap(), "German, MDY");
        assert_eq!(set("ymd, german").unwrap(), "German, YMD");
    }

    #[test]
    fn default_is_what_reset_goes_back_to() {
        assert_eq!(set("default").unwrap(), "ISO, MDY");
        assert_eq!(set("default, dmy").unwrap(), "ISO, DMY");
        assert_eq!(set("sql, default").unwrap(), "SQL, MDY");
    }

    #[test]
    fn what_means_nothing_is_refused() {
        assert_eq!(set("iso, sql"), Err(StyleFault::Conflict));
        assert_eq!(set("dmy, mdy"), Err(StyleFault::Conflict));
        assert_eq!(set("iso, iso").unwrap(), "ISO, YMD");
        assert_eq!(set("french"), Err(StyleFault::Unknown("french".to_owned())));
        assert_eq!(set("iso,"), Err(StyleFault::Syntax));
        assert_eq!(set("iso mdy"), Err(StyleFault::Syntax));
        assert_eq!(set("\"iso"), Err(StyleFault::Syntax));
    }
}
