//! Integer types.

/// An integer type: size and signedness. Untyped short-form accesses use [`Ty::WORD`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Ty {
    /// 8, 16, 32 or 64; 1 for predicate registers.
    pub bits: u8,
    /// Determines how values are extended, divided and compared.
    pub signed: bool,
}

impl Ty {
    /// The type of short-form accesses in the suites: 64 bits, signed.
    pub const WORD: Ty = Ty {
        bits: 64,
        signed: true,
    };
    /// 32 bits, unsigned.
    pub const U32: Ty = Ty {
        bits: 32,
        signed: false,
    };
    /// 32 bits, signed.
    pub const S32: Ty = Ty {
        bits: 32,
        signed: true,
    };
    /// 64 bits, unsigned.
    pub const U64: Ty = Ty {
        bits: 64,
        signed: false,
    };

    /// The name in PTX (PTX ISA, Fundamental Types).
    pub fn ptx_name(self) -> String {
        format!("{}{}", if self.signed { 's' } else { 'u' }, self.bits)
    }

    /// Size in bytes.
    pub fn bytes(self) -> u32 {
        u32::from(self.bits) / 8
    }

    /// The type of one piece if the bits are divided into equal pieces.
    pub fn piece(self, pieces: u8) -> Ty {
        if pieces == 1 {
            self
        } else {
            Ty {
                bits: self.bits / pieces,
                signed: false,
            }
        }
    }

    /// The value of this type that has the same low bits.
    #[inline]
    pub fn wrap(self, v: i64) -> i64 {
        let shift = 64 - u32::from(self.bits);
        if self.signed {
            (v << shift) >> shift
        } else {
            (((v as u64) << shift) >> shift) as i64
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrapping_follows_size_and_sign() {
        assert_eq!(Ty::U32.wrap(-1), 0xffff_ffff);
        assert_eq!(Ty::S32.wrap(0xffff_ffff), -1);
        assert_eq!(Ty::WORD.wrap(i64::MIN), i64::MIN);
        assert_eq!(
            Ty {
                bits: 8,
                signed: true
            }
            .wrap(0x80),
            -128
        );
    }
}
