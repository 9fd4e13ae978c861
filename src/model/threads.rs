//! Which threads a session is about.

use regex_lite::{Regex, RegexBuilder};

use crate::limits;

/// What was asked for.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum ThreadChoice {
    /// The thread that ticks.
    #[default]
    Server,
    /// All of the process, our own excepted.
    All,
    /// Those with a name that fits.
    Named(ThreadNames),
}

/// A set of thread names.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ThreadNames {
    /// These, without regard to case. Of a longer name only the part that a thread can have is compared.
    Exact(Vec<String>),
    /// Those that one of these patterns describes as a whole.
    Patterns(Vec<NamePattern>),
}

impl ThreadNames {
    /// Whether a thread of this name is meant.
    pub fn contains(&self, name: &str) -> bool {
        match self {
            ThreadNames::Exact(names) => {
                let name = name.to_lowercase();
                names.iter().any(|wanted| as_kept(wanted).to_lowercase() == name)
            }
            ThreadNames::Patterns(patterns) => patterns.iter().any(|pattern| pattern.matches(name)),
        }
    }

    /// The names or patterns as they were given.
    pub fn texts(&self) -> Vec<String> {
        match self {
            ThreadNames::Exact(names) => names.clone(),
            ThreadNames::Patterns(patterns) => patterns.iter().map(|pattern| pattern.text.clone()).collect(),
        }
    }
}

/// What the kernel keeps of a thread's name: 15 bytes (TASK_COMM_LEN).
fn as_kept(name: &str) -> &str {
    let mut end = name.len().min(15);
    while !name.is_char_boundary(end) {
        end -= 1;
    }
    name.get(..end).unwrap_or(name)
}

/// A regular expression that describes a whole name, without regard to the case of ASCII letters.
#[derive(Clone, Debug)]
pub struct NamePattern {
    text: String,
    regex: Regex,
}

impl PartialEq for NamePattern {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for NamePattern {}

impl NamePattern {
    /// Reads a pattern.
    ///
    /// # Errors
    /// Why it is none, in the words of the regular expression library.
    pub fn new(text: &str) -> Result<Self, String> {
        let build = |pattern: &str| {
            RegexBuilder::new(pattern)
                .case_insensitive(true)
                .size_limit(limits::PATTERN_BYTES)
                .build()
                .map_err(|error| error.to_string())
        };
        // By itself first: what only becomes a pattern inside our parentheses is none.
        build(text)?;
        Ok(NamePattern {
            text: text.to_owned(),
            regex: build(&format!("^(?:{text})$"))?,
        })
    }

    /// Whether it describes all of `name`.
    pub fn matches(&self, name: &str) -> bool {
        self.regex.is_match(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn patterns(texts: &[&str]) -> ThreadNames {
        ThreadNames::Patterns(texts.iter().map(|text| NamePattern::new(text).unwrap()).collect())
    }

    #[test]
    fn exact_names_are_whole_and_without_case() {
        let names = ThreadNames::Exact(vec!["MC_SERVER".to_owned(), "Größe".to_owned()]);
        for (name, meant) in [
            ("MC_SERVER", true),
            ("mc_server", true),
            ("MC_SERVER2", false),
            ("C_SERVER", false),
            ("GRÖßE", true),
            ("", false),
        ] {
            assert_eq!(names.contains(name), meant, "{name}");
        }
        assert!(
            !ThreadNames::Exact(vec!["mc.server".to_owned()]).contains("mc_server"),
            "a name is no pattern"
        );
    }

    #[test]
    fn a_name_longer_than_a_thread_can_have_is_compared_as_far_as_that_goes() {
        let names = ThreadNames::Exact(vec!["a-thread-with-a-long-name".to_owned()]);
        assert!(names.contains("a-thread-with-a"));
        assert!(!names.contains("a-thread-with-b"));
    }

    #[test]
    fn patterns_describe_the_whole_name() {
        let names = patterns(&["worker-[0-9]+", "net|io"]);
        for (name, meant) in [
            ("worker-12", true),
            ("WORKER-1", true),
            ("worker-", false),
            ("a worker-1", false),
            ("worker-1 b", false),
            ("net", true),
            ("io", true),
            ("netio", false),
            ("net\nio", false),
        ] {
            assert_eq!(names.contains(name), meant, "{name}");
        }
        assert_eq!(names.texts(), ["worker-[0-9]+", "net|io"]);
    }

    #[test]
    fn what_is_no_pattern_is_refused_with_a_reason() {
        for text in ["(", "a)|(b", "[", "*", "a{2000}{2000}", "(?x) a # "] {
            assert!(NamePattern::new(text).is_err_and(|why| !why.is_empty()), "{text}");
        }
    }
}
