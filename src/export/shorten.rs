//! Names that fit the viewer's page.

/// Stands for what was taken out.
const ELLIPSIS: char = '…';

/// The name without control characters and without a trailing `()` (the viewer adds its own), in at most `max_chars` characters.
///
/// A name that is too long first loses the insides of its template arguments, innermost first, because what makes C++ names long rarely
/// tells functions apart; then its middle.
pub fn shorten(name: &str, max_chars: usize) -> String {
    let mut short: String = name.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    while short.ends_with("()") {
        short.truncate(short.len() - 2);
    }
    if fits(&short, max_chars) {
        return short;
    }
    for depth in [3, 2, 1] {
        let collapsed = collapse_templates(&short, depth);
        if fits(&collapsed, max_chars) {
            return collapsed;
        }
        short = collapsed;
    }
    cut_middle(&short, max_chars)
}

/// Any other text, without control characters and line breaks, in at most `max_chars` characters.
pub fn bounded(text: &str, max_chars: usize) -> String {
    text.trim()
        .chars()
        .take(max_chars)
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect()
}

fn fits(name: &str, max_chars: usize) -> bool {
    name.len() <= max_chars || name.chars().count() <= max_chars
}

/// Replaces everything inside template brackets nested `depth` deep or deeper by an ellipsis.
fn collapse_templates(name: &str, depth: usize) -> String {
    let mut out = String::with_capacity(name.len());
    let mut open = 0_usize;
    let mut previous = ' ';
    let mut rest = name;
    while let Some(c) = rest.chars().next() {
        // `operator<`, `operator<<=`, `operator->` and their like open and close nothing.
        if let Some(symbol) = operator_symbol(rest, previous) {
            if open < depth {
                out.push_str(symbol);
            }
            previous = 'x';
            rest = &rest[symbol.len()..];
            continue;
        }
        match c {
            '<' => {
                open += 1;
                if open <= depth {
                    out.push('<');
                }
                if open == depth {
                    out.push(ELLIPSIS);
                }
            }
            '>' if open > 0 => {
                if open <= depth {
                    out.push('>');
                }
                open -= 1;
            }
            _ if open < depth => out.push(c),
            _ => {}
        }
        previous = c;
        rest = &rest[c.len_utf8()..];
    }
    out
}

/// `operator` and the angle brackets that belong to it, when `rest` begins with them at the start of a word.
fn operator_symbol(rest: &str, previous: char) -> Option<&str> {
    const WORD: &str = "operator";
    if previous.is_alphanumeric() || previous == '_' {
        return None;
    }
    let symbol = rest.strip_prefix(WORD)?;
    let length = ["<<=", ">>=", "<=>", "->*", "<<", ">>", "<=", ">=", "->", "<", ">"]
        .iter()
        .find(|operator| symbol.starts_with(**operator))?
        .len();
    rest.get(..WORD.len() + length)
}

/// Keeps both ends; the end is the part that names the function.
fn cut_middle(name: &str, max_chars: usize) -> String {
    let count = name.chars().count();
    if count <= max_chars {
        return name.to_owned();
    }
    let kept = max_chars.saturating_sub(1);
    let head = kept / 2;
    let tail = kept - head;
    let mut out: String = name.chars().take(head).collect();
    out.push(ELLIPSIS);
    out.extend(name.chars().skip(count - tail));
    out
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn short_names_stay() {
        assert_eq!(shorten("Level::tick", 20), "Level::tick");
        assert_eq!(shorten("sum<int>", 8), "sum<int>");
    }

    #[test]
    fn trailing_parentheses_and_control_characters_go() {
        assert_eq!(shorten("main()()", 20), "main");
        assert_eq!(shorten("a\tb\n", 20), "a b ");
        assert_eq!(shorten("operator()()", 20), "operator");
    }

    #[test]
    fn templates_collapse_from_the_inside() {
        let name = "a::Map<Key<int>, Value<Pair<One<Two>, Three>>>::find";
        assert_eq!(shorten(name, 51), "a::Map<Key<int>, Value<Pair<…>>>::find");
        assert_eq!(shorten(name, 30), "a::Map<Key<…>, Value<…>>::find");
        assert_eq!(shorten(name, 20), "a::Map<…>::find");
        assert_eq!(shorten(name, 11), "a::Ma…:find");
    }

    #[test]
    fn operators_are_no_templates() {
        let name = "ns::operator<< <std::vector<int, std::allocator<int>>>";
        assert_eq!(shorten(name, 30), "ns::operator<< <…>");
        assert_eq!(collapse_templates("a<b>::operator->", 1), "a<…>::operator->");
        assert_eq!(collapse_templates("myoperator<b>", 1), "myoperator<…>");
    }

    #[test]
    fn other_text_keeps_its_brackets_and_loses_its_line_breaks() {
        assert_eq!(bounded(" after <update>\nof foo() ", 200), "after <update> of foo()");
        assert_eq!(bounded("häß", 2), "hä");
    }

    proptest! {
        #[test]
        fn any_text_becomes_short_and_printable(name in "\\PC{0,300}|[a-z<>:, ()]{0,300}|(operator|[<>=-]|x){0,60}", max in 1..200_usize) {
            let short = shorten(&name, max);
            prop_assert!(short.chars().count() <= max);
            prop_assert!(!short.chars().any(char::is_control));
        }
    }
}
