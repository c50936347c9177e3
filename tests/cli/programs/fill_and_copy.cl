__kernel void add(__global int *x, int n) { x[get_global_id(0)] += n; }

int main() {
  int h[4];
  cl_int err;
  cl_context context = clCreateContext(NULL, 0, NULL, NULL, NULL, &err);
  cl_command_queue q = clCreateCommandQueue(context, 0, CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE, &err);
  cl_program program = clCreateProgramWithSource(context, 1, NULL, NULL, &err);
  cl_kernel k = clCreateKernel(program, "add", &err);
  cl_mem x = clCreateBuffer(context, CL_MEM_READ_WRITE, sizeof(h), NULL, &err);
  cl_mem y = clCreateBuffer(context, CL_MEM_READ_WRITE, sizeof(h), NULL, &err);
  int zero = 0, three = 3;
  size_t global = 4, local = 2;
  clEnqueueFillBuffer(q, x, &zero, sizeof(int), 0, sizeof(h), 0, NULL, NULL);
  clEnqueueBarrierWithWaitList(q, 0, NULL, NULL);
  clSetKernelArg(k, 0, sizeof(cl_mem), &x);
  clSetKernelArg(k, 1, sizeof(int), &three);
  clEnqueueNDRangeKernel(q, k, 1, NULL, &global, &local, 0, NULL, NULL);
  clEnqueueBarrierWithWaitList(q, 0, NULL, NULL);
  clEnqueueCopyBuffer(q, x, y, 0, 2 * sizeof(int), 2 * sizeof(int), 0, NULL, NULL);
  clFinish(q);
  clEnqueueReadBuffer(q, y, CL_TRUE, 2 * sizeof(int), 2 * sizeof(int), h, 0, NULL, NULL);
  printf("%d\n", h[0]);
  return 0;
}
