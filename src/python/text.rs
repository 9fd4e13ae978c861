//! Names as they may be shown: on one line, bounded, without characters that reorder or break it.

use super::objects::Keep;

/// Characters that end a line, move the cursor, or change the direction of what follows (Unicode 15, UAX #9).
fn is_harmful(character: char) -> bool {
    character.is_control()
        || matches!(character, '\u{2028}' | '\u{2029}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
}

/// `text` with harmful characters replaced by U+FFFD, and with at most `limit` characters, of which one says that some are missing.
pub(super) fn presentable(text: &str, limit: usize, keep: Keep) -> String {
    let clean = |character: char| if is_harmful(character) { '\u{fffd}' } else { character };
    let count = text.chars().take(limit + 1).count();
    if count <= limit && keep == Keep::Start {
        return text.chars().map(clean).collect();
    }
    let whole: Vec<char> = text.chars().map(clean).collect();
    if whole.len() <= limit {
        return whole.into_iter().collect();
    }
    let kept = limit.saturating_sub(1);
    match keep {
        Keep::Start => whole.iter().take(kept).copied().chain(['…']).collect(),
        Keep::End => ['…']
            .into_iter()
            .chain(whole.iter().skip(whole.len() - kept).copied())
            .collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn control_and_direction_characters_are_replaced() {
        assert_eq!(
            presentable("a\nb\u{202e}c\0", 10, Keep::Start),
            "a\u{fffd}b\u{fffd}c\u{fffd}"
        );
    }

    #[test]
    fn long_texts_are_cut_at_the_asked_end() {
        assert_eq!(presentable("abcdef", 4, Keep::Start), "abc…");
        assert_eq!(presentable("abcdef", 4, Keep::End), "…def");
        assert_eq!(presentable("abcd", 4, Keep::End), "abcd");
    }

    proptest! {
        #[test]
        fn anything_becomes_presentable(text in any::<String>(), limit in 1..40usize, end in any::<bool>()) {
            let shown = presentable(&text, limit, if end { Keep::End } else { Keep::Start });
            prop_assert!(shown.chars().count() <= limit);
            prop_assert!(!shown.chars().any(is_harmful));
        }
    }
}
