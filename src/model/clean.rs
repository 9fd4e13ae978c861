//! Foreign text made presentable: what players, plugins and files are called may hold anything.

/// `text` without control characters, text-direction overrides and Minecraft's colour codes; line breaks and tabs become spaces. At most
/// `max_chars` characters are kept, the last of them an ellipsis when something was cut.
pub fn clean_text(text: &str, max_chars: usize) -> String {
    let mut kept = String::new();
    let mut count = 0;
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        let shown = match character {
            '\u{a7}' => {
                // The sign and the code after it: `§c` colours the rest of a line.
                characters.next_if(char::is_ascii_alphanumeric);
                continue;
            }
            '\n' | '\r' | '\t' => ' ',
            character if character.is_control() || is_invisible(character) => continue,
            character => character,
        };
        if count == max_chars {
            kept.pop();
            kept.push('…');
            break;
        }
        kept.push(shown);
        count += 1;
    }
    kept.trim().to_owned()
}

/// Characters that reorder or hide text around them.
fn is_invisible(character: char) -> bool {
    matches!(character, '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colour_codes_and_controls_go() {
        for (dirty, clean) in [
            ("plain", "plain"),
            ("§cred §lbold", "red bold"),
            ("§§cc", "c"),
            ("a§", "a"),
            ("§", ""),
            ("§ 5", "5"),
            ("one\ntwo\tthree\r", "one two three"),
            ("bell\u{7}esc\u{1b}[31m", "bellesc[31m"),
            ("c1\u{9b}x", "c1x"),
            ("\u{202e}evil", "evil"),
            ("Zoë 🦀", "Zoë 🦀"),
        ] {
            assert_eq!(clean_text(dirty, 40), clean, "{dirty:?}");
        }
    }

    #[test]
    fn long_text_is_cut_to_the_limit() {
        assert_eq!(clean_text("abcdef", 6), "abcdef");
        assert_eq!(clean_text("abcdefg", 6), "abcde…");
        assert_eq!(clean_text(&"é".repeat(10_000), 3), "éé…");
    }
}
