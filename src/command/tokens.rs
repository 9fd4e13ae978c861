//! Splits a command line into words.

/// One word.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Token {
    /// Without quotes.
    pub(super) text: String,
    /// Whether it began with a quote: such a word is never a flag.
    pub(super) quoted: bool,
}

/// A `"` without a partner.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct UnclosedQuote;

/// Splits at white space. Double quotes hold a word together, also in the middle of one (`--comment="two words"`); inside them `\"` is a
/// quote and `\\` a backslash.
pub(super) fn split(line: &str) -> Result<Vec<Token>, UnclosedQuote> {
    let mut tokens = Vec::new();
    let mut current: Option<Token> = None;
    let mut inside = false;
    let mut characters = line.chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            '"' => {
                current.get_or_insert_with(|| Token {
                    text: String::new(),
                    quoted: true,
                });
                inside = !inside;
            }
            '\\' if inside => {
                let escaped = characters.next_if(|next| matches!(next, '"' | '\\'));
                push(&mut current, escaped.unwrap_or('\\'));
            }
            character if character.is_whitespace() && !inside => tokens.extend(current.take()),
            character => push(&mut current, character),
        }
    }
    if inside {
        return Err(UnclosedQuote);
    }
    tokens.extend(current);
    Ok(tokens)
}

fn push(current: &mut Option<Token>, character: char) {
    current
        .get_or_insert_with(|| Token {
            text: String::new(),
            quoted: false,
        })
        .text
        .push(character);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(line: &str) -> Vec<String> {
        split(line).unwrap().into_iter().map(|token| token.text).collect()
    }

    #[test]
    fn words_quotes_and_escapes() {
        for (line, words) in [
            ("", vec![]),
            ("   ", vec![]),
            ("a  b\tc", vec!["a", "b", "c"]),
            (r#""a b" c"#, vec!["a b", "c"]),
            (r#"--x="a b" c"#, vec!["--x=a b", "c"]),
            (r#""" a"#, vec!["", "a"]),
            (r#""say \"hi\"""#, vec![r#"say "hi""#]),
            (r#""back\\slash""#, vec![r"back\slash"]),
            (r"back\slash", vec![r"back\slash"]),
            (r#""\n""#, vec![r"\n"]),
            ("it's", vec!["it's"]),
        ] {
            assert_eq!(texts(line), words, "{line}");
        }
    }

    #[test]
    fn a_lonely_quote_is_refused() {
        assert_eq!(split(r#"a "b"#), Err(UnclosedQuote));
        assert_eq!(split(r#""a\""#), Err(UnclosedQuote));
    }

    #[test]
    fn only_words_that_begin_with_a_quote_are_quoted() {
        let tokens = split(r#""--a" --b="c""#).unwrap();
        assert_eq!(
            tokens.iter().map(|token| token.quoted).collect::<Vec<_>>(),
            [true, false]
        );
    }
}
