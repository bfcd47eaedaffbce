#include "world.h"

#include <pybind11/stl.h>

#include <string>
#include <vector>

#include <hvd/hvd.h>
#include <hvd/mpi.h>

#include "array.h"
#include "call_site.h"
#include "handle.h"
#include "init_settings.h"
#include "process.h"

namespace hvd::python {

namespace {

void start(const py::dict& settings, std::uintptr_t communicator) {
  throw_if_forked();
  const Config config = config_of(settings);
  remember_process();
  want_call_sites(config.check == CheckLevel::comm);
  const py::gil_scoped_release nogil;
  if (communicator == 0) {
    init(config);
  } else {
    init(*reinterpret_cast<MPI_Comm*>(communicator), config);
  }
}

// Nothing to do in a child that was forked.
template <typename Leave>
void end(const Leave& leave) {
  if (forked()) return;
  {
    const py::gil_scoped_release nogil;
    leave();
  }
  release_dropped();
}

// What the runtime knows. Without the GIL: while another thread is in init(), it waits for the end of that.
template <typename Ask>
auto ask(const Ask& question) {
  throw_if_forked();
  const py::gil_scoped_release nogil;
  return question();
}
template <auto question>
auto asked() {
  return ask(question);
}

bool initialized() {
  if (forked()) return false;
  const py::gil_scoped_release nogil;
  return is_initialized();
}

std::uint32_t add_set(const std::vector<int>& ranks) {
  return ask([&] { return add_process_set(ranks).id; });
}
void remove_set(std::uint32_t id) {
  ask([&] { remove_process_set({id}); });
}
std::vector<int> ranks_of_set(std::uint32_t id) {
  return ask([&] { return process_set_ranks({id}); });
}
int rank_in_set(std::uint32_t id) {
  return ask([&] { return process_set_rank({id}); });
}

Arena new_arena(std::size_t bytes) {
  return ask([&] { return make_arena(bytes); });
}

Array allocate(const py::object& self, const py::object& shape, int dtype) {
  const TensorView view = self.cast<Arena&>().allocate(shape_of(shape), dtype_of(dtype));
  return {.data = view.data(), .shape = view.shape(), .dtype = view.dtype(), .owner = self};
}

py::dict counters() {
  const Stats s = ask(stats);
  py::dict all;
#define HVD_COUNTER(name) all[#name] = s.name;
  HVD_COUNTER(reports_sent)
  HVD_COUNTER(plans_received)
  HVD_COUNTER(control_bytes)
  HVD_COUNTER(requests_sent)
  HVD_COUNTER(requests_cached)
  HVD_COUNTER(evictions)
  HVD_COUNTER(operations_done)
  HVD_COUNTER(operations_failed)
  HVD_COUNTER(batches)
  HVD_COUNTER(fused_tensors)
  HVD_COUNTER(bytes_packed)
  HVD_COUNTER(bytes_unpacked)
  HVD_COUNTER(bytes_sent)
  HVD_COUNTER(allocations)
  HVD_COUNTER(seconds_waited_for)
#undef HVD_COUNTER
  return all;
}

std::string mpi_library_version() {
  std::string text(MPI_MAX_LIBRARY_VERSION_STRING, '\0');
  int length = 0;
  MPI_Get_library_version(text.data(), &length);
  text.resize(static_cast<std::size_t>(length));
  return text;
}

// What the headers were, worded as the library words itself.
const char* mpi_built_with() {
#define HVD_TEXT(x) #x
#define HVD_VALUE(x) HVD_TEXT(x)
#if defined(OMPI_MAJOR_VERSION)
  return "Open MPI v" HVD_VALUE(OMPI_MAJOR_VERSION) "." HVD_VALUE(OMPI_MINOR_VERSION) "." HVD_VALUE(
      OMPI_RELEASE_VERSION);
#elif defined(I_MPI_VERSION)
  return "Intel(R) MPI Library " I_MPI_VERSION;
#elif defined(MPICH_VERSION)
  return "MPICH Version: " MPICH_VERSION;
#else
  return "an MPI without a name";
#endif
#undef HVD_VALUE
#undef HVD_TEXT
}

bool mpi_threads_supported() {
  throw_if_forked();
  static_cast<void>(runtime());  // throws before init()
  int initialized = 0;
  MPI_Initialized(&initialized);
  int level = MPI_THREAD_SINGLE;
  if (initialized != 0) MPI_Query_thread(&level);
  return level == MPI_THREAD_MULTIPLE;
}

}  // namespace

void bind_world(py::module_& module) {
  module.attr("version") = HVD_VERSION;
  module.attr("mpi_built_with") = mpi_built_with();
  module.def("mpi_library_version", &mpi_library_version);
  module.def("mpi_threads_supported", &mpi_threads_supported);
  module.def("init", &start, py::arg("settings"), py::arg("communicator") = 0);
  module.def(
      "shutdown", [](const std::string& reason) { end([&] { shutdown(reason); }); },
      py::arg("reason") = "called shutdown()");
  module.def(
      "leave", [](const std::string& reason) { end([&] { leave(reason); }); }, py::arg("reason"));
  module.def("is_initialized", &initialized);
  module.def("throw_if_forked", &throw_if_forked);
  module.def("settings", [] { return settings_of(ask([] { return runtime().config(); })); });
  module.def("rank", &asked<rank>);
  module.def("size", &asked<size>);
  module.def("local_rank", &asked<local_rank>);
  module.def("local_size", &asked<local_size>);
  module.def("cross_rank", &asked<cross_rank>);
  module.def("cross_size", &asked<cross_size>);
  module.def("is_homogeneous", &asked<is_homogeneous>);

  module.def("add_process_set", &add_set, py::arg("ranks"));
  module.def("remove_process_set", &remove_set, py::arg("id"));
  module.def("process_set_ranks", &ranks_of_set, py::arg("id"));
  module.def("process_set_rank", &rank_in_set, py::arg("id"));

  py::class_<Arena>(module, "Arena", py::module_local())
      .def("allocate", &allocate, py::arg("shape"), py::arg("dtype"))
      .def("clear", &Arena::clear)
      .def_property_readonly("used", &Arena::used)
      .def_property_readonly("nbytes", [](const Arena& arena) { return arena.memory().size(); })
      .def_property_readonly(
          "pointer", [](const Arena& arena) { return reinterpret_cast<std::uintptr_t>(arena.memory().data()); });
  module.def("make_arena", &new_arena, py::arg("nbytes"));
  module.def("stats", &counters);
}

}  // namespace hvd::python
