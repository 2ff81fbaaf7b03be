#include "tools/convert/safetensors_header.h"

#include <nlohmann/json.hpp>
#include <set>

#include "tools/convert/safetensors.h"

namespace wisp::convert {
namespace {

using Json = nlohmann::json;

constexpr char kMetadata[] = "__metadata__";

// The parser calls these methods for each piece of JSON. A method that returns false ends the parse; status() says why.
class HeaderEvents {
 public:
  HeaderEvents(const std::string& file, Header& header) : file_(file), header_(header) {}

  const Status& status() const { return status_; }

  bool null() { return Unexpected("null"); }
  bool boolean(bool value) { return Unexpected(value ? "true" : "false"); }
  bool number_integer(Json::number_integer_t value) { return Unexpected(std::to_string(value)); }
  bool number_float(Json::number_float_t, const std::string& text) { return Unexpected(Shown(text)); }
  bool binary(Json::binary_t&) { return Unexpected("binary data"); }

  bool number_unsigned(Json::number_unsigned_t value) {
    if (at_ != At::kList) return Unexpected(std::to_string(value));
    const bool shape = key_ == "shape";
    const size_t most = shape ? kMaxDimensions : 2;
    if (list_->size() == most) {
      return Fail(Where() + " has more than " + std::to_string(most) + " numbers, allowed are " +
                  (shape ? "up to " : "exactly ") + std::to_string(most));
    }
    list_->push_back(value);
    return true;
  }

  bool string(std::string& value) {
    if (at_ == At::kMetadata) {
      header_.metadata[key_] = std::move(value);
      return true;
    }
    if (at_ != At::kTensor || key_ != "dtype") return Unexpected(Shown(value));
    header_.tensors.back().dtype = std::move(value);
    return true;
  }

  bool start_object(size_t) {
    if (at_ == At::kStart) {
      at_ = At::kTop;
      return true;
    }
    if (at_ != At::kTop) return Unexpected("an object");
    keys_.clear();
    at_ = name_ == kMetadata ? At::kMetadata : At::kTensor;
    if (at_ == At::kMetadata) return true;
    if (header_.tensors.size() == kMaxTensors)
      return Fail("there are more than " + std::to_string(kMaxTensors) + " tensors, which are allowed");
    header_.tensors.push_back({.name = name_});
    return true;
  }

  bool key(std::string& value) {
    if (value.size() > kMaxNameBytes) {
      return Fail("the name " + Shown(value) + " has " + std::to_string(value.size()) + " bytes, allowed are " +
                  std::to_string(kMaxNameBytes));
    }
    if (!(at_ == At::kTop ? names_ : keys_).insert(value).second) {
      return Fail(at_ == At::kTop ? "tensor " + Shown(value) + " is there twice, allowed is once"
                                  : Whole() + " has the key " + Shown(value) + " twice, allowed is once");
    }
    if (at_ == At::kTensor && value != "dtype" && value != "shape" && value != "data_offsets") {
      return Fail(Whole() + " has the unknown key " + Shown(value) + ", allowed are dtype, shape and data_offsets");
    }
    if (at_ == At::kMetadata && keys_.size() > kMaxMetadataEntries) {
      return Fail(Whole() + " has more than " + std::to_string(kMaxMetadataEntries) + " entries, which are allowed");
    }
    (at_ == At::kTop ? name_ : key_) = std::move(value);
    return true;
  }

  bool end_object() {
    if (at_ == At::kTop) {
      at_ = At::kEnd;
      return true;
    }
    if (at_ == At::kTensor) {
      for (const char* needed : {"dtype", "shape", "data_offsets"}) {
        if (!keys_.contains(needed)) return Fail(Whole() + " has no " + needed + ", which each tensor must have");
      }
    }
    at_ = At::kTop;
    return true;
  }

  bool start_array(size_t) {
    if (at_ != At::kTensor || key_ == "dtype") return Unexpected("a list");
    list_ = key_ == "shape" ? &header_.tensors.back().shape : &header_.tensors.back().offsets;
    at_ = At::kList;
    return true;
  }

  bool end_array() {
    at_ = At::kTensor;
    if (key_ == "shape" || list_->size() == 2) return true;
    return Fail(Where() + " has " + std::to_string(list_->size()) + " numbers, allowed are exactly 2");
  }

  bool parse_error(size_t position, const std::string&, const Json::exception& error) {
    // The library puts its own name in brackets before the sentence.
    const std::string_view sentence = error.what();
    const size_t end = sentence.starts_with("[") ? sentence.find("] ") : std::string_view::npos;
    const std::string_view plain = end == std::string_view::npos ? sentence : sentence.substr(end + 2);
    return Fail("the header is not JSON at byte " + std::to_string(position) + ": " + Shown(plain));
  }

 private:
  // The place to which the next piece of JSON belongs.
  enum class At { kStart, kTop, kTensor, kMetadata, kList, kEnd };

  bool Fail(const std::string& what) {
    status_ = InvalidData(file_, ": ", what);
    return false;
  }
  std::string Whole() const { return at_ == At::kMetadata ? kMetadata : "tensor " + Shown(name_); }
  std::string Where() const { return Whole() + ": " + Shown(key_); }

  bool Unexpected(const std::string& found) {
    switch (at_) {
      case At::kStart:
        return Fail("the header is " + found + ", allowed is an object");
      case At::kTop:
        return Fail("tensor " + Shown(name_) + " is " + found + ", allowed is an object");
      case At::kMetadata:
        return Fail(Where() + " is " + found + ", allowed are texts");
      case At::kTensor:
        return Fail(Where() + " is " + found + ", allowed is " +
                    (key_ == "dtype" ? "the name of a type" : "a list of whole numbers from 0"));
      case At::kList:
        return Fail(Where() + " holds " + found + ", allowed are whole numbers from 0 to 2^64 - 1");
      case At::kEnd:
        break;
    }
    return Fail("there is something behind the header's object");
  }

  const std::string& file_;
  Header& header_;
  Status status_;
  At at_ = At::kStart;
  std::string name_, key_;              // the tensor's name, and the key within it or within the metadata
  std::set<std::string> names_, keys_;  // seen so far
  std::vector<uint64_t>* list_ = nullptr;
};

}  // namespace

Result<Header> ParseHeader(const std::string& file, std::string_view json) {
  // The parser would take a byte 0 as the end of the text and ignore the rest.
  if (const size_t zero = json.find('\0'); zero != std::string_view::npos) {
    return InvalidData(file, ": the header is not JSON at byte ", zero + 1, ": a byte 0");
  }
  Header header;
  HeaderEvents events(file, header);
  const bool whole = Json::sax_parse(json.begin(), json.end(), &events);
  WISP_RETURN_IF_ERROR(events.status());
  if (!whole) return InvalidData(file, ": the header is not JSON");
  return header;
}

}  // namespace wisp::convert
