// For sanitizer builds: a dlclose that closes nothing. Open MPI unloads its plug-ins at the end, and the leaks that they
// leave behind can be told from ours (lsan.supp) only by the names of modules that are still mapped.
extern "C" int dlclose(void* /*handle*/) { return 0; }
