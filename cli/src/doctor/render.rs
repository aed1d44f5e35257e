//! Reports for people and for tools that read `JUnit` files.

use std::{
    env,
    fmt::Write as _,
    io::{self, IsTerminal as _},
};

use super::{
    check::{Check, Severity},
    report::{Finding, Outcome, Report},
};
use crate::escape;

/// The form in which a report is written.
#[derive(Clone, Copy, Debug)]
pub struct Style {
    colors: bool,
    /// `false` where the terminal may show ASCII only.
    unicode: bool,
}

impl Style {
    /// Returns the style for standard output: colours on terminals unless `NO_COLOR` is set, signs beyond ASCII in
    /// UTF-8.
    pub fn of_output() -> Self {
        let locale = ["LC_ALL", "LC_CTYPE", "LANG"]
            .iter()
            .find_map(|name| env::var(name).ok().filter(|value| !value.is_empty()));
        let locale = locale.unwrap_or_default().to_ascii_lowercase();
        let is_plain = env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        Self {
            colors: io::stdout().is_terminal() && !is_plain,
            unicode: cfg!(windows) || locale.contains("utf-8") || locale.contains("utf8"),
        }
    }

    fn sign(self, severity: Option<Severity>) -> String {
        let (sign, plain, color) = match severity {
            None => ("✓", "ok", 32),
            Some(Severity::Failure) => ("✗", "FAIL", 31),
            Some(Severity::Warning) => ("!", "WARN", 33),
            Some(Severity::Note) => ("·", "note", 36),
        };
        let sign = if self.unicode { sign } else { plain };
        match self.colors {
            true => format!("\x1b[{color}m{sign}\x1b[0m"),
            false => sign.to_owned(),
        }
    }

    fn bold(self, text: &str) -> String {
        if self.colors { format!("\x1b[1m{text}\x1b[0m") } else { text.to_owned() }
    }
}

/// Returns the report as text, grouped by area.
pub fn text(report: &Report, target: &str, style: Style) -> String {
    let mut out = String::new();
    let peer = match &report.peer {
        Some((name, version)) => escape::server(name, version),
        None => target.to_owned(),
    };
    let revisions: Vec<_> = report.revisions.iter().map(ToString::to_string).collect();
    if revisions.is_empty() {
        let _ = writeln!(out, "{}", style.bold(&peer));
    } else {
        let _ = writeln!(out, "{} speaks {}", style.bold(&peer), revisions.join(", "));
    }
    let mut outcomes: Vec<_> = report.outcomes.iter().collect();
    outcomes.sort_by_key(|outcome| outcome.check.area());
    let mut area = "";
    for outcome in outcomes {
        if outcome.check.area() != area {
            area = outcome.check.area();
            let _ = writeln!(out, "\n{}", style.bold(area));
        }
        entry(&mut out, outcome, report, style);
    }
    out.push('\n');
    for remark in &report.remarks {
        let _ = writeln!(out, "{remark}");
    }
    let count = |severity: Severity| {
        let count = report.count(severity);
        format!("{count} {}{}", severity.name(), if count == 1 { "" } else { "s" })
    };
    let _ = write!(
        out,
        "{}, {}, {}; {} checks passed",
        count(Severity::Failure),
        count(Severity::Warning),
        count(Severity::Note),
        report.passed()
    );
    out
}

fn entry(out: &mut String, outcome: &Outcome, report: &Report, style: Style) {
    let check = outcome.check;
    let worst = outcome.findings.iter().map(|finding| finding.severity).min();
    let _ = writeln!(out, "  {} {}", style.sign(worst), check.title);
    for finding in &outcome.findings {
        let all = finding.revisions.len() == report.revisions.len();
        let names: Vec<_> = finding.revisions.iter().map(ToString::to_string).collect();
        let place = if all { String::new() } else { format!("{}: ", names.join(", ")) };
        let _ = writeln!(out, "      {place}{}", finding.observed);
    }
    if let Some(revision) = outcome.findings.iter().flat_map(|finding| &finding.revisions).max() {
        let _ = writeln!(out, "      fix: {} [{}]", check.fix, check.id);
        let _ = writeln!(out, "      see: {}", check.section.url(*revision));
    }
}

/// Returns the report as a `JUnit` file: a suite for each area, a case for each check. Warnings and notes are output of
/// their case.
pub fn junit(report: &Report, target: &str) -> String {
    let mut areas: Vec<&str> = report.outcomes.iter().map(|outcome| outcome.check.area()).collect();
    areas.sort_unstable();
    areas.dedup();
    let is_failed = |outcome: &&Outcome| {
        outcome.findings.iter().any(|finding| finding.severity == Severity::Failure)
    };
    let failed = report.outcomes.iter().filter(is_failed).count();
    let mut out = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"{}\" tests=\"{}\" failures=\"{failed}\">\n",
        escaped(target),
        report.outcomes.len()
    );
    for area in areas {
        let outcomes: Vec<_> =
            report.outcomes.iter().filter(|outcome| outcome.check.area() == area).collect();
        let failed = outcomes.iter().copied().filter(is_failed).count();
        let _ = writeln!(
            out,
            "  <testsuite name=\"{area}\" tests=\"{}\" failures=\"{failed}\">",
            outcomes.len()
        );
        for outcome in outcomes {
            let check = outcome.check;
            let _ = writeln!(
                out,
                "    <testcase classname=\"{area}\" name=\"{}\">",
                escaped(check.title)
            );
            for finding in &outcome.findings {
                let text = escaped(&finding_text(check, finding));
                let _ = match finding.severity {
                    Severity::Failure => writeln!(out, "      <failure message=\"{text}\"/>"),
                    other => {
                        writeln!(out, "      <system-out>{}: {text}</system-out>", other.name())
                    }
                };
            }
            out.push_str("    </testcase>\n");
        }
        out.push_str("  </testsuite>\n");
    }
    out.push_str("</testsuites>\n");
    out
}

fn finding_text(check: &Check, finding: &Finding) -> String {
    let names: Vec<_> = finding.revisions.iter().map(ToString::to_string).collect();
    let section =
        finding.revisions.last().map(|revision| check.section.url(*revision)).unwrap_or_default();
    format!("{}: {}; fix: {}; see {section}", names.join(", "), finding.observed, check.fix)
}

fn escaped(text: &str) -> String {
    text.chars().fold(String::new(), |mut out, character| {
        match character {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            character if character.is_control() || matches!(character, '\u{fffe}' | '\u{ffff}') => {
                out.push('\u{fffd}');
            }
            character => out.push(character),
        }
        out
    })
}

/// Returns the list of checks: id, severity, what a correct implementation does, and the section of the newest revision with
/// the rule.
pub fn list(checks: &[&Check]) -> String {
    let lines = checks.iter().map(|check| {
        format!(
            "{} ({}): {}\n    {}",
            check.id,
            check.severity.name(),
            check.title,
            check.section.url(check.until)
        )
    });
    lines.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use gudgeon::Revision;

    use super::*;

    static CHECK: Check =
        Check { id: "area.check", title: "does <it>", fix: "do it", ..Check::ANY };

    fn report() -> Report {
        let mut report = Report::default();
        report.revisions.push(Revision::V2025_06_18);
        report.record(&CHECK, Revision::V2025_06_18, Err("got \"<&>\" \u{1b}".into()));
        report
    }

    #[test]
    fn a_junit_file_is_xml_whatever_a_server_sends() {
        let xml = junit(&report(), "a & b");
        assert!(
            xml.contains("<testsuites name=\"a &amp; b\" tests=\"1\" failures=\"1\">"),
            "{xml}"
        );
        assert!(xml.contains("got &quot;&lt;&amp;&gt;&quot; \u{fffd}"), "{xml}");
        assert!(xml.contains("name=\"does &lt;it&gt;\""), "{xml}");
    }

    #[test]
    fn a_report_without_unicode_is_ascii() {
        let style = Style { colors: false, unicode: false };
        let text = text(&report(), "target", style);
        assert!(text.contains("FAIL does <it>"), "{text}");
        assert!(text.contains("fix: do it [area.check]"), "{text}");
        assert!(text.ends_with("1 failure, 0 warnings, 0 notes; 0 checks passed"), "{text}");
    }
}
