//! Tests relations on examples small enough to check by hand.

use super::*;

fn chain(n: usize) -> Rel {
    Rel::from_pairs(n, (0..n - 1).map(|i| (i, i + 1)))
}

#[test]
fn closure_crosses_word_boundaries() {
    let n = 130;
    let closed = chain(n).plus(&EventSet::full(n));
    assert_eq!(closed.len(), n * (n - 1) / 2);
    assert!(closed.has(0, 129) && !closed.has(129, 0));
}

#[test]
fn closure_goes_through_the_middle_only() {
    let mut middle = EventSet::full(4);
    middle.remove(1);
    let closed = chain(4).plus(&middle);
    assert!(!closed.has(0, 2) && closed.has(1, 3));
}

#[test]
fn full_sets_have_no_stray_bits() {
    assert_eq!(EventSet::full(70).len(), 70);
    assert_eq!(EventSet::full(64).len(), 64);
    assert_eq!(EventSet::full(0).len(), 0);
}

#[test]
fn cycles_are_found_among_the_given_events_only() {
    let mut r = chain(3);
    r.insert(2, 0);
    assert!(r.has_cycle(&EventSet::full(3)));
    let mut two = EventSet::full(3);
    two.remove(1);
    assert!(!r.has_cycle(&two));
}

#[test]
fn composition_and_inverse() {
    let r = chain(3);
    let all = EventSet::full(3);
    assert_eq!(r.seq(&r, &all).iter().collect::<Vec<_>>(), [(0, 2)]);
    assert_eq!(r.inverse().iter().collect::<Vec<_>>(), [(1, 0), (2, 1)]);
    assert_eq!(r.domain(&all).iter().collect::<Vec<_>>(), [0, 1]);
    assert_eq!(r.range(&all).iter().collect::<Vec<_>>(), [1, 2]);
}

/// Dense relations on many events use the method by eights; the expected result comes from the
/// pairs.
#[test]
fn composition_of_wide_relations() {
    let n = 300;
    let mut middle = EventSet::full(n);
    middle.remove(77);
    for (thin, dense) in [(97, 3), (3, 2), (1, 1), (2, 97)] {
        let (a, b) = (
            Rel::from_fn(n, |i, j| (i * 31 + j * 17) % thin == 0),
            Rel::from_fn(n, |i, j| (i + j * j) % dense == 0),
        );
        let step = |i, j| middle.iter().any(|k| a.has(i, k) && b.has(k, j));
        assert_eq!(a.seq(&b, &middle), Rel::from_fn(n, step), "{thin} {dense}");
    }
}

/// Orders of many events are closed along themselves; other relations are not. The expected result
/// comes from squares.
#[test]
fn closures_of_many_events() {
    let n = 300;
    let mut middle = EventSet::full(n);
    (0..n).filter(|i| i % 7 == 3).for_each(|i| middle.remove(i));
    for back in [None, Some((290, 4)), Some((10, 3)), Some((3, 3))] {
        let place = |i: usize| i * 77 % n;
        let edges = (0..n).flat_map(|i| [(i, i + 1), (i, i + 13), (i, 2 * i)]);
        let edges = edges.filter(|(i, j)| i < j && *j < n && i % 5 != 0);
        let edges = edges.chain(back).map(|(i, j)| (place(i), place(j)));
        let relation = Rel::from_pairs(n, edges);
        let mut expected = relation.clone();
        loop {
            let next = expected.clone().or(&expected.seq(&expected, &middle));
            if next == expected {
                break;
            }
            expected = next;
        }
        assert!(relation.plus(&middle) == expected, "with {back:?}");
    }
}
