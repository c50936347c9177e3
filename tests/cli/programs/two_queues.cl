__kernel void produce(__global int *x) { x[get_global_id(0)] = 5; }
__kernel void consume(__global const int *x, __global int *y) { y[get_global_id(0)] = x[get_global_id(0)] + 1; }

static void launch(cl_command_queue q, cl_kernel k, size_t n, const cl_event *after, cl_event *done) {
  size_t one = 1;
  clEnqueueNDRangeKernel(q, k, 1, NULL, &n, &one, after ? 1 : 0, after, done);
  clFlush(q);
}

int main() {
  cl_int err;
  cl_context context = clCreateContext(NULL, 0, NULL, NULL, NULL, &err);
  cl_command_queue a = clCreateCommandQueue(context, 0, 0, &err);
  cl_command_queue b = clCreateCommandQueue(context, 0, 0, &err);
  cl_program program = clCreateProgramWithSource(context, 1, NULL, NULL, &err);
  cl_kernel producer = clCreateKernel(program, "produce", &err);
  cl_kernel consumer = clCreateKernel(program, "consume", &err);
  cl_mem x = clCreateBuffer(context, CL_MEM_READ_WRITE, 2 * sizeof(int), NULL, &err);
  cl_mem y = clCreateBuffer(context, CL_MEM_READ_WRITE, 2 * sizeof(int), NULL, &err);
  clSetKernelArg(producer, 0, sizeof(cl_mem), &x);
  clSetKernelArg(consumer, 0, sizeof(cl_mem), &x);
  clSetKernelArg(consumer, 1, sizeof(cl_mem), &y);
  cl_event ready;
  launch(a, producer, 2, NULL, &ready);
  launch(b, consumer, 2, &ready, NULL);
  int *mapped = (int *)clEnqueueMapBuffer(b, y, CL_TRUE, CL_MAP_READ, 0, 2 * sizeof(int), 0, NULL, NULL, &err);
  printf("%d\n", mapped[1]);
  clEnqueueUnmapMemObject(b, y, mapped, 0, NULL, NULL);
  clFinish(b);
  clReleaseEvent(ready);
  return 0;
}
