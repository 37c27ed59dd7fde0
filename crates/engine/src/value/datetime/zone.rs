//! Time zones in the text of a timestamp: numeric offsets, and the abbreviations that PostgreSQL knows by default.
//!
//! The session's zone is UTC and cannot be changed, so names of places (`Europe/Berlin`), which need a
//! database of rules, are not known here.

/// Seconds east of Greenwich of an abbreviation in lower case.
pub(super) fn abbreviation(name: &str) -> Option<i64> {
    let quarter_hours = match name {
        "z" | "zulu" | "utc" | "uct" | "ut" | "gmt" | "wet" => 0,
        "bst" | "cet" | "met" | "mez" | "west" | "wetdst" => 4,
        "cest" | "cetdst" | "eet" | "ist" | "mest" | "mesz" | "metdst" | "sast" => 8,
        "eest" | "eetdst" | "idt" | "msk" => 12,
        "irt" => 14,
        "aft" => 18,
        "msd" => 16,
        "pkt" | "uzt" => 20,
        "npt" => 23,
        "almt" | "bdt" | "pkst" => 24,
        "ict" | "wib" | "novt" => 28,
        "awst" | "hkt" | "pht" | "sgt" | "wita" | "myt" => 32,
        "jst" | "kst" | "wit" => 36,
        "acst" => 38,
        "aest" | "vlat" | "chst" => 40,
        "acdt" => 42,
        "aedt" => 44,
        "nzst" => 48,
        "nzdt" => 52,
        "azot" => -4,
        "fnt" => -8,
        "ndt" => -10,
        "adt" | "brt" | "art" | "uyt" | "clst" => -12,
        "nst" | "nft" => -14,
        "ast" | "edt" | "bot" | "clt" => -16,
        "est" | "cdt" | "pet" | "cot" => -20,
        "cst" | "mdt" => -24,
        "mst" | "pdt" => -28,
        "pst" | "akdt" => -32,
        "akst" => -36,
        "hst" => -40,
        "sst" => -44,
        _ => return None,
    };
    Some(quarter_hours * 900)
}

/// Seconds east of Greenwich of `+hh`, `-hhmm`, `+hh:mm`, `+hh:mm:ss`; `Err` when it is read but too far from zero.
pub(super) fn offset(text: &str) -> Option<Result<i64, ()>> {
    let (sign, digits) = match text.as_bytes().first()? {
        b'+' => (1, &text[1..]),
        b'-' => (-1, &text[1..]),
        _ => return None,
    };
    let digits = digits.trim_start();
    let parts: Vec<&str> = digits.split(':').collect();
    if parts.len() > 3
        || parts
            .iter()
            .any(|part| part.is_empty() || !part.bytes().all(|b| b.is_ascii_digit()))
    {
        return None;
    }
    let numbers: Vec<i64> = parts.iter().map_while(|part| part.parse().ok()).collect();
    let (hours, minutes, seconds) = match *numbers.as_slice() {
        [packed] if parts[0].len() > 2 && parts.len() == 1 => (packed / 100, packed % 100, 0),
        [hours] => (hours, 0, 0),
        [hours, minutes] => (hours, minutes, 0),
        [hours, minutes, seconds] => (hours, minutes, seconds),
        _ => return Some(Err(())),
    };
    if hours > 15 || minutes > 59 || seconds > 59 || numbers.len() != parts.len() {
        return Some(Err(()));
    }
    Some(Ok(sign * (hours * 3600 + minutes * 60 + seconds)))
}
