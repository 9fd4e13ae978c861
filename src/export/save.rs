//! Writing a profile to a file.

use std::io::{self, BufWriter};
use std::path::PathBuf;

use flate2::Compression;
use flate2::write::GzEncoder;

use super::folder::Kind;
use super::profile::Profile;
use super::write::write;
use crate::limits::{FILE_NAME_TRIES, WRITE_BUFFER_BYTES};
use crate::model::WallMillis;
use crate::sys::{PrivateDir, PrivateDirError};

/// The ending by which spark's viewer knows a profile.
pub(super) const ENDING: &str = "sparkprofile";

/// The ending by which it knows a health report.
pub(super) const HEALTH_ENDING: &str = "sparkhealth";

/// What the names of recovered profiles begin with.
pub(super) const RECOVERED: &str = "recovered_";

/// Writes a profile into `folder` and gives its path. The file is named after the time, in UTC so that names sort by age wherever the
/// server stands: `2026-11-29_19-40-03.sparkprofile`; further ones of the same second get `-2`, `-3` and so on, never a number that is lower than one that is there: a name is not used again for another profile when an old one has made room. Recovered ones begin with `recovered_`. It is raw protobuf: the
/// viewer cannot open a compressed file.
pub fn save(folder: &PrivateDir, profile: &Profile, time: WallMillis, kind: Kind) -> Result<PathBuf, PrivateDirError> {
    let stem = match kind {
        Kind::Asked => file_stem(time),
        Kind::Recovered => format!("{RECOVERED}{}", file_stem(time)),
    };
    folder.write_new(names(folder, stem, ENDING), |out| write(profile, out))
}

/// Writes any other message that the viewer opens, named in the same way.
pub(super) fn save_bytes(
    folder: &PrivateDir,
    bytes: &[u8],
    time: WallMillis,
    ending: &'static str,
) -> Result<PathBuf, PrivateDirError> {
    folder.write_new(names(folder, file_stem(time), ending), |out| out.write_all(bytes))
}

/// Names to try, the wanted one first.
fn names(folder: &PrivateDir, stem: String, ending: &'static str) -> impl Iterator<Item = String> + use<> {
    let taken = |name: &str| {
        let rest = name.strip_prefix(&stem)?.strip_suffix(ending)?.strip_suffix('.')?;
        match rest.strip_prefix('-') {
            None => rest.is_empty().then_some(1),
            Some(number) => number.parse::<usize>().ok(),
        }
    };
    // A folder that cannot be read is told of by who writes into it.
    let files = folder.files().unwrap_or_default();
    let highest = files.iter().filter_map(|file| taken(&file.name)).max().unwrap_or(0);
    let first = highest.saturating_add(1);
    (first..=first.saturating_add(FILE_NAME_TRIES - 1)).map(move |number| match number {
        1 => format!("{stem}.{ending}"),
        _ => format!("{stem}-{number}.{ending}"),
    })
}

/// The profile as an upload carries it: gzip.
///
/// # Errors
/// None that memory knows; the writer's are passed on.
pub fn compress(profile: &Profile) -> io::Result<Vec<u8>> {
    let mut out = BufWriter::with_capacity(WRITE_BUFFER_BYTES, GzEncoder::new(Vec::new(), Compression::default()));
    write(profile, &mut out)?;
    out.into_inner().map_err(io::IntoInnerError::into_error)?.finish()
}

/// `2026-11-29_19-40-03`, in UTC.
fn file_stem(time: WallMillis) -> String {
    let seconds = time.0.div_euclid(1000);
    let (year, month, day) = civil_date(seconds.div_euclid(86_400));
    let second_of_day = seconds.rem_euclid(86_400);
    let (hour, minute, second) = (second_of_day / 3600, second_of_day / 60 % 60, second_of_day % 60);
    format!("{year:04}-{month:02}-{day:02}_{hour:02}-{minute:02}-{second:02}")
}

/// Year, month and day of a day counted from 1970-01-01, in the Gregorian calendar. Years are counted from March, so that the leap day is
/// the last of its year, and in cycles of 400 years (146,097 days).
fn civil_date(days: i64) -> (i64, i64, i64) {
    const CYCLE_DAYS: i64 = 146_097;
    // Days from 0000-03-01 to 1970-01-01.
    let days = days.saturating_add(719_468);
    let cycle = days.div_euclid(CYCLE_DAYS);
    let day = days.rem_euclid(CYCLE_DAYS);
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day_of_year = day - (365 * year + year / 4 - year / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day_of_month = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 {
        month_from_march + 3
    } else {
        month_from_march - 9
    };
    (cycle * 400 + year + i64::from(month <= 2), month, day_of_month)
}

#[cfg(test)]
mod tests {
    use prost::Message;

    use super::*;
    use crate::export::{encode, pb, test_support};

    fn profile() -> Profile {
        let mut snapshot = test_support::snapshot();
        let mut tree = crate::profile::Tree::new();
        tree.add(&[test_support::python(1), test_support::python(2)], 0, 7_000_000);
        snapshot.threads = vec![test_support::thread("server", 0, tree)];
        encode(
            &snapshot,
            &mut test_support::Names(|_: &crate::model::Module, _| None),
            &test_support::metadata(),
        )
    }

    #[test]
    fn an_upload_is_the_file_as_gzip() {
        let (mut file, mut bytes) = (Vec::new(), Vec::new());
        write(&profile(), &mut file).unwrap();
        let packed = compress(&profile()).unwrap();
        std::io::Read::read_to_end(&mut flate2::read::GzDecoder::new(&packed[..]), &mut bytes).unwrap();
        assert_eq!(bytes, file);
    }

    #[test]
    fn two_profiles_of_one_second_get_two_names() {
        let profile = profile();
        let root = tempfile::tempdir().unwrap();
        let folder = PrivateDir::open(root.path()).unwrap();
        let time = WallMillis(1_795_981_203_999);
        let saved: Vec<PathBuf> = (0..3)
            .map(|_| save(&folder, &profile, time, Kind::Asked).unwrap())
            .collect();
        let names: Vec<&str> = saved
            .iter()
            .map(|path| path.file_name().unwrap().to_str().unwrap())
            .collect();
        assert_eq!(
            names,
            [
                "2026-11-29_19-40-03.sparkprofile",
                "2026-11-29_19-40-03-2.sparkprofile",
                "2026-11-29_19-40-03-3.sparkprofile"
            ]
        );
        // The oldest has made room. Its name is not for another.
        folder.remove(names[0]).unwrap();
        let next = save(&folder, &profile, time, Kind::Asked).unwrap();
        assert!(next.ends_with("2026-11-29_19-40-03-4.sparkprofile"), "{next:?}");
        let read = pb::SamplerData::decode(&std::fs::read(&saved[2]).unwrap()[..]).unwrap();
        assert_eq!(read.metadata, profile.rest.metadata);
    }

    #[test]
    fn dates_are_those_of_the_calendar() {
        let stem = |seconds: i64| file_stem(WallMillis(seconds * 1000));
        assert_eq!(stem(0), "1970-01-01_00-00-00");
        assert_eq!(stem(-1), "1969-12-31_23-59-59");
        assert_eq!(stem(951_782_400), "2000-02-29_00-00-00");
        assert_eq!(stem(951_868_800), "2000-03-01_00-00-00");
        assert_eq!(stem(4_107_542_399), "2100-02-28_23-59-59");
        assert_eq!(stem(4_107_542_400), "2100-03-01_00-00-00");
        assert_eq!(stem(1_798_761_599), "2026-12-31_23-59-59");
    }
}
