//! The numbers of the processes that serve an address together, and their sum.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use super::{
    Metric, Metrics, SampleValue,
    amounts::Amounts,
    catalogue,
    snapshot::{self, metric},
    totals::Totals,
};

/// The maximum number of processes whose numbers are known to be part of another process's.
const MAX_GONE: usize = 1_000;

/// The numbers of one process.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(default)]
pub struct ProcessNumbers {
    /// Its counts, with those that it has taken over.
    totals: Totals,
    amounts: Amounts,
    /// The processes whose counts it has taken over.
    taken_over: VecDeque<u64>,
}

/// The numbers of another process, as it has kept them last.
#[derive(Clone, Debug)]
pub struct KeptNumbers {
    pub process: u64,
    pub numbers: ProcessNumbers,
}

/// The counts that a process has taken over from processes that are gone, so that counters do not go back.
#[derive(Clone, Debug, Default)]
pub struct GoneProcesses {
    totals: Totals,
    taken_over: VecDeque<u64>,
}

impl GoneProcesses {
    /// Returns whether the counts of a process have been taken over.
    pub fn has(&self, process: u64) -> bool {
        self.taken_over.contains(&process)
    }

    /// Takes over the counts of a process that is gone.
    pub fn take_over(&mut self, gone: KeptNumbers) {
        self.totals.add(&gone.numbers.totals);
        self.taken_over.extend(gone.numbers.taken_over);
        self.taken_over.push_back(gone.process);
        // The numbers of older ones were removed long ago.
        let surplus = self.taken_over.len().saturating_sub(MAX_GONE);
        self.taken_over.drain(..surplus);
    }
}

impl Metrics {
    /// Returns the numbers of this process, with the counts that it has taken over.
    pub fn numbers(&self, gone: &GoneProcesses) -> ProcessNumbers {
        let mut totals = self.totals();
        totals.add(&gone.totals);
        ProcessNumbers { totals, amounts: self.amounts(), taken_over: gone.taken_over.clone() }
    }
}

/// Returns the sum of the numbers of all processes. Counts are those of all processes that ever kept any, and each counts once;
/// amounts are those of this process and of those that have answered.
///
/// `missing` are the system's numbers of processes that did not answer in time.
pub fn added_up(
    own: ProcessNumbers,
    others: &[KeptNumbers],
    answered: &[u64],
    missing: &[u32],
) -> Vec<Metric> {
    let taken_over: Vec<u64> = others
        .iter()
        .flat_map(|other| &other.numbers.taken_over)
        .chain(&own.taken_over)
        .copied()
        .collect();
    let (mut totals, mut amounts) = (own.totals, own.amounts);
    for KeptNumbers { process, numbers } in others {
        if taken_over.contains(process) {
            continue;
        }
        totals.add(&numbers.totals);
        if answered.contains(process) {
            amounts = amounts.with(numbers.amounts.clone());
        }
    }
    let mut metrics = snapshot::metrics(&totals, &amounts);
    let workers = [(Vec::new(), SampleValue::from(answered.len() + 1))];
    replace(&mut metrics, metric(catalogue::WORKERS, workers.into_iter()));
    let missing =
        missing.iter().map(|worker| (vec![worker.to_string()], SampleValue::from(1_usize)));
    replace(&mut metrics, metric(catalogue::WORKERS_MISSING, missing));
    metrics
}

fn replace(metrics: &mut [Metric], new: Metric) {
    if let Some(metric) = metrics.iter_mut().find(|metric| metric.name == new.name) {
        *metric = new;
    }
}
