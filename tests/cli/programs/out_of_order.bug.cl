__kernel void fill(__global int *x) { x[get_global_id(0)] = get_global_id(0); }
__kernel void sum(__global const int *x, __global int *out) { *out = x[0] + x[1]; }

int main() {
  int result = 0;
  cl_int err;
  cl_context context = clCreateContext(NULL, 0, NULL, NULL, NULL, &err);
  cl_queue_properties properties[] = {CL_QUEUE_PROPERTIES, CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE, 0};
  cl_command_queue q = clCreateCommandQueueWithProperties(context, 0, properties, &err);
  cl_program program = clCreateProgramWithSource(context, 1, NULL, NULL, &err);
  cl_kernel filler = clCreateKernel(program, "fill", &err);
  cl_kernel adder = clCreateKernel(program, "sum", &err);
  cl_mem x = clCreateBuffer(context, CL_MEM_READ_WRITE, 2 * sizeof(int), NULL, &err);
  cl_mem out = clCreateBuffer(context, CL_MEM_READ_WRITE, sizeof(int), NULL, &err);
  clSetKernelArg(filler, 0, sizeof(cl_mem), &x);
  clSetKernelArg(adder, 0, sizeof(cl_mem), &x);
  clSetKernelArg(adder, 1, sizeof(cl_mem), &out);
  size_t two = 2, one = 1;
  cl_event filled, added;
  clEnqueueNDRangeKernel(q, filler, 1, NULL, &two, &one, 0, NULL, &filled);
  clEnqueueNDRangeKernel(q, adder, 1, NULL, &one, &one, 0, NULL, &added);
  clEnqueueReadBuffer(q, out, CL_TRUE, 0, sizeof(int), &result, 1, &added, NULL);
  printf("%d\n", result);
  clReleaseEvent(filled);
  clReleaseEvent(added);
  clFinish(q);
  return 0;
}
