// A diamond of kernels as a graph of nodes, launched twice.
#include <cstdio>
#include <vector>

__global__ void fill(int *x, int n) {
  if (threadIdx.x < n) x[threadIdx.x] = threadIdx.x;
}

__global__ void twice(const int *x, int *y, int n) {
  if (threadIdx.x < n) y[threadIdx.x] = 2 * x[threadIdx.x];
}

__global__ void square(const int *x, int *z, int n) {
  if (threadIdx.x < n) z[threadIdx.x] = x[threadIdx.x] * x[threadIdx.x];
}

__global__ void join(const int *y, const int *z, int *out, int n) {
  if (threadIdx.x < n) out[threadIdx.x] = y[threadIdx.x] + z[threadIdx.x];
}


int main() {
  int n = 2;
  int *x, *y, *z, *out;
  cudaMalloc(&x, n * sizeof(int));
  cudaMalloc(&y, n * sizeof(int));
  cudaMalloc(&z, n * sizeof(int));
  cudaMallocManaged(&out, n * sizeof(int));

  cudaGraph_t graph;
  cudaGraphCreate(&graph, 0);
  cudaGraphNode_t filled, doubled, squared, joined;
  cudaKernelNodeParams p = {0};
  p.gridDim = dim3(1);
  p.blockDim = dim3(2);
  p.sharedMemBytes = 0;
  p.extra = nullptr;

  void *fill_args[] = {&x, &n};
  p.func = (void *)fill;
  p.kernelParams = fill_args;
  cudaGraphAddKernelNode(&filled, graph, nullptr, 0, &p);
  void *twice_args[] = {&x, &y, &n};
  p.func = (void *)twice;
  p.kernelParams = twice_args;
  cudaGraphAddKernelNode(&doubled, graph, &filled, 1, &p);
  void *square_args[] = {&x, &z, &n};
  p.func = (void *)square;
  p.kernelParams = square_args;
  cudaGraphAddKernelNode(&squared, graph, &filled, 1, &p);
  void *join_args[] = {&y, &z, &out, &n};
  p.func = (void *)join;
  p.kernelParams = join_args;
  cudaGraphNode_t before[] = {doubled, squared};
  cudaGraphAddKernelNode(&joined, graph, before, 1, &p);

  cudaGraphExec_t exec;
  cudaGraphInstantiate(&exec, graph, nullptr, nullptr, 0);
  cudaStream_t s;
  cudaStreamCreate(&s);
  for (int i = 0; i < 2; ++i) cudaGraphLaunch(exec, s);
  cudaStreamSynchronize(s);
  printf("%d\n", out[1]);
  cudaGraphExecDestroy(exec);
  cudaGraphDestroy(graph);
  cudaStreamDestroy(s);
}
