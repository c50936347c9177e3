//! Arranges threads as columns in the order of the scope tree, with boxes around its groups.

use verdict::Seat;

/// A group: a box around some columns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct GroupColumns {
    /// Its first column.
    pub first: usize,
    /// Its last column.
    pub last: usize,
    /// The number of groups around it.
    pub depth: usize,
    /// The depth of the groups nested in it.
    pub nest: usize,
    /// Its name.
    pub label: String,
}

/// The columns.
#[derive(Clone, Debug, Default)]
pub(super) struct Columns {
    /// The thread of each column.
    pub threads: Vec<usize>,
    /// The groups, outer ones first.
    pub groups: Vec<GroupColumns>,
}

impl Columns {
    /// Columns of one group are adjacent; otherwise they keep their order.
    pub(super) fn new(seats: &[Seat]) -> Columns {
        let mut columns = Columns::default();
        columns.arrange(seats, &(0..seats.len()).collect::<Vec<_>>(), 0);
        columns.groups.sort_by_key(|g| (g.depth, g.first));
        columns
    }

    /// The column of each thread.
    pub(super) fn of_threads(&self) -> Vec<usize> {
        let mut of = vec![0; self.threads.len()];
        self.threads
            .iter()
            .enumerate()
            .for_each(|(column, &thread)| of[thread] = column);
        of
    }

    /// The nesting depth of groups.
    pub(super) fn depth(&self) -> usize {
        self.groups.iter().map(|g| g.depth + 1).max().unwrap_or(0)
    }

    /// Places threads that share `depth` groups. Returns the nesting depth of the groups that it
    /// created.
    fn arrange(&mut self, seats: &[Seat], threads: &[usize], depth: usize) -> usize {
        let mut parts: Vec<(Option<&str>, Vec<usize>)> = Vec::new();
        for &t in threads {
            let label = seats[t].groups.get(depth).map(String::as_str);
            match parts
                .iter_mut()
                .find(|(known, _)| label.is_some() && *known == label)
            {
                Some((_, members)) => members.push(t),
                None => parts.push((label, vec![t])),
            }
        }
        let mut nested = 0;
        for (label, members) in parts {
            let Some(label) = label else {
                self.threads.extend(members);
                continue;
            };
            let first = self.threads.len();
            let nest = self.arrange(seats, &members, depth + 1);
            let last = self.threads.len() - 1;
            self.groups.push(GroupColumns {
                first,
                last,
                depth,
                nest,
                label: label.to_owned(),
            });
            nested = nested.max(nest + 1);
        }
        nested
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_of_a_group_stand_side_by_side() {
        let seat = |thread: &str, groups: &[&str]| Seat {
            thread: thread.into(),
            groups: groups.iter().map(|g| (*g).to_owned()).collect(),
        };
        let seats = [
            seat("P0", &["GPU 0", "CTA 0"]),
            seat("P1", &["GPU 0", "CTA 1"]),
            seat("H", &["host"]),
            seat("P2", &["GPU 0", "CTA 0"]),
        ];
        let columns = Columns::new(&seats);
        assert_eq!(columns.threads, [0, 3, 1, 2]);
        assert_eq!(columns.of_threads(), [0, 2, 3, 1]);
        let spans: Vec<_> = columns
            .groups
            .iter()
            .map(|g| (g.label.as_str(), g.first, g.last, g.nest))
            .collect();
        assert_eq!(
            spans,
            [
                ("GPU 0", 0, 2, 1),
                ("host", 3, 3, 0),
                ("CTA 0", 0, 1, 0),
                ("CTA 1", 2, 2, 0)
            ]
        );
    }
}
