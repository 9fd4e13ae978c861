//! Python attribution as a session sees it.
use crate::model::{CodeId, CodeInfo, PythonDiagnostics, PythonState};
use crate::shadow::ShadowTable;
#[derive(Debug)]
pub(super) struct PythonSide;
impl PythonSide {
    pub(super) fn attach(_table: &'static ShadowTable) -> Self {
        PythonSide
    }
    pub(super) fn diagnostics(&self) -> PythonDiagnostics {
        PythonDiagnostics {
            state: PythonState::Unsupported("this build does not follow Python yet".to_owned()),
            ..PythonDiagnostics::default()
        }
    }
    pub(super) fn freeze(&self) -> Vec<(CodeId, CodeInfo)> {
        Vec::new()
    }
    pub(super) fn release(&self) {}
    pub(super) fn release_if_lock_is_held_here(&self) {}
}
