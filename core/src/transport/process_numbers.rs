//! The numbers of the processes that serve an address together, in a folder of theirs: each writes its own file, and the one that
//! is asked for metrics adds all of them up. A file outlives its process, so that counters do not go back.

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::Arc,
};

use super::process_group::{Member, SOCKET};
use crate::metrics::{self, GoneProcesses, KeptNumbers, Metrics, ProcessNumbers};

/// The end of the names of these files.
const NUMBERS: &str = "numbers";
/// The end of the name of a file that is not complete.
const PARTIAL: &str = "partial";
/// The end of the name of the file that gives the numbers of a process that is gone to the process that creates it.
const HEIR: &str = "heir";
/// The number of times that the files are read, at most, while processes take over the numbers of others.
const ATTEMPTS: usize = 10;

/// The numbers of this process among those of the others.
pub(super) struct NumbersFolder {
    folder: PathBuf,
    own: Member,
    metrics: Arc<Metrics>,
    gone: GoneProcesses,
}

impl NumbersFolder {
    pub(super) fn new(folder: &Path, own: Member, metrics: Arc<Metrics>) -> Self {
        Self { folder: folder.to_owned(), own, metrics, gone: GoneProcesses::default() }
    }

    /// Writes the current numbers of this process.
    pub(super) fn keep(&self) -> io::Result<()> {
        self.write(&self.metrics.numbers(&self.gone))
    }

    /// Returns the text of the metrics of all processes, of which these have just kept their numbers, and these have not.
    pub(super) fn add_up(&mut self, answered: &[u64], missing: &[u32]) -> String {
        self.take_over();
        // After this process has ended nobody may read smaller numbers than it says now.
        let own = self.metrics.numbers(&self.gone);
        if let Err(error) = self.write(&own) {
            tracing::debug!("the numbers of this process can't be kept: {error}");
        }
        metrics::text(&metrics::added_up(own, &self.others(), answered, missing))
    }

    /// Takes over the numbers of processes that are gone and whose numbers no other process takes over.
    fn take_over(&mut self) {
        let (own, living) = (self.own, Member::all(&self.folder, SOCKET));
        let gone = Member::all(&self.folder, NUMBERS).into_iter();
        for member in gone.filter(|member| *member != own && !living.contains(member)) {
            let claim = member.file(&self.folder, HEIR);
            if !self.gone.has(member.number) {
                if fs::File::create_new(&claim).is_err() {
                    continue;
                }
                if let Err(error) = self.take_over_from(member) {
                    // Another process may have taken them over before the claim.
                    tracing::debug!("the numbers of a process that is gone stay: {error}");
                    let _ = fs::remove_file(claim);
                    continue;
                }
            }
            // The claim lasts as long as there are numbers that nobody else may take over.
            if fs::remove_file(member.file(&self.folder, NUMBERS)).is_ok() {
                let _ = fs::remove_file(claim);
            }
        }
    }

    /// Writes the numbers of a process that is gone as part of those of this one.
    fn take_over_from(&mut self, member: Member) -> io::Result<()> {
        let numbers = self.read(member)?;
        let mut gone = self.gone.clone();
        gone.take_over(KeptNumbers { process: member.number, numbers });
        self.write(&self.metrics.numbers(&gone))?;
        self.gone = gone;
        Ok(())
    }

    /// Returns the numbers of all other processes.
    fn others(&self) -> Vec<KeptNumbers> {
        for _ in 0..ATTEMPTS {
            let members = Member::all(&self.folder, NUMBERS).into_iter();
            let others = members.filter(|member| *member != self.own);
            let read = others.map(|member| {
                let numbers = self.read(member)?;
                Ok(KeptNumbers { process: member.number, numbers })
            });
            match read.collect() {
                Ok(others) => return others,
                // Another process has just taken over these numbers, and has written them as its own.
                Err(error) if io::Error::kind(&error) == io::ErrorKind::NotFound => (),
                Err(error) => {
                    tracing::warn!("the numbers of the other processes can't be read: {error}");
                    break;
                }
            }
        }
        Vec::new()
    }

    fn read(&self, member: Member) -> io::Result<ProcessNumbers> {
        let bytes = fs::read(member.file(&self.folder, NUMBERS))?;
        Ok(serde_json::from_slice(&bytes)?)
    }

    fn write(&self, numbers: &ProcessNumbers) -> io::Result<()> {
        let partial = self.own.file(&self.folder, PARTIAL);
        fs::write(&partial, serde_json::to_vec(numbers)?)?;
        fs::rename(partial, self.own.file(&self.folder, NUMBERS))
    }
}

/// Removes the numbers of all processes, after the last one.
pub(super) fn remove_all(folder: &Path) {
    for end in [NUMBERS, PARTIAL, HEIR] {
        for member in Member::all(folder, end) {
            let _ = fs::remove_file(member.file(folder, end));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{env, process};

    use super::*;

    fn folder(name: &str) -> PathBuf {
        let folder = env::temp_dir().join(format!("gudgeon-numbers-{name}-{}", process::id()));
        fs::create_dir_all(&folder).unwrap();
        folder
    }

    /// Returns a process with a socket, in which this many requests were refused.
    fn member(folder: &Path, number: u64, refused: usize) -> NumbersFolder {
        let metrics = Metrics::default();
        metrics.turn_on();
        (0..refused).for_each(|_| metrics.refused("host"));
        let own = Member { worker: u32::try_from(number).unwrap(), number };
        fs::write(own.file(folder, SOCKET), "").unwrap();
        NumbersFolder::new(folder, own, Arc::new(metrics))
    }

    fn refusals(text: &str) -> &str {
        let line = text.lines().find(|line| line.starts_with("gudgeon_refusals_total"));
        line.unwrap().split_once(' ').unwrap().1
    }

    #[test]
    fn processes_that_are_gone_still_count_once_and_leave_no_files() {
        let folder = folder("gone");
        let (mut one, two, three) =
            (member(&folder, 1, 1), member(&folder, 2, 10), member(&folder, 3, 100));
        two.keep().unwrap();
        three.keep().unwrap();
        assert_eq!(refusals(&one.add_up(&[2, 3], &[])), "111");
        fs::remove_file(two.own.file(&folder, SOCKET)).unwrap();
        assert_eq!(refusals(&one.add_up(&[3], &[])), "111", "it takes over those of 2");
        assert_eq!(Member::all(&folder, NUMBERS).len(), 2);
        assert!(Member::all(&folder, HEIR).is_empty());
        // One that begins knows nothing of them, and takes over what was taken over.
        fs::remove_file(one.own.file(&folder, SOCKET)).unwrap();
        let mut four = member(&folder, 4, 1_000);
        assert_eq!(refusals(&four.add_up(&[3], &[])), "1111");
        // This one ended after it had taken over, and before it removed what it had taken over.
        two.keep().unwrap();
        assert_eq!(refusals(&four.add_up(&[3], &[])), "1111");
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn numbers_that_another_process_takes_over_are_left_to_it() {
        let folder = folder("claimed");
        let (mut one, two) = (member(&folder, 1, 1), member(&folder, 2, 10));
        two.keep().unwrap();
        fs::remove_file(two.own.file(&folder, SOCKET)).unwrap();
        let claim = two.own.file(&folder, HEIR);
        fs::write(&claim, "").unwrap();
        assert_eq!(refusals(&one.add_up(&[], &[])), "11", "they count all the same");
        assert!(claim.exists() && two.own.file(&folder, NUMBERS).exists());
        fs::remove_dir_all(folder).unwrap();
    }
}
