#include "api/call_site.h"

#include <dlfcn.h>

#include <span>
#include <string_view>

#include "types/digest.h"

namespace hvd::detail {

std::uint64_t call_site_digest(const void* address) {
  Digest digest;
  Dl_info module{};
  if (dladdr(address, &module) == 0) {
    digest.add(reinterpret_cast<std::uintptr_t>(address));
    return digest.value();
  }
  std::string_view name = module.dli_fname;
  name.remove_prefix(name.rfind('/') + 1);  // npos + 1 is 0
  digest.add_bytes(std::as_bytes(std::span(name)));
  digest.add(reinterpret_cast<std::uintptr_t>(address) - reinterpret_cast<std::uintptr_t>(module.dli_fbase));
  return digest.value();
}

}  // namespace hvd::detail
