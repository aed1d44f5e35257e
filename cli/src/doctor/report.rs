//! The outcomes of all checks of a run.

use std::fmt::Write as _;

use gudgeon::{Revision, bindings::logs::is_invisible};
use serde_json::{Value, json};

use super::check::{Check, Severity};

/// The most characters of what a peer sent that a report shows.
const MAX_OBSERVED: usize = 300;

/// The outcome of one check in the revisions in which it ran.
#[derive(Debug)]
pub struct Outcome {
    pub check: &'static Check,
    /// The revisions in which the check found nothing.
    pub passed: Vec<Revision>,
    pub findings: Vec<Finding>,
}

/// A deviation: what was observed, and the revisions in which it was.
#[derive(Debug)]
pub struct Finding {
    pub severity: Severity,
    pub observed: String,
    pub revisions: Vec<Revision>,
}

/// All outcomes, in the order in which the checks ran first.
#[derive(Debug, Default)]
pub struct Report {
    /// The name and version that the peer gives itself.
    pub peer: Option<(String, String)>,
    pub revisions: Vec<Revision>,
    /// `true` if the server speaks 2026-07-28 only. `false` if that is not known, as only one revision is examined.
    pub is_only_modern: bool,
    pub outcomes: Vec<Outcome>,
    /// The checks that could not be made, and why.
    pub remarks: Vec<String>,
}

impl Report {
    /// Records a check: `Err` holds what was observed instead. A check whose rule the revision does not have is ignored.
    pub fn record(
        &mut self,
        check: &'static Check,
        revision: Revision,
        outcome: Result<(), String>,
    ) {
        self.record_as(check, check.severity, revision, outcome);
    }

    /// Records a check whose severity depends on the circumstances.
    pub fn record_as(
        &mut self,
        check: &'static Check,
        severity: Severity,
        revision: Revision,
        outcome: Result<(), String>,
    ) {
        if !check.applies(revision) {
            return;
        }
        let at = self.outcomes.iter().position(|entry| entry.check.id == check.id);
        let at = at.unwrap_or_else(|| {
            self.outcomes.push(Outcome { check, passed: Vec::new(), findings: Vec::new() });
            self.outcomes.len() - 1
        });
        let entry = &mut self.outcomes[at];
        match outcome {
            Ok(()) if !entry.passed.contains(&revision) => entry.passed.push(revision),
            Ok(()) => (),
            Err(observed) => {
                let same = |finding: &&mut Finding| {
                    finding.observed == observed && finding.severity == severity
                };
                match entry.findings.iter_mut().find(same) {
                    Some(finding) if finding.revisions.contains(&revision) => (),
                    Some(finding) => finding.revisions.push(revision),
                    None => entry.findings.push(Finding {
                        severity,
                        observed,
                        revisions: vec![revision],
                    }),
                }
            }
        }
    }

    /// Adds a remark once.
    pub fn remark(&mut self, text: impl Into<String>) {
        let text = text.into();
        if !self.remarks.contains(&text) {
            self.remarks.push(text);
        }
    }

    /// Returns the number of findings of a severity.
    pub fn count(&self, severity: Severity) -> usize {
        let findings = self.outcomes.iter().flat_map(|outcome| &outcome.findings);
        findings.filter(|finding| finding.severity == severity).count()
    }

    /// Returns the number of checks that found nothing in any revision.
    pub fn passed(&self) -> usize {
        self.outcomes.iter().filter(|outcome| outcome.findings.is_empty()).count()
    }

    /// Returns the report as JSON, as `docs/command-line.md` describes it.
    pub fn json(&self, target: &str) -> Value {
        let revisions =
            |revisions: &[Revision]| revisions.iter().map(ToString::to_string).collect::<Vec<_>>();
        let checks = self.outcomes.iter().map(|outcome| {
            let check = outcome.check;
            let findings = outcome.findings.iter().map(|finding| {
                json!({
                    "severity": finding.severity.name(),
                    "observed": finding.observed,
                    "revisions": revisions(&finding.revisions),
                    "section":
                        finding.revisions.last().map(|revision| check.section.url(*revision)),
                })
            });
            json!({
                "id": check.id,
                "title": check.title,
                "passed": revisions(&outcome.passed),
                "findings": findings.collect::<Vec<_>>(),
                "fix": check.fix,
            })
        });
        json!({
            "target": target,
            "peer": self.peer.as_ref().map(|(name, version)| json!({"name": name, "version": version})),
            "revisions": revisions(&self.revisions),
            "summary": {
                "failures": self.count(Severity::Failure),
                "warnings": self.count(Severity::Warning),
                "notes": self.count(Severity::Note),
                "passed": self.passed(),
            },
            "checks": checks.collect::<Vec<_>>(),
            "remarks": self.remarks,
        })
    }
}

/// Returns bytes of a peer for a report: on one line, without control characters, and not longer than the limit.
pub fn shown(text: &str) -> String {
    let mut shown = String::new();
    for (count, character) in text.chars().enumerate() {
        if count == MAX_OBSERVED {
            let _ = write!(shown, "… ({} bytes)", text.len());
            break;
        }
        match character {
            '\n' => shown.push_str("\\n"),
            '\r' => shown.push_str("\\r"),
            '\t' => shown.push_str("\\t"),
            it if is_invisible(it) => {
                let _ = write!(shown, "\\u{{{:x}}}", u32::from(it));
            }
            it => shown.push(it),
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    const CHECK: Check = Check { id: "area.check", ..Check::LEGACY };

    #[test]
    fn equal_findings_of_several_revisions_are_one() {
        let mut report = Report::default();
        let old = Revision::V2025_06_18;
        report.record(&CHECK, Revision::V2025_03_26, Err("silence".into()));
        report.record(&CHECK, old, Err("silence".into()));
        report.record(&CHECK, old, Err("silence".into()));
        report.record(&CHECK, Revision::V2025_11_25, Ok(()));
        // The rule is none of this revision.
        report.record(&CHECK, Revision::V2026_07_28, Err("other".into()));
        assert_eq!(report.outcomes.len(), 1);
        let outcome = &report.outcomes[0];
        assert_eq!(outcome.findings.len(), 1);
        assert_eq!(outcome.findings[0].revisions, [Revision::V2025_03_26, old]);
        assert_eq!((report.count(Severity::Failure), report.passed()), (1, 0));
    }

    #[test]
    fn observed_bytes_can_change_nothing_in_a_terminal() {
        assert_eq!(shown("a\x1b[2J\nb\u{202e}"), "a\\u{1b}[2J\\nb\\u{202e}");
        assert!(shown(&"x".repeat(5_000)).ends_with("… (5000 bytes)"));
    }
}
