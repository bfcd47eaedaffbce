#pragma once

#include <cstdint>
#include <vector>

namespace hvd {

// Numbers from 1 in the order in which they were added, each at most once; all but making room for a larger number than
// ever before takes constant time and no memory. Pure data: copies are independent.
class IdList {
 public:
  class Iterator {
   public:
    Iterator(const IdList* list, std::uint32_t id) : list_(list), id_(id) {}
    std::uint32_t operator*() const { return id_; }
    Iterator& operator++() {
      id_ = list_->links_[id_].next;
      return *this;
    }
    bool operator==(const Iterator&) const = default;

   private:
    const IdList* list_;
    std::uint32_t id_;
  };

  bool empty() const { return links_.front().next == 0; }
  bool contains(std::uint32_t id) const { return id < links_.size() && links_[id].listed; }
  // Where erasing does not lead astray: of a copy, or up to the erased one.
  Iterator begin() const { return {this, links_.front().next}; }
  Iterator end() const { return {this, 0}; }

  void push_back(std::uint32_t id) {
    if (contains(id)) return;
    if (id >= links_.size()) links_.resize(id + 1);
    const std::uint32_t last = links_.front().previous;
    links_[id] = {.previous = last, .next = 0, .listed = true};
    links_[last].next = id;
    links_.front().previous = id;
  }
  void erase(std::uint32_t id) {
    if (!contains(id)) return;
    const Link gone = links_[id];
    links_[gone.previous].next = gone.next;
    links_[gone.next].previous = gone.previous;
    links_[id] = {};
  }

 private:
  struct Link {
    std::uint32_t previous = 0;
    std::uint32_t next = 0;
    bool listed = false;
  };
  std::vector<Link> links_{1};  // by id; the first is before and behind all others
};

}  // namespace hvd
