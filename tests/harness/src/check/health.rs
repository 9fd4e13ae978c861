//! Rules about health reports.

use super::Findings;
use super::metadata::{Described, described};
use endstone_spark::export::pb::HealthData;

pub(crate) fn check_health(data: &HealthData) -> Findings {
    let mut findings = Findings::default();
    let Some(metadata) = &data.metadata else {
        findings.problem("metadata is missing: the page crashes");
        return findings;
    };
    described(
        &Described {
            platform: metadata.platform_metadata.as_ref(),
            platform_statistics: metadata.platform_statistics.as_ref(),
            system_statistics: metadata.system_statistics.as_ref(),
            extra: &metadata.extra_platform_metadata,
            configurations: &metadata.server_configurations,
            sources: &metadata.sources,
        },
        &mut findings,
    );
    // A profile without them is a profile still; they are all that a report has.
    findings.need(
        metadata.platform_statistics.as_ref(),
        "platform_statistics of a health report",
    );
    findings.need(
        metadata.system_statistics.as_ref(),
        "system_statistics of a health report",
    );
    if metadata.creator.is_none() {
        findings.warn("metadata.creator is missing: nobody made the report");
    }
    if metadata.generated_time == 0 {
        findings.warn("metadata.generated_time is 0: the report is of 1970");
    }
    for (window, statistics) in &data.time_window_statistics {
        let begins = i64::from(*window).saturating_mul(60_000);
        if (statistics.start_time, statistics.end_time <= statistics.start_time) != (begins, false) {
            findings.warn(format!("window {window} has the times of another"));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sound;
    use endstone_spark::export::pb::{HealthMetadata, WindowStatistics};

    fn report() -> HealthData {
        let profile = sound::profile().data().metadata.clone().unwrap();
        HealthData {
            metadata: Some(HealthMetadata {
                creator: Some(profile.creator.unwrap_or_default()),
                platform_metadata: profile.platform_metadata,
                platform_statistics: profile.platform_statistics,
                system_statistics: profile.system_statistics,
                generated_time: 1,
                server_configurations: profile.server_configurations,
                sources: profile.sources,
                extra_platform_metadata: profile.extra_platform_metadata,
            }),
            ..HealthData::default()
        }
    }

    fn says(text: &str, is_sound: bool, change: impl FnOnce(&mut HealthMetadata)) {
        let mut data = report();
        change(data.metadata.as_mut().unwrap());
        let findings = check_health(&data);
        assert!(findings.to_string().contains(text), "no '{text}':\n{findings}");
        assert_eq!(findings.is_sound(), is_sound, "{findings}");
    }

    #[test]
    fn a_good_report_passes() {
        let findings = check_health(&report());
        assert!(findings.is_perfect(), "{findings}");
    }

    #[test]
    fn a_report_without_figures_is_none() {
        says("platform_statistics of a health report", false, |m| {
            m.platform_statistics = None
        });
        says("platform_statistics without system_statistics", false, |m| {
            m.system_statistics = None
        });
        says("memory.heap", false, |m| {
            m.platform_statistics.as_mut().unwrap().memory = None
        });
        says("not JSON", false, |m| {
            m.server_configurations.insert("k".to_owned(), "plain".to_owned());
        });
        says("nobody made", true, |m| m.creator = None);
        says("1970", true, |m| m.generated_time = 0);
        assert!(!check_health(&HealthData::default()).is_sound());
    }

    #[test]
    fn windows_stand_under_their_minute() {
        let mut data = report();
        let window = WindowStatistics {
            start_time: 120_000,
            end_time: 180_000,
            ..WindowStatistics::default()
        };
        data.time_window_statistics.insert(2, window);
        assert!(check_health(&data).is_perfect());
        data.time_window_statistics.insert(3, window);
        assert!(check_health(&data).to_string().contains("window 3"));
    }
}
