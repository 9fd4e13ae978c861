//! Writing a profile to a file.

use std::io::{self, BufWriter, Write};
use std::path::PathBuf;

use flate2::Compression;
use flate2::write::GzEncoder;
use prost::Message;
use prost::encoding::{WireType, encode_key, encode_varint};

use super::folder::Kind;
use super::pb;
use crate::limits::{FILE_NAME_TRIES, WRITE_BUFFER_BYTES};
use crate::model::WallMillis;
use crate::sys::{PrivateDir, PrivateDirError};

/// The ending by which spark's viewer knows a profile.
pub(super) const ENDING: &str = "sparkprofile";

/// What the names of recovered profiles begin with.
pub(super) const RECOVERED: &str = "recovered_";

/// Numbers of the fields that are written one by one, as in `proto/spark_sampler.proto`.
const SAMPLER_DATA_THREADS: u32 = 2;
const THREAD_NODE_CHILDREN: u32 = 3;

/// Writes a profile into `folder` and gives its path. The file is named after the time, in UTC so that names sort by age wherever the
/// server stands: `2026-11-29_19-40-03.sparkprofile`; further ones of the same second get `-2`, `-3` and so on, recovered ones begin with `recovered_`. It is raw protobuf: the
/// viewer cannot open a compressed file.
pub fn save(
    folder: &PrivateDir,
    data: &pb::SamplerData,
    time: WallMillis,
    kind: Kind,
) -> Result<PathBuf, PrivateDirError> {
    let stem = match kind {
        Kind::Asked => file_stem(time),
        Kind::Recovered => format!("{RECOVERED}{}", file_stem(time)),
    };
    let names = (1..=FILE_NAME_TRIES).map(|number| match number {
        1 => format!("{stem}.{ENDING}"),
        _ => format!("{stem}-{number}.{ENDING}"),
    });
    folder.write_new(names, |out| write(data, out))
}

/// Writes a profile as protobuf, one frame at a time: a big profile never exists twice in memory.
pub fn write(data: &pb::SamplerData, out: &mut dyn Write) -> io::Result<()> {
    // Fields may come in any order, so those around the threads make one message.
    let rest = pb::SamplerData {
        metadata: data.metadata.clone(),
        threads: Vec::new(),
        class_sources: data.class_sources.clone(),
        method_sources: data.method_sources.clone(),
        line_sources: data.line_sources.clone(),
        time_windows: data.time_windows.clone(),
        time_window_statistics: data.time_window_statistics.clone(),
        channel_info: data.channel_info.clone(),
    };
    out.write_all(&rest.encode_to_vec())?;
    let mut buffer = Vec::new();
    for thread in &data.threads {
        header(SAMPLER_DATA_THREADS, thread.encoded_len(), &mut buffer);
        let own = pb::ThreadNode {
            name: thread.name.clone(),
            children: Vec::new(),
            times: thread.times.clone(),
            children_refs: thread.children_refs.clone(),
        };
        buffer.extend(own.encode_to_vec());
        flush(&mut buffer, out)?;
        for node in &thread.children {
            header(THREAD_NODE_CHILDREN, node.encoded_len(), &mut buffer);
            node.encode_raw(&mut buffer);
            flush(&mut buffer, out)?;
        }
    }
    Ok(())
}

/// The profile as an upload carries it: gzip.
///
/// # Errors
/// None that memory knows; the writer's are passed on.
pub fn compress(data: &pb::SamplerData) -> io::Result<Vec<u8>> {
    let mut out = BufWriter::with_capacity(WRITE_BUFFER_BYTES, GzEncoder::new(Vec::new(), Compression::default()));
    write(data, &mut out)?;
    out.into_inner().map_err(io::IntoInnerError::into_error)?.finish()
}

fn header(field: u32, length: usize, buffer: &mut Vec<u8>) {
    encode_key(field, WireType::LengthDelimited, buffer);
    encode_varint(length as u64, buffer);
}

fn flush(buffer: &mut Vec<u8>, out: &mut dyn Write) -> io::Result<()> {
    out.write_all(buffer)?;
    buffer.clear();
    Ok(())
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
    use super::*;

    fn data() -> pb::SamplerData {
        let node = |name: &str, refs: &[i32]| pb::StackTraceNode {
            class_name: "c".to_owned(),
            method_name: name.to_owned(),
            times: vec![1.5, 0.0],
            children_refs: refs.to_vec(),
            ..pb::StackTraceNode::default()
        };
        let thread = |name: &str| pb::ThreadNode {
            name: name.to_owned(),
            children: vec![node("a", &[1]), node("b", &[])],
            times: vec![1.5, 0.0],
            children_refs: vec![0],
        };
        pb::SamplerData {
            metadata: Some(pb::SamplerMetadata {
                comment: "text".to_owned(),
                ..pb::SamplerMetadata::default()
            }),
            threads: vec![thread("one"), thread("two"), pb::ThreadNode::default()],
            class_sources: [("c".to_owned(), "plugin".to_owned())].into(),
            time_windows: vec![1, 2],
            time_window_statistics: [
                (1, pb::WindowStatistics::default()),
                (2, pb::WindowStatistics::default()),
            ]
            .into(),
            ..pb::SamplerData::default()
        }
    }

    #[test]
    fn what_is_written_piece_by_piece_reads_as_the_whole() {
        let mut bytes = Vec::new();
        write(&data(), &mut bytes).unwrap();
        assert_eq!(pb::SamplerData::decode(&bytes[..]).unwrap(), data());
        assert_eq!(bytes.len(), data().encoded_len());
    }

    #[test]
    fn an_upload_is_the_file_as_gzip() {
        let mut bytes = Vec::new();
        let packed = compress(&data()).unwrap();
        std::io::Read::read_to_end(&mut flate2::read::GzDecoder::new(&packed[..]), &mut bytes).unwrap();
        assert_eq!(pb::SamplerData::decode(&bytes[..]).unwrap(), data());
    }

    #[test]
    fn two_profiles_of_one_second_get_two_names() {
        let root = tempfile::tempdir().unwrap();
        let folder = PrivateDir::open(root.path()).unwrap();
        let time = WallMillis(1_795_981_203_999);
        let saved: Vec<PathBuf> = (0..3)
            .map(|_| save(&folder, &data(), time, Kind::Asked).unwrap())
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
        assert_eq!(
            pb::SamplerData::decode(&std::fs::read(&saved[2]).unwrap()[..]).unwrap(),
            data()
        );
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
