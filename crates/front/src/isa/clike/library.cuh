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
