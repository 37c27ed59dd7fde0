use super::*;

#[test]
fn paths_are_kept_as_texts_that_read_the_same() {
    let mut read = 0;
    for line in include_str!("texts.txt")
        .lines()
        .filter(|line| !line.starts_with('#'))
    {
        let (path, wanted) = line.rsplit_once(" => ").unwrap();
        let found = match Path::parse(path) {
            Ok(path) => {
                let text = path.text();
                assert_eq!(Path::parse(&text).unwrap().text(), text, "{line}");
                read += 1;
                text
            }
            Err(error) => format!("ERROR {} {}", error.sqlstate().as_str(), error.message()),
        };
        assert_eq!(found, wanted, "{line}");
    }
    assert!(read > 150, "{read}");
}

#[test]
fn blanks_and_comments_stand_anywhere_but_in_a_token() {
    for text in ["$.a[1]", " $ . a [ 1 ] ", "\t$/* x */./**/a\n[/***/1]\r"] {
        assert_eq!(Path::parse(text).unwrap().text(), "$.\"a\"[1]", "{text}");
    }
    for text in ["", " ", "$ . * *", "$ = = 1", "like_ regex"] {
        assert!(Path::parse(text).is_err(), "{text}");
    }
}

#[test]
fn paths_may_be_long_but_not_deeper_than_the_limit() {
    let many = LEVELS_MAX as usize;
    let refused = |text: &str| match Path::parse(text) {
        Ok(path) => {
            assert_eq!(Path::parse(&path.text()).unwrap().text(), path.text());
            false
        }
        Err(error) => {
            assert_eq!(error.sqlstate().as_str(), "54001");
            true
        }
    };
    for (text, is_refused) in [
        (
            format!("{}${}", "(".repeat(2 * many), ")".repeat(2 * many)),
            false,
        ),
        (
            format!("{}${}", "(".repeat(2 * many + 1), ")".repeat(2 * many + 1)),
            true,
        ),
        (format!("${}", ".a".repeat(many - 1)), false),
        (format!("${}", ".a".repeat(many)), true),
        (format!("${}", " + 1".repeat(many - 1)), false),
        (format!("${}", " + 1".repeat(many)), true),
        (format!("{}$", "-".repeat(many - 1)), false),
        (format!("{}$", "-".repeat(many)), true),
        (format!("$[{}]", vec!["1"; 100_000].join(",")), false),
        (format!("${}{}", "[$".repeat(many), "]".repeat(many)), true),
        (
            format!("$ ? ({}@ == 1{})", "!(".repeat(2_000), ")".repeat(2_000)),
            false,
        ),
        ("(".repeat(1_000_000), true),
    ] {
        assert_eq!(refused(&text), is_refused, "{}", &text[..20]);
    }
}
