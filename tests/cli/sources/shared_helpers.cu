// Functions and classes declare dynamic shared memory, each as an array of its own type.
// fencepost: rotate<<<1, 4, 48>>>(out[4])
template <class T> struct Shared {
  __device__ T *data() {
    extern __shared__ T values[];
    return values;
  }
};

template <class T> __device__ T *behind(int bytes) {
  extern __shared__ char raw[];
  return (T *)(raw + bytes);
}

class Counts {
  int first;

public:
  __device__ Counts(int at) : first(at) {}
  __device__ int &operator[](int n) {
    extern __shared__ int words[];
    return words[first + n];
  }
};

__global__ void rotate(int *out) {
  Shared<int> shared;
  Counts counts(8);
  int *value = shared.data();
  float *weight = behind<float>(16);
  int t = threadIdx.x;
  value[t] = t;
  weight[t] = 2.0f;
  counts[t] = 1;
  __syncthreads();
  int count = counts[3 - t];
  out[t] = value[3 - t] + (int)weight[3 - t] + count;
}
