#include "runtime/fleet/flower/messages.h"

#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "runtime/core/hex.h"
#include "runtime/core/text.h"
#include "runtime/fleet/flower/connection.h"
#include "runtime/fleet/flower/objects.h"

namespace wisp::fleet::messages_test {
namespace {

using namespace flower;

// Bytes and ids that flwr 1.42 made (its modules app, supercore.inflatable and proto), for messages with the values
// that the functions below repeat.
constexpr const char* kRequestRecordId = "73d0ce046c32e417fd0b7714d15c0fa7f94d9ec7bbcce2aed559a71fc55f33f3";
constexpr const char* kRequestRecordDictId = "d7817fdbd716f1d8335cd4ab63d85c161ccb01cbeca467ee57903f5248ef1a09";
constexpr const char* kRequestMessageId = "df295abef80b4feb7fa9c0c8248507ad8a59f609a22af1418fe8932918c5884c";
constexpr const char* kRequestRecord =
    "436f6e6669675265636f72642020323935000a1c0a04706c616e12142a127b226e616d65223a2022636166c3a9227d0a0a0f0a047461736b"
    "12072a05747261696e0a0b0a05726f756e641202100e0ad7010a077765696768747312cb0132c801000102030405060708090a0b0c0d0e0f"
    "101112131415161718191a1b1c1d1e1f202122232425262728292a2b2c2d2e2f303132333435363738393a3b3c3d3e3f4041424344454647"
    "48494a4b4c4d4e4f505152535455565758595a5b5c5d5e5f606162636465666768696a6b6c6d6e6f707172737475767778797a7b7c7d7e7f"
    "808182838485868788898a8b8c8d8e8f909192939495969798999a9b9c9d9e9fa0a1a2a3a4a5a6a7a8a9aaabacadaeafb0b1b2b3b4b5b6b7"
    "b8b9babbbcbdbebfc0c1c2c3c4c5c6c70a0f0a097369676e617475726512023200";
constexpr const char* kRequestMessage =
    "4d65737361676520643738313766646264373136663164383333356364346162363364383563313631636362303163626563613436376565"
    "35373930336635323438656631613039203535000a3508ce91af8edafbf3d28301180120d8f0cbe189a685960e32013739000000000020ac"
    "404205747261696e490000108074d2da415005";
constexpr const char* kAnswer =
    "127b0a7708ce91af8edafbf3d283011240646632393561626566383062346665623766613963306338323438353037616438613539663630"
    "39613232616631343138666538393332393138633538383463180120d8f0cbe189a685960e32013739000000000020ac404205747261696e"
    "490000108074d2da41500512001acb010a406466323935616265663830623466656237666139633063383234383530376164386135396636"
    "30396132326166313431386665383933323931386335383834631286010a4064373831376664626437313666316438333335636434616236"
    "33643835633136316363623031636265636134363765653537393033663532343865663161303912420a4037336430636530343663333265"
    "343137666430623737313464313563306661376639346439656337626263636532616564353539613731666335356633336633";
constexpr const char* kReplyRecordId = "5c40d85852350cb759f4e3fcc2e19065cd446d7b992a68ce941c92c8d290e146";
constexpr const char* kReplyRecordDictId = "4929457165c755cce2a586ba9a0d087ee4bcc7758fc260a832d8117a015cdb3b";
constexpr const char* kReplyMessageId = "e40f621d4cacaaeb4d93d8993bee6316e0030ead1cc8d4af1e890aa784ab1fb2";
constexpr const char* kPushRequest =
    "0a0a08d8f0cbe189a685960e12be010ab90108ce91af8edafbf3d28301124065343066363231643463616361616562346439336438393933"
    "62656536333136653030333065616431636338643461663165383930616137383461623166623218d8f0cbe189a685960e20012a40646632"
    "3935616265663830623466656237666139633063383234383530376164386135396636303961323261663134313866653839333239313863"
    "353838346332013739000000008058ab404205747261696e490000009974d2da41580512001acb010a406534306636323164346361636161"
    "65623464393364383939336265653633313665303033306561643163633864346166316538393061613738346162316662321286010a4034"
    "3932393435373136356337353563636532613538366261396130643038376565346263633737353866633236306138333264383131376130"
    "3135636462336212420a40356334306438353835323335306362373539663465336663633265313930363563643434366437623939326136"
    "38636539343163393263386432393065313436";
constexpr const char* kOtherAppsAnswer =
    "12650a6108031240613236333861353131383336376630386334663138636364336336613136353161613365663634353439353562346566"
    "3232353238386238663837303232653718012004390000000000004e404205747261696e490000008074d2da4112001a99030a4061323633"
    "3861353131383336376630386334663138636364336336613136353161613365663634353439353562346566323235323838623866383730"
    "3232653712d4020a403430646263393839646639633936643264313962386466316261653630396265623066333637376432666262346430"
    "303036393466376666346133353134653012cb010a4033613239336162663137666366636332336262313463373037333733623134373431"
    "3562316236333736656633356134613631313864373563303265373739351286010a40653731373638343930623464323135306165626233"
    "3937373738386233336532346436353161633565393461633537633764633965623236383762666238326212420a40326531333532363265"
    "3630383433313434663065663832353039306233626634633161303433393030396566383132343730663061396465373236303862343612"
    "420a406566633031356335323537346338656161316363636166363031393166323130366263353438643138363735616230653539396232"
    "3935366438343165646262";
constexpr const char* kLists = "0a1b0a026c721215aa01120a109a9999999999b93f9a9999999999c93f";
constexpr const char* kReal = "0a0f0a026c721209099a9999999999b93f";

std::string FromHex(std::string_view digits) {
  const auto value = [](char c) { return c <= '9' ? c - '0' : c - 'a' + 10; };
  std::string bytes;
  for (size_t i = 0; i + 1 < digits.size(); i += 2) {
    bytes += static_cast<char>(value(digits[i]) * 16 + value(digits[i + 1]));
  }
  return bytes;
}

ConfigRecord RequestRecord() {
  std::string weights;
  for (int i = 0; i < 200; ++i) weights += static_cast<char>(i);
  ConfigRecord record;
  record.SetText("plan", "{\"name\": \"caf\u00e9\"}\n").SetText("task", "train").SetWhole("round", 7);
  record.SetBytes("weights", weights).SetBytes("signature", "");
  return record;
}

ConfigRecord ReplyRecord() {
  std::string plan;
  for (int i = 0; i < 32; ++i) plan += "ab";
  ConfigRecord record;
  record.SetText("plan", plan).SetText("task", "train").SetWhole("round", -7).SetBytes("nonce", std::string(16, '\0'));
  record.SetBytes("update", std::string("\xff\0\x01\x7f\x80", 5));
  return record;
}

Incoming Request() { return **Incoming::FromAnswer(FromHex(kAnswer)); }

TEST(Messages, RequestOfFlowerIsRead) {
  const auto read = Incoming::FromAnswer(FromHex(kAnswer));
  ASSERT_TRUE(read.ok() && *read) << read.status().message();
  const Incoming& request = **read;
  EXPECT_EQ(request.metadata, (Metadata{.run_id = 9486216740935026894u,
                                        .message_id = kRequestMessageId,
                                        .src_node_id = 1,
                                        .dst_node_id = 1021214514029459544,
                                        .group_id = "7",
                                        .ttl = 3600,
                                        .message_type = "train",
                                        .created_at = 1800000000.25,
                                        .src_task_id = 5}));
  EXPECT_EQ(request.record_dict_id, kRequestRecordDictId);
  EXPECT_EQ(request.record_id, kRequestRecordId);
  const auto stored = Incoming::Parse(request.ToBytes());
  ASSERT_TRUE(stored.ok());
  EXPECT_EQ(stored->metadata, request.metadata);
  EXPECT_EQ(stored->record_id, request.record_id);

  const std::string message = FromHex(kRequestMessage), object = FromHex(kRequestRecord);
  EXPECT_TRUE(ReadObject(message, kRequestMessageId, "Message", kRequestRecordDictId).ok());
  const auto body = ReadObject(object, kRequestRecordId, "ConfigRecord", "");
  ASSERT_TRUE(body.ok()) << body.status().message();
  const auto record = ConfigRecord::Decode(*body);
  ASSERT_TRUE(record.ok()) << record.status().message();
  EXPECT_EQ(record->Encode(), *body);
  EXPECT_EQ(record->Encode(), RequestRecord().Encode());
  EXPECT_EQ(*record->Text("plan", 100), "{\"name\": \"caf\u00e9\"}\n");
  EXPECT_EQ(*record->Whole("round", 0, 7), 7);
  EXPECT_EQ(record->Bytes("weights", 200)->size(), 200u);
  EXPECT_EQ(*record->Bytes("signature", 0), "");
}

TEST(Messages, ReplyHasTheBytesOfFlower) {
  const auto reply = Reply::Make(Request(), ReplyRecord(), 1800000100.75);
  ASSERT_TRUE(reply.ok()) << reply.status().message();
  EXPECT_EQ(reply->objects()[0].id, kReplyRecordId);
  EXPECT_EQ(reply->objects()[1].id, kReplyRecordDictId);
  EXPECT_EQ(reply->objects()[2].id, kReplyMessageId);
  for (const Reply::Object& object : reply->objects()) EXPECT_EQ(ObjectId(object.content), object.id);
  EXPECT_EQ(ToHex(reply->PushRequest()), kPushRequest);
}

TEST(Messages, StoredReplyIsTheSame) {
  const Reply reply = *Reply::Make(Request(), ReplyRecord(), 1800000100.75);
  const std::string bytes = reply.ToBytes();
  const auto read = Reply::Parse(bytes);
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(read->PushRequest(), reply.PushRequest());
  EXPECT_EQ(read->metadata(), reply.metadata());
  EXPECT_EQ(read->ToBytes(), bytes);
  for (size_t i = 0; i < bytes.size(); ++i) {
    EXPECT_FALSE(Reply::Parse(bytes.substr(0, i)).ok()) << i;
    for (int bit = 0; bit < 8; ++bit) {
      std::string changed = bytes;
      changed[i] = static_cast<char>(changed[i] ^ (1 << bit));
      const auto damaged = Reply::Parse(changed);
      ASSERT_FALSE(damaged.ok()) << i;
      EXPECT_EQ(Printable(damaged.status().message()), damaged.status().message());
    }
  }
  EXPECT_FALSE(Reply::Parse(bytes + bytes).ok());
  EXPECT_FALSE(Reply::Parse(bytes + '\x20' + '\x01').ok());  // another field
}

TEST(Messages, DamagedAnswersAreErrors) {
  const std::string bytes = FromHex(kAnswer);
  size_t read = 0;
  for (size_t i = 0; i < bytes.size(); ++i) {
    EXPECT_EQ(Incoming::FromAnswer(bytes.substr(0, i)).ok(), i == 0) << i;
    for (int bit = 0; bit < 8; ++bit) {
      std::string changed = bytes;
      changed[i] = static_cast<char>(changed[i] ^ (1 << bit));
      const auto incoming = Incoming::FromAnswer(changed);
      EXPECT_TRUE(incoming.ok() || !incoming.status().message().empty());
      read += incoming.ok() ? 1 : 0;
    }
  }
  EXPECT_LT(read, bytes.size() * 8 / 4);  // the ids of objects, and times, may have other values
  EXPECT_FALSE(Incoming::FromAnswer(bytes + bytes).ok());
  const auto nothing = Incoming::FromAnswer("");
  EXPECT_TRUE(nothing.ok() && !*nothing);
  EXPECT_FALSE(Incoming::Parse("").ok());
}

TEST(Messages, ThoseOfOtherAppsAreSkipped) {
  EXPECT_EQ(Incoming::FromAnswer(FromHex(kOtherAppsAnswer)).status().code(), StatusCode::kUnsupported);
}

TEST(Messages, RequestComesFromTheServerAndHasTimes) {
  const auto code_of = [](auto change) {
    Incoming request = Request();
    change(request.metadata);
    return Incoming::Parse(request.ToBytes()).status().code();
  };
  EXPECT_EQ(code_of([](Metadata&) {}), StatusCode::kOk);
  EXPECT_EQ(code_of([](Metadata& m) { m.src_node_id = 2; }), StatusCode::kInvalidData);
  EXPECT_EQ(code_of([](Metadata& m) { m.reply_to_message_id = m.message_id; }), StatusCode::kInvalidData);
  EXPECT_EQ(code_of([](Metadata& m) { m.message_type.clear(); }), StatusCode::kInvalidData);
  EXPECT_EQ(code_of([](Metadata& m) { m.message_id = "no hash"; }), StatusCode::kInvalidData);
  EXPECT_EQ(code_of([](Metadata& m) { m.group_id = std::string(257, 'g'); }), StatusCode::kInvalidData);
  EXPECT_EQ(code_of([](Metadata& m) { m.group_id = "\xff"; }), StatusCode::kInvalidData);
  for (const double time : {-1.0, 1e300, HUGE_VAL, std::nan("")}) {
    EXPECT_EQ(code_of([&](Metadata& m) { m.ttl = time; }), StatusCode::kInvalidData);
    EXPECT_EQ(code_of([&](Metadata& m) { m.created_at = time; }), StatusCode::kInvalidData);
  }
}

TEST(Messages, ReplyHasATime) {
  for (const double now : {1800003600.25, 1e12, -1.0, 0.0, std::nan(""), HUGE_VAL}) {
    EXPECT_EQ(Reply::Make(Request(), ReplyRecord(), now).status().code(), StatusCode::kCancelled) << now;
  }
  EXPECT_TRUE(Reply::Make(Request(), ReplyRecord(), 1800003600).ok());
}

TEST(ConfigRecord, OtherKindsOfValuesAreRefused) {
  EXPECT_FALSE(ConfigRecord::Decode(FromHex(kLists)).ok());
  EXPECT_FALSE(ConfigRecord::Decode(FromHex(kReal)).ok());
  EXPECT_TRUE(ConfigRecord::Decode("").ok());
  EXPECT_EQ(ConfigRecord::Decode(ConfigRecord().SetWhole("a", 1).SetText("a", "b").Encode()).status().message(),
            "the fleet's ConfigRecord has a key twice, at byte 19");
  EXPECT_FALSE(ConfigRecord::Decode(ConfigRecord().SetText("a", "\xff").Encode()).ok());
  EXPECT_TRUE(ConfigRecord::Decode(ConfigRecord().SetBytes("a", "\xff").Encode()).ok());
  EXPECT_FALSE(ConfigRecord::Decode(WireWriter().Bytes(1, WireWriter().Bytes(1, "a").Take()).Take()).ok());
  ConfigRecord many;
  for (size_t i = 0; i < ConfigRecord::kMostValues; ++i)
    many.SetWhole(std::to_string(i), INT64_MIN + static_cast<int64_t>(i));
  const auto read = ConfigRecord::Decode(many.Encode());
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(*read->Whole("0", INT64_MIN, 0), INT64_MIN);
  EXPECT_FALSE(ConfigRecord::Decode(many.SetWhole("one more", 0).Encode()).ok());
}

TEST(ConfigRecord, GettersTellWhatIsAllowed) {
  const ConfigRecord record = RequestRecord();
  EXPECT_EQ(record.Whole("round", 8, 9).status().message(), "the fleet's message has \"round\" 7; allowed are 8 to 9");
  EXPECT_EQ(record.Text("round", 9).status().message(),
            "the fleet's message has \"round\" as a whole number; it must be a text");
  EXPECT_EQ(record.Bytes("none", 9).status().message(), "the fleet's message has no \"none\"; it must be bytes");
  EXPECT_EQ(record.Bytes("weights", 199).status().message(),
            "the fleet's message has \"weights\" of 200 bytes; allowed are 199 at most");
}

TEST(Objects, HaveOneFormAlone) {
  const std::string id(64, 'a');
  const auto is_read = [&](const std::string& object, std::string_view type, std::string_view child) {
    return ReadObject(object, ObjectId(object), type, child).ok();
  };
  EXPECT_TRUE(is_read(MakeObject("Message", id, "body"), "Message", id));
  EXPECT_TRUE(is_read(std::string("ConfigRecord  0\0", 16), "ConfigRecord", ""));
  EXPECT_FALSE(is_read("ConfigRecord  0", "ConfigRecord", ""));
  EXPECT_FALSE(is_read(std::string("ConfigRecord  00\0", 17), "ConfigRecord", ""));
  EXPECT_FALSE(is_read(std::string("ConfigRecord  1\0", 16), "ConfigRecord", ""));
  EXPECT_FALSE(is_read(std::string("ConfigRecord 0\0", 15), "ConfigRecord", ""));
  EXPECT_FALSE(is_read(MakeObject("Message", id, "body"), "RecordDict", id));
  EXPECT_FALSE(is_read(MakeObject("Message", id, "body"), "Message", ""));
  EXPECT_FALSE(is_read("", "Message", ""));
  EXPECT_FALSE(ReadObject(MakeObject("Message", id, "body"), id, "Message", id).ok());
  EXPECT_TRUE(CheckRecordDict(WriteRecordDict(id), id).ok());
  EXPECT_TRUE(CheckRecordDict("{\"wi\\u0073p\":\"" + id + "\"}", id).ok());
  EXPECT_FALSE(CheckRecordDict("{\"wisp\": \"" + id + "\", \"b\": \"" + id + "\"}", id).ok());
  EXPECT_FALSE(CheckRecordDict("{\"other\": \"" + id + "\"}", id).ok());
  EXPECT_FALSE(CheckRecordDict(WriteRecordDict(id), std::string(64, 'b')).ok());
  EXPECT_TRUE(IsObjectId(id));
  EXPECT_FALSE(IsObjectId(std::string(64, 'A')) || IsObjectId(std::string(63, 'a')) ||
               IsObjectId(std::string(64, 'g')));
}

// Keeps the bodies of requests and answers each with the node's id.
class Recorder final : public Transport {
 public:
  std::map<std::string, std::string> bodies;
  std::vector<HttpHeader> headers;
  Result<HttpReply> Post(const std::string& path, std::span<const HttpHeader> with, std::string_view body,
                         size_t) override {
    const bool first = !bodies.contains(path) && path.ends_with("/activate-node");
    bodies[path] = ToHex(body);
    headers.assign(with.begin(), with.end());
    if (path.ends_with("push-messages"))
      return HttpReply{200, 0, WireWriter().Bytes(3, kReplyRecordId).Bytes(4, "s1").Take()};
    if (path.ends_with("pull-object")) return HttpReply{200, 0, ""};
    return HttpReply{first ? 412 : 200, 0,
                     path.ends_with("pull-messages") ? "" : WireWriter().Varint(1, 1021214514029459544).Take()};
  }
  Result<std::string> Sign(std::string_view message) override { return "(" + std::string(message) + ")"; }
  const std::string& public_key_pem() const override { return key_; }
  Status Verify(const std::string&, std::string_view, std::string_view) override { return OkStatus(); }
  double Now() const override { return 1800000000.9; }

 private:
  std::string key_ = "key";
};

TEST(Connection, RequestsHaveTheBytesOfFlower) {
  Recorder recorder;
  Connection connection(recorder);
  ASSERT_TRUE(connection.Join(1800).ok());
  EXPECT_EQ(connection.Fetch(Request(), 1000).status().code(), StatusCode::kCancelled);
  ASSERT_TRUE(connection.Join(30, 1021214514029459544).ok());
  ASSERT_TRUE(connection.Pull().ok() && connection.Confirm(Request()).ok());
  ASSERT_TRUE(connection.Push(*Reply::Make(Request(), ReplyRecord(), 1800000100)).ok());
  ASSERT_TRUE(connection.Leave().ok() && connection.Unregister().ok());
  const std::string node = "0a0a08d8f0cbe189a685960e", run = "10ce91af8edafbf3d28301", object = "1a40";
  const auto text = [](std::string_view t) { return ToHex(t); };
  const std::map<std::string, std::string> expected = {
      {"/v1/fleet/activate-node", "0a036b6579110000000000209c40"},
      {"/v1/fleet/register-node", "0a036b6579"},
      {"/v1/fleet/send-node-heartbeat", node + "110000000000003e40"},
      {"/v1/fleet/pull-messages", node},
      {"/v1/fleet/pull-object", node + run + object + text(kRequestMessageId)},
      {"/v1/fleet/confirm-message-received", node + run + object + text(kRequestMessageId)},
      {"/v1/fleet/push-messages", kPushRequest},
      {"/v1/fleet/push-object", node + run + object + text(kReplyRecordId) + "22ac01" +
                                    text(MakeObject("ConfigRecord", "", ReplyRecord().Encode())) + "2a027331"},
      {"/v1/fleet/deactivate-node", "08d8f0cbe189a685960e"},
      {"/v1/fleet/unregister-node", "08d8f0cbe189a685960e"}};
  EXPECT_EQ(recorder.bodies, expected);
  const std::map<std::string, std::string> headers = {{"content-type", "application/protobuf"},
                                                      {"flwr-public-key", "a2V5"},
                                                      {"flwr-timestamp", "2027-01-15T08:00:00+00:00"},
                                                      {"flwr-signature", "KDIwMjctMDEtMTVUMDg6MDA6MDArMDA6MDAp"}};
  std::map<std::string, std::string> found;
  for (const HttpHeader& header : recorder.headers) found[header.name] = header.value;
  EXPECT_EQ(found, headers);
}

}  // namespace
}  // namespace wisp::fleet::messages_test
