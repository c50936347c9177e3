// A kernel writes a slice of an image, and another one copies it to a buffer.
#include <CL/cl.h>
#include <stdio.h>

__kernel void fill(__write_only image3d_t volume, int slice) {
  write_imagei(volume, (int4)((int)get_global_id(0), 0, slice, 0), (int4)(slice + 1, 0, 0, 1));
}

__kernel void copy(__read_only image3d_t volume, __global int *out) {
  int x = get_global_id(0);
  out[x] = read_imagei(volume, (int4)(x, 0, 1, 0)).x;
}

int main(void) {
  cl_device_id device;
  cl_int err;
  cl_context context = clCreateContext(NULL, 1, &device, NULL, NULL, &err);
  cl_command_queue queue = clCreateCommandQueue(context, device, CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE, &err);
  cl_program program = clCreateProgramWithSource(context, 1, NULL, NULL, &err);
  cl_kernel fill = clCreateKernel(program, "fill", &err);
  cl_kernel copy = clCreateKernel(program, "copy", &err);
  cl_image_format format = {CL_R, CL_SIGNED_INT32};
  cl_image_desc sizes = {CL_MEM_OBJECT_IMAGE3D, 2, 1, 2};
  cl_mem volume = clCreateImage(context, CL_MEM_READ_WRITE, &format, &sizes, NULL, &err);
  size_t items = 2;
  int slice = 1;
  clSetKernelArg(fill, 0, sizeof(cl_mem), &volume);
  clSetKernelArg(fill, 1, sizeof(int), &slice);
  clEnqueueNDRangeKernel(queue, fill, 1, NULL, &items, NULL, 0, NULL, NULL);
  cl_mem out = clCreateBuffer(context, CL_MEM_READ_WRITE, 2 * sizeof(int), NULL, &err);
  clSetKernelArg(copy, 0, sizeof(cl_mem), &volume);
  clSetKernelArg(copy, 1, sizeof(cl_mem), &out);
  clEnqueueNDRangeKernel(queue, copy, 1, NULL, &items, NULL, 0, NULL, NULL);
  clFinish(queue);
  int pixels[2];
  clEnqueueReadBuffer(queue, out, CL_TRUE, 0, sizeof(pixels), pixels, 0, NULL, NULL);
  printf("%d\n", pixels[1]);
  clReleaseMemObject(volume);
  return 0;
}
