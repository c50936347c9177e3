// A kernel writes a row of an image, and the host reads the row.
#include <CL/cl.h>
#include <stdio.h>

__kernel void fill(__write_only image2d_t image, int color) {
  write_imagei(image, (int2)((int)get_global_id(0), 1), (int4)(color, 0, 0, 1));
}

int main(void) {
  cl_device_id device;
  cl_int err;
  cl_context context = clCreateContext(NULL, 1, &device, NULL, NULL, &err);
  cl_command_queue queue = clCreateCommandQueue(context, device, 0, &err);
  cl_program program = clCreateProgramWithSource(context, 1, NULL, NULL, &err);
  cl_kernel fill = clCreateKernel(program, "fill", &err);
  cl_image_format format = {CL_R, CL_SIGNED_INT32};
  cl_image_desc sizes = {CL_MEM_OBJECT_IMAGE2D, 2, 2};
  cl_mem image = clCreateImage(context, CL_MEM_READ_WRITE, &format, &sizes, NULL, &err);
  size_t items = 2;
  int color = 7;
  clSetKernelArg(fill, 0, sizeof(cl_mem), &image);
  clSetKernelArg(fill, 1, sizeof(int), &color);
  clEnqueueNDRangeKernel(queue, fill, 1, NULL, &items, NULL, 0, NULL, NULL);
  int row[2];
  size_t origin[3] = {0, 1, 0}, region[3] = {2, 1, 1};
  clEnqueueReadImage(queue, image, CL_TRUE, origin, region, 0, 0, row, 0, NULL, NULL);
  printf("%d\n", row[1]);
  clReleaseMemObject(image);
  return 0;
}
