//! Debian's apt, told to look at another release and at a system on which nothing is installed.

use crate::error::{Error, FileContext, Result};
use crate::lab::Lab;
use crate::progress::note;
use crate::version::PythonVersion;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Debian's signing keys, as every Debian has them.
const KEYRING: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";

/// What the machine's own apt does after an update or an installation is about its own system.
const NO_HOOKS: &str = "#clear APT::Update::Pre-Invoke;\n#clear APT::Update::Post-Invoke;\n#clear APT::Update::Post-Invoke-Success;\n\
                        #clear DPkg::Pre-Invoke;\n#clear DPkg::Post-Invoke;\n";

/// Where this machine gets its Debian packages.
pub(crate) fn mirror(version: PythonVersion) -> Result<String> {
    if let Some(mirror) = std::env::var("SPARK_DEBIAN_MIRROR")
        .ok()
        .filter(|mirror| !mirror.is_empty())
    {
        return Ok(mirror);
    }
    let cannot = |why: &str| {
        Error::Missing(format!(
            "no Python {version} with a shared libpython on this machine, and Debian's cannot be fetched: {why}. Install one or name one with \
             SPARK_PYTHON"
        ))
    };
    for program in ["apt-get", "dpkg-deb"] {
        let found = Command::new(program)
            .arg("--version")
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status();
        if !found.is_ok_and(|status| status.success()) {
            return Err(cannot(&format!("there is no {program} here")));
        }
    }
    if !Path::new(KEYRING).is_file() {
        return Err(cannot(&format!(
            "Debian's signing keys ({KEYRING}, package debian-archive-keyring) are missing"
        )));
    }
    let output = Command::new("apt-get")
        .args([
            "indextargets",
            "--format",
            "$(ORIGIN)\t$(RELEASE)\t$(REPO_URI)",
            "Created-By: Packages",
        ])
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output();
    let targets = output
        .map(|output| String::from_utf8_lossy(&output.stdout).into_owned())
        .unwrap_or_default();
    let own = fs::read_to_string("/etc/os-release").unwrap_or_default();
    choose_mirror(&targets, &own)
        .map(str::to_owned)
        .ok_or_else(|| cannot("apt has no Debian mirror in its sources; set SPARK_DEBIAN_MIRROR to the address of one"))
}

/// The mirror among apt's index targets (`origin <tab> release <tab> address` per line). Before the first `apt-get update` origins are unknown;
/// then it is the source of the system's own release.
fn choose_mirror<'a>(targets: &'a str, os_release: &str) -> Option<&'a str> {
    let field = |key: &str| {
        os_release
            .lines()
            .find_map(|line| line.strip_prefix(key))
            .map(|v| v.trim_matches('"'))
    };
    let own_release = field("VERSION_CODENAME=").filter(|_| field("ID=") == Some("debian"));
    let entries = || {
        targets
            .lines()
            .filter_map(|line| {
                let mut fields = line.split('\t');
                Some((fields.next()?, fields.next()?, fields.next()?))
            })
            .filter(|(_, _, uri)| !uri.contains("security"))
    };
    let by_origin = entries().find(|(origin, ..)| *origin == "Debian");
    let by_release = || {
        entries()
            .filter(|(origin, ..)| origin.is_empty())
            .find(|(_, release, uri)| Some(*release) == own_release && uri.trim_end_matches('/').ends_with("/debian"))
    };
    by_origin.or_else(by_release).map(|(_, _, uri)| uri)
}

/// An apt that knows one release and no installed package, with all its files in a temporary folder.
pub(crate) struct Apt {
    dir: tempfile::TempDir,
}

impl Apt {
    pub fn new(lab: &Lab, mirror: &str, release: &str) -> Result<Self> {
        let dir = tempfile::Builder::new()
            .prefix("apt-")
            .tempdir_in(lab.target())
            .context("create", lab.target())?;
        for folder in ["lists/partial", "cache/archives/partial"] {
            let path = dir.path().join(folder);
            fs::create_dir_all(&path).context("create", &path)?;
        }
        let write = |name: &str, text: String| {
            let path = dir.path().join(name);
            fs::write(&path, text).context("write", &path)
        };
        write(
            "sources.list",
            format!("deb [arch=amd64 signed-by={KEYRING}] {mirror} {release} main\n"),
        )?;
        write("apt.conf", NO_HOOKS.to_owned())?;
        note(format!("from {mirror}"));
        Ok(Self { dir })
    }

    pub fn archives(&self) -> PathBuf {
        self.dir.path().join("cache/archives")
    }

    pub fn command(&self) -> Command {
        let dir = self.dir.path();
        let options = [
            format!("Dir::Etc::sourcelist={}", dir.join("sources.list").display()),
            "Dir::Etc::sourceparts=-".to_owned(),
            format!("Dir::State={}", dir.display()),
            format!("Dir::State::lists={}", dir.join("lists").display()),
            "Dir::State::status=/dev/null".to_owned(),
            format!("Dir::Cache={}", dir.join("cache").display()),
            "APT::Architecture=amd64".to_owned(),
            "APT::Architectures::=amd64".to_owned(),
            "Acquire::Languages=none".to_owned(),
            // As root apt downloads as another user, who may not write here.
            "APT::Sandbox::User=root".to_owned(),
            "Debug::NoLocking=1".to_owned(),
            // Without this an update that reached nobody is a success.
            "APT::Update::Error-Mode=any".to_owned(),
            "Acquire::Retries=3".to_owned(),
        ];
        let mut command = Command::new("apt-get");
        command.arg("-q").arg("-c").arg(dir.join("apt.conf"));
        for option in options {
            command.arg("-o").arg(option);
        }
        command.env("DEBIAN_FRONTEND", "noninteractive");
        command
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEBIAN: &str = "NAME=\"Debian GNU/Linux\"\nID=debian\nVERSION_CODENAME=bookworm\n";

    #[test]
    fn the_mirror_is_the_one_that_calls_itself_debian() {
        let targets = "Other\tbookworm\thttps://packages.example/debian\nDebian\tbookworm-security\thttp://mirror.example/debian-security\n\
                       Debian\tbookworm\thttp://mirror.example/debian/\n";
        assert_eq!(choose_mirror(targets, ""), Some("http://mirror.example/debian/"));
    }

    #[test]
    fn before_the_first_update_it_is_the_source_of_the_own_release() {
        let targets = "\tnodistro\thttps://node.example/\n\tbookworm\thttps://tool.example/linux\n\tbookworm\thttp://mirror.example/debian\n";
        assert_eq!(choose_mirror(targets, DEBIAN), Some("http://mirror.example/debian"));
    }

    #[test]
    fn a_relative_of_debian_has_no_debian_mirror() {
        let targets = "Ubuntu\tnoble\thttp://archive.example/ubuntu/\n";
        assert_eq!(choose_mirror(targets, "ID=ubuntu\nVERSION_CODENAME=noble\n"), None);
    }
}
