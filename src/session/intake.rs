//! What becomes of a sample: its two stacks are merged, its Python functions get the session's numbers, and it is booked. Reads no clock: a sample carries its instant.

use std::sync::Arc;

use super::books::Books;
use super::eras::CodeEras;
use crate::model::{PythonPart, Sample, SamplerDiagnostics, ThreadKey, TickFigures};
use crate::profile::{FrameKey, MergeStats, Merger, Room};

/// What the aggregation found so far, beside the trees.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct MergeFigures {
    /// What became of Python entries.
    pub(super) merge: MergeStats,
    /// Samples that had a shadow stack.
    pub(super) snapshots: u64,
    /// Samples whose shadow stack was being written.
    pub(super) torn: u64,
    /// Samples with at least one Python frame placed.
    pub(super) attributed: u64,
    /// What became of ticks, if only slow ones are kept.
    pub(super) ticks: Option<TickFigures>,
    /// Room that the trees take.
    pub(super) used: Room,
}

impl MergeFigures {
    fn count(&mut self, sample: &Sample<'_>, merged: &MergeStats) {
        match sample.python {
            PythonPart::None => {}
            PythonPart::Torn => self.torn += 1,
            PythonPart::Frames { .. } => self.snapshots += 1,
        }
        self.attributed += u64::from(merged.placed > 0);
        self.merge.add(merged);
    }

    /// Writes these figures over the places of `diagnostics` that the native side leaves empty.
    pub(super) fn complete(&self, diagnostics: &mut SamplerDiagnostics) {
        diagnostics.python_snapshots = self.snapshots;
        diagnostics.python_torn = self.torn;
        diagnostics.attributed = self.attributed;
        diagnostics.entries_placed = self.merge.placed;
        diagnostics.entries_missed = self.merge.missed;
        diagnostics.entries_unanchored = self.merge.unanchored;
    }
}

/// See the module's text.
#[derive(Debug)]
pub(super) struct Intake {
    merger: Merger,
    eras: Arc<CodeEras>,
    moved: Vec<FrameKey>,
    books: Books,
    figures: MergeFigures,
}

impl Intake {
    pub(super) fn new(books: Books, eras: Arc<CodeEras>) -> Self {
        Intake {
            merger: Merger::new(),
            eras,
            moved: Vec::new(),
            books,
            figures: MergeFigures::default(),
        }
    }

    /// Takes a sample.
    pub(super) fn sample(&mut self, sample: &Sample<'_>) {
        let merged = self.merger.merge(sample);
        self.figures.count(sample, &merged.stats);
        let path = self.eras.path(sample.taken_at, merged.path, &mut self.moved);
        self.books.sample(sample, path);
    }

    /// To be called whenever all samples that were there have been taken, with the threads of which there will be none any more. Gives the figures up to now.
    pub(super) fn settle(&mut self, ended: Vec<(ThreadKey, String)>) -> MergeFigures {
        self.books.settle(ended);
        self.figures.ticks = self.books.tick_figures();
        self.figures.used = self.books.used();
        self.figures
    }

    /// A copy of what has been booked.
    pub(super) fn copy(&self) -> Books {
        self.books.clone()
    }

    /// What has been booked.
    pub(super) fn into_books(self) -> Books {
        self.books
    }
}
