//! 128-bit fingerprints of states.
//!
//! Two states with the same fingerprint count as one state. With 2³⁰ states the chance that two
//! different ones collide is below 2⁻⁶⁸. Each of two 64-bit lanes folds a 128-bit product per word,
//! as wyhash does.

use std::hash::{Hash, Hasher};

/// A hasher with 128 bits of result.
#[derive(Clone, Copy, Debug)]
pub(super) struct Hasher128 {
    a: u64,
    b: u64,
}

const KEY_A: u64 = 0xa076_1d64_78bd_642f;
const KEY_B: u64 = 0xe703_7ed1_a0b4_28db;

fn fold(x: u64, y: u64) -> u64 {
    let product = u128::from(x) * u128::from(y);
    (product as u64) ^ ((product >> 64) as u64)
}

impl Default for Hasher128 {
    fn default() -> Self {
        Hasher128 {
            a: 0x8ebc_6af0_9c88_c6e3,
            b: 0x5899_65cc_7537_4cc3,
        }
    }
}

impl Hasher128 {
    /// The fingerprint of one value.
    pub(super) fn of(value: &(impl Hash + ?Sized)) -> u128 {
        let mut f = Hasher128::default();
        value.hash(&mut f);
        f.value()
    }

    /// The result.
    pub(super) fn value(&self) -> u128 {
        let (a, b) = (
            fold(self.a ^ self.b, KEY_A),
            fold(self.b.wrapping_add(self.a), KEY_B),
        );
        (u128::from(a) << 64) | u128::from(b)
    }
}

impl Hasher for Hasher128 {
    fn write_u64(&mut self, x: u64) {
        self.a = fold(self.a.rotate_left(23) ^ x, KEY_A).wrapping_add(x);
        self.b =
            fold(self.b.wrapping_add(x) ^ KEY_B, KEY_A ^ x.rotate_left(32)).rotate_left(17) ^ x;
    }

    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.write_u64(u64::from_le_bytes(word) ^ ((chunk.len() as u64) << 56));
        }
    }

    fn write_u8(&mut self, x: u8) {
        self.write_u64(u64::from(x));
    }

    fn write_u16(&mut self, x: u16) {
        self.write_u64(u64::from(x));
    }

    fn write_u32(&mut self, x: u32) {
        self.write_u64(u64::from(x));
    }

    fn write_u128(&mut self, x: u128) {
        self.write_u64(x as u64);
        self.write_u64((x >> 64) as u64);
    }

    fn write_usize(&mut self, x: usize) {
        self.write_u64(x as u64);
    }

    fn finish(&self) -> u64 {
        self.value() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn close_values_have_different_fingerprints() {
        let mut seen = std::collections::HashSet::new();
        for i in 0..200u64 {
            for j in 0..200u64 {
                assert!(seen.insert(Hasher128::of(&(i, j))), "{i} {j}");
            }
        }
        assert_ne!(Hasher128::of(&0u128), Hasher128::of(&(1u128 << 64)));
    }
}
