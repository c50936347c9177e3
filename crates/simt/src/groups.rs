//! Finds the threads that share a group, at every level of the scope tree.

use program::{Program, SCOPE_ROWS, Scope};

/// The groups of a program. The first thread of a group identifies it.
#[derive(Clone, Debug)]
pub(super) struct Groups {
    /// By thread and scope: the first thread of its group.
    first: Vec<[usize; SCOPE_ROWS.len()]>,
    /// By scope and first thread: the members of the group.
    pub(super) members: Vec<Vec<Vec<usize>>>,
}

impl Groups {
    /// The groups of a program. Only its first `own` threads are members; agents merely have a
    /// place.
    pub(super) fn new(program: &Program, own: usize) -> Groups {
        let n = program.threads.len();
        let mut first = vec![[0; SCOPE_ROWS.len()]; n];
        let mut members = vec![vec![Vec::new(); n]; SCOPE_ROWS.len()];
        for (s, scope) in SCOPE_ROWS.iter().map(|row| row.scope).enumerate() {
            let mut known: Vec<usize> = Vec::new();
            for (t, row) in first.iter_mut().enumerate() {
                let place = &program.threads[t].place;
                // Threads of a group mostly follow each other.
                let group = match (scope != Scope::Thread)
                    .then(|| {
                        known
                            .iter()
                            .rev()
                            .find(|&&g: &&usize| program.threads[g].place.same(place, scope))
                    })
                    .flatten()
                {
                    Some(&group) => group,
                    None => {
                        known.push(t);
                        t
                    }
                };
                row[s] = group;
                if t < own {
                    members[s][group].push(t);
                }
            }
        }
        Groups { first, members }
    }

    /// The first thread of a thread's group.
    pub(super) fn of(&self, thread: usize, scope: Scope) -> usize {
        self.first[thread][scope as usize]
    }
}
