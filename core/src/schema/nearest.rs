//! The known name that a misspelt one most likely means.

/// Longer names are compared by their first bytes only.
const COMPARED: usize = 64;

/// Returns the known name that is most like `name`, for "did you mean …?"; `None` when none is close: at most one edit in
/// three letters, and one in two or three. Letter case, `_` and `-` make no difference.
pub fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let plain = plain(name);
    let limit = (plain.chars().count() / 3).clamp(1, 3);
    let close = known.into_iter().filter_map(|candidate| {
        let other = self::plain(candidate);
        let distance = distance(&plain, &other);
        let is_close = distance <= limit && distance < plain.len().max(other.len());
        is_close.then_some((distance, candidate))
    });
    close.min().map(|(_, found)| found)
}

fn plain(name: &str) -> String {
    let letters = name.chars().filter(|letter| !matches!(letter, '_' | '-')).take(COMPARED);
    letters.flat_map(char::to_lowercase).collect()
}

/// Counts the letters to change, add, leave out, or swap with the next one, to make one name of the other.
#[allow(clippy::needless_range_loop, reason = "a cell depends on its neighbours, by number")]
fn distance(one: &str, other: &str) -> usize {
    let (one, other): (Vec<char>, Vec<char>) = (one.chars().collect(), other.chars().collect());
    let mut rows = vec![vec![0; other.len() + 1]; one.len() + 1];
    for i in 0..=one.len() {
        for j in 0..=other.len() {
            rows[i][j] = match (i, j) {
                (0, _) => j,
                (_, 0) => i,
                _ => {
                    let replaced = rows[i - 1][j - 1] + usize::from(one[i - 1] != other[j - 1]);
                    let shifted = rows[i - 1][j].min(rows[i][j - 1]) + 1;
                    let swaps =
                        i > 1 && j > 1 && one[i - 1] == other[j - 2] && one[i - 2] == other[j - 1];
                    let swapped = if swaps { rows[i - 2][j - 2] + 1 } else { usize::MAX };
                    replaced.min(shifted).min(swapped)
                }
            };
        }
    }
    rows[one.len()][other.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_misspelt_name_finds_the_one_that_is_meant() {
        let known = ["limit", "offset", "birthYear"];
        for (given, meant) in [
            ("limt", Some("limit")),
            ("limits", Some("limit")),
            ("ilmit", Some("limit")),
            ("Limit", Some("limit")),
            ("birth_year", Some("birthYear")),
            ("ofset", Some("offset")),
            ("colour", None),
            ("x", None),
            ("", None),
        ] {
            assert_eq!(nearest(given, known), meant, "{given}");
        }
        assert_eq!(nearest(&"x".repeat(1_000_000), known), None);
        assert_eq!(nearest("b", ["a"]), None);
        assert_eq!(nearest("bb", ["a", "b"]), Some("b"));
    }
}
