// Functions of CUDA's headers that need no mechanism of their own.

// C11, 7.24.2, Copying functions. The caller knows that `bytes` are whole elements.
template <class To, class From>
__device__ void __copy_elements(To* to, const From* from, unsigned long bytes) {
    for (unsigned long i = 0; i < bytes / sizeof(To); i++) to[i] = from[i];
}

// C11, 7.24.6.1, The memset function, for the byte 0.
template <class To>
__device__ void __clear_elements(To* to, unsigned long bytes) {
    for (unsigned long i = 0; i < bytes / sizeof(To); i++) to[i] = To();
}

// cuRAND, Device API Overview: each call reads and changes the state. What it draws is unknown.
struct curandStateXORWOW { unsigned int drawn; };
struct curandStateMRG32k3a { unsigned int drawn; };
struct curandStatePhilox4_32_10 { unsigned int drawn; };
typedef curandStateXORWOW curandState;
typedef curandStateXORWOW curandState_t;
typedef curandStateXORWOW curandStateXORWOW_t;
typedef curandStateMRG32k3a curandStateMRG32k3a_t;
typedef curandStatePhilox4_32_10 curandStatePhilox4_32_10_t;

template <class State>
__device__ unsigned int curand(State* state) {
    state->drawn = state->drawn + (unsigned int)clock64();
    return state->drawn;
}

template <class State>
__device__ void curand_init(unsigned long long seed, unsigned long long sequence,
                            unsigned long long offset, State* state) {
    state->drawn = (unsigned int)clock64();
}

template <class State>
__device__ void skipahead(unsigned long long n, State* state) {
    curand(state);
}

template <class State>
__device__ float curand_uniform(State* state) { return (float)curand(state); }
template <class State>
__device__ double curand_uniform_double(State* state) { return (double)curand(state); }
template <class State>
__device__ float curand_normal(State* state) { return (float)curand(state); }
template <class State>
__device__ double curand_normal_double(State* state) { return (double)curand(state); }
template <class State>
__device__ float curand_log_normal(State* state, float mean, float deviation) {
    return (float)curand(state);
}
template <class State>
__device__ unsigned int curand_poisson(State* state, double lambda) { return curand(state); }

// GCC, 128-bit Integers: two halves, the lower one first. An atomic operation accesses both at
// once, any other access one after the other.
struct alignas(16) __int128_t {
    unsigned long low;
    long high;
    __device__ __int128_t() {}
    __device__ __int128_t(unsigned long a, long b) : low(a), high(b) {}
    __device__ __int128_t(int v) : low((unsigned long)(long)v), high(v < 0 ? -1 : 0) {}
    __device__ __int128_t(unsigned int v) : low(v), high(0) {}
    __device__ __int128_t(long v) : low((unsigned long)(long)v), high(v < 0 ? -1 : 0) {}
    __device__ __int128_t(unsigned long v) : low(v), high(0) {}
    __device__ operator unsigned long() const { return low; }
    __device__ __int128_t operator+(__int128_t b) const {
        unsigned long sum = low + b.low;
        unsigned long top = (unsigned long)high + (unsigned long)b.high + (sum < low);
        return __int128_t(sum, (long)top);
    }
    __device__ __int128_t operator-(__int128_t b) const {
        unsigned long top = (unsigned long)high - (unsigned long)b.high - (low < b.low);
        return __int128_t(low - b.low, (long)top);
    }
    __device__ __int128_t operator*(__int128_t b) const {
        unsigned long top = __umul64hi(low, b.low) + low * (unsigned long)b.high + (unsigned long)high * b.low;
        return __int128_t(low * b.low, (long)top);
    }
    __device__ __int128_t operator&(__int128_t b) const {
        return __int128_t(low & b.low, high & b.high);
    }
    __device__ __int128_t operator|(__int128_t b) const {
        return __int128_t(low | b.low, high | b.high);
    }
    __device__ __int128_t operator^(__int128_t b) const {
        return __int128_t(low ^ b.low, high ^ b.high);
    }
    __device__ __int128_t operator~() const {
        return __int128_t(~low, ~high);
    }
    __device__ __int128_t operator<<(int n) const {
        if (n == 0) return *this;
        if (n >= 64) return __int128_t(0ul, (long)(low << (n - 64)));
        return __int128_t(low << n, (long)((unsigned long)high << n | low >> (64 - n)));
    }
    __device__ __int128_t operator>>(int n) const {
        if (n == 0) return *this;
        if (n >= 64) return __int128_t((unsigned long)(high >> (n - 64)), high >> 63);
        return __int128_t(low >> n | (unsigned long)high << (64 - n), high >> n);
    }
    __device__ bool operator==(__int128_t b) const {
        return low == b.low && high == b.high;
    }
    __device__ bool operator!=(__int128_t b) const {
        return low != b.low || high != b.high;
    }
    __device__ bool operator<(__int128_t b) const {
        return high < b.high || (high == b.high && low < b.low);
    }
    __device__ bool operator>(__int128_t b) const {
        return high > b.high || (high == b.high && low > b.low);
    }
    __device__ bool operator<=(__int128_t b) const {
        return high < b.high || (high == b.high && low <= b.low);
    }
    __device__ bool operator>=(__int128_t b) const {
        return high > b.high || (high == b.high && low >= b.low);
    }
    __device__ __int128_t& operator+=(__int128_t b) { return *this = *this + b; }
    __device__ __int128_t& operator-=(__int128_t b) { return *this = *this - b; }
    __device__ __int128_t& operator*=(__int128_t b) { return *this = *this * b; }
    __device__ __int128_t& operator&=(__int128_t b) { return *this = *this & b; }
    __device__ __int128_t& operator|=(__int128_t b) { return *this = *this | b; }
    __device__ __int128_t& operator^=(__int128_t b) { return *this = *this ^ b; }
    __device__ __int128_t& operator<<=(int n) { return *this = *this << n; }
    __device__ __int128_t& operator>>=(int n) { return *this = *this >> n; }
};
struct alignas(16) __uint128_t {
    unsigned long low;
    unsigned long high;
    __device__ __uint128_t() {}
    __device__ __uint128_t(unsigned long a, unsigned long b) : low(a), high(b) {}
    __device__ __uint128_t(int v) : low((unsigned long)(long)v), high(v < 0 ? -1 : 0) {}
    __device__ __uint128_t(unsigned int v) : low(v), high(0) {}
    __device__ __uint128_t(long v) : low((unsigned long)(long)v), high(v < 0 ? -1 : 0) {}
    __device__ __uint128_t(unsigned long v) : low(v), high(0) {}
    __device__ operator unsigned long() const { return low; }
    __device__ __uint128_t operator+(__uint128_t b) const {
        unsigned long sum = low + b.low;
        unsigned long top = (unsigned long)high + (unsigned long)b.high + (sum < low);
        return __uint128_t(sum, (unsigned long)top);
    }
    __device__ __uint128_t operator-(__uint128_t b) const {
        unsigned long top = (unsigned long)high - (unsigned long)b.high - (low < b.low);
        return __uint128_t(low - b.low, (unsigned long)top);
    }
    __device__ __uint128_t operator*(__uint128_t b) const {
        unsigned long top = __umul64hi(low, b.low) + low * (unsigned long)b.high + (unsigned long)high * b.low;
        return __uint128_t(low * b.low, (unsigned long)top);
    }
    __device__ __uint128_t operator&(__uint128_t b) const {
        return __uint128_t(low & b.low, high & b.high);
    }
    __device__ __uint128_t operator|(__uint128_t b) const {
        return __uint128_t(low | b.low, high | b.high);
    }
    __device__ __uint128_t operator^(__uint128_t b) const {
        return __uint128_t(low ^ b.low, high ^ b.high);
    }
    __device__ __uint128_t operator~() const {
        return __uint128_t(~low, ~high);
    }
    __device__ __uint128_t operator<<(int n) const {
        if (n == 0) return *this;
        if (n >= 64) return __uint128_t(0ul, (unsigned long)(low << (n - 64)));
        return __uint128_t(low << n, (unsigned long)((unsigned long)high << n | low >> (64 - n)));
    }
    __device__ __uint128_t operator>>(int n) const {
        if (n == 0) return *this;
        if (n >= 64) return __uint128_t((unsigned long)(high >> (n - 64)), 0ul);
        return __uint128_t(low >> n | (unsigned long)high << (64 - n), high >> n);
    }
    __device__ bool operator==(__uint128_t b) const {
        return low == b.low && high == b.high;
    }
    __device__ bool operator!=(__uint128_t b) const {
        return low != b.low || high != b.high;
    }
    __device__ bool operator<(__uint128_t b) const {
        return high < b.high || (high == b.high && low < b.low);
    }
    __device__ bool operator>(__uint128_t b) const {
        return high > b.high || (high == b.high && low > b.low);
    }
    __device__ bool operator<=(__uint128_t b) const {
        return high < b.high || (high == b.high && low <= b.low);
    }
    __device__ bool operator>=(__uint128_t b) const {
        return high > b.high || (high == b.high && low >= b.low);
    }
    __device__ __uint128_t& operator+=(__uint128_t b) { return *this = *this + b; }
    __device__ __uint128_t& operator-=(__uint128_t b) { return *this = *this - b; }
    __device__ __uint128_t& operator*=(__uint128_t b) { return *this = *this * b; }
    __device__ __uint128_t& operator&=(__uint128_t b) { return *this = *this & b; }
    __device__ __uint128_t& operator|=(__uint128_t b) { return *this = *this | b; }
    __device__ __uint128_t& operator^=(__uint128_t b) { return *this = *this ^ b; }
    __device__ __uint128_t& operator<<=(int n) { return *this = *this << n; }
    __device__ __uint128_t& operator>>=(int n) { return *this = *this >> n; }
};
