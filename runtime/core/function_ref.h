// A reference to something callable, for an argument that is called before the callee returns. Unlike std::function it
// owns nothing and never allocates.
#ifndef WISP_RUNTIME_CORE_FUNCTION_REF_H_
#define WISP_RUNTIME_CORE_FUNCTION_REF_H_

#include <type_traits>

namespace wisp {

template <class Signature>
class FunctionRef;

template <class Result, class... Arguments>
class FunctionRef<Result(Arguments...)> {
 public:
  // `callable` must outlive this object.
  template <class F, class = std::enable_if_t<!std::is_same_v<std::decay_t<F>, FunctionRef>>>
  FunctionRef(const F& callable)
      : object_(&callable), call_([](const void* object, Arguments... arguments) -> Result {
          return (*static_cast<const F*>(object))(arguments...);
        }) {}

  Result operator()(Arguments... arguments) const { return call_(object_, arguments...); }

 private:
  const void* object_;
  Result (*call_)(const void*, Arguments...);
};

}  // namespace wisp

#endif  // WISP_RUNTIME_CORE_FUNCTION_REF_H_
