//! Samples compared with what the interpreter ran at their instant.

use std::collections::{BTreeMap, HashMap};

use endstone_spark::model::{CodeId, PythonEntry, PythonPart, Sample, StackEnd};
use endstone_spark::python::Attribution;

use super::frames::{Frame, identity};
use super::truth;

/// What all samples of a run came to.
#[derive(Default, Debug)]
pub struct Verdicts {
    /// Of watched threads that ran Python, taken at an instant of their own.
    pub judged: u64,
    /// Taken at an instant at which the interpreter's frames could not be told (3.12: an evaluation was just beginning).
    pub untold: u64,
    /// All frames there, each at its place.
    pub exact: u64,
    /// All but the innermost, which was just being entered or left.
    pub at_an_edge: u64,
    /// All but generators that pass an exception on, which nothing runs.
    pub delegating: u64,
    /// Without another frame.
    pub missing: u64,
    /// Without a Python part: the shadow stack was being written.
    pub torn: u64,
    /// Without a Python part, for no known reason.
    pub without: u64,
    /// The native stack was cut, so places could not be compared.
    pub cut: u64,
    /// With a frame that did not run, or at another place.
    pub wrong: u64,
    /// How many native frames a frame's place is from the one that holds the evaluation's mark: one and the same number for an interpreter.
    pub places: BTreeMap<isize, u64>,
    /// Some of the wrong and poor ones.
    pub texts: Vec<String>,
}

/// Compares samples as they come.
pub struct Judge<'a> {
    attribution: &'a Attribution,
    identities: HashMap<CodeId, u64>,
    names: HashMap<u64, String>,
    frames: Vec<Frame>,
    pub verdicts: Verdicts,
}

impl<'a> Judge<'a> {
    pub fn new(attribution: &'a Attribution) -> Self {
        Judge {
            attribution,
            identities: HashMap::new(),
            names: HashMap::new(),
            frames: Vec::new(),
            verdicts: Verdicts::default(),
        }
    }

    pub fn visit(&mut self, sample: &Sample<'_>) {
        if sample.repeated {
            return;
        }
        let mut innermost_first = std::mem::take(&mut self.frames);
        match truth::at(sample.thread.tid.get(), sample.taken_at.0, &mut innermost_first) {
            Some(true) => self.judge(sample, &innermost_first),
            Some(false) => self.verdicts.untold += 1,
            None => {}
        }
        self.frames = innermost_first;
    }

    fn judge(&mut self, sample: &Sample<'_>, innermost_first: &[Frame]) {
        // Outermost first: each frame with its evaluation's mark.
        let mut entry = 0;
        let mut running = Vec::with_capacity(innermost_first.len());
        for frame in innermost_first.iter().rev() {
            if frame.entry != 0 {
                entry = frame.entry;
            } else {
                running.push((*frame, entry));
            }
        }
        if running.is_empty() {
            return;
        }
        let (entries, hidden) = match sample.python {
            PythonPart::Frames { entries, hidden } => (entries, hidden),
            // A thread's first frame, of which no event has come.
            PythonPart::None if running.len() == 1 => (&[][..], 0),
            PythonPart::None => {
                self.verdicts.judged += 1;
                self.verdicts.without += 1;
                self.note("without", &[], &running);
                return;
            }
            PythonPart::Torn => {
                self.verdicts.judged += 1;
                self.verdicts.torn += 1;
                return;
            }
        };
        self.verdicts.judged += 1;
        if hidden > 0 {
            running.truncate(entries.len());
        }
        let whole = sample.omitted == 0 && sample.end == StackEnd::Root;
        self.verdicts.cut += u64::from(!whole);
        self.learn(entries);

        let mut next = 0;
        let (mut edge, mut delegating, mut missing) = (false, false, false);
        let mut places = Vec::new();
        for (index, (frame, entry)) in running.iter().enumerate() {
            let candidate = entries.get(next);
            let fits = candidate.filter(|candidate| self.identities.get(&candidate.code) == Some(&frame.identity));
            let place = fits.and_then(|fits| {
                if whole {
                    place(sample, fits.anchor, *entry)
                } else {
                    Some(0)
                }
            });
            if let Some(place) = place {
                next += 1;
                places.push(place);
            } else if frame.is_generator && index + 1 < running.len() {
                delegating = true;
            } else if index + 1 == running.len() {
                edge = true;
            } else {
                missing = true;
            }
        }
        if next < entries.len() {
            self.verdicts.wrong += 1;
            self.note("WRONG", entries, &running);
            return;
        }
        if whole {
            for place in places {
                *self.verdicts.places.entry(place).or_default() += 1;
            }
        }
        let verdict = match (missing, delegating, edge) {
            (true, ..) => {
                self.note("missing", entries, &running);
                &mut self.verdicts.missing
            }
            (_, true, _) => &mut self.verdicts.delegating,
            (.., true) => &mut self.verdicts.at_an_edge,
            _ => &mut self.verdicts.exact,
        };
        *verdict += 1;
    }

    fn learn(&mut self, entries: &[PythonEntry]) {
        if entries.iter().all(|entry| self.identities.contains_key(&entry.code)) {
            return;
        }
        for (id, info) in self.attribution.codes() {
            let identity = identity(info.qualified_name.as_bytes(), info.first_line);
            self.identities.insert(id, identity);
            self.names.insert(identity, info.qualified_name);
        }
    }

    fn note(&mut self, what: &str, entries: &[PythonEntry], running: &[(Frame, u64)]) {
        if self.verdicts.texts.len() >= 20 {
            return;
        }
        let name = |identity: &u64| self.names.get(identity).map_or("?", String::as_str);
        let shown: Vec<_> = entries
            .iter()
            .map(|entry| {
                (
                    self.identities.get(&entry.code).map_or("?", name),
                    format!("{:x}", entry.anchor),
                )
            })
            .collect();
        let ran: Vec<_> = running
            .iter()
            .map(|(frame, entry)| (name(&frame.identity), format!("{entry:x}")))
            .collect();
        self.verdicts
            .texts
            .push(format!("{what}\n  shown {shown:?}\n  ran   {ran:?}"));
    }
}

/// Where the native frame with this anchor stands, counted from the one whose part of the stack holds the evaluation's mark. `None` for anywhere but that
/// one or, in an interpreter that runs its instructions as functions that call on instead of returning, the next inside.
fn place(sample: &Sample<'_>, anchor: u64, entry: u64) -> Option<isize> {
    let anchored = sample.native.iter().position(|frame| frame.cfa == anchor)?;
    let marked = sample.native.iter().position(|frame| frame.cfa > entry)?;
    let place = anchored as isize - marked as isize;
    [-1, 0].contains(&place).then_some(place)
}
