__kernel void twice(__global int *x) { x[get_global_id(0)] *= 2; }

int main() {
  int h[2] = {1, 2};
  cl_int err;
  cl_context context = clCreateContext(NULL, 0, NULL, NULL, NULL, &err);
  cl_command_queue q = clCreateCommandQueue(context, 0, 0, &err);
  cl_program program = clCreateProgramWithSource(context, 1, NULL, NULL, &err);
  cl_kernel k = clCreateKernel(program, "twice", &err);
  cl_mem x = clCreateBuffer(context, CL_MEM_READ_WRITE, sizeof(h), NULL, &err);
  size_t global[1] = {2}, local[1] = {1};
  clEnqueueWriteBuffer(q, x, CL_FALSE, 0, sizeof(h), h, 0, NULL, NULL);
  clSetKernelArg(k, 0, sizeof(cl_mem), &x);
  clEnqueueNDRangeKernel(q, k, 1, NULL, global, local, 0, NULL, NULL);
  clEnqueueReadBuffer(q, x, CL_FALSE, 0, sizeof(h), h, 0, NULL, NULL);
  printf("%d\n", h[1]);
  return 0;
}
