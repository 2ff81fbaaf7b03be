#include "runtime/fleet/flower/messages.h"

#include <cmath>
#include <utility>

#include "runtime/fleet/flower/objects.h"

namespace wisp::fleet::flower {
namespace {

// Flower's own texts are ids of 64 digits, types such as "train", and short names of groups.
constexpr size_t kMostTextBytes = 256;
constexpr std::string_view kReplyMark = "wisp fleet reply 1";

// The protobuf Message without its content, which lies in objects of its own.
WireWriter EncodeMessage(const Metadata& metadata) {
  WireWriter message;
  return message.Message(1, EncodeMetadata(metadata));
}

// Writes the tree of a message, its RecordDict and that one's record.
WireWriter EncodeTree(std::string_view message, std::string_view record_dict, std::string_view record) {
  WireWriter leaf, middle, root;
  middle.Bytes(1, record_dict).Message(2, leaf.Bytes(1, record));
  return root.Bytes(1, message).Message(2, middle);
}

// Reads a tree in which each object has one child, but for the last.
Status DecodeTree(std::string_view tree, std::span<std::string> ids) {
  for (std::string& id : ids) {
    size_t children = 0;
    std::string_view child;
    WireReader reader(tree, "object tree");
    while (reader.Next()) {
      if (reader.field() == 1) id = reader.Text(kMostTextBytes);
      if (reader.field() == 2) {
        child = reader.Bytes();
        ++children;
      }
    }
    if (reader.status().ok() && !IsObjectId(id)) reader.Fail("has an id that is no SHA-256");
    WISP_RETURN_IF_ERROR(reader.status());
    if (children != (&id == &ids.back() ? 0 : 1)) {
      return Unsupported("the fleet's server sent a message that has not the three objects of wisp's messages");
    }
    tree = child;
  }
  return OkStatus();
}

Result<Metadata> DecodeMessage(std::string_view message) {
  std::string_view metadata;
  WireReader reader(message, "message");
  while (reader.Next()) {
    if (reader.field() == 1) metadata = reader.Bytes();
    if (reader.field() == 3) return Unsupported("the fleet's server sent an error in place of a request");
  }
  WISP_RETURN_IF_ERROR(reader.status());
  return DecodeMetadata(metadata);
}

}  // namespace

WireWriter EncodeMetadata(const Metadata& metadata) {
  WireWriter writer;
  writer.Varint(1, metadata.run_id).Bytes(2, metadata.message_id);
  writer.Varint(3, metadata.src_node_id).Varint(4, metadata.dst_node_id);
  writer.Bytes(5, metadata.reply_to_message_id).Bytes(6, metadata.group_id);
  writer.Double(7, metadata.ttl).Bytes(8, metadata.message_type).Double(9, metadata.created_at);
  if (metadata.src_task_id) writer.Varint(10, *metadata.src_task_id, Presence::kExplicit);
  if (metadata.dst_task_id) writer.Varint(11, *metadata.dst_task_id, Presence::kExplicit);
  return writer;
}

Result<Metadata> DecodeMetadata(std::string_view bytes) {
  Metadata metadata;
  WireReader reader(bytes, "metadata of a message");
  while (reader.Next()) {
    const uint32_t field = reader.field();
    if (field == 1) metadata.run_id = reader.Varint();
    if (field == 2) metadata.message_id = reader.Text(kMostTextBytes);
    if (field == 3) metadata.src_node_id = reader.Varint();
    if (field == 4) metadata.dst_node_id = reader.Varint();
    if (field == 5) metadata.reply_to_message_id = reader.Text(kMostTextBytes);
    if (field == 6) metadata.group_id = reader.Text(kMostTextBytes);
    if (field == 7) metadata.ttl = reader.Double();
    if (field == 8) metadata.message_type = reader.Text(kMostTextBytes);
    if (field == 9) metadata.created_at = reader.Double();
    if (field == 10) metadata.src_task_id = reader.Varint();
    if (field == 11) metadata.dst_task_id = reader.Varint();
  }
  // Sums of these times must be finite too, and converting them to whole seconds must be defined.
  const auto is_time = [](double time) { return time >= 0 && time < 1e12; };
  if (reader.status().ok() && !(is_time(metadata.created_at) && is_time(metadata.ttl))) reader.Fail("has no time");
  WISP_RETURN_IF_ERROR(reader.status());
  return metadata;
}

Result<std::optional<Incoming>> Incoming::FromAnswer(std::string_view answer) {
  std::string_view message, tree;
  size_t messages = 0, trees = 0;
  WireReader reader(answer, "answer to pull-messages");
  while (reader.Next()) {
    if (reader.field() == 2) {
      message = reader.Bytes();
      ++messages;
    } else if (reader.field() == 3) {
      tree = reader.Bytes();
      ++trees;
    }
  }
  if (reader.status().ok() && (messages > 1 || trees != messages)) {
    reader.Fail(JoinText("has ", messages, " messages and ", trees, " trees; allowed is one or none of both"));
  }
  WISP_RETURN_IF_ERROR(reader.status());
  if (messages == 0) return std::optional<Incoming>();
  Incoming incoming;
  WISP_ASSIGN_OR_RETURN(incoming.metadata, DecodeMessage(message));
  std::array<std::string, 3> ids;
  WISP_RETURN_IF_ERROR(DecodeTree(tree, ids));
  const Metadata& metadata = incoming.metadata;
  if (metadata.message_id != ids[0]) return InvalidData("the fleet's server sent a message with another one's objects");
  if (metadata.src_node_id != kServerNode || !metadata.reply_to_message_id.empty() || metadata.message_type.empty()) {
    return InvalidData("the fleet's server sent the message ", ids[0], ", which is no request: it has the source ",
                       metadata.src_node_id, "; allowed is 1");
  }
  incoming.record_dict_id = std::move(ids[1]);
  incoming.record_id = std::move(ids[2]);
  return std::optional<Incoming>(std::move(incoming));
}

std::string Incoming::ToBytes() const {
  WireWriter answer;
  answer.Message(2, EncodeMessage(metadata));
  return answer.Message(3, EncodeTree(metadata.message_id, record_dict_id, record_id)).Take();
}

Result<Incoming> Incoming::Parse(std::string_view bytes) {
  WISP_ASSIGN_OR_RETURN(std::optional<Incoming> incoming, FromAnswer(bytes));
  if (!incoming) return InvalidData("the file of a fleet's request holds none");
  return *std::move(incoming);
}

Result<Reply> Reply::Make(const Incoming& request, const ConfigRecord& record, double now) {
  const Metadata& asked = request.metadata;
  Metadata metadata{.run_id = asked.run_id,
                    .src_node_id = asked.dst_node_id,
                    .dst_node_id = asked.src_node_id,
                    .reply_to_message_id = asked.message_id,
                    .group_id = asked.group_id,
                    .message_type = asked.message_type,
                    .created_at = std::floor(now),
                    .src_task_id = asked.dst_task_id,
                    .dst_task_id = asked.src_task_id};
  metadata.ttl = asked.expires_at() - metadata.created_at;
  if (!(metadata.created_at > 0 && asked.expires_at() > now)) {
    return Cancelled("the time for a reply to the fleet's server is over");
  }
  Reply reply;
  auto& [leaf, middle, root] = reply.objects_;
  leaf.content = MakeObject("ConfigRecord", "", record.Encode());
  leaf.id = ObjectId(leaf.content);
  middle.content = MakeObject("RecordDict", leaf.id, WriteRecordDict(leaf.id));
  middle.id = ObjectId(middle.content);
  root.content = MakeObject("Message", middle.id, EncodeMessage(metadata).Take());
  root.id = ObjectId(root.content);
  metadata.message_id = root.id;
  reply.metadata_ = std::move(metadata);
  return reply;
}

std::string Reply::ToBytes() const {
  WireWriter file;
  file.Bytes(1, kReplyMark).Bytes(2, metadata_.message_id);
  for (const Object& object : objects_) file.Bytes(3, object.content);
  return file.Take();
}

Result<Reply> Reply::Parse(std::string_view bytes) {
  Reply reply;
  size_t objects = 0;
  std::string mark, message_id;
  WireReader reader(bytes, "stored reply");
  while (reader.Next()) {
    if (reader.field() == 1) mark = reader.Text(kMostTextBytes);
    if (reader.field() == 2) message_id = reader.Text(kMostTextBytes);
    if (reader.field() == 3 && objects < reply.objects_.size()) reply.objects_[objects++].content = reader.Bytes();
  }
  WISP_RETURN_IF_ERROR(reader.status());
  if (mark != kReplyMark || !IsObjectId(message_id))
    return InvalidData("the file of a fleet's reply is no such file, or of another version");
  auto& [leaf, middle, root] = reply.objects_;
  for (Object& object : reply.objects_) object.id = ObjectId(object.content);
  root.id = message_id;
  WISP_RETURN_IF_ERROR(ReadObject(leaf.content, leaf.id, "ConfigRecord", "").status());
  WISP_ASSIGN_OR_RETURN(const std::string_view dict, ReadObject(middle.content, middle.id, "RecordDict", leaf.id));
  WISP_RETURN_IF_ERROR(CheckRecordDict(dict, leaf.id));
  WISP_ASSIGN_OR_RETURN(const std::string_view message, ReadObject(root.content, message_id, "Message", middle.id));
  WISP_ASSIGN_OR_RETURN(reply.metadata_, DecodeMessage(message));
  reply.metadata_.message_id = message_id;
  if (reply.ToBytes() != bytes) return InvalidData("the file of a fleet's reply has more than a reply");
  return reply;
}

std::string Reply::PushRequest() const {
  WireWriter node, request;
  request.Message(1, node.Varint(1, metadata_.src_node_id));
  request.Message(2, EncodeMessage(metadata_).Message(2, WireWriter()));
  const auto& [leaf, middle, root] = objects_;
  return request.Message(3, EncodeTree(root.id, middle.id, leaf.id)).Take();
}

}  // namespace wisp::fleet::flower
