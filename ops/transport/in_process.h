#pragma once

#include <memory>
#include <vector>

#include "transport/transport.h"

namespace hvd {

// Where the ranks of one process meet. Shared by their transports; itself without a thread.
class InProcessHub;

// The topology may pretend several hosts: ranks on different ones share no memory and exchange messages instead.

std::shared_ptr<InProcessHub> make_in_process_hub(int size);

std::unique_ptr<Transport> make_in_process_transport(std::shared_ptr<InProcessHub> hub, Topology topology);

}  // namespace hvd
