//! Keeps track of what is loaded, and makes the table that handlers use.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use super::cfi::UnwindData;
use super::table::{Entry, ModuleTable};
use crate::limits;
use crate::model::{BuildId, Module, ModuleId};
use crate::sys::maps::{self, Image, LoadCounters, Mapping};
use crate::sys::mem;

/// The last id given out in this process.
static LAST_ID: AtomicU32 = AtomicU32::new(0);

fn next_id() -> ModuleId {
    // Relaxed: only that no number is given twice matters.
    ModuleId::new(LAST_ID.fetch_add(1, Ordering::Relaxed).wrapping_add(1))
}

/// A module we have met.
#[derive(Clone, Debug)]
struct Known {
    module: Arc<Module>,
    entry: Entry,
}

/// All modules met so far, those that are loaded now among them.
#[derive(Debug)]
pub(super) struct Modules {
    process: i32,
    counters: Option<LoadCounters>,
    /// By lowest address; only what is loaded now.
    loaded: HashMap<u64, Known>,
    /// What has been unloaded, to be known again: a library that is loaded and unloaded all day is one module as long as it is the same file at the
    /// same place.
    unloaded: Vec<Known>,
}

impl Modules {
    pub(super) fn new(process: i32) -> Self {
        Modules {
            process,
            counters: None,
            loaded: HashMap::new(),
            unloaded: Vec::new(),
        }
    }

    /// Looks again if the loader has changed anything since the last look. The new table and the modules not met before, or `None` when all is as
    /// it was.
    pub(super) fn refresh(&mut self) -> Option<(ModuleTable, Vec<Arc<Module>>)> {
        if self.counters == Some(maps::load_counters()) {
            return None;
        }
        let mut new = Vec::new();
        // Something may be loaded or unloaded while sections are copied; then look again, but not for ever.
        for _ in 0..3 {
            let (images, counters) = maps::images();
            self.take_up(images, &mut new);
            self.counters = Some(counters);
            if maps::load_counters() == counters {
                break;
            }
        }
        let table = ModuleTable::new(self.loaded.values().map(|known| known.entry.clone()).collect());
        Some((table, new))
    }

    fn take_up(&mut self, images: Vec<Image>, new: &mut Vec<Arc<Module>>) {
        let mappings = maps::mappings().unwrap_or_default();
        let mut before = std::mem::take(&mut self.loaded);
        for image in images {
            let Some(described) = self.describe(&image, &mappings) else {
                continue;
            };
            let known = before
                .remove(&described.avma.start)
                .filter(|known| same(&known.module, &described))
                .or_else(|| {
                    let at = self
                        .unloaded
                        .iter()
                        .position(|known| same(&known.module, &described) && described.build_id.is_some())?;
                    Some(self.unloaded.swap_remove(at))
                });
            let known = known.unwrap_or_else(|| {
                let module = Arc::new(Module {
                    id: next_id(),
                    ..described
                });
                new.push(Arc::clone(&module));
                Known {
                    entry: self.enter(&image, module.id),
                    module,
                }
            });
            self.loaded.insert(known.module.avma.start, known);
        }
        self.unloaded.extend(before.into_values());
        let excess = self.unloaded.len().saturating_sub(limits::UNLOADED_MODULES);
        self.unloaded.drain(..excess);
    }

    fn read(&self, address: u64, into: &mut [u8]) -> bool {
        mem::read_own(self.process, address, into) || mem::read_own_file(address, into)
    }

    /// What the module is; its id is not decided here.
    fn describe(&self, image: &Image, mappings: &[Mapping]) -> Option<Module> {
        let svma = image.svma()?;
        let start = image.bias.wrapping_add(svma.start);
        let avma = start..image.bias.wrapping_add(svma.end);
        let mapping = maps::mapping_of(mappings, start);
        let path = match mapping {
            _ if start == maps::vdso_start() => PathBuf::from("[vdso]"),
            Some(mapping) if mapping.path.is_absolute() => mapping.path.clone(),
            _ if image.loader_name == Path::new("") => std::fs::read_link("/proc/self/exe").unwrap_or_default(),
            _ => image.loader_name.clone(),
        };
        Some(Module {
            id: ModuleId::NONE,
            path,
            avma,
            base_svma: svma.start,
            build_id: self.build_id(image),
            device: mapping.map_or(0, |mapping| mapping.device),
            inode: mapping.map_or(0, |mapping| mapping.inode),
        })
    }

    fn build_id(&self, image: &Image) -> Option<BuildId> {
        image.notes.iter().find_map(|note| {
            let length = usize::try_from(note.end - note.start).ok()?.min(limits::NOTE_BYTES);
            let mut bytes = vec![0; length];
            self.read(image.bias.wrapping_add(note.start), &mut bytes)
                .then_some(())?;
            find_build_id(&bytes)
        })
    }

    fn enter(&self, image: &Image, id: ModuleId) -> Entry {
        let unwind = UnwindData::copy(image, &|address, into| self.read(address, into));
        Entry {
            id,
            bias: image.bias,
            unwind: unwind.map(Arc::new),
            readable: image
                .segments
                .iter()
                .all(|segment| segment.readable || !segment.executable),
            code: image
                .segments
                .iter()
                .filter(|segment| segment.executable)
                .map(|segment| image.bias.wrapping_add(segment.svma.start)..image.bias.wrapping_add(segment.svma.end))
                .collect(),
        }
    }
}

fn same(a: &Module, b: &Module) -> bool {
    a.avma == b.avma && a.path == b.path && a.build_id == b.build_id && (a.device, a.inode) == (b.device, b.inode)
}

/// The build id in a run of ELF notes: name size, descriptor size, type, then both padded to 4 bytes (elf(5)).
fn find_build_id(mut notes: &[u8]) -> Option<BuildId> {
    const NT_GNU_BUILD_ID: u32 = 3;
    loop {
        let number = |at: usize| notes.get(at..at + 4)?.try_into().ok().map(u32::from_le_bytes);
        let (name_size, size, kind) = (number(0)? as usize, number(4)? as usize, number(8)?);
        let name = notes.get(12..)?.get(..name_size)?;
        let from = 12 + name_size.next_multiple_of(4);
        let descriptor = notes.get(from..)?.get(..size)?;
        if kind == NT_GNU_BUILD_ID && name == b"GNU\0" {
            return BuildId::new(descriptor);
        }
        notes = notes.get(from + size.next_multiple_of(4)..)?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_build_id_is_found_behind_other_notes() {
        let mut notes = vec![4, 0, 0, 0, 3, 0, 0, 0, 1, 0, 0, 0];
        notes.extend(b"GNU\0abc\0");
        notes.extend([4, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0]);
        notes.extend(b"GNU\0\x12\x34\0\0");
        assert_eq!(find_build_id(&notes).unwrap().to_string(), "1234");
        assert_eq!(find_build_id(&notes[..30]), None, "cut off");
        assert_eq!(find_build_id(&[255; 40]), None, "sizes beyond the end");
    }

    #[test]
    fn this_process_has_modules_with_unwind_data_and_ids_of_their_own() {
        let mut modules = Modules::new(std::process::id() as i32);
        let (table, new) = modules.refresh().unwrap();
        let here = this_process_has_modules_with_unwind_data_and_ids_of_their_own as *const () as u64;
        let entry = table.find(here).unwrap();
        assert!(entry.unwind.is_some());
        let module = new.iter().find(|module| module.id == entry.id).unwrap();
        assert!(module.avma.contains(&here));
        assert!(module.path.is_absolute());
        assert!(module.inode != 0);
        let libc = new.iter().find(|module| module.short_name() == "libc").unwrap();
        assert!(libc.build_id.is_some());
        assert!(new.iter().any(|module| module.path == Path::new("[vdso]")));
        assert!(
            table
                .find(maps::vdso_start() + 0x600)
                .is_none_or(|entry| entry.unwind.is_some())
        );
        assert!(modules.refresh().is_none(), "nothing has changed");
        let (_, again) = Modules::new(std::process::id() as i32).refresh().unwrap();
        assert!(
            again.iter().all(|module| new.iter().all(|known| known.id != module.id)),
            "ids are never given twice"
        );
    }
}
