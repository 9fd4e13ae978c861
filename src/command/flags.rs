//! Groups words into flags and their values.

use super::parse::ParseError;
use super::tokens::Token;

/// A flag as it was typed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Flag {
    /// Without the dashes, in lower case.
    pub(super) name: String,
    /// What follows, up to the next flag, joined by single spaces; empty quotes add nothing. `None` when nothing does.
    pub(super) value: Option<String>,
}

/// Flags that may be given several times with different values.
const REPEATABLE: [&str; 1] = ["thread"];

/// Reads `--name value`, `--name=value` and `--name several words`. A flag may be repeated with the same value; with another it is
/// refused. `action` is what they belong to.
pub(super) fn group(action: &'static str, tokens: &[Token]) -> Result<Vec<Flag>, ParseError> {
    let mut flags: Vec<Flag> = Vec::new();
    let mut open: Option<Flag> = None;
    for token in tokens {
        let name = if token.quoted {
            None
        } else {
            token.text.strip_prefix("--")
        };
        match (name, &mut open) {
            (Some(name), _) => {
                close(&mut flags, open.take())?;
                let (name, value) = match name.split_once('=') {
                    Some((name, value)) => (name, Some(value.to_owned())),
                    None => (name, None),
                };
                open = Some(Flag {
                    name: name.to_lowercase(),
                    value,
                });
            }
            (None, Some(flag)) => match &mut flag.value {
                Some(value) => {
                    if !value.is_empty() {
                        value.push(' ');
                    }
                    value.push_str(&token.text);
                }
                None => flag.value = Some(token.text.clone()),
            },
            (None, None) => {
                return Err(ParseError::StrayWord {
                    action,
                    word: token.text.clone(),
                });
            }
        }
    }
    close(&mut flags, open)?;
    Ok(flags)
}

fn close(flags: &mut Vec<Flag>, flag: Option<Flag>) -> Result<(), ParseError> {
    let Some(flag) = flag else { return Ok(()) };
    match flags.iter().find(|earlier| earlier.name == flag.name) {
        Some(_) if REPEATABLE.contains(&flag.name.as_str()) => flags.push(flag),
        Some(earlier) if *earlier == flag => {}
        Some(_) => return Err(ParseError::Contradiction(flag.name)),
        None => flags.push(flag),
    }
    Ok(())
}
