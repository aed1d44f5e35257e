//! The members or items of one value that keywords applied to, for `unevaluatedProperties` and `unevaluatedItems`.

#[derive(Debug, Default)]
pub(super) struct Marks {
    are_all: bool,
    places: Vec<bool>,
}

impl Marks {
    pub(super) fn mark(&mut self, place: usize) {
        if self.places.len() <= place {
            self.places.resize(place + 1, false);
        }
        self.places[place] = true;
    }

    pub(super) fn mark_all(&mut self) {
        self.are_all = true;
    }

    pub(super) fn has(&self, place: usize) -> bool {
        self.are_all || self.places.get(place).is_some_and(|is_marked| *is_marked)
    }

    pub(super) fn add(&mut self, others: &Self) {
        self.are_all |= others.are_all;
        for (place, _) in others.places.iter().enumerate().filter(|(_, is_marked)| **is_marked) {
            self.mark(place);
        }
    }
}
