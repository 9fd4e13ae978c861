//! Which executables and shared objects are mapped, and what else is.
//!
//! The loader's list (`dl_iterate_phdr`) says what is loaded and where; `/proc/self/maps` says which file stands behind an address. Both are asked from
//! threads of ours only, never from a signal handler: the first takes the loader's lock.

use std::ffi::{CStr, OsStr};
use std::fs;
use std::io;
use std::ops::Range;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use super::fork;

/// One line of `/proc/self/maps`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Mapping {
    /// Its addresses.
    pub range: Range<u64>,
    /// Whether it can be read.
    pub readable: bool,
    /// Device number as `stat` gives it, 0 without a file.
    pub device: u64,
    /// Inode, 0 without a file.
    pub inode: u64,
    /// The file, a name in brackets, or nothing.
    pub path: PathBuf,
}

/// All mappings, in order of address.
///
/// # Errors
/// What reading `/proc/self/maps` says.
pub fn mappings() -> io::Result<Vec<Mapping>> {
    Ok(fs::read("/proc/self/maps")?
        .split(|byte| *byte == b'\n')
        .filter_map(parse_mapping)
        .collect())
}

/// `start-end perms offset major:minor inode   path`, numbers in hexadecimal except the inode (proc_pid_maps(5)).
fn parse_mapping(line: &[u8]) -> Option<Mapping> {
    let mut rest = line;
    let mut field = || {
        let skipped = rest.iter().position(|byte| *byte != b' ')?;
        let (_, from) = rest.split_at_checked(skipped)?;
        let length = from.iter().position(|byte| *byte == b' ').unwrap_or(from.len());
        let (field, after) = from.split_at_checked(length)?;
        rest = after;
        std::str::from_utf8(field).ok()
    };
    let hex = |text: &str| u64::from_str_radix(text, 16).ok();
    let (start, end) = field()?.split_once('-')?;
    let permissions = field()?;
    let _offset = field()?;
    let (major, minor) = field()?.split_once(':')?;
    let inode = field()?.parse().ok()?;
    let (major, minor) = (hex(major)? as u32, hex(minor)? as u32);
    let name = rest.trim_ascii_start();
    Some(Mapping {
        range: hex(start)?..hex(end)?,
        readable: permissions.starts_with('r'),
        device: if inode == 0 { 0 } else { libc::makedev(major, minor) },
        inode,
        path: PathBuf::from(OsStr::from_bytes(name.strip_suffix(b" (deleted)").unwrap_or(name))),
    })
}

/// The mapping that holds `address`.
pub fn mapping_of(mappings: &[Mapping], address: u64) -> Option<&Mapping> {
    let after = mappings.partition_point(|mapping| mapping.range.start <= address);
    let mapping = mappings.get(after.checked_sub(1)?)?;
    mapping.range.contains(&address).then_some(mapping)
}

/// How often the loader has loaded and unloaded something.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct LoadCounters {
    adds: u64,
    subs: u64,
}

/// A loaded segment, as linked.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Segment {
    /// Addresses as linked, without the load bias.
    pub svma: Range<u64>,
    /// Whether it can be read.
    pub readable: bool,
    /// Whether it can be executed.
    pub executable: bool,
}

/// A loaded executable or shared object, as the loader describes it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Image {
    /// What is added to a linked address to get one in this process. May wrap.
    pub bias: u64,
    /// The loaded segments.
    pub segments: Vec<Segment>,
    /// Where `PT_GNU_EH_FRAME` is, as linked.
    pub eh_frame_hdr: Option<Range<u64>>,
    /// Where the notes are, as linked.
    pub notes: Vec<Range<u64>>,
    /// The loader's name for it: often empty for the executable.
    pub loader_name: PathBuf,
}

impl Image {
    /// Lowest and highest linked address of its segments; `None` when it has none.
    pub fn svma(&self) -> Option<Range<u64>> {
        let start = self.segments.iter().map(|segment| segment.svma.start).min()?;
        let end = self.segments.iter().map(|segment| segment.svma.end).max()?;
        (start < end).then_some(start..end)
    }

    /// The segment that holds all of `svma`.
    pub fn segment_of(&self, svma: &Range<u64>) -> Option<&Segment> {
        self.segments
            .iter()
            .find(|segment| segment.svma.start <= svma.start && svma.end <= segment.svma.end)
    }
}

/// The loader's counters.
pub fn load_counters() -> LoadCounters {
    extern "C" fn first(info: *mut libc::dl_phdr_info, _size: usize, data: *mut libc::c_void) -> libc::c_int {
        // SAFETY: the loader gives a valid info; `data` is the LoadCounters below.
        let (info, counters) = unsafe { (&*info, &mut *data.cast::<LoadCounters>()) };
        *counters = LoadCounters {
            adds: info.dlpi_adds,
            subs: info.dlpi_subs,
        };
        1
    }
    let mut counters = LoadCounters::default();
    fork::never_during(|| {
        // SAFETY: the callback has the right type, does not unwind, and gets the pointer it casts back.
        unsafe { libc::dl_iterate_phdr(Some(first), (&raw mut counters).cast()) }
    });
    counters
}

/// All that is loaded, with the counters of that instant.
pub fn images() -> (Vec<Image>, LoadCounters) {
    extern "C" fn each(info: *mut libc::dl_phdr_info, _size: usize, data: *mut libc::c_void) -> libc::c_int {
        // SAFETY: the loader gives a valid info; `data` is the tuple below.
        let (info, (images, counters)) = unsafe { (&*info, &mut *data.cast::<(Vec<Image>, LoadCounters)>()) };
        *counters = LoadCounters {
            adds: info.dlpi_adds,
            subs: info.dlpi_subs,
        };
        let headers = if info.dlpi_phdr.is_null() {
            &[]
        } else {
            // SAFETY: the loader's own program headers, `dlpi_phnum` of them, mapped while its lock is held.
            unsafe { std::slice::from_raw_parts(info.dlpi_phdr, usize::from(info.dlpi_phnum)) }
        };
        let loader_name = if info.dlpi_name.is_null() {
            PathBuf::new()
        } else {
            // SAFETY: a NUL-terminated string of the loader's.
            PathBuf::from(OsStr::from_bytes(unsafe { CStr::from_ptr(info.dlpi_name) }.to_bytes()))
        };
        images.push(describe(info.dlpi_addr, headers, loader_name));
        0
    }
    let mut found = (Vec::new(), LoadCounters::default());
    fork::never_during(|| {
        // SAFETY: the callback has the right type, does not unwind, and gets the pointer it casts back.
        unsafe { libc::dl_iterate_phdr(Some(each), (&raw mut found).cast()) }
    });
    found
}

fn describe(bias: u64, headers: &[libc::Elf64_Phdr], loader_name: PathBuf) -> Image {
    let mut image = Image {
        bias,
        segments: Vec::new(),
        eh_frame_hdr: None,
        notes: Vec::new(),
        loader_name,
    };
    for header in headers {
        let svma = header.p_vaddr..header.p_vaddr.saturating_add(header.p_memsz);
        match header.p_type {
            libc::PT_LOAD if header.p_memsz > 0 => image.segments.push(Segment {
                svma,
                readable: header.p_flags & libc::PF_R != 0,
                executable: header.p_flags & libc::PF_X != 0,
            }),
            libc::PT_GNU_EH_FRAME => image.eh_frame_hdr = Some(svma),
            libc::PT_NOTE => image.notes.push(svma),
            _ => {}
        }
    }
    image
}

/// Where the kernel has mapped its own shared object, 0 when it has not.
pub fn vdso_start() -> u64 {
    // SAFETY: reads the process's auxiliary vector.
    unsafe { libc::getauxval(libc::AT_SYSINFO_EHDR) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read_with_spaces_in_names_and_deleted_files() {
        let parsed = parse_mapping(b"7f00-7f10 r-xp 00001000 08:01 42    /srv/a b.so (deleted)").unwrap();
        assert_eq!(parsed.range, 0x7f00..0x7f10);
        assert!(parsed.readable);
        assert_eq!((parsed.device, parsed.inode), (libc::makedev(8, 1), 42));
        assert_eq!(parsed.path, PathBuf::from("/srv/a b.so"));
        let anonymous = parse_mapping(b"7f00-7f10 ---p 00000000 00:00 0").unwrap();
        assert!(!anonymous.readable);
        assert_eq!((anonymous.device, anonymous.path), (0, PathBuf::new()));
        assert_eq!(parse_mapping(b""), None);
    }

    #[test]
    fn this_test_is_an_image_with_code() {
        let here = this_test_is_an_image_with_code as *const () as u64;
        let (images, counters) = images();
        assert_eq!(counters, load_counters());
        let ours = images
            .iter()
            .find(|image| {
                image
                    .segments
                    .iter()
                    .any(|segment| segment.executable && segment.svma.contains(&here.wrapping_sub(image.bias)))
            })
            .unwrap();
        assert!(ours.eh_frame_hdr.is_some());
        let mappings = mappings().unwrap();
        assert!(mapping_of(&mappings, here).unwrap().inode != 0);
        assert!(mapping_of(&mappings, 1).is_none());
    }
}
