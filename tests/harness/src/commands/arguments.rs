//! Options of the subcommands.

use super::CommandError;
use harness::PythonVersion;
use std::str::FromStr;

/// What is left of a command line, read option by option.
#[derive(Debug)]
pub(super) struct Arguments {
    command: &'static str,
    rest: Vec<String>,
}

impl Arguments {
    pub fn new(command: &'static str, rest: Vec<String>) -> Self {
        Self { command, rest }
    }

    /// Takes `--name VALUE` or `--name=VALUE` out.
    pub fn option<T: FromStr<Err: ToString>>(&mut self, name: &str) -> Result<Option<T>, CommandError> {
        let mut text = None;
        let with_value = format!("{name}=");
        while let Some(at) = self
            .rest
            .iter()
            .position(|argument| argument == name || argument.starts_with(&with_value))
        {
            if text.is_some() {
                return Err(self.usage(format!("{name} is given twice")));
            }
            let argument = self.rest.remove(at);
            text = match argument.strip_prefix(&with_value) {
                Some(value) => Some(value.to_owned()),
                None if at < self.rest.len() => Some(self.rest.remove(at)),
                None => return Err(self.usage(format!("{name} needs a value"))),
            };
        }
        let Some(text) = text else { return Ok(None) };
        text.parse()
            .map(Some)
            .map_err(|error: T::Err| self.usage(format!("{name} {text}: {}", error.to_string())))
    }

    /// Takes `--name` out, if it is there.
    pub fn flag(&mut self, name: &str) -> bool {
        let before = self.rest.len();
        self.rest.retain(|argument| argument != name);
        self.rest.len() < before
    }

    /// Takes `--python X.Y` out.
    pub fn python(&mut self) -> Result<Option<PythonVersion>, CommandError> {
        let version: Option<PythonVersion> = self.option("--python")?;
        if let Some(version) = version.filter(|version| !version.is_supported()) {
            let [oldest, .., newest] = PythonVersion::ALL;
            return Err(self.usage(format!("--python {version}: Endstone runs on {oldest} to {newest}")));
        }
        Ok(version)
    }

    /// Takes everything after `--` out.
    pub fn after_dashes(&mut self) -> Vec<String> {
        let Some(at) = self.rest.iter().position(|argument| argument == "--") else {
            return Vec::new();
        };
        let after = self.rest.split_off(at + 1);
        self.rest.truncate(at);
        after
    }

    /// Takes the first argument that is no option out.
    pub fn positional(&mut self) -> Option<String> {
        let at = self.rest.iter().position(|argument| !argument.starts_with('-'))?;
        Some(self.rest.remove(at))
    }

    /// Nothing may be left.
    pub fn finish(self) -> Result<(), CommandError> {
        match self.rest.first() {
            None => Ok(()),
            Some(extra) => Err(self.usage(format!("'{extra}' is not understood"))),
        }
    }

    pub fn usage(&self, text: String) -> CommandError {
        CommandError::Usage(format!("./dev {}: {text}; see ./dev help", self.command))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arguments(line: &str) -> Arguments {
        Arguments::new("demo", line.split_whitespace().map(str::to_owned).collect())
    }

    #[test]
    fn options_are_taken_in_both_forms() {
        let mut a = arguments("--python 3.12 --seconds=5 dir");
        assert_eq!(a.python().unwrap(), Some(PythonVersion::V3_12));
        assert_eq!(a.option::<u64>("--seconds").unwrap(), Some(5));
        assert_eq!(a.positional().as_deref(), Some("dir"));
        a.finish().unwrap();
    }

    #[test]
    fn flags_are_taken() {
        let mut a = arguments("--truth --minutes 2");
        assert!(a.flag("--truth") && !a.flag("--truth"));
        assert_eq!(a.option::<u64>("--minutes").unwrap(), Some(2));
        a.finish().unwrap();
    }

    #[test]
    fn what_follows_two_dashes_is_left_alone() {
        let mut a = arguments("dir -- --python 9");
        assert_eq!(a.after_dashes(), ["--python", "9"]);
        assert_eq!(a.python().unwrap(), None);
    }

    #[test]
    fn mistakes_are_named() {
        assert!(
            arguments("--python")
                .python()
                .unwrap_err()
                .to_string()
                .contains("needs a value")
        );
        assert!(
            arguments("--python 3.9")
                .python()
                .unwrap_err()
                .to_string()
                .contains("3.11 to 3.15")
        );
        assert!(
            arguments("--python soon")
                .python()
                .unwrap_err()
                .to_string()
                .contains("not a Python version")
        );
        assert!(
            arguments("--seconds 1 --seconds 2")
                .option::<u64>("--seconds")
                .unwrap_err()
                .to_string()
                .contains("twice")
        );
        assert!(
            arguments("--fast")
                .finish()
                .unwrap_err()
                .to_string()
                .contains("'--fast' is not understood")
        );
    }
}
