__kernel void add(__global int *x, int n) { x[get_global_id(0)] += n; }

int main() {
  int h[2];
  cl_int err;
  cl_context context = clCreateContext(NULL, 0, NULL, NULL, NULL, &err);
  cl_command_queue q = clCreateCommandQueue(context, 0, 0, &err);
  cl_program program = clCreateProgramWithSource(context, 1, NULL, NULL, &err);
  cl_kernel k = clCreateKernel(program, "add", &err);
  cl_mem x = clCreateBuffer(context, CL_MEM_READ_WRITE, sizeof(h), NULL, &err);
  int three = 3;
  size_t global = 2, local = 2;
  clEnqueueFillBuffer(q, x, &three, sizeof(int), 0, sizeof(h), 0, NULL, NULL);
  clSetKernelArg(k, 0, sizeof(cl_mem), &x);
  clSetKernelArg(k, 1, sizeof(int), &three);
  clEnqueueNDRangeKernel(q, k, 1, NULL, &global, &local, 0, NULL, NULL);
  clReleaseCommandQueue(q);
  clFinish(q);
  return 0;
}
