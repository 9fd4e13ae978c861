// Python -> C++ -> Python, with what C++ puts between: a standard algorithm, std::function, a virtual call, and an exception that ends the algorithm when
// the Python function raised one.
#include <algorithm>
#include <functional>
#include <memory>
#include <stdexcept>
#include <vector>

extern "C" void *PyObject_CallNoArgs(void *callable);
extern "C" void Py_DecRef(void *object);

namespace {
struct Step {
    virtual ~Step() = default;
    virtual void *run() const = 0;
};

struct Call final : Step {
    explicit Call(void *callable) : callable(callable) {}
    void *run() const override { return PyObject_CallNoArgs(callable); }
    void *callable;
};
}  // namespace

extern "C" void *through_cpp(void *, void *callable)
{
    const std::unique_ptr<Step> step = std::make_unique<Call>(callable);
    const std::function<void *(int)> deeper = [&](int n) { return n > 0 ? deeper(n - 1) : step->run(); };
    std::vector<int> numbers{3, 1, 2};
    void *result = nullptr;
    try {
        std::sort(numbers.begin(), numbers.end(), [&](int a, int b) {
            Py_DecRef(result);
            result = deeper(3);
            if (result == nullptr) {
                throw std::runtime_error("the Python function raised");
            }
            return a < b;
        });
    }
    catch (const std::runtime_error &) {
        return nullptr;  // The Python exception is pending.
    }
    return result;
}
