//! Splits a typed command into arguments by the usages that its plugin declared.
//!
//! The server does not split at blanks: each usage is an overload with typed parameters, the first overload that fits the whole line
//! wins, and a parameter of type `message` is one argument that holds the rest of the line. Usages look like
//! `/spark (start|stop)<action: SparkAction> [flags: message]`: `<...>` is required, `[...]` may be missing at the end, a list in
//! parentheses makes the parameter an enum with those values.

use std::fmt;

/// One overload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Usage {
    parameters: Vec<Parameter>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Parameter {
    kind: Kind,
    optional: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Kind {
    Values(Vec<String>),
    Integer,
    Number,
    Boolean,
    /// One word, or several in quotes.
    Text,
    /// Three coordinates, one argument.
    Position,
    /// The rest of the line, one argument.
    Rest,
}

/// Why no overload fits: the line and the byte range of the first word that none could take (empty at the end of the line).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SyntaxError {
    line: String,
    start: usize,
    end: usize,
}

impl fmt::Display for SyntaxError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (before, word, after) = (
            &self.line[..self.start],
            &self.line[self.start..self.end],
            &self.line[self.end..],
        );
        write!(
            out,
            "Syntax error: Unexpected \"{word}\": at \"{before}>>{word}<<{after}\""
        )
    }
}

/// The arguments of `line` (the command's name first), by the first of `usages` that fits.
pub fn split(usages: &[Usage], line: &str) -> Result<Vec<String>, SyntaxError> {
    let name_end = line.find(char::is_whitespace).unwrap_or(line.len());
    let mut furthest = name_end;
    for usage in usages {
        match usage.fit(line, name_end) {
            Ok(arguments) => return Ok(arguments),
            Err(stopped_at) => furthest = furthest.max(stopped_at),
        }
    }
    let start = furthest + blanks(&line[furthest..]);
    let end = start + word_length(&line[start..]);
    Err(SyntaxError {
        line: line.to_owned(),
        start,
        end,
    })
}

impl Usage {
    /// Parses a declared usage.
    pub fn parse(text: &str) -> Result<Usage, String> {
        let mut rest = text.trim();
        if !rest.starts_with('/') {
            return Err(format!("{text:?} does not start with a slash"));
        }
        rest = &rest[word_length(rest)..];
        let mut parameters: Vec<Parameter> = Vec::new();
        loop {
            rest = rest.trim_start();
            let Some(first) = rest.chars().next() else { break };
            let (parameter, length) = match first {
                '(' => enumeration(rest),
                '<' | '[' => typed(rest),
                // A bare word has to be typed as it stands.
                _ => {
                    let length = word_length(rest);
                    Some((
                        Parameter {
                            kind: Kind::Values(vec![rest[..length].to_owned()]),
                            optional: false,
                        },
                        length,
                    ))
                }
            }
            .ok_or_else(|| format!("cannot read {rest:?} in {text:?}"))?;
            if parameters.last().is_some_and(|last| last.optional) && !parameter.optional {
                return Err(format!("a required parameter follows an optional one in {text:?}"));
            }
            parameters.push(parameter);
            rest = &rest[length..];
        }
        Ok(Usage { parameters })
    }

    /// The arguments, or the byte offset where the line stopped to fit.
    fn fit(&self, line: &str, from: usize) -> Result<Vec<String>, usize> {
        let mut at = from;
        let mut arguments = Vec::new();
        for parameter in &self.parameters {
            let start = at + blanks(&line[at..]);
            if start == line.len() {
                if parameter.optional { break } else { return Err(at) }
            }
            let (argument, length) = parameter.kind.take(&line[start..]).ok_or(at)?;
            arguments.push(argument);
            at = start + length;
        }
        if line[at..].trim().is_empty() {
            Ok(arguments)
        } else {
            Err(at)
        }
    }
}

impl Kind {
    /// The argument at the start of `text`, which is not blank, and how many bytes it takes.
    fn take(&self, text: &str) -> Option<(String, usize)> {
        let length = word_length(text);
        let word = &text[..length];
        let whole = || Some((word.to_owned(), length));
        match self {
            Kind::Values(values) => values.iter().any(|value| value == word).then(whole)?,
            Kind::Integer => word.parse::<i32>().is_ok().then(whole)?,
            Kind::Number => word.parse::<f32>().is_ok().then(whole)?,
            Kind::Boolean => matches!(word, "true" | "false").then(whole)?,
            Kind::Text => match text.strip_prefix('"') {
                Some(quoted) => quoted.find('"').map(|end| (quoted[..end].to_owned(), end + 2)),
                None => whole(),
            },
            Kind::Position => position(text),
            Kind::Rest => Some((text.trim_end().to_owned(), text.len())),
        }
    }
}

fn position(text: &str) -> Option<(String, usize)> {
    let mut end = 0;
    for _ in 0..3 {
        let start = end + blanks(&text[end..]);
        let length = word_length(&text[start..]);
        let coordinate = text[start..start + length].trim_start_matches(['~', '^']);
        let relative = coordinate.len() < length;
        if !(coordinate.parse::<f32>().is_ok() || (relative && coordinate.is_empty())) {
            return None;
        }
        end = start + length;
    }
    Some((text[..end].to_owned(), end))
}

/// `(a|b)<name: Type>`, `(a|b)[name: Type]` or `(a|b)`.
fn enumeration(text: &str) -> Option<(Parameter, usize)> {
    let close = text.find(')')?;
    let values: Vec<String> = text[1..close].split('|').map(|value| value.trim().to_owned()).collect();
    if values.iter().any(String::is_empty) {
        return None;
    }
    let rest = &text[close + 1..];
    let (optional, length) = match rest.chars().next() {
        Some('<' | '[') => typed(rest).map(|(parameter, length)| (parameter.optional, length))?,
        _ => (false, 0),
    };
    Some((
        Parameter {
            kind: Kind::Values(values),
            optional,
        },
        close + 1 + length,
    ))
}

/// `<name: type>` or `[name: type]`.
fn typed(text: &str) -> Option<(Parameter, usize)> {
    let optional = text.starts_with('[');
    let close = text.find(if optional { ']' } else { '>' })?;
    let (name, kind) = text[1..close].split_once(':')?;
    if name.trim().is_empty() {
        return None;
    }
    let kind = match kind.trim() {
        "" => return None,
        "int" => Kind::Integer,
        "float" => Kind::Number,
        "bool" => Kind::Boolean,
        "block_pos" | "vec3i" | "pos" | "vec3" | "vec3f" => Kind::Position,
        "message" | "json" => Kind::Rest,
        _ => Kind::Text,
    };
    Some((Parameter { kind, optional }, close + 1))
}

fn blanks(text: &str) -> usize {
    text.len() - text.trim_start().len()
}

fn word_length(text: &str) -> usize {
    text.find(char::is_whitespace).unwrap_or(text.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split_by(usages: &[&str], line: &str) -> Result<Vec<String>, String> {
        let usages: Vec<Usage> = usages
            .iter()
            .map(|text| Usage::parse(text).expect("a good usage"))
            .collect();
        split(&usages, line).map_err(|error| error.to_string())
    }

    const SPARK: &[&str] = &[
        "/spark",
        "/spark (profiler|sampler)<module: SparkModule> (start|stop|info)[action: SparkAction] [flags: message]",
    ];

    #[test]
    fn a_message_is_the_rest_of_the_line_as_one_argument() {
        let words = split_by(SPARK, "spark profiler start --interval 4 --comment \"two words\"");
        assert_eq!(
            words,
            Ok(vec![
                "profiler".into(),
                "start".into(),
                "--interval 4 --comment \"two words\"".into()
            ])
        );
    }

    #[test]
    fn optional_parameters_may_be_missing_at_the_end() {
        assert_eq!(split_by(SPARK, "spark"), Ok(vec![]));
        assert_eq!(split_by(SPARK, "spark profiler"), Ok(vec!["profiler".into()]));
        assert_eq!(
            split_by(SPARK, "spark   profiler  stop "),
            Ok(vec!["profiler".into(), "stop".into()])
        );
    }

    #[test]
    fn the_first_usage_that_fits_wins() {
        let usages = &["/x (a)<k: K> [rest: message]", "/x <word: str> <n: int>"];
        assert_eq!(split_by(usages, "x a 1"), Ok(vec!["a".into(), "1".into()]));
        assert_eq!(split_by(usages, "x b 1"), Ok(vec!["b".into(), "1".into()]));
    }

    #[test]
    fn a_line_that_no_usage_takes_names_the_word() {
        assert_eq!(
            split_by(SPARK, "spark profiler begin now"),
            Err("Syntax error: Unexpected \"begin\": at \"spark profiler >>begin<< now\"".into())
        );
        assert_eq!(
            split_by(&["/x <n: int>"], "x"),
            Err("Syntax error: Unexpected \"\": at \"x>><<\"".into())
        );
        assert_eq!(
            split_by(&["/x"], "x y"),
            Err("Syntax error: Unexpected \"y\": at \"x >>y<<\"".into())
        );
    }

    #[test]
    fn each_type_takes_what_it_should() {
        let usages = &["/t <i: int> <f: float> <b: bool> <p: pos> <s: str> [who: target]"];
        assert_eq!(
            split_by(usages, "t -3 1.5 true ~ ~1 -2.5 \"a b\" @a"),
            Ok(["-3", "1.5", "true", "~ ~1 -2.5", "a b", "@a"]
                .map(String::from)
                .to_vec())
        );
        for line in [
            "t x 1 true 0 0 0 s",
            "t 1 x true 0 0 0 s",
            "t 1 1 yes 0 0 0 s",
            "t 1 1 true 0 0 s s",
            "t 1 1 true 0 0 0 \"open",
        ] {
            assert!(split_by(usages, line).is_err(), "{line} was accepted");
        }
    }

    #[test]
    fn a_bare_word_has_to_be_typed() {
        assert_eq!(
            split_by(&["/home set <name: str>"], "home set base"),
            Ok(vec!["set".into(), "base".into()])
        );
        assert!(split_by(&["/home set <name: str>"], "home get base").is_err());
    }

    #[test]
    fn words_of_any_alphabet_are_split_at_blanks_only() {
        assert_eq!(
            split_by(&["/x <s: str> [m: message]"], "x дом 東京 日本"),
            Ok(vec!["дом".into(), "東京 日本".into()])
        );
        assert!(split_by(&["/x"], "x 東").is_err());
    }

    #[test]
    fn bad_usages_are_refused() {
        for text in [
            "spark",
            "/x (a|b",
            "/x <a>",
            "/x <: int>",
            "/x (a|)<k: K>",
            "/x [a: int] <b: int>",
            "/x <a:>",
        ] {
            assert!(Usage::parse(text).is_err(), "{text} was accepted");
        }
    }
}
