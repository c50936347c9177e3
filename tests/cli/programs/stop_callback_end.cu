#include <stop_token>
#include <thread>
__global__ void none() {}
int main() {
  int *n = new int(0);
  std::stop_source s;
  std::thread t([=]() mutable { s.request_stop(); });
  {
    std::stop_callback c(s.get_token(), [=] { *n = 1; });
  }
  *n = 2;
  t.join();
  none<<<1, 1>>>();
}
