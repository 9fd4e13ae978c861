//! CPython's minor version.

use std::fmt;
use std::str::FromStr;

/// `major.minor` of a CPython; ordered as released.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PythonVersion {
    major: u16,
    minor: u16,
}

impl PythonVersion {
    /// The oldest that Endstone 0.11 has a wheel for.
    pub const V3_11: Self = Self::new(3, 11);
    /// The first with `sys.monitoring`.
    pub const V3_12: Self = Self::new(3, 12);
    /// CPython 3.13.
    pub const V3_13: Self = Self::new(3, 13);
    /// CPython 3.14.
    pub const V3_14: Self = Self::new(3, 14);
    /// The newest that Endstone 0.11 has a wheel for.
    pub const V3_15: Self = Self::new(3, 15);

    /// Every version the project runs on.
    pub const ALL: [Self; 5] = [Self::V3_11, Self::V3_12, Self::V3_13, Self::V3_14, Self::V3_15];

    const fn new(major: u16, minor: u16) -> Self {
        Self { major, minor }
    }

    /// Whether the project runs on it.
    pub fn is_supported(self) -> bool {
        Self::ALL.contains(&self)
    }

    /// Whether it has `sys.monitoring`, so that profiles hold Python frames.
    pub fn has_monitoring(self) -> bool {
        self >= Self::V3_12
    }

    /// As in the file name of a wheel: `cp313`.
    pub fn wheel_tag(self) -> String {
        format!("cp{}{}", self.major, self.minor)
    }
}

impl fmt::Display for PythonVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

/// Not a Python version.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is not a Python version; write it as 3.13")]
pub struct BadVersion(String);

impl FromStr for PythonVersion {
    type Err = BadVersion;

    /// Reads `3.13`, and takes the first two numbers of longer forms (`3.13.1`, `3.15.0rc2`).
    fn from_str(text: &str) -> Result<Self, BadVersion> {
        let bad = || BadVersion(text.to_owned());
        let mut parts = text.trim().split('.');
        let major = number(parts.next().ok_or_else(bad)?).ok_or_else(bad)?;
        let minor = number(parts.next().ok_or_else(bad)?).ok_or_else(bad)?;
        if let Some(patch) = parts.next()
            && !patch.starts_with(|c: char| c.is_ascii_digit())
        {
            return Err(bad());
        }
        Ok(Self { major, minor })
    }
}

/// Digits only: `u16::from_str` alone would take a sign.
fn number(text: &str) -> Option<u16> {
    text.bytes()
        .all(|b| b.is_ascii_digit())
        .then(|| text.parse().ok())
        .flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_short_and_long_forms() {
        assert_eq!("3.13".parse(), Ok(PythonVersion::V3_13));
        assert_eq!("3.12.1".parse(), Ok(PythonVersion::V3_12));
        assert_eq!(" 3.15.0rc2\n".parse(), Ok(PythonVersion::V3_15));
    }

    #[test]
    fn refuses_what_is_not_a_version() {
        for text in [
            "",
            "3",
            "3.",
            "3.x",
            "three.eleven",
            "3.+12",
            "-3.12",
            "3.12.",
            "3.13t",
            "99999999.1",
        ] {
            assert_eq!(
                text.parse::<PythonVersion>(),
                Err(BadVersion(text.to_owned())),
                "{text:?}"
            );
        }
    }

    #[test]
    fn orders_by_number_not_by_text() {
        let nine: PythonVersion = "3.9".parse().unwrap();
        assert!(nine < PythonVersion::V3_11);
        assert!(!nine.is_supported());
        assert!(!PythonVersion::V3_11.has_monitoring());
        assert!(PythonVersion::V3_12.has_monitoring());
    }

    #[test]
    fn prints_and_tags() {
        assert_eq!(PythonVersion::V3_14.to_string(), "3.14");
        assert_eq!(PythonVersion::V3_14.wheel_tag(), "cp314");
    }
}
